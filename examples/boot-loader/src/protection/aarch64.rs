//! AArch64: page tables of 4 KiB pages, 39 bits of addresses, everything where it is (Arm ARM, D8).

use core::arch::{asm, global_asm};
use core::ops::Range;

use elf_core::SegmentFlags;

use super::Table;

/// Memory for programs: `-M virt` has it from 0x40000000 on, the firmware is at the beginning. One table has all its pages.
pub const MEMORY: Range<usize> = 0x4200_0000..0x4220_0000;

/// Where memory begins, of which there is a table for one GiB.
const RAM: u64 = 0x4000_0000;
const BLOCK: u64 = 0x20_0000;
const PAGE: usize = 0x1000;

static GIBIBYTES: Table = Table::new([0; 512]);
static BLOCKS: Table = Table::new([0; 512]);
static PAGES: Table = Table::new([0; 512]);

const IS_TABLE_OR_PAGE: u64 = 3;
const IS_BLOCK: u64 = 1;
/// Accessed, and shared by all.
const NORMAL: u64 = 1 << 10 | 3 << 8;
const READ_ONLY: u64 = 1 << 7;
/// PXN and UXN.
const NEVER_EXECUTED: u64 = 3 << 53;

global_asm!(
    ".section .bss.saved_stack, \"aw\", @nobits",
    ".balign 8",
    "saved_stack: .skip 8",
    ".text",
    ".balign 2048",
    "vectors:",
    ".rept 16",
    "b fault",
    ".balign 128",
    ".endr",
    ".global attempt",
    "attempt:",
    "stp x29, x30, [sp, #-16]!",
    "adrp x10, saved_stack",
    "add x10, x10, :lo12:saved_stack",
    "mov x9, sp",
    "str x9, [x10]",
    "cbnz x1, 1f",
    "strb w2, [x0]",
    "b 2f",
    "1: blr x0",
    "2: mov x0, #0",
    "3: adrp x10, saved_stack",
    "add x10, x10, :lo12:saved_stack",
    "str xzr, [x10]",
    "ldp x29, x30, [sp], #16",
    "ret",
    // what was interrupted is not gone back to
    "fault:",
    "adrp x10, saved_stack",
    "add x10, x10, :lo12:saved_stack",
    "ldr x9, [x10]",
    "cbz x9, 4f",
    "mov sp, x9",
    "mov x0, #1",
    "b 3b",
    "4: bl unexpected",
);

/// Turns on the MMU, with all memory open.
pub fn prepare() {
    GIBIBYTES.with(|table| table[1] = BLOCKS.address() | IS_TABLE_OR_PAGE);
    BLOCKS.with(|table| {
        for (entry, at) in table.iter_mut().zip((RAM..).step_by(BLOCK as usize)) {
            let programs = at == MEMORY.start as u64;
            *entry = match programs {
                true => PAGES.address() | IS_TABLE_OR_PAGE,
                false => at | NORMAL | IS_BLOCK,
            };
        }
    });
    PAGES.with(|table| {
        for (entry, at) in table.iter_mut().zip(MEMORY.step_by(PAGE)) {
            *entry = at as u64 | NORMAL | IS_TABLE_OR_PAGE;
        }
    });
    // 39 bits, tables that are cached and shared, no second half
    let control = 25u64 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23;
    // SAFETY: the tables have all that there is at its own address.
    unsafe {
        asm!(
            "adrp {at}, vectors",
            "add {at}, {at}, :lo12:vectors",
            "msr vbar_el1, {at}",
            "mov {at}, #0xff", // normal memory, cached
            "msr mair_el1, {at}",
            "msr tcr_el1, {control}",
            "msr ttbr0_el1, {table}",
            "dsb sy",
            "tlbi vmalle1",
            "dsb sy",
            "isb",
            "mrs {at}, sctlr_el1",
            "orr {at}, {at}, {on}",
            "msr sctlr_el1, {at}",
            "isb",
            at = out(reg) _,
            control = in(reg) control,
            table = in(reg) GIBIBYTES.address(),
            on = in(reg) 1u64 | 1 << 2 | 1 << 12, // M, C, I
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
    let mut entry = NORMAL | IS_TABLE_OR_PAGE;
    if !flags.contains(SegmentFlags::WRITE) {
        entry |= READ_ONLY;
    }
    if !flags.contains(SegmentFlags::EXECUTE) {
        entry |= NEVER_EXECUTED;
    }
    if flags.is_empty() {
        entry = 0;
    }
    PAGES.with(|table| {
        for at in range.step_by(PAGE) {
            let place = &mut table[(at - MEMORY.start) / PAGE];
            *place = if entry == 0 { 0 } else { at as u64 | entry };
        }
    });
    true
}

/// Makes the processor forget what it knew of pages.
pub fn end() {
    // SAFETY: no other effect.
    unsafe { asm!("dsb ishst", "tlbi vmalle1", "dsb ish", "isb", options(nostack)) };
}
