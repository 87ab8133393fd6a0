//! Why a file cannot be changed, and where.

use core::fmt::{self, Display, Formatter};

/// Why a file cannot be changed as it was asked for. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The member of an archive that this is about, by its name.
    pub member: Option<String>,
    /// File offset of the bytes that this is about: a region, a header, a table.
    pub at: u64,
    /// What stands against it.
    pub kind: ErrorKind,
}

/// What stands against a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is damaged.
    Elf(elf_core::Error),
    /// It is a file of Windows.
    Windows,
    /// It is no ELF file and no archive, and does not begin with a region.
    Unknown,
    /// `e_type` is neither `ET_REL` nor `ET_EXEC` nor `ET_DYN`.
    Type(u16),
    /// The file is not of 64 bits and little-endian.
    Encoding,
    /// The file has more sections or segments than its header can count.
    TooManyHeaders,
    /// This does not lie inside the file, or the section, that it belongs to.
    Outside(&'static str),
    /// Two changes are of the same bytes.
    Overlap,
    /// The archive is thin: its members are files of their own.
    ThinArchive,
    /// The archive's table of symbols is one of BSD.
    BsdSymbols,
    /// The size of a member, or an offset in the table of symbols, would need more digits or bits than it has.
    ArchiveTooLarge(&'static str),
    /// A member's header has no number where its size stands.
    MemberSize,
    /// Something refers to a byte inside a region that changes or moves: whoever does so knows what is inside.
    PointsInside {
        /// What refers to it.
        referrer: Referrer,
        /// The address or offset of what refers to it.
        place: u64,
        /// The address, or offset in its section, that it refers to.
        target: u64,
    },
    /// A relocation writes to this address, which is in a region that changes: of what comes there it knows nothing.
    Relocated(u64),
    /// A region has to move, and nothing is known to point to it: nobody would find it elsewhere.
    Unreferenced,
    /// An instruction refers to a region that has to move, or may do so.
    Instruction {
        /// The address of the instruction.
        address: u64,
        /// The instruction, as a disassembler shows it.
        text: String,
    },
    /// A region has to move, and code of this machine (`e_machine`) cannot be examined for references.
    Machine(u16),
    /// Relocations of this form are not changed.
    Relocations(&'static str),
    /// A section or segment is aligned to this, which is no power of two or too large.
    Alignment(u64),
    /// There is no place for a segment behind the last.
    NoRoom(&'static str),
    /// There would have to be a hole of this many bytes in the file.
    Gap(u64),
    /// The table of section names is loaded, and so cannot grow.
    LoadedNames,
    /// Device code, or what leads to it, cannot be read (feature `fatbin`).
    #[cfg(feature = "fatbin")]
    DeviceCode(fatbin::Error),
}

/// What refers to a region.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Referrer {
    /// A relocation.
    Relocation,
    /// A relocation with a symbol.
    RelocationWithSymbol,
    /// A word that a relocation without a record adds the base to.
    RelocatedWord,
    /// A word that was said to be a pointer.
    Pointer,
    /// A word of this section, in a program at fixed addresses.
    Word(String),
    /// A symbol, by its number.
    Symbol,
    /// A symbol or relocation of an object.
    Section,
}

/// What is done, or an error.
pub(crate) type Result<T> = core::result::Result<T, Error>;

impl Error {
    pub(crate) const fn new(at: u64, kind: ErrorKind) -> Self {
        Self { member: None, at, kind }
    }

    pub(crate) const fn outside(at: u64, what: &'static str) -> Self {
        Self::new(at, ErrorKind::Outside(what))
    }

    /// The same of a member whose bytes start at `start` in the archive.
    pub(crate) fn of_member(self, name: &str, start: u64) -> Self {
        let member = match self.member {
            Some(inner) => format!("{name}({inner})"),
            None => name.to_owned(),
        };
        Self { member: Some(member), at: self.at.saturating_add(start), ..self }
    }
}

impl From<elf_core::Error> for Error {
    fn from(error: elf_core::Error) -> Self {
        Self::new(error.at, ErrorKind::Elf(error))
    }
}

/// A number as an index.
///
/// # Errors
/// If no memory has so many bytes.
pub(crate) fn index(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::outside(value, "an offset"))
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(member) = &self.member {
            write!(f, "member {member}: ")?;
        }
        let at = self.at;
        match &self.kind {
            ErrorKind::Elf(error) => error.fmt(f),
            ErrorKind::Windows => f.write_str("is a file of Windows, which cannot be changed here"),
            ErrorKind::Unknown => f.write_str(
                "is neither an ELF file, nor an archive, nor begins with a region: what else refers into it is not known",
            ),
            ErrorKind::Type(number) => write!(
                f,
                "is neither an object, nor a library, nor an executable, but of type {number}"
            ),
            ErrorKind::Encoding => f.write_str("is not of 64 bits, little-endian"),
            ErrorKind::TooManyHeaders => {
                f.write_str("has more sections or segments than can be changed here")
            }
            ErrorKind::Outside(what) => {
                write!(f, "{what} at offset {at:#x} leaves what it belongs to")
            }
            ErrorKind::Overlap => write!(f, "two changes to the bytes at offset {at:#x}"),
            ErrorKind::ThinArchive => f.write_str(
                "is a thin archive: its members are files of their own, to be changed themselves",
            ),
            ErrorKind::BsdSymbols => f.write_str(
                "has a table of symbols in the way of BSD, which cannot be changed here",
            ),
            ErrorKind::ArchiveTooLarge(what) => {
                write!(f, "{what} at offset {at:#x} would be too large for an archive")
            }
            ErrorKind::MemberSize => {
                write!(f, "the header of a member at offset {at:#x} has no size")
            }
            ErrorKind::PointsInside { referrer, place, target } => write!(
                f,
                "{referrer} at {place:#x} points to {target:#x}, into the region at offset {at:#x}, which would have to change"
            ),
            ErrorKind::Relocated(place) => write!(
                f,
                "a relocation writes to {place:#x}, in the region at offset {at:#x}, which would have to change"
            ),
            ErrorKind::Unreferenced => write!(
                f,
                "the region at offset {at:#x} grows and has to move, but nothing points to it: nobody would find it elsewhere"
            ),
            ErrorKind::Instruction { address, text } => write!(
                f,
                "the instruction at {address:#x} ({text}) refers to the region at offset {at:#x}, which would have to move"
            ),
            ErrorKind::Machine(machine) => write!(
                f,
                "a region grows and has to move, which is known to be safe for x86-64 and AArch64, not for machine {machine}"
            ),
            ErrorKind::Relocations(form) => write!(f, "{form} cannot be changed here"),
            ErrorKind::Alignment(unit) => write!(f, "a section or segment is aligned to {unit:#x}"),
            ErrorKind::NoRoom(why) => write!(f, "no place for another segment: {why}"),
            ErrorKind::Gap(size) => write!(f, "would have {size:#x} bytes without content"),
            ErrorKind::LoadedNames => f.write_str("section names that are loaded cannot grow"),
            #[cfg(feature = "fatbin")]
            ErrorKind::DeviceCode(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

impl Display for Referrer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relocation => f.write_str("a relocation"),
            Self::RelocationWithSymbol => f.write_str("a relocation with a symbol"),
            Self::RelocatedWord => f.write_str("a relocated word"),
            Self::Pointer => f.write_str("the pointer"),
            Self::Word(section) => write!(f, "a word of {section}"),
            Self::Symbol => f.write_str("the symbol"),
            Self::Section => f.write_str("something"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let inside =
            ErrorKind::PointsInside { referrer: Referrer::Relocation, place: 0x10, target: 0x2008 };
        let error = Error::new(0x40, inside).of_member("a.o", 0x100);
        assert_eq!(
            error.to_string(),
            "member a.o: a relocation at 0x10 points to 0x2008, into the region at offset 0x140, which would have to change"
        );
        let error = Error::outside(8, "a region").of_member("a.o", 0).of_member("b.a", 0);
        assert_eq!(
            error.to_string(),
            "member b.a(a.o): a region at offset 0x8 leaves what it belongs to"
        );
        assert_eq!(
            Error::new(3, ErrorKind::Overlap).to_string(),
            "two changes to the bytes at offset 0x3"
        );
    }
}
