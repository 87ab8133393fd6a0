//! x86-64.

pub(crate) mod cache;
pub(crate) mod descriptor;
pub(crate) mod dlopen;
pub(crate) mod dlsym;
pub(crate) mod fragment;
#[cfg(feature = "device")]
pub(crate) mod guard;
pub(crate) mod lazy;
pub(crate) mod processor;
pub(crate) mod resolver;

use archs::reloc_x86::x86_64::{
    R_X86_64_64, R_X86_64_DTPMOD64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_TPOFF64,
};
use core::arch::{asm, naked_asm};
use core::ffi::{c_char, c_int};

/// The architecture of this process.
pub use archs::Host;

/// Of `mmap`: an address below 2 GiB (`MAP_32BIT`).
pub(crate) const MAP_LOW: u32 = 0x40;
/// `e_flags` of libraries: none.
pub(crate) const FLAGS: u32 = 0;
/// Relocations by name that are an address.
pub(crate) const ADDRESSES: [u64; 2] = [R_X86_64_64 as u64, R_X86_64_GLOB_DAT as u64];
/// Of a function that is called through the PLT.
pub(crate) const JUMP_SLOT: u64 = R_X86_64_JUMP_SLOT as u64;
/// The number of a module with thread-local variables.
pub(crate) const DTP_MODULE: u64 = R_X86_64_DTPMOD64 as u64;
/// A TP offset.
pub(crate) const TP_OFFSET: u64 = R_X86_64_TPOFF64 as u64;

/// What C compilers are told to make code for: this processor.
#[cfg(feature = "compile")]
pub(crate) const ARCHITECTURE: &str = "-march=native";

/// The version of most symbols of the C library: that of its first release for the machine.
pub(crate) const OLDEST_VERSION: &core::ffi::CStr = c"GLIBC_2.2.5";

/// Begins a program whose stack is at `stack` (psABI 3.4.1: no function to register for its end).
///
/// # Safety
/// It is a program in memory, with a stack as the psABI has it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter_program(entry: u64, stack: u64) -> ! {
    naked_asm!(
        "mov rsp, rsi",
        "xor eax, eax",
        "xor ebx, ebx",
        "xor ecx, ecx",
        "xor edx, edx",
        "xor esi, esi",
        "xor ebp, ebp",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "xor r11d, r11d",
        "xor r12d, r12d",
        "xor r13d, r13d",
        "xor r14d, r14d",
        "xor r15d, r15d",
        "jmp rdi",
    )
}

/// Calls `main` of a program. It has no unwinding table: whoever goes up the stack finds that it begins here, as at the entry of a program.
///
/// # Safety
/// `main` is one, and sound to call with these arguments.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_main(
    main: u64,
    count: c_int,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    naked_asm!(
        "sub rsp, 8",
        "mov rax, rdi",
        "mov edi, esi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "call rax",
        "add rsp, 8",
        "ret",
    )
}

/// The thread pointer of this thread.
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads what the ABI has there in every thread.
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) }
    pointer
}
