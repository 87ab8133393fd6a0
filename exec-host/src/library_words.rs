//! Words of the process's libraries into which the dynamic loader writes the address of a symbol by its name: who changes them leads
//! the library elsewhere.

use crate::descriptions::Description;
use crate::machine;
use crate::word::{self, raw, read};
use core::ffi::{CStr, c_char, c_void};
use core::ops::Range;
use elf_core::names::{
    DT_GNU_HASH, DT_JMPREL, DT_PLTREL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELACOUNT, DT_RELASZ,
    DT_RELCOUNT, DT_RELSZ, DT_STRTAB, DT_SYMTAB,
};
use rustix::mm::{MprotectFlags, mprotect};

/// Where such a word is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    address: u64,
    /// The page is not writable any more (`PT_GNU_RELRO`).
    is_read_only: bool,
}

/// Tags of a dynamic section up to the last that is wanted of the gABI's.
const TAGS: usize = DT_JMPREL as usize + 1;
/// Where `r_info` has the symbol.
const SYMBOL_AT: u32 = if word::IS_64 { 32 } else { 8 };

/// What the dynamic section of a loaded library says.
struct Dynamic<'l> {
    library: &'l Description<'l>,
    values: [u64; TAGS],
    /// Value of `DT_GNU_HASH`.
    hash: u64,
    /// How many rows of `DT_RELA` or `DT_REL` are relative, and come first.
    relative: [u64; 2],
}

impl<'l> Dynamic<'l> {
    /// # Safety
    /// The description is that of a library which is loaded.
    unsafe fn of(library: &'l Description<'l>) -> Option<Self> {
        let range = library.range(library.header(libc::PT_DYNAMIC)?);
        let mut dynamic = Self { library, values: [0; TAGS], hash: 0, relative: [0; 2] };
        for at in range.step_by(2 * word::SIZE as usize) {
            // SAFETY: the dynamic section is mapped and consists of pairs of words.
            let [tag, value] = unsafe { [read(at), read(at.wrapping_add(word::SIZE))] };
            let place = match tag {
                0 => break,
                DT_GNU_HASH => Some(&mut dynamic.hash),
                DT_RELACOUNT => dynamic.relative.first_mut(),
                DT_RELCOUNT => dynamic.relative.last_mut(),
                tag => dynamic.values.get_mut(tag as usize),
            };
            if let Some(place) = place {
                *place = value;
            }
        }
        Some(dynamic)
    }

    fn value(&self, tag: u64) -> u64 {
        self.values.get(tag as usize).copied().unwrap_or(0)
    }

    /// Most dynamic loaders have made values addresses, some have not.
    fn address(&self, value: u64) -> u64 {
        let bias = self.library.bias();
        if value < bias { value.wrapping_add(bias) } else { value }
    }

    fn is_mapped(&self, range: &Range<u64>) -> bool {
        let loaded = self.library.headers().iter().filter(|header| header.p_type == libc::PT_LOAD);
        let mut parts = loaded.map(|header| self.library.range(header));
        parts.any(|part| part.start <= range.start && range.end <= part.end)
    }

    /// Where the name of the symbol of an index is, which ends in NUL.
    ///
    /// # Safety
    /// The symbol table has that symbol.
    unsafe fn name_at(&self, symbol: u64) -> *const c_char {
        let at = symbol.wrapping_mul(size_of::<raw::Sym>() as u64);
        let at = self.address(self.value(DT_SYMTAB)).wrapping_add(at);
        // SAFETY: the symbol is there.
        let offset = unsafe { read(at) } & 0xffff_ffff;
        let name = self.address(self.value(DT_STRTAB)).wrapping_add(offset);
        core::ptr::with_exposed_provenance(name as usize)
    }

    /// The name of the symbol of an index.
    ///
    /// # Safety
    /// The symbol table has that symbol.
    unsafe fn name(&self, symbol: u64) -> &'l CStr {
        // SAFETY: the symbol is there, and symbols have their names in the strings.
        unsafe { CStr::from_ptr(self.name_at(symbol)) }
    }

    /// Whether the symbol of an index has this name: most differ in their first letters.
    ///
    /// # Safety
    /// The symbol table has that symbol.
    unsafe fn is(&self, symbol: u64, name: &CStr) -> bool {
        // SAFETY: as the caller guarantees.
        let at = unsafe { self.name_at(symbol) };
        let mut letters = name.to_bytes_with_nul().iter().enumerate();
        // SAFETY: what is read ends with the first letter that differs, of which NUL is one.
        letters.all(|(number, own)| unsafe { at.wrapping_add(number).read() } as u8 == *own)
    }
}

/// Shows each word of a library with the name of its symbol. Words that hold an address beside one (with an addend) are left out.
///
/// # Safety
/// The description is that of a library which is loaded and relocated.
pub(crate) unsafe fn each(library: &Description<'_>, mut look: impl FnMut(&CStr, Place)) {
    // SAFETY: as the caller guarantees.
    let Some(dynamic) = (unsafe { Dynamic::of(library) }) else { return };
    let relro = library.header(libc::PT_GNU_RELRO).map(|header| library.range(header));
    let plt_has_addends = dynamic.value(DT_PLTREL) == DT_RELA;
    let [relative_with_addends, relative] = dynamic.relative;
    for (table, size, has_addends, relative) in [
        (DT_RELA, DT_RELASZ, true, relative_with_addends),
        (DT_REL, DT_RELSZ, false, relative),
        (DT_JMPREL, DT_PLTRELSZ, plt_has_addends, 0),
    ] {
        let size = dynamic.value(size);
        let start = dynamic.address(dynamic.value(table));
        let table = start..start.wrapping_add(size);
        if size == 0 || !dynamic.is_mapped(&table) {
            continue;
        }
        let row = if has_addends { size_of::<raw::Rela>() } else { size_of::<raw::Rel>() };
        let named = start.saturating_add(relative.saturating_mul(row as u64));
        for at in (named..table.end).step_by(row) {
            // SAFETY: the dynamic section says that so many relocations are there.
            let [offset, what, addend] = unsafe {
                let addend = has_addends.then(|| read(at.wrapping_add(2 * word::SIZE)));
                [read(at), read(at.wrapping_add(word::SIZE)), addend.unwrap_or(0)]
            };
            let (symbol, kind) = (what >> SYMBOL_AT, what & ((1 << SYMBOL_AT) - 1));
            let is_address = kind == machine::JUMP_SLOT || machine::ADDRESSES.contains(&kind);
            let place = library.bias().wrapping_add(offset);
            if !is_address || addend != 0 || symbol == 0 || !place.is_multiple_of(word::SIZE) {
                continue;
            }
            // SAFETY: relocations name symbols of the table.
            let name = unsafe { dynamic.name(symbol) };
            let is_read_only = relro.as_ref().is_some_and(|relro| relro.contains(&place));
            look(name, Place { address: place, is_read_only });
        }
    }
}

/// Whether a library may have words for this symbol without defining it: what it does not define comes before the symbols of its hash table. Of
/// programs, which may have addresses of functions of others in that, and of libraries without one it is not known.
///
/// # Safety
/// As for [`each`].
pub(crate) unsafe fn may_ask_for(library: &Description<'_>, name: &CStr) -> bool {
    // SAFETY: as the caller guarantees.
    let Some(dynamic) = (unsafe { Dynamic::of(library) }) else { return false };
    let table = dynamic.address(dynamic.hash);
    if library.path().is_empty()
        || dynamic.hash == 0
        || !dynamic.is_mapped(&(table..table.saturating_add(8)))
    {
        return true;
    }
    let first_defined = core::ptr::with_exposed_provenance::<u32>(table as usize).wrapping_add(1);
    // SAFETY: the second of the table's words is the index of its first symbol (GNU gABI, "DT_GNU_HASH").
    let first_defined = unsafe { first_defined.read_unaligned() };
    // SAFETY: these symbols are there.
    (1..first_defined.into()).any(|symbol| unsafe { dynamic.is(symbol, name) })
}

impl Place {
    /// What the word holds.
    ///
    /// # Safety
    /// The library is loaded.
    pub(crate) unsafe fn value(self) -> u64 {
        // SAFETY: the caller guarantees the word, which the dynamic loader has written.
        unsafe { read(self.address) }
    }

    /// Gives its page permissions, if it is read-only.
    fn protect(self, flags: MprotectFlags) -> bool {
        let page = rustix::param::page_size();
        let start = self.address as usize & !page.wrapping_sub(1);
        let start = core::ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: the page is a library's, and was writable while that was relocated.
        !self.is_read_only || unsafe { mprotect(start, page, flags) }.is_ok()
    }
}

/// Writes an address to all of these places, or to none.
///
/// # Safety
/// Their libraries are loaded, and whoever reads the words may find either address.
pub(crate) unsafe fn lead(places: &[Place], target: u64) -> bool {
    let are_open =
        places.iter().all(|place| place.protect(MprotectFlags::READ | MprotectFlags::WRITE));
    for place in places.iter().filter(|_| are_open) {
        // SAFETY: the word is mapped, aligned and writable now.
        unsafe { word::store(place.address, target) };
    }
    for place in places {
        // should a page stay writable, no harm is done
        place.protect(MprotectFlags::READ);
    }
    are_open
}
