//! The dynamic section: what a dynamic linker goes by (gABI ch. 8).

use crate::content::name::{Name, StringTable};
use crate::content::symbols::SymbolTable;
use crate::dynamic::gnu_hash::GnuHashTable;
use crate::dynamic::hash::HashTable;
use crate::dynamic::version::Versions;
use crate::dynamic::version_list::{Definitions, Needs};
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::{
    DT_AARCH64_AUTH_RELR, DT_AARCH64_AUTH_RELRSZ, DT_ANDROID_REL, DT_ANDROID_RELA,
    DT_ANDROID_RELASZ, DT_ANDROID_RELR, DT_ANDROID_RELRENT, DT_ANDROID_RELRSZ, DT_ANDROID_RELSZ,
    DT_AUDIT, DT_AUXILIARY, DT_CONFIG, DT_CREL, DT_DEPAUDIT, DT_FILTER, DT_GNU_HASH, DT_HASH,
    DT_JMPREL, DT_NEEDED, DT_NULL, DT_PLTREL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELAENT, DT_RELASZ,
    DT_RELENT, DT_RELR, DT_RELRENT, DT_RELRSZ, DT_RELSZ, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ,
    DT_STRTAB, DT_SYMENT, DT_SYMTAB, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM, DT_VERSYM,
    EM_AARCH64, PT_DYNAMIC, SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL, SHT_ANDROID_RELA,
    SHT_ANDROID_RELR, SHT_CREL, SHT_DYNAMIC, SHT_REL, SHT_RELA, SHT_RELR,
};
use crate::records::relocations::Relocations;
use crate::table::entry::{Entry, row_size};
use crate::table::rows::Table;
use crate::table::slices;
use crate::views::section::SectionHeader;
use crate::views::segment::Dynamic;
use crate::views::symbol::Symbol;

/// The dynamic section, found as a section or as a segment, and the tables that it names by address.
///
/// Addresses are those before a loader adds its own; [`File::bytes_at`] finds them in the file.
///
/// ```
/// use elf_core::File;
///
/// let file = File::parse(include_bytes!("../../../fixtures/x86_64/libshared.so"))?;
/// let dynamic = file.dynamic()?.expect("a shared library");
/// for needed in dynamic.texts(elf_core::names::DT_NEEDED) {
///     println!("needs {}", needed?);
/// }
/// assert!(dynamic.symbol_table()?.is_some());
/// # Ok::<(), elf_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DynamicSection<'a> {
    file: File<'a>,
    at: u64,
    entries: Table<'a, Dynamic>,
    strings: StringTable<'a>,
    tags: Tags,
}

/// Which tags there may be: most that are asked for are in no section. Small machines have no room for it, and look.
#[derive(Clone, Copy, Debug)]
struct Tags(#[cfg(target_pointer_width = "64")] u64);

#[cfg(target_pointer_width = "64")]
impl Tags {
    /// A bit for each tag, which few share with another one.
    fn of(entries: Table<'_, Dynamic>) -> Self {
        Self(entries.iter().fold(0, |tags, entry| tags | Self::bit(entry.tag.cast_unsigned())))
    }

    const fn bit(tag: u64) -> u64 {
        1 << (tag % 64)
    }

    const fn may_have(self, tag: u64) -> bool {
        self.0 & Self::bit(tag) != 0
    }
}

#[cfg(not(target_pointer_width = "64"))]
impl Tags {
    const fn of(_: Table<'_, Dynamic>) -> Self {
        Self()
    }

    const fn may_have(self, _: u64) -> bool {
        true
    }
}

impl<'a> File<'a> {
    /// The dynamic section: the section of type `SHT_DYNAMIC`, else, if no section has that type or its bytes are not in
    /// the file, the segment of type `PT_DYNAMIC`; `None` if there is neither.
    ///
    /// # Errors
    /// As [`dynamic_by_section`](Self::dynamic_by_section) or [`dynamic_by_segment`](Self::dynamic_by_segment).
    pub fn dynamic(&self) -> Result<Option<DynamicSection<'a>>, Error> {
        match self.dynamic_by_section()? {
            None => self.dynamic_by_segment(),
            found => Ok(found),
        }
    }

    /// The dynamic section by the section of type `SHT_DYNAMIC`, its strings by `sh_link`.
    ///
    /// # Errors
    /// As [`rows`](Self::rows) and [`string_table`](Self::string_table).
    pub fn dynamic_by_section(&self) -> Result<Option<DynamicSection<'a>>, Error> {
        let Some(section) = self.sections().iter().find(|section| section.r#type == SHT_DYNAMIC)
        else {
            return Ok(None);
        };
        let strings = self.string_table(section.link, "sh_link")?;
        let entries = before_null(self.rows(&section)?);
        let (at, tags) = (section.offset, Tags::of(entries));
        Ok(Some(DynamicSection { file: *self, at, entries, strings, tags }))
    }

    /// The dynamic section by the segment of type `PT_DYNAMIC`, its strings by `DT_STRTAB` and `DT_STRSZ`.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] or [`ErrorKind::UnevenTable`] by the segment; [`ErrorKind::NoAddress`] or
    /// [`ErrorKind::Outside`] by the strings.
    pub fn dynamic_by_segment(&self) -> Result<Option<DynamicSection<'a>>, Error> {
        let Some(segment) = self.segments().iter().find(|segment| segment.r#type == PT_DYNAMIC)
        else {
            return Ok(None);
        };
        let (at, size) = (segment.offset, segment.file_size);
        let entries = Table::parse_bytes(self.bytes(), self.encoding(), at, size)?;
        self.dynamic_of(at, entries).map(Some)
    }

    /// The dynamic section with these bytes, which are those at offset `at` of the file, its strings by `DT_STRTAB` and `DT_STRSZ`: where
    /// that segment was read, and not what is before it.
    ///
    /// # Errors
    /// As [`dynamic_by_segment`](Self::dynamic_by_segment).
    pub fn dynamic_in(&self, at: u64, bytes: &'a [u8]) -> Result<DynamicSection<'a>, Error> {
        let entries = Table::parse_bytes(bytes, self.encoding(), 0, bytes.len() as u64);
        self.dynamic_of(at, entries.map_err(|error| Error { at, ..error })?)
    }

    fn dynamic_of(
        &self,
        at: u64,
        entries: Table<'a, Dynamic>,
    ) -> Result<DynamicSection<'a>, Error> {
        let entries = before_null(entries);
        let strings = StringTable::default();
        let tags = Tags::of(entries);
        let mut found = DynamicSection { file: *self, at, entries, strings, tags };
        if let Some((at, data)) =
            found.table("dynamic string table", DT_STRTAB, found.value(DT_STRSZ))?
        {
            found.strings = StringTable::new(data, at);
        }
        Ok(found)
    }
}

/// The tags of tables that stand beside the symbols.
const TABLES: [u64; 13] = [
    DT_STRTAB,
    DT_HASH,
    DT_GNU_HASH,
    DT_VERSYM,
    DT_VERDEF,
    DT_VERNEED,
    DT_RELA,
    DT_REL,
    DT_JMPREL,
    DT_RELR,
    DT_ANDROID_RELA,
    DT_ANDROID_REL,
    DT_ANDROID_RELR,
];

/// The entries before `DT_NULL`, which ends the section.
fn before_null(entries: Table<'_, Dynamic>) -> Table<'_, Dynamic> {
    let end = entries.position(|entry| entry.tag == DT_NULL.cast_signed());
    end.and_then(|end| entries.slice(0, end)).unwrap_or(entries)
}

impl<'a> DynamicSection<'a> {
    /// The entries before `DT_NULL`.
    #[must_use]
    pub const fn entries(&self) -> Table<'a, Dynamic> {
        self.entries
    }

    /// The strings.
    #[must_use]
    pub const fn strings(&self) -> StringTable<'a> {
        self.strings
    }

    /// The number or address of the entry with this tag (`DT_*`); of several the last one's, as dynamic linkers read them.
    #[must_use]
    pub fn value(&self, tag: u64) -> Option<u64> {
        if !self.tags.may_have(tag) {
            return None;
        }
        let mut entries = self.entries.iter().rev();
        entries.find(|entry| entry.tag == tag.cast_signed()).map(|entry| entry.value)
    }

    /// The text that an entry's value stands for, if the entry is one that names something.
    ///
    /// # Errors
    /// [`ErrorKind::NoString`] if the string table does not hold it.
    pub fn text(&self, entry: &Dynamic) -> Result<Option<Name<'a>>, Error> {
        match entry.tag.cast_unsigned() {
            DT_NEEDED | DT_SONAME | DT_RPATH | DT_RUNPATH | DT_AUXILIARY | DT_FILTER
            | DT_CONFIG | DT_AUDIT | DT_DEPAUDIT => {
                self.strings.get(u32::try_from(entry.value).unwrap_or(u32::MAX)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The texts of all entries with this tag, in order: of `DT_NEEDED`, the libraries that are needed.
    pub fn texts(
        &self,
        tag: u64,
    ) -> impl Iterator<Item = Result<Name<'a>, Error>> + Clone + use<'a> {
        let dynamic = *self;
        let entries = self.entries.iter().filter(move |entry| entry.tag == tag.cast_signed());
        entries.filter_map(move |entry| dynamic.text(&entry).transpose())
    }

    /// The symbols (`DT_SYMTAB`). How many there are, the hash table tells, or, if none of them is defined, where the next table begins;
    /// `None` if there is no symbol table or no hash table.
    ///
    /// # Errors
    /// [`ErrorKind::NoAddress`] or [`ErrorKind::Outside`] if a table is not in the file, [`ErrorKind::EntrySize`] if `DT_SYMENT` is not the
    /// gABI's; else as those of the hash tables.
    pub fn symbol_table(&self) -> Result<Option<SymbolTable<'a>>, Error> {
        let count = match (self.hash_table()?, self.gnu_hash_table()?) {
            (Some(table), _) => table.symbol_count() as u64,
            (None, Some(table)) => {
                let count = table.symbol_count()?;
                let is_known = count > table.first_symbol();
                // a table without chains tells nothing of those that are undefined
                let rest = if is_known { None } else { self.symbols_before_next() };
                rest.unwrap_or(0).max(count.into())
            }
            (None, None) => return Ok(None),
        };
        let Some((at, _)) = self.table("dynamic symbol table", DT_SYMTAB, None)? else {
            return Ok(None);
        };
        let symbols = Table::parse(self.file.bytes(), self.file.encoding(), at, count)?;
        self.check_row(DT_SYMENT, "DT_SYMENT", row_size::<Symbol>(self.file.encoding()))?;
        let names = self.strings;
        Ok(Some(SymbolTable { section: 0, at, symbols, names, extended: None, first_global: 0 }))
    }

    /// How many symbols there can be before the table that is next.
    fn symbols_before_next(&self) -> Option<u64> {
        let start = self.value(DT_SYMTAB)?;
        let others = self.entries.iter().filter(|it| TABLES.contains(&it.tag.cast_unsigned()));
        let next = others.map(|it| it.value).filter(|address| *address > start).min()?;
        next.checked_sub(start)?.checked_div(row_size::<Symbol>(self.file.encoding()) as u64)
    }

    /// Fails if the entry with this tag says of rows that they have another size than the gABI's.
    fn check_row(&self, tag: u64, what: &'static str, size: usize) -> Result<(), Error> {
        let expected = size as u64;
        match self.value(tag) {
            Some(found) if found != expected => {
                Err(Error { at: self.at, kind: ErrorKind::EntrySize { what, found, expected } })
            }
            _ => Ok(()),
        }
    }

    /// The hash table of `DT_HASH`.
    ///
    /// # Errors
    /// [`ErrorKind::NoAddress`] or [`ErrorKind::Outside`] if it is not in the file.
    pub fn hash_table(&self) -> Result<Option<HashTable<'a>>, Error> {
        let Some((at, data)) = self.table("hash table", DT_HASH, None)? else { return Ok(None) };
        HashTable::parse(data, self.file.encoding(), self.file.has_wide_hash(), at).map(Some)
    }

    /// The hash table of `DT_GNU_HASH`.
    ///
    /// # Errors
    /// [`ErrorKind::NoAddress`] or [`ErrorKind::Outside`] if it is not in the file.
    pub fn gnu_hash_table(&self) -> Result<Option<GnuHashTable<'a>>, Error> {
        let Some((at, data)) = self.table("hash table", DT_GNU_HASH, None)? else {
            return Ok(None);
        };
        GnuHashTable::parse(data, self.file.encoding(), at).map(Some)
    }

    /// The versions of the symbols (`DT_VERSYM`, `DT_VERDEF`, `DT_VERNEED`); `None` if there are none.
    ///
    /// # Errors
    /// [`ErrorKind::NoAddress`] or [`ErrorKind::Outside`] if a list is not in the file; else as
    /// [`symbol_table`](Self::symbol_table).
    pub fn versions(&self) -> Result<Option<Versions<'a>>, Error> {
        self.versions_with(|| Ok(self.symbol_table()?.map(|symbols| symbols.len())))
    }

    /// The same, for who knows how many symbols there are, and has not to ask the hash table once more.
    ///
    /// # Errors
    /// As [`versions`](Self::versions), but for those of [`symbol_table`](Self::symbol_table).
    pub fn versions_of(&self, symbols: &SymbolTable<'a>) -> Result<Option<Versions<'a>>, Error> {
        self.versions_with(|| Ok(Some(symbols.len())))
    }

    fn versions_with(
        &self,
        count: impl FnOnce() -> Result<Option<usize>, Error>,
    ) -> Result<Option<Versions<'a>>, Error> {
        let indices = self.table("symbol versions", DT_VERSYM, None)?;
        let list = |tag, count| {
            let count = self
                .value(count)
                .map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX));
            Ok(self
                .table("symbol versions", tag, None)?
                .map(|(at, data)| (data, at, count, self.strings)))
        };
        let (definitions, needs) =
            (list(DT_VERDEF, DT_VERDEFNUM)?, list(DT_VERNEED, DT_VERNEEDNUM)?);
        if indices.is_none() && definitions.is_none() && needs.is_none() {
            return Ok(None);
        }
        let encoding = self.file.encoding();
        let indices = match (indices, count()?) {
            (Some((at, _)), Some(count)) => {
                Table::parse(self.file.bytes(), encoding, at, count as u64)?
            }
            _ => Table::empty(),
        };
        let definitions =
            definitions.map_or(Definitions::EMPTY, |list| Definitions::new(encoding, list));
        let needs = needs.map_or(Needs::EMPTY, |list| Needs::new(encoding, list));
        Ok(Some(Versions { at: self.at, indices, definitions, needs }))
    }

    /// The relocations that the entry with this tag names: `DT_RELA`, `DT_REL`, `DT_JMPREL`, `DT_RELR`, `DT_CREL`, or one of
    /// Android's or AArch64's. `None` if there is no such entry or the tag is another one.
    ///
    /// # Errors
    /// [`ErrorKind::NoAddress`] if they are not in the file, [`ErrorKind::Missing`] if the section does not tell their size or, of
    /// `DT_JMPREL`, their form; [`ErrorKind::EntrySize`] if it tells another size of rows than the gABI's, [`ErrorKind::Invalid`] if
    /// `DT_PLTREL` is neither `DT_RELA` nor `DT_REL`; else as [`File::relocations`].
    pub fn relocations(&self, tag: u64) -> Result<Option<Relocations<'a>>, Error> {
        let fail = |kind| Error { at: self.at, kind };
        if self.value(tag).is_none() {
            return Ok(None);
        }
        let (r#type, size) = match tag {
            DT_RELA => (SHT_RELA, Some((DT_RELASZ, "DT_RELASZ"))),
            DT_REL => (SHT_REL, Some((DT_RELSZ, "DT_RELSZ"))),
            DT_RELR => (SHT_RELR, Some((DT_RELRSZ, "DT_RELRSZ"))),
            DT_ANDROID_RELA => (SHT_ANDROID_RELA, Some((DT_ANDROID_RELASZ, "DT_ANDROID_RELASZ"))),
            DT_ANDROID_REL => (SHT_ANDROID_REL, Some((DT_ANDROID_RELSZ, "DT_ANDROID_RELSZ"))),
            DT_ANDROID_RELR => (SHT_ANDROID_RELR, Some((DT_ANDROID_RELRSZ, "DT_ANDROID_RELRSZ"))),
            DT_AARCH64_AUTH_RELR if self.file.header().machine == EM_AARCH64 => {
                let size = (DT_AARCH64_AUTH_RELRSZ, "DT_AARCH64_AUTH_RELRSZ");
                (SHT_AARCH64_AUTH_RELR, Some(size))
            }
            DT_CREL => (SHT_CREL, None), // tells itself where it ends
            DT_JMPREL => {
                let r#type = match self.value(DT_PLTREL) {
                    Some(DT_RELA) => SHT_RELA,
                    Some(DT_REL) => SHT_REL,
                    None => return Err(fail(ErrorKind::Missing("DT_PLTREL"))),
                    Some(value) => {
                        return Err(fail(ErrorKind::Invalid { what: "DT_PLTREL", value }));
                    }
                };
                (r#type, Some((DT_PLTRELSZ, "DT_PLTRELSZ")))
            }
            _ => return Ok(None),
        };
        let word: usize = if self.file.encoding().is_64() { 8 } else { 4 };
        match r#type {
            SHT_RELA => self.check_row(DT_RELAENT, "DT_RELAENT", word.saturating_mul(3))?,
            SHT_REL => self.check_row(DT_RELENT, "DT_RELENT", word.saturating_mul(2))?,
            SHT_RELR => self.check_row(DT_RELRENT, "DT_RELRENT", word)?,
            SHT_ANDROID_RELR => self.check_row(DT_ANDROID_RELRENT, "DT_ANDROID_RELRENT", word)?,
            _ => {}
        }
        let size = match size {
            Some((tag, name)) => Some(self.value(tag).ok_or(fail(ErrorKind::Missing(name)))?),
            None => None,
        };
        let Some((offset, data)) = self.table("relocations", tag, size)? else { return Ok(None) };
        self.file.relocations(&SectionHeader {
            r#type,
            offset,
            size: data.len() as u64,
            ..SectionHeader::default()
        })
    }

    /// The rows of the table that the entry `tag` names, in as many bytes as the entry `size` says; `None` if there is no such entry.
    ///
    /// # Errors
    /// [`ErrorKind::NoAddress`] or [`ErrorKind::Outside`] if they are not in the file, [`ErrorKind::UnevenTable`] if a part of a row is
    /// left.
    pub fn rows<E: Entry>(&self, tag: u64, size: u64) -> Result<Option<Table<'a, E>>, Error> {
        let size = Some(self.value(size).unwrap_or(0));
        let Some((at, data)) = self.table(E::WHAT, tag, size)? else { return Ok(None) };
        let (bytes, encoding) = (self.file.bytes(), self.file.encoding());
        Table::parse_bytes(bytes, encoding, at, data.len() as u64).map(Some)
    }

    /// File offset and bytes of what the entry with this tag names: `size` of them, or all to the end of the segment.
    fn table(
        &self,
        what: &'static str,
        tag: u64,
        size: Option<u64>,
    ) -> Result<Option<(u64, &'a [u8])>, Error> {
        let Some(address) = self.value(tag) else { return Ok(None) };
        if size == Some(0) {
            return Ok(Some((self.at, &[])));
        }
        let named = |error: Error| match error.kind {
            ErrorKind::NoAddress { .. } => Error { at: self.at, ..error },
            _ => error,
        };
        let (at, data) = self.file.bytes_at(what, address).map_err(named)?;
        match size {
            None => Ok(Some((at, data))),
            Some(size) => slices::bytes(data, what, 0, size)
                .map(|data| Some((at, data)))
                .map_err(|error| Error { at, ..error }),
        }
    }
}
