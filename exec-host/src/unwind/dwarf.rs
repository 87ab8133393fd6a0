//! Tables of DWARF (`.eh_frame`).

use super::table::Table;
use crate::Host;
use core::ffi::CStr;
use elf_core::Arch as _;
use elf_core::eh_frame::{Described, EhFrame, Error, Machine, Places};
use elf_image::Image;
use elf_layout::Layout;
use std::sync::OnceLock;

/// What unwinders ask for frames.
pub(super) const ASKED: &CStr = c"_dl_find_object";

/// Tables can be made known one by one.
pub(super) const REGISTERS: bool = true;

/// The tables of an image for `base`.
pub(super) fn tables(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Table> {
    let tables = layout.unwinding_tables();
    tables
        .map(|(offset, size)| Table { address: base.wrapping_add(offset), size, end: 0 })
        .collect()
}

/// Checks all that the unwinder reads of a table, and gives `each` what it describes.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn check_each(
    bytes: &[u8],
    table: &Table,
    places: &impl Places,
    each: impl FnMut(Described),
) -> Result<(), Error> {
    let Some(machine) = Machine::of(Host::MACHINE) else { return Ok(()) };
    EhFrame { bytes, address: table.address, machine }.check_each(places, each).map(drop)
}

/// Offset and size of the index that leads to the table of a library.
pub(super) fn table_of(image: &Image<'_>) -> Option<(u64, u64)> {
    image.eh_frame_hdr()
}

/// Encoding of the address of `.eh_frame`: signed, 4 bytes, from its place (LSB Core, "DWARF Exception Header Encoding").
const RELATIVE: u8 = 0x1b;

/// Address and size of the table that the index at `header` leads to, the length of 0 that ends it included; `rest` gives what can be read
/// from an address on.
pub(super) fn of_library<'l>(
    header: (u64, u64),
    rest: impl Fn(u64) -> Option<&'l [u8]>,
) -> Option<(u64, usize)> {
    let (header, _) = header;
    let [1, RELATIVE, _, _, distance @ ..] = rest(header)?.first_chunk::<8>()? else {
        return None;
    };
    let distance = i64::from(i32::from_le_bytes(*distance));
    let address = header.wrapping_add(4).wrapping_add_signed(distance);
    Some((address, up_to_end(rest(address)?)?.len()))
}

/// The table that the bytes begin with, the length of 0 that ends it included.
fn up_to_end(rest: &[u8]) -> Option<&[u8]> {
    let mut at = 0usize;
    loop {
        let length = u32::from_le_bytes(*rest.get(at..)?.first_chunk()?);
        at = at.checked_add(4)?;
        match length {
            0 => return rest.get(..at),
            u32::MAX => return None,
            length => at = at.checked_add(usize::try_from(length).ok()?)?,
        }
    }
}

/// Makes a table unknown again that was made [known](register).
pub(super) fn deregister(table: u64) {
    // SAFETY: it was registered, and is still mapped.
    unsafe { __deregister_frame(core::ptr::with_exposed_provenance(table as usize)) };
    if let Some([_, remove]) = of_llvm() {
        // SAFETY: as above.
        unsafe { remove(table) };
    }
}

/// Makes a table known to the unwinder of the process.
///
/// # Safety
/// It was checked, a length of 0 ends it, and it stays where it is until it is [forgotten](deregister).
pub(super) unsafe fn register(table: u64) {
    // SAFETY: as the caller vouches.
    unsafe { __register_frame(core::ptr::with_exposed_provenance(table as usize)) };
    if let Some([add, _]) = of_llvm() {
        // SAFETY: as above.
        unsafe { add(table) };
    }
}

unsafe extern "C" {
    fn __register_frame(table: *const u8);
    fn __deregister_frame(table: *const u8);
}

/// Functions that make a whole table known to libunwind of LLVM, or unknown, where the process has it: its `__register_frame` takes
/// single entries.
type OfLlvm = unsafe extern "C" fn(u64);

/// Those that make it known and unknown.
pub(super) fn of_llvm() -> Option<[OfLlvm; 2]> {
    static FUNCTIONS: OnceLock<Option<[OfLlvm; 2]>> = OnceLock::new();
    *FUNCTIONS.get_or_init(|| {
        let names =
            [c"__unw_add_dynamic_eh_frame_section", c"__unw_remove_dynamic_eh_frame_section"];
        // SAFETY: asks for functions by their names.
        let found = names.map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
        let are_there = found.iter().all(|function| !function.is_null());
        // SAFETY: functions of these names have this type (<libunwind_ext.h>).
        let function =
            |found| unsafe { core::mem::transmute::<*mut core::ffi::c_void, OfLlvm>(found) };
        are_there.then(|| found.map(function))
    })
}
