//! x86-64: entered with 32 bits (Xen's PVH boot protocol), which become 64 bits on tables for the first GiB.

use core::arch::global_asm;

pub use reloc_x86::X86_64 as Architecture;

/// How many places of the objects may become shorter: code of this architecture does not.
pub const EDITS: usize = 0;

global_asm!(
    // XEN_ELFNOTE_PHYS32_ENTRY
    ".section .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 8, 18",
    ".asciz \"Xen\"",
    ".quad start",
    ".section .bss.tables, \"aw\", @nobits",
    ".balign 4096",
    "tables: .skip 0x3000",
    ".section .rodata.descriptors, \"a\"",
    ".balign 8",
    "descriptors: .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff",
    "descriptors_end:",
    "descriptors_at: .short descriptors_end - descriptors - 1",
    ".long descriptors",
    ".section .text.start, \"ax\"",
    ".code32",
    ".global start",
    "start:",
    "cld",
    "movl $stack_top, %esp",
    "movl $bss_start, %edi",
    "movl $bss_end, %ecx",
    "subl %edi, %ecx",
    "shrl $2, %ecx",
    "xorl %eax, %eax",
    "rep stosl",
    // one table of each level; the last has 512 pages of 2 MiB
    "movl $tables + 0x1003, tables",
    "movl $tables + 0x2003, tables + 0x1000",
    "movl $tables + 0x2000, %edi",
    "movl $0x83, %eax",
    "movl $512, %ecx",
    "1: movl %eax, (%edi)",
    "addl $8, %edi",
    "addl $0x200000, %eax",
    "decl %ecx",
    "jnz 1b",
    "movl $tables, %eax",
    "movl %eax, %cr3",
    "movl %cr4, %eax",
    "orl $0x620, %eax", // PAE, OSFXSR, OSXMMEXCPT
    "movl %eax, %cr4",
    "movl $0xc0000080, %ecx", // EFER
    "rdmsr",
    "orl $0x100, %eax", // LME
    "wrmsr",
    "movl %cr0, %eax",
    "andl $0xfffffffb, %eax", // no EM
    "orl $0x80000003, %eax",  // PG, MP, PE
    "movl %eax, %cr0",
    "lgdt descriptors_at",
    "ljmp $8, $2f",
    ".code64",
    "2: movl $16, %eax",
    "movl %eax, %ds",
    "movl %eax, %es",
    "movl %eax, %ss",
    "movl $stack_top, %esp",
    "call main",
    options(att_syntax)
);

/// Makes code that was written as data visible to instruction fetch: this processor sees it.
pub fn code_has_changed(_: *const u8, _: usize) {}
