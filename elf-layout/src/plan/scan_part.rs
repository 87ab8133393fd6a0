//! Parts of what is to be laid out, over whose relocations several threads can go at once.

use crate::error::Error;
use crate::model::scan_result::ScanResult;
use crate::model::storage::SymbolSlot;
use crate::plan::at_once::{AtOnce, Objects};
use crate::plan::findings::Notes;
use crate::plan::needs::Scan;
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use elf_core::{Arch, File};

/// Some of the objects that [`HeapStorage::plan_in_parts`](crate::HeapStorage::plan_in_parts) lays out:
/// [`scan`](Self::scan) finds what their relocations need.
///
/// All parts read the same symbols, and none changes them: each takes notes of its own, which are entered when all are
/// done. They can be done in any order, or at once, since nothing that is decided depends on what is noted. What is noted
/// of symbols, and that something is there at all, are bits that are set; how far branches and addresses go are the
/// smallest of all. One note more of the same changes nothing.
pub struct ScanPart<'p, 'a, A> {
    objects: Objects<'p, 'a>,
    symbols: &'p [SymbolSlot],
    /// The numbers of those of this part.
    own: Range<usize>,
    notes: Notes,
    state: State,
    // whose value is never here: it may be in any thread
    arch: PhantomData<fn() -> A>,
}

/// How far a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Done,
    /// There is an error.
    Failed,
}

impl<A> fmt::Debug for ScanPart<'_, '_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanPart").field("objects", &self.own).finish_non_exhaustive()
    }
}

impl<A: Arch> ScanPart<'_, '_, A> {
    /// Goes over the relocations of these objects, unless that is done already.
    pub fn scan(&mut self) {
        if self.state == State::Open {
            let is_done = self.scan_all().is_ok();
            self.state = if is_done { State::Done } else { State::Failed };
        }
    }

    fn scan_all(&mut self) -> Result<(), Error> {
        let (first, count) = (self.own.start, self.own.len());
        let Objects { files, slots: objects, sections, options } = self.objects;
        let own = files.iter().zip(objects).skip(first).take(count);
        for (number, (file, object)) in (first..usize::MAX).zip(own) {
            let scan = Scan { number, file, object, objects, sections, options };
            scan.run::<A, _>(self.symbols, &mut self.notes)?;
        }
        Ok(())
    }
}

/// Cuts files into at most `count` runs of about as many bytes.
fn cut(files: &[File<'_>], count: usize) -> Vec<Range<usize>> {
    let size = |file: &File<'_>| file.bytes().len() as u64;
    let mut rest = files.iter().fold(0u64, |sum, file| sum.saturating_add(size(file)));
    let mut left = count as u64;
    let (mut runs, mut start, mut own) = (Vec::new(), 0, 0u64);
    for (next, file) in (1usize..).zip(files) {
        own = own.saturating_add(size(file));
        // the last one has all that is left
        if own >= rest / left.max(1) {
            runs.push(start..next);
            (rest, left) = (rest.saturating_sub(own), left.saturating_sub(1));
            (start, own) = (next, 0);
        }
    }
    runs
}

/// Has the caller do parts of all objects, at most so many.
pub(crate) struct InParts<'c, 'a, A> {
    pub(crate) count: usize,
    pub(crate) scan: &'c mut dyn FnMut(&mut [ScanPart<'_, 'a, A>]),
}

impl<'a, A: Arch> AtOnce<'a> for InParts<'_, 'a, A> {
    fn scan(
        &mut self,
        objects: &Objects<'_, 'a>,
        symbols: &mut [SymbolSlot],
        found: &mut ScanResult,
    ) -> bool {
        if self.count < 2 {
            return false;
        }
        let runs = cut(objects.files, self.count);
        if runs.len() < 2 {
            return false;
        }
        let part = |own| ScanPart::<A> {
            objects: *objects,
            symbols,
            own,
            notes: Notes::new(*found),
            state: State::Open,
            arch: PhantomData,
        };
        let mut parts: Vec<_> = runs.into_iter().map(part).collect();
        (self.scan)(&mut parts);
        parts.iter_mut().for_each(ScanPart::scan);
        if parts.iter().any(|part| part.state == State::Failed) {
            // for the error that is the first where there is one thread
            return false;
        }
        let notes: Vec<Notes> = parts.into_iter().map(|part| part.notes).collect();
        let symbols = Cell::from_mut(symbols).as_slice_of_cells();
        notes.iter().for_each(|notes| notes.enter(symbols, found));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reloc_x86::X86_64;

    /// Headers of objects that are followed by so many bytes.
    fn cut_of(sizes: &[usize], count: usize) -> Vec<(usize, usize)> {
        let object: &[u8] = include_bytes!("../../../fixtures/x86_64/elftest.o");
        let most = sizes.iter().copied().max().unwrap_or(0);
        let mut bytes = object[..64].to_vec();
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..].fill(0);
        bytes.resize(most, 0);
        let files: Vec<_> =
            sizes.iter().map(|size| File::parse(&bytes[..*size]).unwrap()).collect();
        cut(&files, count).into_iter().map(|run| (run.start, run.end)).collect()
    }

    #[test]
    fn parts_are_about_as_large() {
        assert_eq!(cut_of(&[100; 8], 2), [(0, 4), (4, 8)]);
        assert_eq!(cut_of(&[100; 8], 3), [(0, 3), (3, 6), (6, 8)]);
        assert_eq!(cut_of(&[700, 100, 100, 100], 3), [(0, 1), (1, 3), (3, 4)]);
        assert_eq!(cut_of(&[100, 100, 700], 2), [(0, 3)]);
        assert_eq!(cut_of(&[100, 100, 100, 700, 600], 2), [(0, 4), (4, 5)]);
        assert_eq!(cut_of(&[100; 2], 9), [(0, 1), (1, 2)]);
        assert_eq!(cut_of(&[100; 3], 1), [(0, 3)]);
        assert_eq!(cut_of(&[], 3), []);
    }

    #[test]
    fn parts_are_for_threads() {
        const fn is_send<T: Send>() {}
        const { is_send::<ScanPart<'_, '_, X86_64>>() };
    }
}
