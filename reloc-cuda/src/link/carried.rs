//! Attributes that kernels take over from what they call.

use super::error::{LinkError, LinkErrorKind};
use super::record;
use alloc::string::ToString;
use alloc::vec::Vec;
use elf_core::Name;
use nvinfo::{Attribute, AttributeValue, eiattr};

/// `EIATTR_AT_ENTRY_FRAGMENTS`: code that is to run before a kernel; device functions have none in a linked file.
pub(super) const AT_ENTRY_FRAGMENTS: u8 = 0x4f;
/// `EIATTR_SPARSE_MMA_MASK`.
pub(super) const SPARSE_MMA_MASK: u8 = 0x50;
/// `EIATTR_PREEXIT_USED`, which kernels take over from `sm_100` on.
const PREEXIT_USED: u8 = 0x6d;
/// The mask of a function that has none, where another function has one.
const UNKNOWN_MASK: u32 = 0x8000;
/// `EIATTR_TCGEN05_1CTA_USED`, `EIATTR_TCGEN05_2CTA_USED`: a kernel has one of them at most.
const CTA_GROUPS: [u8; 2] = [0x51, 0x52];
/// Fragments of tensor memory as toolkit 12 and as toolkit 13 have it: no link has both.
const TENSOR_MEMORY: [u32; 2] = [5, 6];

/// What becomes of an attribute of several functions.
#[derive(Clone, Copy)]
enum Merge {
    /// There is no value.
    Any,
    Most,
    Sum,
    Bits,
    /// The last function's.
    Last,
    /// Every value once.
    List,
}

/// Number, format of a record that a kernel gets, what becomes of values.
const CARRIED: [(u8, u8, Merge); 14] = [
    (0x04, 1, Merge::Any), // CTAIDZ_USED
    (0x38, 3, Merge::Sum), // NUM_MBARRIERS
    (0x41, 1, Merge::Any), // RESERVED_SMEM_USED
    (VRC_CTA_INIT_COUNT, 2, Merge::Most),
    (eiattr::NUM_BARRIERS, 2, Merge::Most),
    (AT_ENTRY_FRAGMENTS, 4, Merge::List),
    (SPARSE_MMA_MASK, 3, Merge::Bits),
    (0x51, 1, Merge::Any), // TCGEN05_1CTA_USED
    (0x52, 1, Merge::Any), // TCGEN05_2CTA_USED
    (REG_RECONFIG, 1, Merge::Last),
    (0x62, 1, Merge::Any),  // CLUSTER_LAUNCH_CONTROL_USED
    (0x66, 4, Merge::List), // LANGUAGE
    (0x68, 3, Merge::Bits), // GRID_ATTRIBUTES
    (PREEXIT_USED, 2, Merge::Most),
];

/// `EIATTR_VRC_CTA_INIT_COUNT`.
const VRC_CTA_INIT_COUNT: u8 = 0x4a;
/// `EIATTR_REG_RECONFIG`: the code takes and gives back registers itself.
pub(super) const REG_RECONFIG: u8 = 0x54;
/// Attributes of which an only kernel keeps its own. The last of them only where no function of any object is dropped or undefined.
const KEPT_ALONE: [u8; 3] = [VRC_CTA_INIT_COUNT, REG_RECONFIG, SPARSE_MMA_MASK];

/// The attributes of this kind that a function has, in its order: numbers and values.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried(Vec<(u8, Vec<u32>)>);

impl Carried {
    /// Takes a record, if it is of this kind for the architecture.
    pub(super) fn add(&mut self, row: &Attribute<'_>, sm: u32) {
        if row.number == PREEXIT_USED && sm < 100 {
            return;
        }
        if merge_of(row.number).is_some() && !self.has(row.number) {
            self.0.push((row.number, values(row)));
        }
    }

    /// Barriers that flags of the code tell.
    pub(super) fn add_barriers(&mut self, count: u32) {
        if count > 0 && !self.has(eiattr::NUM_BARRIERS) {
            self.0.push((eiattr::NUM_BARRIERS, Vec::from([count])));
        }
    }

    /// Adds the mask of a function that has none.
    pub(super) fn add_unknown_mask(&mut self) {
        if !self.has(SPARSE_MMA_MASK) {
            self.0.extend(Self::of_unknown_mask().0);
        }
    }

    /// That mask alone.
    pub(super) fn of_unknown_mask() -> Self {
        Self(Vec::from([(SPARSE_MMA_MASK, Vec::from([UNKNOWN_MASK]))]))
    }

    /// The record of this mask.
    pub(super) fn unknown_mask() -> Vec<u8> {
        record::head(3, SPARSE_MMA_MASK, UNKNOWN_MASK as u16)
    }

    pub(super) fn has_mask(&self) -> bool {
        self.has(SPARSE_MMA_MASK)
    }

    pub(super) fn has(&self, number: u8) -> bool {
        self.0.iter().any(|known| known.0 == number)
    }

    /// Numbers of the attributes of which a kernel keeps its own values, if it has any. The only kernel of a program is another
    /// matter, as with nvlink, and another one where all functions stay and none is undefined.
    pub(super) fn kept_numbers(is_alone: bool, is_whole: bool) -> &'static [u8] {
        match (is_alone, is_whole, &KEPT_ALONE) {
            (false, ..) => &[],
            (true, false, [kept @ .., _]) => kept,
            (true, true, all) => all,
        }
    }

    /// Takes what a function has that is called, but for attributes in `kept`, of which the kernel has the values `own`.
    pub(super) fn merge(&mut self, callee: &Self, own: &Self, kept: &[u8]) {
        for (number, values) in &callee.0 {
            let keeps = own.has(*number) && kept.contains(number);
            let known = self.0.iter_mut().find(|known| known.0 == *number);
            match known.zip(merge_of(*number)) {
                Some(((SPARSE_MMA_MASK, known), merge)) if keeps => {
                    join(
                        known,
                        &values.iter().map(|mask| mask & UNKNOWN_MASK).collect::<Vec<_>>(),
                        merge,
                    );
                }
                Some(_) if keeps => {}
                Some(((_, known), merge)) => join(known, values, merge),
                None => self.0.push((*number, values.clone())),
            }
        }
    }

    /// Puts the fragments last, as the only kernel of a program has them.
    pub(super) fn fragments_last(&mut self) {
        self.0.sort_by_key(|known| known.0 == AT_ENTRY_FRAGMENTS);
    }

    /// The record of this number, `row` with the value that it has with those of all callees; it is done then. Nothing, if
    /// there is none any more.
    pub(super) fn take(&mut self, row: &Attribute<'_>) -> Option<Vec<u8>> {
        let at = self.0.iter().position(|known| known.0 == row.number)?;
        let (number, values) = self.0.remove(at);
        let value = values.first().copied().unwrap_or(0) as u16;
        Some(match row.value {
            AttributeValue::None(_) => record::head(1, number, value),
            AttributeValue::Byte(..) => record::byte(number, u32::from(value)),
            AttributeValue::Half(_) => record::head(3, number, value),
            AttributeValue::Bytes(_) => record::words(number, &values),
        })
    }

    /// Without what the Mercury form does not have.
    pub(super) fn of_mercury(mut self) -> Self {
        self.0.retain(|row| row.0 != PREEXIT_USED);
        self
    }

    /// Records of all that is left.
    pub(super) fn rest(self) -> impl Iterator<Item = Vec<u8>> {
        self.0.into_iter().map(|(number, values)| {
            let value = values.first().copied().unwrap_or(0);
            match CARRIED.iter().find(|row| row.0 == number).map(|row| (row.1, row.2)) {
                Some((1, Merge::Any)) => record::head(1, number, 0),
                Some((2, _)) => record::byte(number, value),
                Some((4, _)) => record::words(number, &values),
                row => record::head(row.map_or(3, |row| row.0), number, value as u16),
            }
        })
    }

    /// Whether this is of code for tensor memory, of toolkit 12 and of toolkit 13.
    pub(super) fn tensor_memory(&self) -> [bool; 2] {
        let fragments = self.0.iter().filter(|known| known.0 == AT_ENTRY_FRAGMENTS);
        let all: Vec<_> = fragments.flat_map(|known| &known.1).collect();
        TENSOR_MEMORY.map(|fragment| all.contains(&&fragment))
    }

    /// Checks that `kernel` uses tensor memory of a block or of two, not both.
    pub(super) fn check(&self, object: usize, kernel: Name<'_>) -> Result<(), LinkError> {
        if CTA_GROUPS.iter().all(|&group| self.has(group)) {
            let kind = LinkErrorKind::TensorGroups(kernel.to_string());
            return Err(LinkError::new(object, kind));
        }
        Ok(())
    }
}

fn merge_of(number: u8) -> Option<Merge> {
    CARRIED.iter().find(|row| row.0 == number).map(|row| row.2)
}

fn values(row: &Attribute<'_>) -> Vec<u32> {
    match row.value {
        AttributeValue::None(value) | AttributeValue::Half(value) => Vec::from([u32::from(value)]),
        AttributeValue::Byte(low, _) => Vec::from([u32::from(low)]),
        AttributeValue::Bytes(bytes) => {
            bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
        }
    }
}

fn join(known: &mut Vec<u32>, new: &[u32], merge: Merge) {
    let (Some(first), Some(&value)) = (known.first_mut(), new.first()) else {
        return known.extend(new);
    };
    match merge {
        Merge::Any => {}
        Merge::Most => *first = value.max(*first),
        Merge::Sum => *first = first.saturating_add(value).min(0xffff),
        Merge::Bits => *first |= value,
        Merge::Last => *first = value,
        Merge::List => {
            let added: Vec<_> = new.iter().filter(|one| !known.contains(one)).copied().collect();
            known.extend(added);
        }
    }
}
