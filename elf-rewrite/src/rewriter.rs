//! What is to become of a file, and the way to a plan for it.

use std::cell::Cell;
use std::ops::Range;

use elf_core::archive::Archive;
use elf_core::names::{ET_DYN, ET_EXEC, ET_REL};

use crate::change::{Change, Known};
use crate::edits::With;
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Draft, RewritePlan};
use crate::{archive, linked, object};

/// A file with changes to come: contents of *regions* become other ones. `B` is what contents are given as.
///
/// A region is a range of the file that others know by its start only: nothing points inside, and it may lie elsewhere. That it
/// does is for the caller to say; what points into one all the same is found, and is an error.
#[derive(Clone, Debug)]
pub struct Rewriter<'a, B> {
    bytes: &'a [u8],
    contents: Vec<B>,
    changes: Vec<Change>,
    known: Known,
}

impl<'a, B: AsRef<[u8]>> Rewriter<'a, B> {
    /// A file as it is: an object, a library, an executable, an archive of these, or one that begins with a region.
    ///
    /// # Errors
    /// [`Windows`](ErrorKind::Windows), [`ThinArchive`](ErrorKind::ThinArchive), [`Encoding`](ErrorKind::Encoding),
    /// [`Elf`](ErrorKind::Elf): files that cannot be changed whatever the change.
    pub fn open(bytes: &'a [u8]) -> core::result::Result<Self, Error> {
        match Form::of(bytes)? {
            Form::Archive(archive) if archive.is_thin() => {
                return Err(Error::new(0, ErrorKind::ThinArchive));
            }
            Form::Elf => drop(Elf::parse(bytes)?),
            Form::Archive(_) | Form::Other => {}
        }
        let (contents, changes, known) = (Vec::new(), Vec::new(), Known::default());
        Ok(Self { bytes, contents, changes, known })
    }

    /// The bytes at `range` of the file become `new`: where they are, or in their section, if there is room, else in a new segment;
    /// in an object or archive with what follows behind them.
    ///
    /// # Errors
    /// [`Outside`](ErrorKind::Outside) if the range leaves the file.
    pub fn replace(&mut self, range: Range<u64>, new: B) -> core::result::Result<(), Error> {
        let with = With::Given(self.contents.len(), new.as_ref().len() as u64);
        self.change(range, with)?;
        self.contents.push(new);
        Ok(())
    }

    /// The bytes at `range` go. What points to them in a linked file finds zeros, or nothing; in an object that is an error.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn remove(&mut self, range: Range<u64>) -> core::result::Result<(), Error> {
        self.change(range, With::Zeros(0))
    }

    fn change(&mut self, range: Range<u64>, new: With) -> Result<()> {
        let Range { start, end } = range;
        let size = end.checked_sub(start).filter(|_| end <= self.bytes.len() as u64);
        let size = size.ok_or(Error::outside(start, "a region"))?;
        self.changes.push(Change { at: start, size, new });
        Ok(())
    }

    /// Says that there is a region at `range` that stays as it is: it goes along where others of its section move, so that all are
    /// still in one section, and nothing is free between them.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn keep(&mut self, range: Range<u64>) -> core::result::Result<(), Error> {
        if range.start > range.end || range.end > self.bytes.len() as u64 {
            return Err(Error::outside(range.start, "a region"));
        }
        self.known.regions.push(range);
        Ok(())
    }

    /// Says that the word of 8 bytes at offset `at` is a pointer. In a program at fixed addresses nothing else tells.
    pub fn pointer(&mut self, at: u64) {
        self.known.pointers.push(at);
    }

    /// A name for the section of regions that moved without the section that they were in: the first that the file has no section
    /// of, else the last.
    pub fn name(&mut self, name: impl Into<String>) {
        self.known.names.push(name.into());
    }

    /// The file as it is.
    #[cfg(feature = "fatbin")]
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Lets regions of a linked file that would have to move stay as they are if nothing points to them, which is an error otherwise:
    /// [`RewritePlan::left`] says which.
    pub const fn leave_unreferenced(&mut self) {
        self.known.leaves_unreferenced = true;
    }

    /// How the file is to be written.
    ///
    /// # Errors
    /// If a change would break the file: what stands against it, and where. See [`ErrorKind`].
    pub fn plan(self) -> core::result::Result<RewritePlan<B>, Error> {
        let draft = draft(self.bytes, &self.changes, &self.known)?;
        let size = self.bytes.len() as u64;
        draft.edits.check(size)?;
        Ok(RewritePlan::new(draft, self.contents, size))
    }
}

/// What a file is.
enum Form<'a> {
    Archive(Archive<'a>),
    Elf,
    Other,
}

impl<'a> Form<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self> {
        if let Ok(archive) = Archive::parse(bytes) {
            return Ok(Self::Archive(archive));
        }
        if bytes.starts_with(b"MZ") {
            return Err(Error::new(0, ErrorKind::Windows));
        }
        Ok(if bytes.starts_with(b"\x7fELF") { Self::Elf } else { Self::Other })
    }
}

/// How to make changes to a file, or to the member of an archive.
fn draft(bytes: &[u8], changes: &[Change], known: &Known) -> Result<Draft> {
    match Form::of(bytes)? {
        Form::Elf => elf(bytes, changes, known),
        Form::Archive(archive) => {
            let taken = Cell::new(0_usize);
            let member = |data: &[u8], range: Range<u64>| {
                let own = changes.iter().filter(|change| range.contains(&change.at));
                let own: Vec<_> = own.map(|change| change.behind(range.start)).collect();
                taken.set(taken.get().saturating_add(own.len()));
                (!own.is_empty()).then(|| draft(data, &own, &known.within(&range)))
            };
            let draft = archive::plan(bytes, archive, &member)?;
            match changes.first() {
                Some(first) if taken.get() < changes.len() => {
                    Err(Error::outside(first.at, "a region of no member"))
                }
                _ => Ok(draft),
            }
        }
        Form::Other => {
            let starts = changes.iter().map(|change| change.at);
            let mut starts = starts.chain(known.regions.iter().map(|region| region.start));
            if starts.all(|start| start != 0) {
                return Err(Error::new(0, ErrorKind::Unknown));
            }
            let mut draft = Draft { in_place: changes.len(), ..Draft::default() };
            for change in changes {
                draft.edits.replace(change.at..change.end(), vec![change.new.clone()])?;
            }
            Ok(draft)
        }
    }
}

/// How to make changes to an ELF file.
fn elf(bytes: &[u8], changes: &[Change], known: &Known) -> Result<Draft> {
    let elf = Elf::parse(bytes)?;
    match elf.header.e_type.get() {
        ET_REL => object::plan(&elf, changes),
        ET_EXEC | ET_DYN => linked::plan(&elf, changes, known),
        other => Err(Error::new(0, ErrorKind::Type(other))),
    }
}
