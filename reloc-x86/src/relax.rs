//! Instructions that need no GOT entry, for those that use one (psABI AMD64 1.0, B.2 "Optimize GOTPCRELX Relocations"; psABI
//! Intel386 1.1, B.2).
//!
//! ```text
//! mov  foo@GOT, reg    lea foo(%rip), reg    where the distance fits
//!                      mov $foo, reg         where the address fits
//! call *foo@GOT        addr32 call foo
//! jmp  *foo@GOT        jmp foo; nop
//! test reg, foo@GOT    test $foo, reg        where the address fits
//! op   foo@GOT, reg    op $foo, reg          the same: adc add and cmp or sbb sub xor
//! ```
//!
//! What has been written for `R_X86_64_REX_GOTPCRELX` by an assembler that means a REX2 prefix by REX (LLVM 19) is only rewritten
//! where both mean the same. Instructions with an EVEX prefix (`CODE_5_`, `CODE_6_GOTPCRELX`) keep their GOT entry.

use elf_core::{Reach, Record, Rewrite, Site};

/// What stands before the opcode.
#[derive(Clone, Copy)]
pub(crate) enum Prefix {
    None,
    Rex,
    Rex2,
}

/// Numbers of the relocations of the new code: the distance, and the address as an immediate with or without its sign.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) distance: u32,
    pub(crate) immediate: u32,
    pub(crate) signed_immediate: u32,
}

/// An instruction that uses a GOT entry.
#[derive(Clone, Copy)]
pub(crate) struct Instruction<'s, 'b> {
    pub(crate) site: &'s Site<'b>,
    pub(crate) prefix: Prefix,
    pub(crate) numbers: Numbers,
}

const LEA: u8 = 0x8d;
const MOV: u8 = 0x8b;
const MOV_IMMEDIATE: u8 = 0xc7;
const INDIRECT: u8 = 0xff;
const TEST: u8 = 0x85;
const TEST_IMMEDIATE: u8 = 0xf7;
const OPERATION_IMMEDIATE: u8 = 0x81;
const ADDRESS_SIZE: u8 = 0x67;
const CALL: u8 = 0xe8;
const JMP: u8 = 0xe9;
const NOP: u8 = 0x90;

impl Instruction<'_, '_> {
    /// The instruction that stands for it; a load becomes `lea` if `to_lea` says so and the distance fits.
    #[inline]
    pub(crate) fn relaxed(&self, reach: Reach, to_lea: bool) -> Option<Rewrite> {
        let record = self.site.record;
        let [opcode, modrm, ..] = *self.site.around::<6>(2)?;
        match opcode {
            MOV if to_lea && reach.near => self.load_address(modrm),
            _ if self.is_branch(opcode, modrm) && reach.near => {
                let distance = |offset| self.relocation(offset, self.numbers.distance, -4);
                Some(if modrm >> 3 & 7 == 2 {
                    Rewrite::new(record, 2, [ADDRESS_SIZE, CALL, 0, 0, 0, 0])
                        .with(distance(record.offset))
                } else {
                    let offset = record.offset.wrapping_sub(1);
                    Rewrite::new(record, 2, [JMP, 0, 0, 0, 0, NOP]).with(distance(offset))
                })
            }
            MOV if reach.low => self.immediate(MOV_IMMEDIATE, 0, modrm),
            TEST if reach.low => self.immediate(TEST_IMMEDIATE, 0, modrm),
            _ if opcode & 0o307 == 0o003 && reach.low => {
                self.immediate(OPERATION_IMMEDIATE, opcode & 0o070, modrm)
            }
            _ => None,
        }
    }

    /// `call *` or `jmp *`.
    fn is_branch(&self, opcode: u8, modrm: u8) -> bool {
        opcode == INDIRECT && matches!(modrm >> 3 & 7, 2 | 4) && matches!(self.prefix, Prefix::None)
    }

    fn relocation(&self, offset: u64, r#type: u32, addend: i64) -> Record {
        Record { offset, r#type, addend: Some(addend), ..*self.site.record }
    }

    /// The REX prefix, if it is one.
    fn rex(&self) -> Option<u8> {
        let [rex] = *self.site.around::<1>(3)?;
        (rex & 0xf0 == 0x40).then_some(rex)
    }

    /// The payload of the REX2 prefix, if it is one and the opcode is of map 0.
    fn rex2(&self) -> Option<u8> {
        let [prefix, payload] = *self.site.around::<2>(4)?;
        (prefix == REX2 && payload & 0x80 == 0).then_some(payload)
    }

    /// `lea`.
    fn load_address(&self, modrm: u8) -> Option<Rewrite> {
        match self.prefix {
            Prefix::None => {}
            Prefix::Rex => drop(self.rex()?),
            Prefix::Rex2 => drop(self.rex2()?),
        }
        let record = self.site.record;
        let distance = self.relocation(record.offset, self.numbers.distance, -4);
        Some(Rewrite::new(record, 2, [LEA, modrm, 0, 0, 0, 0]).with(distance))
    }

    /// `opcode` with the address as an immediate operand: the register moves from the one field to the other.
    fn immediate(&self, opcode: u8, extension: u8, modrm: u8) -> Option<Rewrite> {
        let record = self.site.record;
        let modrm = 0o300 | extension | modrm >> 3 & 7;
        let number = |wide: bool| {
            if wide { self.numbers.signed_immediate } else { self.numbers.immediate }
        };
        let relocation = |wide| self.relocation(record.offset, number(wide), 0);
        Some(match self.prefix {
            Prefix::None => {
                Rewrite::new(record, 2, [opcode, modrm, 0, 0, 0, 0]).with(relocation(false))
            }
            Prefix::Rex => {
                let rex = self.rex()?;
                if self.site.around::<1>(4).is_some_and(|[before]| *before == REX2) {
                    return None;
                }
                // R to B
                let moved = rex & !0b101 | rex >> 2 & 1;
                Rewrite::new(record, 3, [moved, opcode, modrm, 0, 0, 0, 0])
                    .with(relocation(rex & 0b1000 != 0))
            }
            Prefix::Rex2 => {
                let rex2 = self.rex2()?;
                // R4 and R3 to B4 and B3
                let moved = rex2 & !0b0101_0101 | rex2 >> 2 & 0b0001_0001;
                Rewrite::new(record, 4, [REX2, moved, opcode, modrm, 0, 0, 0, 0])
                    .with(relocation(rex2 & 0b1000 != 0))
            }
        })
    }
}

const REX2: u8 = 0xd5;
