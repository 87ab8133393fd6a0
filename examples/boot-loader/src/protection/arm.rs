//! Cortex-M: the memory protection unit of ARMv7-M (Architecture Reference Manual, B3.5): eight regions, each a power of two long and
//! aligned so.

use core::arch::global_asm;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use elf_core::SegmentFlags;

/// Memory for programs: the machine has it from 0x20000000 on, the firmware is at the beginning.
pub const MEMORY: Range<usize> = 0x2010_0000..0x2018_0000;

const REGIONS: u32 = 8;
/// The first that is free.
static NEXT: AtomicU32 = AtomicU32::new(0);

const VTOR: usize = 0xe000_ed08;
const SHCSR: usize = 0xe000_ed24;
const MPU_CTRL: usize = 0xe000_ed94;
const MPU_RNR: usize = 0xe000_ed98;
const MPU_RBAR: usize = 0xe000_ed9c;
const MPU_RASR: usize = 0xe000_eda0;

const MEMORY_FAULTS: u32 = 1 << 16;
/// On, and what no region has is open to privileged code.
const ENABLED: u32 = 1 | 1 << 2;
const NEVER_EXECUTED: u32 = 1 << 28;
const OPEN: u32 = 3 << 24;
const READ_ONLY: u32 = 6 << 24;
/// Normal memory, cached.
const NORMAL: u32 = 1 << 17;

global_asm!(
    ".section .bss.saved_stack, \"aw\", %nobits",
    ".balign 4",
    "saved_stack: .skip 4",
    ".section .rodata.fault_vectors, \"a\"",
    ".balign 128",
    ".global fault_vectors",
    "fault_vectors:",
    ".word stack_top",
    ".word start",
    ".rept 14",
    ".word fault",
    ".endr",
    ".text",
    ".thumb_func",
    ".global attempt",
    "attempt:",
    "push {{r4, lr}}",
    "ldr r3, =saved_stack",
    "mov r4, sp",
    "str r4, [r3]",
    "cbnz r1, 1f",
    "strb r2, [r0]",
    "b 2f",
    "1: blx r0",
    "2: movs r0, #0",
    "3: ldr r3, =saved_stack",
    "movs r1, #0",
    "str r1, [r3]",
    "pop {{r4, pc}}",
    ".thumb_func",
    "refused:",
    "ldr r3, =saved_stack",
    "ldr r3, [r3]",
    "mov sp, r3",
    "movs r0, #1",
    "b 3b",
    // what was interrupted goes on as if it had been told so
    ".thumb_func",
    "fault:",
    "ldr r0, =saved_stack",
    "ldr r0, [r0]",
    "cbz r0, 4f",
    "ldr r0, =refused",
    "bic r0, r0, #1",
    "str r0, [sp, #24]",
    "mov r0, #0x1000000",
    "str r0, [sp, #28]",
    "bx lr",
    "4: bl unexpected",
    ".ltorg",
);

unsafe extern "C" {
    static fault_vectors: [u32; 16];
}

fn write(register: usize, value: u32) {
    // SAFETY: a register of the processor.
    unsafe { core::ptr::with_exposed_provenance_mut::<u32>(register).write_volatile(value) };
}

/// Has faults told.
pub fn prepare() {
    write(VTOR, (&raw const fault_vectors).expose_provenance() as u32);
    write(SHCSR, MEMORY_FAULTS);
}

/// Forgets the regions of the program before: there are few.
pub fn begin() {
    write(MPU_CTRL, 0);
    for region in 0..REGIONS {
        write(MPU_RNR, region);
        write(MPU_RASR, 0);
    }
    NEXT.store(0, Ordering::Relaxed);
}

/// Sets permissions of whole pages; `false` if there are no more regions.
///
/// # Safety
/// They are for programs.
pub unsafe fn set(range: Range<usize>, flags: SegmentFlags) -> bool {
    let mut attributes = NORMAL;
    if flags.contains(SegmentFlags::WRITE) {
        attributes |= OPEN;
    } else if !flags.is_empty() {
        attributes |= READ_ONLY;
    }
    if !flags.contains(SegmentFlags::EXECUTE) {
        attributes |= NEVER_EXECUTED;
    }
    let mut start = range.start;
    while start < range.end {
        let region = NEXT.load(Ordering::Relaxed);
        if region >= REGIONS {
            return false;
        }
        // the largest power of two that stands here and ends inside
        let bits = start.trailing_zeros().min((range.end - start).ilog2());
        write(MPU_RNR, region);
        write(MPU_RBAR, start as u32);
        write(MPU_RASR, attributes | (bits - 1) << 1 | 1);
        NEXT.store(region + 1, Ordering::Relaxed);
        start += 1 << bits;
    }
    true
}

/// Turns the unit on.
pub fn end() {
    write(MPU_CTRL, ENABLED);
    // SAFETY: what was fetched is forgotten.
    unsafe { core::arch::asm!("dsb", "isb", options(nostack)) };
}
