//! x86-64 as an application of UEFI, which says where it begins and what memory there is (UEFI 2.10, sections 4.3 and 7.2).

use core::ffi::c_void;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, Ordering};

pub use reloc_x86::X86_64 as Architecture;

/// `EFI_SYSTEM_TABLE`, up to what is used.
#[repr(C)]
pub struct SystemTable {
    header: [u64; 3],
    vendor: [u64; 2],
    consoles: [u64; 6],
    runtime: u64,
    boot: *const BootServices,
}

/// `EFI_BOOT_SERVICES`, up to what is used.
#[repr(C)]
struct BootServices {
    header: [u64; 3],
    levels: [u64; 2],
    allocate_pages: extern "efiapi" fn(u32, u32, usize, *mut u64) -> usize,
}

const ALLOCATE_ADDRESS: u32 = 2;
const EFI_LOADER_DATA: u32 = 2;

static BOOT: AtomicPtr<BootServices> = AtomicPtr::new(core::ptr::null_mut());

/// What UEFI calls.
#[unsafe(no_mangle)]
extern "efiapi" fn efi_main(_: *mut c_void, table: *const SystemTable) -> usize {
    // SAFETY: UEFI gives its own table.
    let boot = unsafe { (*table).boot };
    BOOT.store(boot.cast_mut(), Ordering::Relaxed);
    crate::main()
}

/// Takes these pages from UEFI.
pub fn reserve(memory: Range<usize>) -> bool {
    let boot = BOOT.load(Ordering::Relaxed);
    let mut start = memory.start as u64;
    // SAFETY: the services are there until the application ends them.
    let allocate = unsafe { (*boot).allocate_pages };
    allocate(ALLOCATE_ADDRESS, EFI_LOADER_DATA, memory.len() / 0x1000, &raw mut start) == 0
}

/// Makes code that was written as data visible to instruction fetch: this processor sees it.
pub fn code_has_changed(_: *const u8, _: usize) {}
