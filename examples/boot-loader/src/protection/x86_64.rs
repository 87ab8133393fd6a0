//! x86-64: page tables that have the first 4 GiB where they are (Intel SDM, volume 3, chapter 4), in place of what was there at the start.

use core::arch::{asm, global_asm};
use core::ops::Range;

use elf_core::SegmentFlags;

use super::Table;

/// Memory for programs, which neither the firmware nor UEFI uses. One table has all its pages.
pub const MEMORY: Range<usize> = 0x200_0000..0x220_0000;

const LARGE: usize = 0x20_0000;
const PAGE: usize = 0x1000;

static ALL: Table = Table::new([0; 512]);
static GIBIBYTES: Table = Table::new([0; 512]);
static LARGE_PAGES: Table<[u64; 4 * 512]> = Table::new([0; 4 * 512]);
static PAGES: Table = Table::new([0; 512]);
/// What is called for each exception, two words each.
static EXCEPTIONS: Table<[u64; 64]> = Table::new([0; 64]);

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const IS_LARGE: u64 = 1 << 7;
const NEVER_EXECUTED: u64 = 1 << 63;
const OPEN: u64 = PRESENT | WRITABLE;

/// `EFER`, and what lets pages be not executable there.
const EFER: u32 = 0xc000_0080;
const NXE: u32 = 1 << 11;
/// `CR0`: what is read-only is so for everybody.
const WRITE_PROTECT: u64 = 1 << 16;

global_asm!(
    ".data",
    ".balign 8",
    "saved_stack: .quad 0",
    ".text",
    ".global attempt",
    "attempt:",
    "push rbp",
    "mov [rip + saved_stack], rsp",
    "test esi, esi",
    "jnz 2f",
    "mov byte ptr [rdi], dl",
    "jmp 3f",
    "2: call rdi",
    "3: xor eax, eax",
    "4: mov qword ptr [rip + saved_stack], 0",
    "pop rbp",
    "ret",
    // what was interrupted is not gone back to
    ".global fault",
    "fault:",
    "cld",
    "mov rax, [rip + saved_stack]",
    "test rax, rax",
    "jz 5f",
    "mov rsp, rax",
    "mov eax, 1",
    "jmp 4b",
    "5: and rsp, -16",
    "call unexpected",
);

unsafe extern "C" {
    fn fault();
}

/// Has faults told, and puts in our own tables, with all memory open.
pub fn prepare() {
    ALL.with(|table| table[0] = GIBIBYTES.address() | OPEN);
    GIBIBYTES.with(|table| {
        for (entry, number) in table.iter_mut().zip(0..4) {
            *entry = (LARGE_PAGES.address() + number * 0x1000) | OPEN;
        }
    });
    LARGE_PAGES.with(|table| {
        for (entry, at) in table.iter_mut().zip((0..).step_by(LARGE)) {
            let programs = at == MEMORY.start as u64;
            *entry = if programs { PAGES.address() | OPEN } else { at | IS_LARGE | OPEN };
        }
    });
    PAGES.with(|table| {
        for (entry, at) in table.iter_mut().zip(MEMORY.step_by(PAGE)) {
            *entry = at as u64 | OPEN;
        }
    });
    let selector: u16;
    // SAFETY: no effect.
    unsafe { asm!("mov {:x}, cs", out(reg) selector, options(nomem, nostack)) };
    let handler = (fault as *const ()).expose_provenance() as u64;
    EXCEPTIONS.with(|table| {
        for [low, high] in table.as_chunks_mut::<2>().0 {
            // an interrupt gate that is present
            *low = handler & 0xffff
                | u64::from(selector) << 16
                | 0x8e00 << 32
                | (handler >> 16 & 0xffff) << 48;
            *high = handler >> 32;
        }
    });
    let mut exceptions = [0u8; 10];
    exceptions[..2].copy_from_slice(&(64 * 8 - 1u16).to_le_bytes());
    exceptions[2..].copy_from_slice(&EXCEPTIONS.address().to_le_bytes());
    // SAFETY: the tables have all that there is at its own address; no interrupt comes.
    unsafe {
        asm!("cli", "lidt [{}]", in(reg) exceptions.as_ptr(), options(nostack));
        asm!(
            "rdmsr",
            "or eax, {nxe}",
            "wrmsr",
            in("ecx") EFER,
            nxe = const NXE,
            out("eax") _,
            out("edx") _,
            options(nostack)
        );
        asm!(
            "mov cr3, {table}",
            "mov {at}, cr0",
            "or {at}, {protect}",
            "mov cr0, {at}",
            table = in(reg) ALL.address(),
            protect = in(reg) WRITE_PROTECT,
            at = out(reg) _,
            options(nostack)
        );
    }
}

/// Nothing is to be done before.
pub fn begin() {}

/// Sets permissions of whole pages.
///
/// # Safety
/// They are for programs.
pub unsafe fn set(range: Range<usize>, flags: SegmentFlags) -> bool {
    if range.start < MEMORY.start || range.end > MEMORY.end {
        return false;
    }
    let mut entry = if flags.is_empty() { 0 } else { PRESENT };
    if flags.contains(SegmentFlags::WRITE) {
        entry |= WRITABLE;
    }
    if !flags.contains(SegmentFlags::EXECUTE) {
        entry |= NEVER_EXECUTED;
    }
    PAGES.with(|table| {
        for at in range.step_by(PAGE) {
            table[(at - MEMORY.start) / PAGE] = at as u64 | entry;
        }
    });
    true
}

/// Makes the processor forget what it knew of pages.
pub fn end() {
    // SAFETY: the same tables.
    unsafe { asm!("mov {at}, cr3", "mov cr3, {at}", at = out(reg) _, options(nostack)) };
}
