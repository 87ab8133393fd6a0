//! What is to be written: the result of a rewrite, piece by piece.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::ops::Range;

use crate::edits::{Edits, With};

/// How a file is written with its changes, and what there is to say about it. `B` is what contents are given as.
///
/// Nothing of the file or of the contents is copied before [`pieces`](Self::pieces) are written.
#[derive(Clone, Debug)]
pub struct RewritePlan<B> {
    edits: Edits,
    contents: Vec<B>,
    old_size: u64,
    /// Regions that change where they are, or in the section that they are in.
    pub in_place: usize,
    /// Regions that move into a new segment, those included that go along to stay in one section.
    pub moved: usize,
    /// Bytes that are zero from now on, and take no room on disk where the file system has holes.
    pub holes: u64,
    /// Offsets of regions that stay as they are, in order: see [`Rewriter::leave_unreferenced`](crate::Rewriter::leave_unreferenced).
    pub left: Vec<u64>,
    /// What whoever uses the file should know.
    pub remarks: Vec<Remark>,
}

/// A piece of the file that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece<'p, B> {
    /// Bytes of the file as it is, by their offsets there.
    Kept(Range<u64>),
    /// Contents that were given.
    Given(&'p B),
    /// Headers and tables.
    Made(&'p [u8]),
    /// So many zeros: a hole, where the file system has such.
    Zeros(u64),
}

impl<B: AsRef<[u8]>> Piece<'_, B> {
    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::Kept(range) => range.end.saturating_sub(range.start),
            Self::Given(bytes) => bytes.as_ref().len() as u64,
            Self::Made(bytes) => bytes.len() as u64,
            Self::Zeros(size) => *size,
        }
    }
}

/// What whoever uses a changed file should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Remark {
    /// The build-id is that of the original file, and debug information is still found by it.
    BuildIdKept,
    /// So many bytes behind the section headers are kept, for which a signature among them does not hold any more.
    TailKept(u64),
    /// Regions that moved lie in a new section of this name.
    NewSection(String),
    /// So many regions stay as they are: they would have to move, and nothing points to them.
    Left(u64),
    /// The program headers moved behind everything else: there was no room for one more. Tools that write such files anew as GNU
    /// strip does may not keep them whole.
    HeadersMoved,
}

impl Display for Remark {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuildIdKept => f.write_str(
                "the build-id is kept: it is that of the original file, and debug information is still found by it",
            ),
            Self::TailKept(size) => write!(
                f,
                "{size} bytes behind the section headers are kept: a signature among them does not hold any more"
            ),
            Self::Left(count) => write!(
                f,
                "{count} regions stay as they are: they would have to move, and nothing points to them"
            ),
            Self::NewSection(name) => write!(f, "the new section is called {name}"),
            Self::HeadersMoved => f.write_str(
                "the program headers had to move: strip and objcopy may not keep the file whole",
            ),
        }
    }
}

/// A plan on its way, without the contents.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) edits: Edits,
    pub(crate) in_place: usize,
    pub(crate) moved: usize,
    pub(crate) holes: u64,
    pub(crate) left: Vec<u64>,
    pub(crate) remarks: Vec<Remark>,
}

impl<B: AsRef<[u8]>> RewritePlan<B> {
    /// A file of `size` bytes as it is.
    #[must_use]
    pub fn unchanged(size: u64) -> Self {
        Self::new(Draft::default(), Vec::new(), size)
    }

    pub(crate) fn new(draft: Draft, contents: Vec<B>, old_size: u64) -> Self {
        let Draft { edits, in_place, moved, holes, left, mut remarks } = draft;
        remarks.sort();
        remarks.dedup();
        Self { edits, contents, old_size, in_place, moved, holes, left, remarks }
    }

    /// Bytes by which the file grows.
    #[must_use]
    pub fn growth(&self) -> i64 {
        self.edits.growth()
    }

    /// Size of the changed file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.old_size.saturating_add_signed(self.growth())
    }

    /// The changed file from its start to its end. All that is [kept](Piece::Kept) lies in the file that was opened.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_, B>> {
        self.edits.parts(self.old_size).flat_map(|(kept, changed)| {
            let kept = (!kept.is_empty()).then_some(Piece::Kept(kept));
            let changed = changed.iter().filter(|with| with.size() > 0);
            kept.into_iter().chain(changed.filter_map(|with| self.piece(with)))
        })
    }

    fn piece<'p>(&'p self, with: &'p With) -> Option<Piece<'p, B>> {
        Some(match with {
            With::Kept(range) => Piece::Kept(range.clone()),
            With::Given(number, _) => Piece::Given(self.contents.get(*number)?),
            With::Made(bytes) => Piece::Made(bytes),
            With::Zeros(size) => Piece::Zeros(*size),
        })
    }

    /// Writes the changed file. `old` is the file that was opened.
    ///
    /// # Errors
    /// Those of `out`; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if `old` is shorter than the file that was opened.
    pub fn write(&self, old: &[u8], out: &mut impl Write) -> io::Result<()> {
        for piece in self.pieces() {
            match piece {
                Piece::Kept(range) => {
                    let range =
                        usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
                    let bytes = range.and_then(|(start, end)| old.get(start..end));
                    out.write_all(bytes.ok_or(io::ErrorKind::UnexpectedEof)?)?;
                }
                Piece::Given(bytes) => out.write_all(bytes.as_ref())?,
                Piece::Made(bytes) => out.write_all(bytes)?,
                Piece::Zeros(size) => zeros(size, out)?,
            }
        }
        Ok(())
    }
}

fn zeros(mut size: u64, out: &mut impl Write) -> io::Result<()> {
    const BLOCK: [u8; 4096] = [0; 4096];
    while size > 0 {
        let count = usize::try_from(size).unwrap_or(usize::MAX).min(BLOCK.len());
        out.write_all(BLOCK.get(..count).unwrap_or_default())?;
        size = size.saturating_sub(count as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_zeros_cuts_and_more() {
        let mut edits = Edits::default();
        edits.put(1, b"XY").unwrap();
        edits.replace(4..6, vec![With::Zeros(2)]).unwrap();
        edits.replace(6..8, Vec::new()).unwrap();
        edits.append(10, 2, With::Given(0, 3));
        edits.append(10, 0, With::Kept(2..4));
        assert!(edits.put(2, b"?").is_err() && edits.replace(5..9, Vec::new()).is_err());
        assert!(edits.check(10).is_ok() && edits.check(9).is_err());
        let draft = Draft { edits, ..Draft::default() };
        let plan = RewritePlan::new(draft, vec![b"end"], 10);
        assert_eq!((plan.growth(), plan.size()), (5, 15));
        let mut written = Vec::new();
        plan.write(b"0123456789", &mut written).unwrap();
        assert_eq!(written, b"0XY3\0\x0089\0\0end23");
        assert_eq!(
            plan.write(b"01", &mut written).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
