//! An entry of a region: one image of device code.

use crate::error::{Error, ErrorKind};
use crate::kind::{CompressionMethod, EntryFlags, EntryKind, Sm, Suffix};
use crate::raw;
use crate::span::Span;
use core::fmt;
use elf_core::Name;

/// One image in a region, its header checked: all blocks lie where it says.
#[derive(Clone, Copy)]
pub struct RegionEntry<'a> {
    raw: &'a raw::Entry,
    span: Span<'a>,
    identifier: &'a [u8],
    options: EntryOptions<'a>,
    payload: Span<'a>,
}

impl<'a> RegionEntry<'a> {
    /// Reads the header at the start of `span`, which may go on after the entry.
    ///
    /// The order of the optional blocks differs between CUDA 11 and 12.4: their offsets are followed.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the header, a block or the payload leaves what holds it; [`ErrorKind::Invalid`] if the
    /// header is too small for itself, has several bits of compression or both suffixes, or if the compressed size is larger than
    /// the stored one.
    pub fn parse(span: impl Into<Span<'a>>) -> Result<Self, Error> {
        let span = span.into();
        let raw: &raw::Entry = span.row("entry header", 0)?;
        let invalid =
            |offset, what, value| Err(span.error(offset, ErrorKind::Invalid { what, value }));
        let header_size = u64::from(raw.header_size.get());
        if header_size < size_of::<raw::Entry>() as u64 {
            return invalid(4, "entry header size", header_size);
        }
        let header = span.part("entry header", 0, header_size)?;
        let payload = span.part("payload", header_size, raw.payload_size.get())?;
        if u64::from(raw.compressed_size.get()) > payload.size() {
            return invalid(0x10, "compressed size", raw.compressed_size.into());
        }
        let flags = EntryFlags::from_bits_retain(raw.flags.get());
        let methods = flags.intersection(EntryFlags::COMPRESSED);
        if methods.bits().count_ones() > 1 {
            return invalid(0x28, "compression", methods.bits());
        }
        if flags.contains(EntryFlags::SPECIFIC | EntryFlags::FAMILY) {
            return invalid(0x28, "architecture suffix", flags.bits());
        }
        let identifier = match raw.identifier.get() {
            0 => &[],
            at => header.part("identifier", at.into(), raw.identifier_size.get().into())?.bytes(),
        };
        let options = match raw.options.get() {
            0 => EntryOptions::None,
            _ if raw.kind == EntryKind::Concatenated.number() => EntryOptions::None, // there it is the table of parts
            at => EntryOptions::parse(header, at.into(), flags)?,
        };
        let span = span.part("entry", 0, header_size.saturating_add(payload.size()))?;
        Ok(Self { raw, span, identifier, options, payload })
    }

    /// File offset of the header.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.span.at()
    }

    /// Bytes of header and payload: the next entry follows.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.span.size()
    }

    /// Header and payload.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.span.bytes()
    }

    /// The header as it stands, without the optional blocks.
    #[must_use]
    pub const fn header(&self) -> &'a raw::Entry {
        self.raw
    }

    /// What the payload is.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        EntryKind::from_number(self.raw.kind.get())
    }

    /// All flags.
    #[must_use]
    pub fn flags(&self) -> EntryFlags {
        EntryFlags::from_bits_retain(self.raw.flags.get())
    }

    /// The architecture it is for; number 0 for several (the [`parts`](Self::parts) know).
    #[must_use]
    pub fn sm(&self) -> Sm {
        Sm { number: self.raw.sm.get(), suffix: suffix(self.flags()) }
    }

    /// Major and minor version of the code: of the PTX ISA; for an ELF 1 and its ABI version (7 or 8); 1.67 for NVVM of
    /// CUDA 13.5.
    #[must_use]
    pub fn code_version(&self) -> (u16, u16) {
        (self.raw.code_major.get(), self.raw.code_minor.get())
    }

    /// What the entry is called: mostly the name of the source file. Empty if it has no name.
    #[must_use]
    pub const fn identifier(&self) -> Name<'a> {
        Name(self.identifier)
    }

    /// What the entry says besides.
    #[must_use]
    pub const fn options(&self) -> EntryOptions<'a> {
        self.options
    }

    /// How the payload is compressed.
    #[must_use]
    pub fn compression(&self) -> Option<CompressionMethod> {
        let flags = self.flags();
        CompressionMethod::ALL.into_iter().find(|method| flags.contains(method.flag()))
    }

    /// The key with which the payload is obfuscated.
    #[must_use]
    pub fn obfuscation_key(&self) -> Option<u64> {
        self.flags().contains(EntryFlags::OBFUSCATED).then(|| self.raw.obfuscation_key.get())
    }

    /// The payload as it is stored: without padding if the header says the exact size, which it does for compressed
    /// payloads other than zlib of CUDA 11.
    #[must_use]
    pub fn stored(&self) -> Span<'a> {
        match self.raw.compressed_size.get() {
            0 => self.payload,
            size => self.payload.part("payload", 0, size.into()).unwrap_or(self.payload),
        }
    }

    /// Bytes of the payload as it is stored, padding included.
    #[must_use]
    pub const fn stored_size(&self) -> u64 {
        self.payload.size()
    }

    /// Bytes of the payload when unpacked, as the header claims. That of an uncompressed payload has its padding in it.
    #[must_use]
    pub fn unpacked_size(&self) -> u64 {
        match self.compression() {
            Some(_) => self.raw.unpacked_size.get(),
            None => self.payload.size(),
        }
    }

    /// The header with its optional blocks.
    pub(crate) fn header_span(&self) -> Span<'a> {
        self.span.part("entry header", 0, self.raw.header_size.get().into()).unwrap_or(self.span)
    }
}

/// What an entry says besides its header: one block, whose meaning depends on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EntryOptions<'a> {
    /// Nothing.
    #[default]
    None,
    /// Options of the compiler, for PTX (`-O3 `) and NVVM (`-ftz=0 -prec_div=1 `): often empty.
    Compiler(&'a [u8]),
    /// The content of the section `.nv.compat` of an ELF ([`EntryFlags::COMPAT`]).
    Compat(&'a [u8]),
}

impl<'a> EntryOptions<'a> {
    /// The block at `at` of the entry's header.
    fn parse(header: Span<'a>, at: u64, flags: EntryFlags) -> Result<Self, Error> {
        let block: &raw::Options = header.row("options", at)?;
        let (offset, size) = (u64::from(block.offset.get()), block.size.get().into());
        // CUDA 11 leaves room for a block, and says so, that there is nothing in
        if offset == 0 {
            return Ok(Self::None);
        }
        if !flags.contains(EntryFlags::COMPAT) {
            return Ok(Self::Compiler(header.part("options", offset, size)?.bytes()));
        }
        // The tools write a NUL first, which the size does not count. No attribute begins with NUL.
        let first = header.part("options", offset, 1)?.bytes();
        let offset = if first == [0] { offset.saturating_add(1) } else { offset };
        Ok(Self::Compat(header.part("options", offset, size)?.bytes()))
    }
}

/// PTX without the NULs that stores and pads put after it: what `cuobjdump` extracts.
#[must_use]
pub fn text(ptx: &[u8]) -> &[u8] {
    let end = ptx.iter().rposition(|&byte| byte != 0).map_or(0, |last| last.saturating_add(1));
    ptx.get(..end).unwrap_or(ptx)
}

/// The suffix that flags say.
pub(crate) const fn suffix(flags: EntryFlags) -> Suffix {
    if flags.contains(EntryFlags::SPECIFIC) {
        Suffix::Specific
    } else if flags.contains(EntryFlags::FAMILY) {
        Suffix::Family
    } else {
        Suffix::None
    }
}

impl fmt::Debug for RegionEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("at", &self.at())
            .field("kind", &self.kind())
            .field("sm", &self.sm())
            .field("flags", &self.flags())
            .field("stored_size", &self.stored_size())
            .field("unpacked_size", &self.unpacked_size())
            .finish_non_exhaustive()
    }
}
