//! The numbers of the ELF specifications and their names, each pair written once.
//!
//! A number is a constant here (`SHT_NOTE`), with the specification's own spelling. Its way back to a name is a table
//! ([`SHT`]) or, where the meaning depends on the machine, a function ([`section_type`]). Words made of bits and small
//! fields have a [`Flags`].
//!
//! ```
//! use elf_core::names::{self, EM_AARCH64, EM_CUDA, EM_X86_64, SHT_NOTE};
//!
//! assert_eq!(names::section_type(EM_X86_64, SHT_NOTE), Some("SHT_NOTE"));
//! assert_eq!(names::section_type(EM_X86_64, 0x7000_0001), Some("SHT_X86_64_UNWIND"));
//! assert_eq!(names::section_type(EM_CUDA, 0x7000_0001), Some("SHT_CUDA_CALLGRAPH"));
//! assert_eq!(names::section_type(EM_AARCH64, 0x7000_0001), None);
//!
//! let flags = names::section_flags(EM_X86_64);
//! assert!(flags.names(0x1000_0003).eq(["SHF_WRITE", "SHF_ALLOC", "SHF_X86_64_LARGE"]));
//! assert_eq!(flags.unnamed(0x4000_0001), 0x4000_0000);
//! ```
//!
//! A lookup allocates nothing and cannot fail otherwise than with `None`. Names of relocations are those of machines
//! for which this project has no relocation table; see [`relocation`].
//!
//! A machine is a file in `names/processor/` with two lines in `names/processor.rs`; its relocations, if they are named
//! here, likewise in `names/relocation/` and `names/relocation.rs`.

#[macro_use]
mod table;

mod dynamic;
mod ident;
mod machine;
mod note;
mod processor;
mod property;
mod relocation;
mod section;
mod segment;
mod symbol;
mod version;

pub use self::dynamic::*;
pub use self::ident::*;
pub use self::machine::*;
pub use self::note::*;
pub use self::processor::*;
pub use self::property::*;
pub use self::relocation::relocation;
pub use self::section::*;
pub use self::segment::*;
pub use self::symbol::*;
pub use self::table::{Flag, Flags, Names};
pub use self::version::*;

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    /// Words of `readelf -hlSdsn` (binutils 2.40) on files of several machines; a word is the end of our name.
    #[test]
    fn readelf_agrees() {
        let x = EM_X86_64;
        let rows = [
            (section_type(x, 0), "NULL"),
            (section_type(x, 1), "PROGBITS"),
            (section_type(x, 8), "NOBITS"),
            (section_type(x, 14), "INIT_ARRAY"),
            (section_type(x, 17), "GROUP"),
            (section_type(x, 0x6fff_fff6), "GNU_HASH"),
            (section_type(x, 0x6fff_4c0a), "LLVM_BB_ADDR_MAP"),
            (section_type(EM_ARM, 0x7000_0001), "ARM_EXIDX"),
            (section_type(EM_MIPS, 0x7000_002a), "MIPS_ABIFLAGS"),
            (section_type(EM_RISCV, 0x7000_0003), "RISCV_ATTRIBUTES"),
            (segment_type(x, 3), "INTERP"),
            (segment_type(x, 0x6474_e553), "GNU_PROPERTY"),
            (segment_type(EM_RISCV, 0x7000_0003), "RISCV_ATTRIBUTES"),
            (segment_type(EM_ARM, 0x7000_0001), "EXIDX"),
            (dynamic_tag(x, 0x15), "DEBUG"),
            (dynamic_tag(x, 0x6fff_fff0), "VERSYM"),
            (dynamic_tag(x, 0x6fff_fff9), "RELACOUNT"),
            (dynamic_tag(EM_AARCH64, 0x7000_0005), "VARIANT_PCS"),
            (dynamic_tag(EM_PPC64, 0x7000_0000), "PPC64_GLINK"),
            (symbol_type(x, ELFOSABI_GNU, 10), "IFUNC"),
            (symbol_type(x, ELFOSABI_NONE, 4), "FILE"),
            (symbol_binding(x, ELFOSABI_GNU, 10), "UNIQUE"),
            (symbol_binding(x, ELFOSABI_NONE, 2), "WEAK"),
            (symbol_visibility(0x82), "HIDDEN"),
            (section_index(x, 0xfff1), "ABS"),
            (section_index(x, 0xfff2), "COMMON"),
            (file_type(3), "DYN"),
            (note_type(b"GNU", false, 5), "NT_GNU_PROPERTY_TYPE_0"),
            (note_type(b"CORE", true, 1), "NT_PRSTATUS"),
        ];
        for (name, word) in rows {
            let name = name.unwrap();
            assert!(name.ends_with(word), "{name} is not {word}");
        }
    }

    #[test]
    fn machines_keep_to_their_own_ranges() {
        assert_eq!(machine(190), Some("EM_CUDA"));
        assert_eq!(machine(243), Some("EM_RISCV"));
        assert_eq!(machine(0x9026), Some("EM_ALPHA"));
        assert_eq!(machine(12), None);
        assert_eq!(section_type(EM_386, 0x7000_0001), None);
        assert_eq!(section_type(EM_CUDA, 0x7000_0070), Some("SHT_CUDA_CONSTANT_B12"));
        assert_eq!(section_type(EM_CUDA, 0x7000_0080), None);
        assert_eq!(section_index(EM_X86_64, 0xff02), Some("SHN_X86_64_LCOMMON"));
        assert_eq!(section_index(EM_386, 0xff02), None);
        assert_eq!(segment_type(EM_X86_64, PT_GNU_MBIND_HI), Some("PT_GNU_MBIND"));
        assert_eq!(segment_type(EM_X86_64, PT_GNU_MBIND_HI + 1), None);
        assert_eq!(dynamic_tag(EM_X86_64, u64::MAX), None);
        assert_eq!(symbol_type(EM_CUDA, ELFOSABI_CUDA, 10), Some("STT_CUDA_TEXTURE"));
        assert_eq!(symbol_type(EM_AMDGPU, ELFOSABI_AMDGPU_HSA, 10), Some("STT_AMDGPU_HSA_KERNEL"));
        assert_eq!(symbol_type(EM_SPARCV9, ELFOSABI_SOLARIS, 10), None);
        assert_eq!(os_abi(EM_CUDA, 65), Some("ELFOSABI_CUDA_V2"));
        assert_eq!(os_abi(EM_ARM, 65), Some("ELFOSABI_ARM_FDPIC"));
        assert_eq!(os_abi(EM_X86_64, 65), None);
        assert_eq!(property_type(EM_386, 0xc000_0002), Some("GNU_PROPERTY_X86_FEATURE_1_AND"));
        assert_eq!(property_type(EM_RISCV, 0xc000_0000), Some("GNU_PROPERTY_RISCV_FEATURE_1_AND"));
        assert_eq!(property_type(EM_S390, 0xc000_0000), None);
    }

    #[test]
    fn flag_words() {
        let names = |flags: Flags, word, expected: &[&str]| {
            assert!(flags.names(word).eq(expected.iter().copied()), "{word:#x} of {expected:?}");
        };
        names(
            section_flags(EM_386),
            0x1020_0042,
            &["SHF_ALLOC", "SHF_INFO_LINK", "SHF_GNU_RETAIN"],
        );
        names(
            section_flags(EM_AARCH64),
            0x2000_0006,
            &["SHF_ALLOC", "SHF_EXECINSTR", "SHF_AARCH64_PURECODE"],
        );
        names(section_flags(EM_CUDA), 0x0200_0000, &["SHF_NOTE_NV_TKINFO"]);
        names(section_flags(EM_CUDA), 0x0110_0006, &["SHF_ALLOC", "SHF_EXECINSTR"]); // 17 barriers
        names(segment_flags(EM_ARM), 5, &["PF_R", "PF_X"]);
        names(header_flags(EM_RISCV, 0, 0), 5, &["EF_RISCV_RVC", "EF_RISCV_FLOAT_ABI_DOUBLE"]);
        names(
            header_flags(EM_ARM, 0, 0),
            0x0500_0400,
            &["EF_ARM_EABI_VER5", "EF_ARM_ABI_FLOAT_HARD"],
        );
        names(header_flags(EM_X86_64, 0, 0), 1, &[]);
        let old = ["EF_CUDA_TEXMODE_UNIFIED", "EF_CUDA_64BIT_ADDRESS", "EF_CUDA_ACCELERATORS"];
        names(header_flags(EM_CUDA, ELFOSABI_CUDA, 7), 0x005a_0d5a, &old);
        names(
            header_flags(EM_CUDA, ELFOSABI_CUDA_V2, 8),
            0x0600_640a,
            &["EF_CUDA_V2_ACCELERATORS"],
        );
        let (hsa, gfx90a) = (ELFOSABI_AMDGPU_HSA, "EF_AMDGPU_MACH_AMDGCN_GFX90A");
        names(header_flags(EM_AMDGPU, hsa, 1), 0x13f, &[gfx90a, "EF_AMDGPU_FEATURE_XNACK_V3"]);
        names(header_flags(EM_AMDGPU, hsa, 2), 0x13f, &[gfx90a, "EF_AMDGPU_FEATURE_XNACK_ANY_V4"]);
        names(symbol_other(EM_CUDA), 0x38, &["STO_CUDA_GLOBAL", "STO_CUDA_OBSCURE"]);
        names(symbol_other_of_type(EM_CUDA, STT_FUNC), 0x30, &["STO_CUDA_ENTRY"]);
        names(symbol_other_of_type(EM_CUDA, STT_CUDA_OBJECT), 0x24, &["STO_CUDA_MANAGED"]);
        names(symbol_other(EM_MIPS), 0xf0, &["STO_MIPS_MIPS16"]);
        names(
            property_flags(EM_X86_64, GNU_PROPERTY_X86_FEATURE_1_AND),
            1,
            &["GNU_PROPERTY_X86_FEATURE_1_IBT"],
        );
        names(property_flags(EM_386, GNU_PROPERTY_STACK_SIZE), !0, &[]);
        names(DF_1, 0x0800_0001, &["DF_1_NOW", "DF_1_PIE"]);
        assert_eq!(section_flags(EM_386).unnamed(0x1020_0042), 0x1000_0000);
    }

    /// In sections of cubins one bit is read with `SHF_EXECINSTR`; all other rows of a word exclude each other.
    #[test]
    fn no_bit_has_two_names() {
        let apart =
            |a: Flag, b: Flag| a.mask & b.mask == 0 || (a.value ^ b.value) & a.mask & b.mask != 0;
        for (machine, _) in EM.iter() {
            let machine = u16::try_from(machine).unwrap();
            let mut words = vec![segment_flags(machine), symbol_other(machine)];
            words.extend([0, 64, 65].map(|os_abi| header_flags(machine, os_abi, 0)));
            words.extend((machine != EM_CUDA).then_some(section_flags(machine)));
            for flags in words {
                for (at, a) in flags.iter().enumerate() {
                    assert!(
                        flags.iter().skip(at + 1).all(|b| apart(a, b)),
                        "{machine}: {}",
                        a.name
                    );
                }
            }
        }
    }
}
