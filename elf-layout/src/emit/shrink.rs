//! Sections from which bytes go: what stays is relocated where it is now.

use crate::emit::write::Write;
use elf_core::{ApplyError, ApplyErrorKind, Arch, Decision, Kind, Record, Rewrite, Special};

impl<A: Arch> Write<'_, '_, '_, '_, '_, A> {
    /// Writes what is decided about a record of the file to where its place is now.
    pub(super) fn write_edited(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: Decision,
    ) -> Result<(), ApplyError> {
        let fail = |error| ApplyError::new(record, Some(kind.name), error);
        let edit = match kind.special {
            Special::Padding(_) | Special::Shrink(_) => self.edits.at(record.offset),
            _ => None,
        };
        let moved = Record { offset: self.edits.moved(record.offset), ..*record };
        if let (Special::Padding(padding), Some(edit)) = (kind.special, edit) {
            let place = self.section.address.wrapping_add(moved.offset);
            let wanted = (padding.alignment)(record);
            if wanted.kept(place) != Some(edit.kept.into()) {
                let value = place.wrapping_add(edit.kept.into());
                let alignment = wanted.alignment;
                return Err(fail(ApplyErrorKind::Misaligned { value, alignment }));
            }
            if edit.deleted == 0 {
                return Ok(());
            }
            let start = usize::try_from(moved.offset).unwrap_or(usize::MAX);
            let room = self.section.bytes.get_mut(start..);
            let room = room.and_then(|rest| rest.get_mut(..edit.kept as usize));
            padding.fill(room.unwrap_or_default());
            return Ok(());
        }
        let deleted = edit.map_or(0, |edit| u64::from(edit.deleted));
        let decision = match decision {
            Decision::Rewrite(rewrite) if rewrite.deletes == deleted => {
                Decision::Rewrite(self.moved(&rewrite))
            }
            // by other addresses than those that the layout was made for
            _ if deleted > 0 => return Err(fail(ApplyErrorKind::Sequence)),
            Decision::Rewrite(_) => Decision::Apply,
            Decision::Pair(pairing) => {
                let offset = self.edits.moved(pairing.partner.offset);
                let partner = Record { offset, ..pairing.partner };
                Decision::Pair(pairing.with_partner(partner))
            }
            decision => decision,
        };
        let is_whole = self.edits.keeps(record.offset, kind.field.bytes as u64);
        if !is_whole && !matches!(decision, Decision::Rewrite(_)) {
            return Err(fail(ApplyErrorKind::Sequence));
        }
        let written = self.write(kind, &moved, decision);
        written.map_err(|error| ApplyError { offset: record.offset, ..error })
    }

    fn moved(&self, rewrite: &Rewrite) -> Rewrite {
        let mut rewrite = *rewrite;
        rewrite.offset = self.edits.moved(rewrite.offset);
        for record in rewrite.records.iter_mut().flatten() {
            record.offset = self.edits.moved(record.offset);
        }
        rewrite
    }
}
