//! RISC-V: the physical memory protection (Privileged Architecture, 3.7), whose entries bind machine mode, too, if they are locked.

use core::arch::{asm, global_asm};
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use elf_core::SegmentFlags;

/// Memory for programs: `-M virt` has it from 0x80000000 on, the firmware is at the beginning.
pub const MEMORY: Range<usize> = 0x8200_0000..0x8220_0000;

/// How many entries the machine has.
const ENTRIES: usize = 16;
/// The first that is free: what is locked stays so.
static NEXT: AtomicUsize = AtomicUsize::new(0);

const READ: usize = 1;
const WRITE: usize = 1 << 1;
const EXECUTE: usize = 1 << 2;
/// From where the entry before says (TOR), for all modes.
const UP_TO: usize = 1 << 3 | 1 << 7;

global_asm!(
    ".section .bss.saved_stack, \"aw\", @nobits",
    ".balign 8",
    "saved_stack: .skip 8",
    ".text",
    ".global attempt",
    "attempt:",
    "addi sp, sp, -16",
    "sd ra, 8(sp)",
    "la t0, saved_stack",
    "sd sp, 0(t0)",
    "bnez a1, 1f",
    "sb a2, 0(a0)",
    "j 2f",
    "1: jalr a0",
    "2: li a0, 0",
    "3: la t0, saved_stack",
    "sd zero, 0(t0)",
    "ld ra, 8(sp)",
    "addi sp, sp, 16",
    "ret",
    // what was interrupted is not gone back to
    ".balign 4",
    "fault:",
    "la t0, saved_stack",
    "ld t0, 0(t0)",
    "beqz t0, 4f",
    "mv sp, t0",
    "li a0, 1",
    "j 3b",
    "4: call unexpected",
);

/// Has faults told.
pub fn prepare() {
    // SAFETY: the handler is there.
    unsafe { asm!("la {at}, fault", "csrw mtvec, {at}", at = out(reg) _, options(nostack)) };
}

/// Nothing is to be done before.
pub fn begin() {}

/// Sets permissions of whole pages; `false` if there are no more entries.
///
/// # Safety
/// They are for programs.
pub unsafe fn set(range: Range<usize>, flags: SegmentFlags) -> bool {
    let first = NEXT.load(Ordering::Relaxed);
    let mut configuration = UP_TO;
    for (flag, bit) in
        [(SegmentFlags::READ, READ), (SegmentFlags::WRITE, WRITE), (SegmentFlags::EXECUTE, EXECUTE)]
    {
        if flags.contains(flag) {
            configuration |= bit;
        }
    }
    // ranges that stand side by side share where one ends and the next begins
    let is_behind = first > 0 && read_address(first - 1) == range.start >> 2;
    let entry = if is_behind { first } else { first + 1 };
    if entry >= ENTRIES {
        return false;
    }
    if !is_behind {
        write_address(first, range.start >> 2);
    }
    write_address(entry, range.end >> 2);
    configure(entry, configuration);
    NEXT.store(entry + 1, Ordering::Relaxed);
    true
}

/// Makes the processor forget what it knew of memory.
pub fn end() {
    // SAFETY: no other effect.
    unsafe { asm!("sfence.vma", options(nostack)) };
}

/// The configuration of 8 entries is one register.
fn configure(entry: usize, value: usize) {
    let value = value << (entry % 8 * 8);
    // SAFETY: entries of programs' memory.
    unsafe {
        match entry < 8 {
            true => asm!("csrs pmpcfg0, {}", in(reg) value, options(nostack)),
            false => asm!("csrs pmpcfg2, {}", in(reg) value, options(nostack)),
        }
    }
}

/// Registers have their numbers in the instructions.
macro_rules! addresses {
    ($($number:literal)*) => {
        fn write_address(entry: usize, value: usize) {
            match entry {
                // SAFETY: an entry that is not locked, of programs' memory.
                $($number => unsafe {
                    asm!(concat!("csrw pmpaddr", $number, ", {}"), in(reg) value, options(nostack))
                },)*
                _ => {}
            }
        }

        fn read_address(entry: usize) -> usize {
            let mut value = 0;
            match entry {
                // SAFETY: no effect.
                $($number => unsafe {
                    asm!(concat!("csrr {}, pmpaddr", $number), out(reg) value, options(nostack))
                },)*
                _ => {}
            }
            value
        }
    };
}
addresses!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
