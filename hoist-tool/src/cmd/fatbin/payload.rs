//! Payloads of entries as they are when nothing is packed and nothing is added.

use elf_core::File;
use elf_core::names::SHT_NOBITS;
use fatbin::{EntryKind, Error, Region, RegionEntry, text};
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use super::rows::RegionRow;
use crate::mapped::Mapped;

/// Fills in digests of all images; gives the errors met on the way.
pub fn add_digests(file: &Mapped, rows: &mut [RegionRow<'_>]) -> Vec<Error> {
    rows.par_iter_mut().flat_map_iter(|row| of_region(file, row)).collect()
}

fn of_region(file: &Mapped, row: &mut RegionRow<'_>) -> Vec<Error> {
    let bytes = usize::try_from(row.offset).ok().and_then(|at| file.bytes().get(at..));
    let Some(region) = bytes.and_then(|bytes| Region::parse(bytes).ok()) else { return Vec::new() };
    let entries: Vec<_> = region.entries().map_while(Result::ok).collect();
    let fill = |entry: &mut super::rows::EntryRow<'_>| {
        let found = entries.get(entry.index)?;
        let (whole, parts) = match digests(found) {
            Ok(digests) => digests,
            Err(error) => return Some(Error { at: error.at.saturating_add(row.offset), ..error }),
        };
        entry.sha256 = whole;
        for (part, digest) in entry.parts.iter_mut().zip(parts) {
            part.sha256 = Some(digest);
        }
        None
    };
    let errors = row.entries.par_iter_mut().filter_map(fill).collect();
    file.done_with(row.offset..row.offset.saturating_add(row.size));
    errors
}

/// The digest of an image, or of those that are in one entry.
fn digests(entry: &RegionEntry<'_>) -> Result<(Option<String>, Vec<String>), Error> {
    // it is not known what obfuscated bytes are
    if entry.obfuscation_key().is_some() {
        return Ok((None, Vec::new()));
    }
    let payload = entry.unpack(usize::MAX)?;
    let payload = match entry.compression() {
        None => without_padding(entry.kind(), &payload),
        Some(_) => &payload,
    };
    let parts = entry.parts()?;
    let parts = parts.iter().map(|part| part.of(payload).map(digest).unwrap_or_default());
    let parts: Vec<_> = parts.collect();
    let whole = || match entry.kind() {
        EntryKind::Ptx => digest_of_text(payload),
        _ => digest(payload),
    };
    Ok((parts.is_empty().then(whole), parts))
}

/// The digest of PTX with the one NUL behind it that most have: older compilers leave it out where PTX is compressed.
fn digest_of_text(payload: &[u8]) -> String {
    hexadecimal(Sha256::new().chain_update(text(payload)).chain_update([0]))
}

fn digest(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new().chain_update(bytes))
}

fn hexadecimal(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A payload that was stored without compression, and so with zeros behind it. PTX keeps one NUL.
#[must_use]
pub fn without_padding(kind: EntryKind, payload: &[u8]) -> &[u8] {
    let size = match kind {
        EntryKind::Ptx => Some(text(payload).len().saturating_add(1)),
        EntryKind::Elf => elf_size(payload),
        _ => None,
    };
    let padding =
        |size: &usize| payload.len().checked_sub(*size).is_some_and(|padding| padding < 8);
    size.filter(padding).and_then(|size| payload.get(..size)).unwrap_or(payload)
}

/// Where the last table or section of an ELF file ends.
fn elf_size(bytes: &[u8]) -> Option<usize> {
    let file = File::parse(bytes).ok()?;
    let header = file.header();
    let table = |at: u64, size: u16, count: usize| {
        at.saturating_add(u64::from(size).saturating_mul(count as u64))
    };
    let sections = file.sections().iter().filter(|section| section.r#type != SHT_NOBITS);
    let ends = sections.map(|section| section.offset.saturating_add(section.size)).chain([
        table(header.section_headers, header.section_header_size, file.sections().len()),
        table(header.program_headers, header.program_header_size, file.segments().len()),
    ]);
    usize::try_from(ends.max()?).ok()
}

#[cfg(test)]
mod tests {
    use super::digest_of_text;

    #[test]
    fn text_is_the_same_with_and_without_what_is_behind_it() {
        let one = digest_of_text(b".version 8.0\n\0");
        assert_eq!(one, digest_of_text(b".version 8.0\n"));
        assert_eq!(one, digest_of_text(b".version 8.0\n\0\0\0"));
        assert_ne!(one, digest_of_text(b".version 8.0\0"));
    }
}
