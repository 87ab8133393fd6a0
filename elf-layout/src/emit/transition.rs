//! Code that reaches thread-local variables becomes local exec.

use crate::emit::resolve::Symbols;
use elf_core::tls::{TpOffsets, Transition};
use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Kind, Query, Record, Resolve as _, Role, SectionMut,
};

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
        let block =
            self.layout.static_tls_block.and_then(|block| block.tp_offset).ok_or(unresolved)?;
        let place = usize::try_from(record.offset).ok();
        let field =
            place
                .and_then(|place| section.bytes.get(place..)?.get(..kind.field.bytes()))
                .ok_or(fail(ApplyErrorKind::OutsideSection { size: section.bytes.len() as u64 }))?;
        let addend = record.addend.or_else(|| kind.field.addend_at(field, section.big_endian));
        let addend = addend.ok_or(fail(ApplyErrorKind::Sequence))?;
        let query = Query { role: Role::TpOffset, symbol: record.symbol, place: 0, addend, kind };
        let variable = self.resolve(&query).ok_or(unresolved)?.cast_signed();
        let offsets = TpOffsets::new(variable.wrapping_add(addend), block)
            .counting(addend)
            .big_endian(section.big_endian)
            .on(self.layout.found.processor);
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
