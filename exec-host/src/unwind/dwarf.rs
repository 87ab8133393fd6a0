//! Tables of DWARF (`.eh_frame`).

pub(super) use super::opened::Unwinders;
use super::opened::{ADD, OfLlvm, REMOVE, in_library};
use super::table::Table;
use crate::Host;
use crate::descriptions::is_linked_statically;
use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use elf_core::Arch as _;
use elf_core::eh_frame::{Described, EhFrame, Error, Machine, Places};
use elf_image::Image;
use elf_layout::Layout;
use exec_core::sync::{OnceLock, hold};

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
    // unwinders have locks of their own
    let _held = hold();
    let start = core::ptr::with_exposed_provenance(table as usize);
    if !is_linked_to_llvm() {
        // SAFETY: it was registered, and is still mapped.
        unsafe { __deregister_frame(start) };
    }
    if let Some([_, remove]) = of_llvm() {
        // SAFETY: as above.
        unsafe { remove(table) };
    }
    if let Some([_, deregister]) = of_libgcc() {
        // SAFETY: as above.
        unsafe { deregister(start) };
    }
}

/// Makes a table known to the unwinders of the process.
///
/// # Safety
/// It was checked, a length of 0 ends it, and it stays where it is until it is [forgotten](deregister).
pub(super) unsafe fn register(table: u64) {
    let _held = hold();
    let start = core::ptr::with_exposed_provenance(table as usize);
    if !is_linked_to_llvm() {
        // SAFETY: as the caller guarantees.
        unsafe { __register_frame(start) };
    }
    if let Some([add, _]) = of_llvm() {
        // SAFETY: as above.
        unsafe { add(table) };
    }
    if let Some([register, _]) = of_libgcc() {
        // SAFETY: as above.
        unsafe { register(start) };
    }
}

unsafe extern "C" {
    fn __register_frame(table: *const u8);
    fn __deregister_frame(table: *const u8);
    static hoist_frames_of_llvm: [Option<OfLlvm>; 2];
}

// Weak: null where nobody has them. Linked in, they are not to be found by name.
core::arch::global_asm!(
    ".pushsection .data.rel.ro.hoist_frames_of_llvm, \"aw\", @progbits",
    ".balign 8",
    ".weak __unw_add_dynamic_eh_frame_section",
    ".weak __unw_remove_dynamic_eh_frame_section",
    ".hidden hoist_frames_of_llvm",
    ".globl hoist_frames_of_llvm",
    "hoist_frames_of_llvm:",
    ".quad __unw_add_dynamic_eh_frame_section",
    ".quad __unw_remove_dynamic_eh_frame_section",
    ".popsection",
);

/// Those that make it known and unknown: what this is linked with comes first.
pub(super) fn of_llvm() -> Option<[OfLlvm; 2]> {
    static FUNCTIONS: OnceLock<Option<[OfLlvm; 2]>> = OnceLock::new();
    *FUNCTIONS.get_or_init(|| {
        // SAFETY: they are words that nobody writes to, null or functions of this type (<libunwind_ext.h>).
        if let [Some(add), Some(remove)] = unsafe { hoist_frames_of_llvm } {
            return Some([add, remove]);
        }
        let found = in_library(libc::RTLD_DEFAULT, [ADD, REMOVE])?;
        // SAFETY: functions of these names have this type (<libunwind_ext.h>).
        Some(found.map(|found| unsafe { core::mem::transmute::<*mut c_void, OfLlvm>(found) }))
    })
}

/// Unwinders of LLVM that some libraries alone see.
pub(super) fn others() -> Unwinders {
    Unwinders::current(of_llvm())
}

/// Whether `__register_frame` as this is linked is LLVM's: it is beside that for whole tables.
fn is_linked_to_llvm() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        let linked = library_of((__register_frame as *const ()).cast());
        of_llvm().is_some_and(|[add, _]| library_of((add as *const ()).cast()) == linked)
    })
}

/// Where the library begins that an address is in; null in a process that has no dynamic loader, and so one program.
fn library_of(address: *const c_void) -> *mut c_void {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the result is written to a variable of ours, which is valid when it is zeroed; the address may be any.
    unsafe {
        libc::dladdr(address, info.as_mut_ptr());
        info.assume_init().dli_fbase
    }
}

/// The functions of libgcc by which tables become known and unknown, if this is linked with another unwinder: C++ libraries of the
/// process, also those that are opened later, use that of libgcc. It stays open.
fn of_libgcc() -> Option<[OfLibgcc; 2]> {
    static FUNCTIONS: OnceLock<Option<[OfLibgcc; 2]>> = OnceLock::new();
    *FUNCTIONS.get_or_init(|| {
        // then all have the one that is linked in
        if is_linked_statically() {
            return None;
        }
        // SAFETY: its constructors do nothing that others could notice.
        let library =
            unsafe { libc::dlopen(c"libgcc_s.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        let found = in_library(library, [c"__register_frame", c"__deregister_frame"])?;
        let linked = (__register_frame as *const ()).cast();
        // SAFETY: functions of these names have this type (libgcc, `unwind-dw2-fde.h`).
        let function = |found| unsafe { core::mem::transmute::<*mut c_void, OfLibgcc>(found) };
        (library_of(linked) != library_of(found.first().copied()?)).then(|| found.map(function))
    })
}

type OfLibgcc = unsafe extern "C" fn(*const u8);
