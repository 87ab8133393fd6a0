//! Layouts whose objects are scanned in parts, which are those of objects that are scanned one after another.

use super::numbered::outcome;
use elf_core::{Arch, File, Name};
use elf_layout::{ExternalSymbol, HeapStorage, Options, ScanPart};
use std::collections::BTreeMap;

/// Lays out files with parts and without; both ask for what was `asked` for before.
pub(crate) fn compare<A: Arch>(
    files: &[File<'_>],
    options: Options,
    asked: &[(Vec<u8>, Option<ExternalSymbol>)],
) {
    // a name that is asked for again has the same answer
    let answers: BTreeMap<&[u8], _> =
        asked.iter().rev().map(|(name, answer)| (name.as_slice(), *answer)).collect();
    let mut answer = |name: Name<'_>| answers.get(name.as_bytes()).copied().flatten();
    let [first, ..] = files else { return };
    // one alone is not cut
    let (beside, mut files) = (nothing(first), files.to_vec());
    if files.len() == 1 {
        files.push(File::parse(&beside).unwrap());
    }
    let mut room = HeapStorage::new();
    let whole = outcome::<A>(room.plan(&files, options, &mut answer));
    // some are left out, or all are done, the last first
    for (count, done) in [(2, 1), (3, 3)] {
        let mut room = HeapStorage::new();
        let mut scan = |parts: &mut [ScanPart<'_, '_, A>]| {
            parts.iter_mut().rev().take(done).for_each(ScanPart::scan);
        };
        let layout = room.plan_in_parts(&files, None, options, &mut answer, count, &mut scan);
        let apart = outcome(layout);
        assert!(apart == whole, "{apart:?} instead of {whole:?}");
    }
}

/// An object for the same machine that has no sections.
fn nothing(file: &File<'_>) -> Vec<u8> {
    let (size, offset, count) =
        if file.encoding().is_64() { (64, 0x28, 0x3c) } else { (52, 0x20, 0x30) };
    let mut bytes = file.bytes()[..size].to_vec();
    bytes[offset..][..if size == 64 { 8 } else { 4 }].fill(0);
    bytes[count..][..4].fill(0);
    bytes
}
