//! Thread-local variables: their block, the area of it in every thread, and what relocations make of both.

use crate::layout::Layout;
use crate::needs::Found;
use crate::options::ThreadLocal;
use crate::place::{Group, Spans};
use crate::resolve::Symbols;
use crate::storage::{Needs, SymbolSlot, SymbolState, THREAD_LOCAL};
use elf_core::tls::{TpOffsets, Transition};
use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Kind, Query, Record, Resolve as _, Role, SectionMut, Slot,
};

/// The initial values of the thread-local variables: what a program header of type `PT_TLS` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsBlock {
    /// Bytes from the start of the image.
    pub offset: u64,
    /// Bytes that the image has; zeros follow in every thread's copy.
    pub file_size: u64,
    /// Size of a thread's copy in bytes.
    pub size: u64,
    /// Alignment of a thread's copy in bytes.
    pub alignment: u64,
}

/// Where every thread has its copy of the block: known to the one who makes threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ThreadArea {
    /// The number by which `__tls_get_addr` knows the block.
    pub module: u64,
    /// Bytes from the thread pointer to the block, if that is the same in every thread. Without it initial exec and local exec code is
    /// refused.
    pub distance: Option<i64>,
    /// Address of the function of a TLS descriptor whose argument is the variable's distance from the thread pointer.
    pub descriptor: Option<u64>,
    /// Address of the function of a TLS descriptor whose argument is the address of two words as `__tls_get_addr` takes them.
    pub dynamic_descriptor: Option<u64>,
}

/// A variable of the caller's, packed into a symbol's slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct External {
    /// In the block of its module.
    pub(crate) offset: u32,
    /// From the thread pointer.
    pub(crate) distance: Option<i32>,
}

impl External {
    const UNKNOWN: i32 = i32::MIN;

    /// `None` if the numbers are beyond what a process can have.
    pub(crate) fn new(offset: u64, distance: Option<i64>) -> Option<Self> {
        let distance = match distance {
            Some(distance) => Some(i32::try_from(distance).ok()?).filter(|&it| it != Self::UNKNOWN),
            None => None,
        };
        Some(Self { offset: u32::try_from(offset).ok()?, distance })
    }

    pub(crate) const fn pack(self) -> u64 {
        let distance = match self.distance {
            Some(distance) => distance,
            None => Self::UNKNOWN,
        };
        (distance.cast_unsigned() as u64) << 32 | self.offset as u64
    }

    pub(crate) const fn unpack(value: u64) -> Self {
        let distance = ((value >> 32) as u32).cast_signed();
        let distance = if distance == Self::UNKNOWN { None } else { Some(distance) };
        Self { offset: value as u32, distance }
    }
}

/// What a relocation of this role wants to have to do with threads.
const fn is_tls(role: Role) -> bool {
    matches!(
        role,
        Role::TpOffset
            | Role::DtpOffset
            | Role::Got(Slot::TpOffset | Slot::TlsGd | Slot::TlsLd | Slot::TlsDesc)
    )
}

/// Whether relocations of this kind are for thread-local variables.
pub(crate) const fn concerns(kind: &Kind) -> bool {
    is_tls(kind.value.of) || is_tls(kind.value.minus)
}

/// Whether code is rewritten where the ABI has a way.
const fn rewrites(access: ThreadLocal) -> bool {
    cfg!(feature = "relax") && matches!(access, ThreadLocal::LocalExec)
}

/// Whether code that reaches this symbol becomes local exec.
pub(crate) fn is_local_exec(slot: &SymbolSlot, access: ThreadLocal) -> bool {
    THREAD_LOCAL
        && rewrites(access)
        && match slot.state {
            SymbolState::ThreadLocal | SymbolState::TlsBase | SymbolState::UndefinedWeak => true,
            SymbolState::ExternalThreadLocal => External::unpack(slot.value).distance.is_some(),
            _ => false,
        }
}

/// What a relocation needs that is not rewritten.
pub(crate) fn needs(role: Role, found: &mut Found) -> Needs {
    match role {
        Role::Got(Slot::TpOffset) => Needs::GOT_TP_OFFSET,
        Role::Got(Slot::TlsGd) => Needs::GOT_TLS_GD,
        // the argument of a dynamic descriptor leads to the pair
        Role::Got(Slot::TlsDesc) => Needs::GOT_TLS_DESC.with(Needs::GOT_TLS_GD),
        Role::Got(Slot::TlsLd) => {
            found.tls_module = true;
            Needs::default()
        }
        _ => Needs::default(),
    }
}

/// The block that the sections make.
pub(crate) fn block(spans: &Spans) -> TlsBlock {
    let (data, zero) = (spans.group(Group::TlsData), spans.group(Group::TlsZero));
    let size = if zero.size == 0 {
        data.size
    } else {
        zero.offset.wrapping_sub(data.offset).saturating_add(zero.size)
    };
    TlsBlock {
        offset: data.offset,
        file_size: data.size,
        size,
        alignment: data.alignment.max(zero.alignment),
    }
}

impl<A: Arch> Layout<'_, '_, A> {
    /// The initial values of the objects' thread-local variables, if there are any, or code asks for their block.
    ///
    /// The executor gives every thread a copy, and says [where](Self::set_thread_area) before it writes the image.
    #[must_use]
    pub fn tls_block(&self) -> Option<TlsBlock> {
        let block = block(&self.spans);
        (block.size > 0 || self.found.threads).then_some(block)
    }

    /// Says where threads have their copies of the block. Without an area, relocations that need one are refused.
    pub const fn set_thread_area(&mut self, area: ThreadArea) {
        self.thread_area = Some(area);
    }

    /// The area that an executable has which consists of these objects: module 1, at the distance that the ABI gives.
    #[must_use]
    pub fn executable_area(&self) -> ThreadArea {
        let block = block(&self.spans);
        let distance =
            A::TLS.and_then(|tls| tls.variant.executable_block(block.size, block.alignment));
        ThreadArea { module: 1, distance, ..ThreadArea::default() }
    }

    /// Offset in the block of thread-local variable `symbol` of object `object`; `None` if no object defines it, or it is none.
    #[must_use]
    pub fn variable(&self, object: usize, symbol: u32) -> Option<u64> {
        let slot = self.slot(object, symbol)?;
        if slot.state == SymbolState::ThreadLocal { self.block_offset(slot) } else { None }
    }

    /// A variable's offset in the block.
    fn block_offset(&self, slot: &SymbolSlot) -> Option<u64> {
        if !matches!(slot.group, Group::TlsData | Group::TlsZero) {
            return None;
        }
        let start = self.spans.group(Group::TlsData).offset;
        let group = self.spans.group(slot.group).offset;
        Some(group.wrapping_sub(start).wrapping_add(slot.value))
    }
}

impl<A: Arch> Symbols<'_, '_, '_, A> {
    /// Rewrites code of `kind`, the relocation of the call included, whose place is `next`.
    pub(crate) fn transition(
        &self,
        transition: &Transition,
        kind: &'static Kind,
        record: &Record,
        next: Option<&Record>,
        section: &mut SectionMut<'_>,
    ) -> Result<(), ApplyError> {
        let fail = |error| ApplyError::new(record, Some(kind.name), error);
        let unresolved = fail(ApplyErrorKind::Unresolved(Role::TpOffset));
        let block = self.layout.thread_area.and_then(|area| area.distance).ok_or(unresolved)?;
        let place = usize::try_from(record.offset).ok();
        let field = place
            .and_then(|place| section.bytes.get(place..)?.get(..kind.field.bytes))
            .ok_or(fail(ApplyErrorKind::OutsideSection { size: section.bytes.len() as u64 }))?;
        let addend = record.addend.or_else(|| kind.field.addend_at(field, section.big_endian));
        let addend = addend.ok_or(fail(ApplyErrorKind::Sequence))?;
        let query = Query { role: Role::TpOffset, symbol: record.symbol, place: 0, addend, kind };
        let variable = self.resolve(&query).ok_or(unresolved)?.cast_signed();
        let offsets = TpOffsets { variable: variable.wrapping_add(addend), block };
        let call = place
            .and_then(|place| (transition.rewrite)(section.bytes, place, &offsets))
            .ok_or(fail(ApplyErrorKind::Sequence))?;
        let next = next.and_then(|next| next.offset.checked_sub(record.offset));
        if transition.takes_call && next != Some(call) {
            return Err(fail(ApplyErrorKind::Sequence));
        }
        Ok(())
    }
}

impl<A: Arch> Symbols<'_, '_, '_, A> {
    /// What a thread-local variable answers.
    pub(crate) fn resolve_variable(&self, slot: &SymbolSlot, role: Role) -> Option<u64> {
        match role {
            Role::TpOffset => self.distance(slot),
            Role::DtpOffset
                if matches!(slot.state, SymbolState::ThreadLocal | SymbolState::TlsBase) =>
            {
                self.dtp_offset(self.layout.block_offset(slot)?)
            }
            Role::DtpOffset if slot.state == SymbolState::UndefinedWeak => Some(0),
            _ => None,
        }
    }

    /// An offset in a block, as code and `__tls_get_addr` take it.
    fn dtp_offset(&self, offset: u64) -> Option<u64> {
        Some(offset.wrapping_add_signed(A::TLS?.dtp_bias))
    }

    /// A variable's distance from the thread pointer.
    fn distance(&self, slot: &SymbolSlot) -> Option<u64> {
        let distance = match slot.state {
            SymbolState::TlsBase
                if rewrites(self.layout.options.thread_local) && A::TLS?.ld_to_le_by_tp =>
            {
                0
            }
            SymbolState::ThreadLocal | SymbolState::TlsBase => {
                let block = self.layout.thread_area?.distance?;
                block.checked_add_unsigned(self.layout.block_offset(slot)?)?
            }
            SymbolState::ExternalThreadLocal => External::unpack(slot.value).distance?.into(),
            // what lld gives, and no code that asks first comes to use
            SymbolState::UndefinedWeak => 0,
            _ => return None,
        };
        Some(distance.cast_unsigned())
    }

    /// The words of a GOT entry for a variable.
    pub(crate) fn variable_entry(&self, slot: &SymbolSlot, content: Slot) -> Option<[u64; 2]> {
        let area = self.layout.thread_area?;
        match content {
            Slot::Address => None,
            Slot::TpOffset => Some([self.distance(slot)?, 0]),
            Slot::TlsLd => Some([area.module, 0]),
            Slot::TlsGd => match slot.state {
                SymbolState::ThreadLocal | SymbolState::TlsBase => {
                    Some([area.module, self.dtp_offset(self.layout.block_offset(slot)?)?])
                }
                SymbolState::ExternalThreadLocal => {
                    let offset = External::unpack(slot.value).offset;
                    Some([slot.extra.module(), self.dtp_offset(offset.into())?])
                }
                _ => None,
            },
            Slot::TlsDesc => match (area.descriptor, self.distance(slot)) {
                (Some(function), Some(distance)) => Some([function, distance]),
                _ => Some([area.dynamic_descriptor?, self.got_entry(slot, Slot::TlsGd)?]),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_variables() {
        for (offset, distance) in
            [(0, None), (7, Some(-64)), (u32::MAX.into(), Some(i32::MAX.into()))]
        {
            let packed = External::new(offset, distance).unwrap().pack();
            let unpacked = External::unpack(packed);
            assert_eq!(u64::from(unpacked.offset), offset);
            assert_eq!(unpacked.distance.map(i64::from), distance);
        }
        assert!(External::new(1 << 32, None).is_none());
        assert!(External::new(0, Some(1 << 31)).is_none());
    }
}
