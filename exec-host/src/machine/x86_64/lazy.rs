//! Stubs of functions that are compiled when they are called first. `%r11` is nobody's where a function begins (psABI 3.2.3).

use super::descriptor::{KEPT, ROOM};
use crate::lazy::slot::resolve;
use core::arch::naked_asm;

/// A stub at `address` that leaves the address of its slot in `%r11` and jumps to what the slot's first word says.
pub(crate) fn stub(address: u64, slot: u64) -> [u8; 16] {
    let [a, b, c, d] = (slot.wrapping_sub(address.wrapping_add(11)) as u32).to_le_bytes();
    // endbr64; lea slot(%rip), %r11; jmp *(%r11)
    [0xf3, 0x0f, 0x1e, 0xfa, 0x4c, 0x8d, 0x1d, a, b, c, d, 0x41, 0xff, 0x23, 0xcc, 0xcc]
}

/// Where slots lead whose function was not compiled yet: has it compiled, and goes on there with all arguments.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter() {
    naked_asm!(
        "endbr64",
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax", // of variadic functions: how many vector registers
        "push r10",
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
        "mov rdi, r11",
        "call {resolve}",
        "mov r11, rax",
        "mov eax, {kept}",
        "mov edx, -1",
        "xrstor64 [rsp]",
        "lea rsp, [rbp - 64]",
        "pop r10",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "jmp r11",
        room = sym ROOM,
        kept = const KEPT,
        resolve = sym resolve,
    )
}
