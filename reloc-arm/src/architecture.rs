//! The architecture: its rows, its stubs, and what its symbols say.

use crate::arm::{
    R_ARM_CALL, R_ARM_JUMP24, R_ARM_PC24, R_ARM_PLT32, R_ARM_PREL31, R_ARM_THM_CALL,
    R_ARM_THM_JUMP6, R_ARM_THM_JUMP8, R_ARM_THM_JUMP11, R_ARM_THM_JUMP19, R_ARM_THM_JUMP24,
    R_ARM_THM_PC8, ROWS,
};
use crate::attributes;
use crate::{stub, tls};
use elf_core::names::{EF_ARM_BE8, EF_ARM_EABI_VER5, EM_ARM, STT_FUNC, STT_GNU_IFUNC};
use elf_core::tls::Tls;
use elf_core::{
    Arch, BuildAttributes, Error, File, Kind, Page, Query, Role, Stub, StubChoice, Symbol,
    SymbolAttributes,
};

/// Arm with addresses of 4 bytes (`EM_ARM`).
#[derive(Clone, Copy, Debug)]
pub enum Arm {}

impl Arch for Arm {
    const MACHINE: u16 = EM_ARM;
    const ADDRESS_SIZE: u64 = 4;
    const KINDS: &'static [Kind] = ROWS;
    const STUBS: &'static [Stub] = stub::STUBS;
    const TLS: Option<Tls> = Some(tls::TLS);
    const HAS_STATES: bool = true;
    const EQUAL_FLAGS: &'static [(u32, &'static str)] =
        &[(EABI, "the version of the EABI"), (EF_ARM_BE8, "BE8")];
    const EQUAL_ATTRIBUTES: &'static [(u32, &'static str)] = attributes::EQUAL;

    const LITTLE_ENDIAN_CODE: u32 = attributes::BE8;
    const DIRECT_TYPE_INFO: u32 = attributes::MICROCONTROLLER;

    fn build_attributes(file: &File<'_>) -> Result<BuildAttributes, Error> {
        attributes::of(file)
    }

    fn undefined_weak(query: &Query) -> Option<u64> {
        let next = |size: u64| Some(query.place.wrapping_add(size));
        match query.kind.number {
            R_ARM_CALL | R_ARM_JUMP24 | R_ARM_PC24 | R_ARM_PLT32 | R_ARM_PREL31 => next(4),
            // with T
            R_ARM_THM_CALL | R_ARM_THM_JUMP24 | R_ARM_THM_JUMP19 => next(5),
            // whose formulas have no T
            R_ARM_THM_JUMP11 | R_ARM_THM_JUMP8 | R_ARM_THM_JUMP6 => next(2),
            // an offset that is never negative
            R_ARM_THM_PC8 => Some((query.place & !3).wrapping_sub(query.addend.cast_unsigned())),
            _ if query.kind.value.page == Page::MinusWord => Some(query.place & !3),
            _ if query.kind.value.minus == Role::Place => next(0),
            _ => None,
        }
    }

    fn stub(kind: &Kind, target: SymbolAttributes) -> Option<StubChoice> {
        stub::choose(kind, target)
    }

    fn symbol(symbol: &Symbol) -> (u64, SymbolAttributes) {
        let is_function = matches!(symbol.r#type(), STT_FUNC | STT_GNU_IFUNC);
        let thumb = if is_function { symbol.value & 1 } else { 0 };
        let attributes = SymbolAttributes::new(thumb != 0, symbol.other).function(is_function);
        (symbol.value & !thumb, attributes)
    }
}

/// The bits of `e_flags` that hold the version of the EABI, but for the lowest: version 4 is version 5 before it was released.
const EABI: u32 = 0xfe00_0000;
const _: () = assert!(EF_ARM_EABI_VER5 & EABI == 0x0400_0000);
