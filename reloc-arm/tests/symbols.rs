//! What symbols say (AAELF32, "Symbol Values"): bit 0 of a function is its state and no part of its address; of all else it is.

#![cfg(test)]

use elf_core::names::{
    STB_GLOBAL, STT_COMMON, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION,
    STV_HIDDEN,
};
use elf_core::{Arch as _, Symbol, SymbolAttributes};
use reloc_arm::Arm;

#[test]
fn states_are_those_of_functions() {
    for (r#type, value, address, is_thumb, is_function) in [
        (STT_FUNC, 0x8001, 0x8000, true, true),
        (STT_FUNC, 0x8003, 0x8002, true, true),
        (STT_FUNC, 0x8000, 0x8000, false, true),
        (STT_FUNC, 0xffff_fffc, 0xffff_fffc, false, true),
        (STT_GNU_IFUNC, 0xffff_ffff, 0xffff_fffe, true, true),
        (STT_GNU_IFUNC, 0x8004, 0x8004, false, true),
        // a label in code, a byte of data
        (STT_NOTYPE, 0x8001, 0x8001, false, false),
        (STT_OBJECT, 0x8003, 0x8003, false, false),
        (STT_SECTION, 0, 0, false, false),
        (STT_COMMON, 1, 1, false, false),
    ] {
        let info = STB_GLOBAL << 4 | r#type;
        let symbol = Symbol { name: 1, info, other: STV_HIDDEN, shndx: 1, value, size: 4 };
        let said = SymbolAttributes::new(is_thumb, STV_HIDDEN).function(is_function);
        assert_eq!(Arm::symbol(&symbol), (address, said), "type {type}, {value:#x}");
    }
}
