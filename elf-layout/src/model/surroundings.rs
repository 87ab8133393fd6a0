//! What decides whether code becomes shorter.

use crate::model::edits::{Edit, Edits, may_shrink};
use crate::model::options::Options;
use crate::model::owner::owner;
use crate::model::spans::Group;
use crate::model::storage::{Needs, ObjectSlot, SectionSlot, SymbolSlot, SymbolState};
use elf_core::{Addresses, Arch, Slot};

/// What decides whether code becomes shorter, of all symbols alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'l> {
    pub(crate) objects: &'l [ObjectSlot<'l>],
    pub(crate) options: &'l Options,
    /// Where the global pointer is, if code may count from there.
    pub(crate) global_pointer: Option<u64>,
    /// Address of the GOT.
    pub(crate) got: u64,
    /// TP offset of the block of thread-local variables in bytes, if that is known.
    pub(crate) block: Option<i64>,
    /// `e_flags` of the object.
    pub(crate) flags: u32,
}

impl Surroundings<'_> {
    /// What is known of a symbol by the slot of its definition, which is at `address`, or at `variable` bytes from the start of the block of
    /// thread-local variables. `None` of what moves or is somebody else's.
    pub(crate) fn addresses<A: Arch>(
        &self,
        slot: &SymbolSlot,
        address: u64,
        variable: Option<u64>,
        place: u64,
    ) -> Option<Addresses> {
        if !self.options.relax {
            return None;
        }
        let mut known = Addresses::default();
        (known.flags, known.address_size) = (self.flags, A::ADDRESS_SIZE);
        match slot.state {
            SymbolState::Defined
            | SymbolState::Common
            | SymbolState::External
            | SymbolState::ExternalFunction
                if !slot.needs.has(Needs::NEAR.with(Needs::LOW).with(Needs::EDGE)) =>
            {
                let is_of_image = slot.group != Group::Absolute;
                if is_of_image || self.options.base.is_some() {
                    let distance = |to: u64| signed::<A>(address.wrapping_sub(to));
                    known.distance = Some(distance(place));
                    known.absolute = self.options.base.map(|_| distance(0));
                    known.from_global_pointer = self.global_pointer.map(distance);
                }
            }
            SymbolState::ThreadLocal => {
                let block = self.block.zip(variable);
                known.from_thread_pointer =
                    block.and_then(|(block, variable)| block.checked_add_unsigned(variable));
                let entry = slot.got_index(Slot::TlsGd).map(u64::from);
                known.tls_entry = entry.map(|entry| {
                    let entry = self.got.wrapping_add(entry.wrapping_mul(A::ADDRESS_SIZE));
                    signed::<A>(entry.wrapping_sub(place))
                });
            }
            _ => return None,
        }
        let Addresses { absolute, from_global_pointer, from_thread_pointer, .. } = known;
        if absolute.or(from_global_pointer).or(from_thread_pointer).is_some() {
            let symbol = owner(self.objects, slot.definition).and_then(|(object, index)| {
                self.objects.get(object)?.symbols.as_ref()?.get(index).ok()
            });
            known.size = symbol.map_or(0, |symbol| symbol.size);
        }
        Some(known)
    }
}

/// A distance as addresses of this size have it.
const fn signed<A: Arch>(distance: u64) -> i64 {
    if A::ADDRESS_SIZE == 4 { distance as i32 as i64 } else { distance.cast_signed() }
}

impl SectionSlot {
    /// The edits of the section.
    pub(crate) fn edits<'e, A: Arch>(&self, edits: &'e [Edit]) -> Edits<'e> {
        if may_shrink::<A>() { self.edits.of(edits) } else { Edits::default() }
    }
}
