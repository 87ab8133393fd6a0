//! Words of the process's libraries into which the dynamic loader writes the address of a symbol by its name: who changes them leads
//! the library elsewhere.

use crate::descriptions::Description;
use crate::machine;
use crate::word::{self, raw, read};
use core::ffi::{CStr, c_void};
use core::ops::Range;
use rustix::mm::{MprotectFlags, mprotect};

/// Where such a word is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    address: u64,
    /// The page is not writable any more (`PT_GNU_RELRO`).
    is_read_only: bool,
}

/// Tags of a dynamic section (gABI ch. 5).
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_REL: u64 = 17;
const DT_RELSZ: u64 = 18;
const DT_PLTREL: u64 = 20;
const DT_JMPREL: u64 = 23;
const TAGS: usize = 24;
/// Where `r_info` has the symbol.
const SYMBOL_AT: u32 = if word::IS_64 { 32 } else { 8 };

/// Shows each word of a library with the name of its symbol. Words that hold an address beside one (with an addend) are left out.
///
/// # Safety
/// The description is that of a library which is loaded and relocated.
pub(crate) unsafe fn each(library: &Description<'_>, mut look: impl FnMut(&CStr, Place)) {
    let loaded = library.headers().iter().filter(|header| header.p_type == libc::PT_LOAD);
    let mapped: Vec<_> = loaded.map(|header| library.range(header)).collect();
    let of = |r#type| library.header(r#type).map(|header| library.range(header));
    let Some(dynamic) = of(libc::PT_DYNAMIC) else { return };
    let mut values = [0u64; TAGS];
    for at in dynamic.step_by(2 * word::SIZE as usize) {
        // SAFETY: the dynamic section is mapped and consists of pairs of words.
        match unsafe { [read(at), read(at.wrapping_add(word::SIZE))] } {
            [0, _] => break,
            [tag, value] => {
                if let Some(place) = values.get_mut(tag as usize) {
                    *place = value;
                }
            }
        }
    }
    let value = |tag: u64| values.get(tag as usize).copied().unwrap_or(0);
    // most dynamic loaders have made them addresses, some have not
    let address = |tag| match value(tag) {
        offset if offset < library.bias() => offset.wrapping_add(library.bias()),
        address => address,
    };
    let is_mapped = |range: &Range<u64>| {
        mapped.iter().any(|part| part.start <= range.start && range.end <= part.end)
    };
    let relro = of(libc::PT_GNU_RELRO);
    let plt_has_addends = value(DT_PLTREL) == DT_RELA;
    for (table, size, has_addends) in [
        (DT_RELA, DT_RELASZ, true),
        (DT_REL, DT_RELSZ, false),
        (DT_JMPREL, DT_PLTRELSZ, plt_has_addends),
    ] {
        let table = address(table)..address(table).wrapping_add(value(size));
        if value(size) == 0 || !is_mapped(&table) {
            continue;
        }
        let row = if has_addends { size_of::<raw::Rela>() } else { size_of::<raw::Rel>() };
        for at in table.step_by(row) {
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
            let symbol =
                address(DT_SYMTAB).wrapping_add(symbol.wrapping_mul(size_of::<raw::Sym>() as u64));
            // SAFETY: relocations name symbols of the table, which have their names in the strings.
            let name = unsafe {
                let name = address(DT_STRTAB).wrapping_add(read(symbol) & 0xffff_ffff);
                CStr::from_ptr(core::ptr::with_exposed_provenance(name as usize))
            };
            let is_read_only = relro.as_ref().is_some_and(|relro| relro.contains(&place));
            look(name, Place { address: place, is_read_only });
        }
    }
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
