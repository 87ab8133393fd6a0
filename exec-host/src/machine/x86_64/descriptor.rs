//! Descriptors of x86-64: `%rax` holds the descriptor's address, and then the distance.

use crate::threads::dynamic::FUNCTION;
use core::arch::naked_asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the machine needs to save its registers.
pub(super) static ROOM: AtomicUsize = AtomicUsize::new(0);

/// All registers but the tiles of AMX, which calls never keep.
pub(super) const KEPT: u32 = !(3 << 17);

/// Finds out how to save registers; whether that can be done.
pub(crate) fn prepare() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let room = __cpuid_count(0xd, 0).ebx as usize;
    ROOM.store(room, Ordering::Relaxed);
    room >= 576
}

#[unsafe(naked)]
pub(crate) unsafe extern "C" fn near() {
    naked_asm!("mov rax, [rax + 8]", "ret")
}

#[unsafe(naked)]
pub(crate) unsafe extern "C" fn far() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "mov rdi, [rax + 8]",
        "sub rsp, [rip + {room}]",
        "and rsp, -64",
        // the header of the save area is zero but for what xsave writes
        "xor eax, eax",
        "mov [rsp + 512], rax",
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        "mov eax, {kept}",
        "mov edx, -1",
        "xsave64 [rsp]",
        "call [rip + {get}]",
        "mov rcx, rax",
        "mov eax, {kept}",
        "mov edx, -1",
        "xrstor64 [rsp]",
        "mov rax, rcx",
        "sub rax, fs:[0]",
        "lea rsp, [rbp - 64]",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "ret",
        room = sym ROOM,
        kept = const KEPT,
        get = sym FUNCTION,
    )
}
