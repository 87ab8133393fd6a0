//! What names a library of the dynamic loader has, by their hashes, and where its tables are: read while it is shown.

use super::hash_table::{Table, read};
use super::link_map::LinkMap;
use super::tables::{Has, Tables};
use crate::descriptions::Description;
use crate::word;
use core::ffi::{CStr, c_char};
use core::ops::Range;
use elf_core::names::{
    DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM,
};
use elf_core::{Name, gnu_hash};
use exec_core::sync::OnceLock;
use std::ffi::CString;

/// Where a library is, and what names it has.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) range: Range<u64>,
    pub(super) names: Names,
    /// Its symbols, for who keeps it.
    tables: Option<Tables>,
}

/// The hashes of a library's names.
#[derive(Debug)]
pub(super) enum Names {
    /// Its table (GNU gABI, "DT_GNU_HASH").
    Table(Table),
    /// By rising hash, of a library that has no such table.
    Sorted(Box<[u32]>),
}

impl Library {
    /// That which is shown.
    pub(super) fn shown(library: &Description<'_>) -> Self {
        let (names, tables) = names_of(library);
        Self { range: library.extent(), names, tables }
    }

    /// What it has of a name. Somebody keeps it.
    #[inline]
    pub(super) fn find(&self, hash: u32, name: &[u8], version: Option<&[u8]>) -> Has {
        let (Names::Table(table), Some(tables)) = (&self.names, &self.tables) else {
            return if self.names.may_hold(hash) { Has::Unknown } else { Has::Nothing };
        };
        if !table.passes(hash) {
            return Has::Nothing;
        }
        // SAFETY: the library is there, and has the symbols that its hash table says.
        unsafe { tables.find(table.chain(hash), name, version) }
    }
}

impl Names {
    /// The hashes of all, of those in a table but for the lowest bit.
    pub(super) fn hashes(&self) -> &[u32] {
        match self {
            Self::Table(table) => table.hashes(),
            Self::Sorted(hashes) => hashes,
        }
    }

    /// Whether a name has this hash, but for the lowest bit.
    #[inline]
    pub(super) fn may_hold(&self, hash: u32) -> bool {
        match self {
            Self::Table(table) => table.may_hold(hash),
            Self::Sorted(hashes) => {
                let at = hashes.partition_point(|it| it >> 1 < hash >> 1);
                hashes.get(at).is_some_and(|it| (it ^ hash) >> 1 == 0)
            }
        }
    }
}

/// The hashes of a library's names, which the dynamic loader does not unload meanwhile, and where its tables are.
fn names_of(library: &Description<'_>) -> (Names, Option<Tables>) {
    let Some((tables, table, old_table)) = tables_of(library) else {
        return (Names::Sorted(Box::default()), None);
    };
    // SAFETY: the dynamic loader looks symbols up in these tables.
    let names = unsafe {
        match (table, old_table) {
            (0, old) => Names::Sorted(sorted(old, tables.symbols, tables.strings)),
            (table, _) => Names::Table(Table::copy(table)),
        }
    };
    (names, Some(tables))
}

/// Where the tables of a library are that is shown, and its hash table of either form, or of both.
fn tables_of(library: &Description<'_>) -> Option<(Tables, u64, u64)> {
    // SAFETY: it is shown for longer than this function runs.
    let map = unsafe { LinkMap::of_shown(library) };
    let [table, old_table, symbols, strings, numbers, defined, needed] =
        map.values([DT_GNU_HASH, DT_HASH, DT_SYMTAB, DT_STRTAB, DT_VERSYM, DT_VERDEF, DT_VERNEED]);
    table.or(old_table)?;
    let tables = Tables {
        bias: library.bias(),
        symbols: symbols?,
        strings: strings?,
        numbers: numbers.unwrap_or_default(),
        defined: defined.unwrap_or_default(),
        needed: needed.unwrap_or_default(),
        versions: OnceLock::new(),
    };
    Some((tables, table.unwrap_or_default(), old_table.unwrap_or_default()))
}

/// A name that a library shows, and that is not one of those which linkers gave to all.
pub(super) fn sample(library: &Description<'_>) -> Option<CString> {
    const OF_LINKERS: [&CStr; 5] = [c"_init", c"_fini", c"_edata", c"_end", c"__bss_start"];
    let (tables, table, _) = tables_of(library).filter(|(_, table, _)| *table != 0)?;
    // SAFETY: the library is there while it is shown, and so are its tables.
    let name = unsafe {
        let mut shown = Table::some(table).filter_map(|symbol| tables.shown(symbol));
        shown.find(|name| !OF_LINKERS.contains(name))?
    };
    Some(name.to_owned())
}

/// The hashes of all names of a library that has the other table only (gABI ch. 8, "Hash Table").
///
/// # Safety
/// There are these tables, of a library that is loaded.
unsafe fn sorted(table: u64, symbols: u64, strings: u64) -> Box<[u32]> {
    // SAFETY: as the caller guarantees; the second word says how many symbols there are.
    let [_, count] = unsafe { read::<[u32; 2]>(table) };
    let hash = |index: u32| {
        let size = size_of::<word::Symbol>() as u64;
        let symbol = symbols.wrapping_add(u64::from(index).wrapping_mul(size));
        // SAFETY: as above; the first word of a symbol says where its name is.
        let name = strings.wrapping_add(unsafe { read::<u32>(symbol) }.into());
        let name = core::ptr::with_exposed_provenance::<c_char>(name as usize);
        // SAFETY: names of loaded libraries end in NUL.
        gnu_hash(Name(unsafe { CStr::from_ptr(name) }.to_bytes()))
    };
    let mut hashes: Vec<u32> = (0..count).map(hash).collect();
    hashes.sort_unstable();
    hashes.into()
}
