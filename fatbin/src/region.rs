//! A region: what NVIDIA calls a fatbin.

use crate::entry::RegionEntry;
use crate::error::{Error, ErrorKind};
use crate::raw;
use crate::span::Span;
use core::fmt;
use core::iter::FusedIterator;

/// A region: a header and the entries behind it.
///
/// Only the header was read: [`entries`](Self::entries) reads the headers of the entries, and nothing reads payloads
/// but what unpacks them.
#[derive(Clone, Copy)]
pub struct Region<'a> {
    header: &'a raw::Region,
    span: Span<'a>,
}

impl<'a> Region<'a> {
    /// Reads the header at the start of `span`, which may go on after the region.
    ///
    /// # Errors
    /// [`ErrorKind::Magic`] if there is none, [`ErrorKind::Invalid`] if its version or size is not known,
    /// [`ErrorKind::Outside`] if the entries leave `span`.
    pub fn parse(span: impl Into<Span<'a>>) -> Result<Self, Error> {
        let span = span.into();
        let header: &raw::Region = span.row("region header", 0)?;
        if header.magic != raw::REGION_MAGIC {
            return Err(span.error(0, ErrorKind::Magic { what: "region", found: span.magic() }));
        }
        if !matches!(header.version.get(), 1 | 2) {
            return Err(span.error(
                4,
                ErrorKind::Invalid { what: "region version", value: header.version.into() },
            ));
        }
        if usize::from(header.header_size.get()) < size_of::<raw::Region>() {
            let kind =
                ErrorKind::Invalid { what: "region header size", value: header.header_size.into() };
            return Err(span.error(6, kind));
        }
        let size = header.size.get().saturating_add(header.header_size.into());
        Ok(Self { header, span: span.part("region", 0, size)? })
    }

    /// File offset of the header.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.span.at()
    }

    /// Bytes of header and entries.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.span.size()
    }

    /// File offset of what follows.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.at().saturating_add(self.size())
    }

    /// Header and entries.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.span.bytes()
    }

    /// The header as it stands.
    #[must_use]
    pub const fn header(&self) -> &'a raw::Region {
        self.header
    }

    /// The entries in order.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        Entries { rest: self.span.tail(self.header.header_size.into()) }
    }
}

impl<'a> IntoIterator for &Region<'a> {
    type Item = Result<RegionEntry<'a>, Error>;
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.entries()
    }
}

impl fmt::Debug for Region<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("at", &self.at())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// The entries of a region in order. An entry that cannot be read is the last: nothing says where the next would be.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: Option<Span<'a>>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<RegionEntry<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take().filter(|rest| rest.size() != 0)?;
        Some(RegionEntry::parse(rest).inspect(|entry| self.rest = rest.tail(entry.size())))
    }
}

impl FusedIterator for Entries<'_> {}
