//! Names of relocations, for machines this project prints but does not relocate.

use crate::names::machine::*;

mod alpha;
mod amdgpu;
mod arc;
mod avr;
mod bpf;
mod csky;
mod hexagon;
mod ia64;
mod m68k;
mod mips;
mod msp430;
mod ppc;
mod ppc64;
mod s390;
mod sh;
mod sparc;
mod xtensa;

/// The name of a relocation's type.
///
/// `None` for x86-64, i386, AArch64, Arm, RISC-V, LoongArch and CUDA: the crates that relocate those have the names, beside what each
/// relocation computes. Of the three types in one MIPS64 record, this names one.
#[must_use]
pub const fn relocation(machine: u16, r_type: u32) -> Option<&'static str> {
    let table = match machine {
        EM_ALPHA | EM_FAKE_ALPHA => alpha::ALPHA,
        EM_AMDGPU => amdgpu::AMDGPU,
        EM_ARC_COMPACT | EM_ARC_COMPACT2 => arc::ARC,
        EM_AVR => avr::AVR,
        EM_BPF => bpf::BPF,
        EM_CSKY => csky::CSKY,
        EM_HEXAGON => hexagon::HEXAGON,
        EM_IA_64 => ia64::IA_64,
        EM_68K => m68k::M68K,
        EM_MIPS | EM_MIPS_RS3_LE => mips::MIPS,
        EM_MSP430 => msp430::MSP430,
        EM_PPC => ppc::PPC,
        EM_PPC64 => ppc64::PPC64,
        EM_S390 => s390::S390,
        EM_SH => sh::SH,
        EM_SPARC | EM_SPARC32PLUS | EM_SPARCV9 => sparc::SPARC,
        EM_XTENSA => xtensa::XTENSA,
        _ => return None,
    };
    table.get(r_type as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types that `readelf -r` (binutils 2.40) names so.
    #[test]
    fn samples() {
        let rows = [
            (EM_PPC, 10, "R_PPC_REL24"),
            (EM_PPC64, 250, "R_PPC64_REL16_LO"),
            (EM_S390, 20, "R_390_PLT32DBL"),
            (EM_MIPS, 4, "R_MIPS_26"),
            (EM_MIPS, 133, "R_MICROMIPS_26_S1"),
            (EM_SPARCV9, 7, "R_SPARC_WDISP30"),
            (EM_68K, 4, "R_68K_PC32"),
            (EM_SH, 2, "R_SH_REL32"),
            (EM_ALPHA, 4, "R_ALPHA_LITERAL"),
            (EM_IA_64, 0x49, "R_IA64_PCREL21B"),
            (EM_BPF, 10, "R_BPF_64_32"),
            (EM_AMDGPU, 13, "R_AMDGPU_RELATIVE64"),
            (EM_AVR, 18, "R_AVR_CALL"),
        ];
        for (machine, number, name) in rows {
            assert_eq!(relocation(machine, number), Some(name));
        }
    }

    #[test]
    fn tables_elsewhere_are_not_repeated() {
        for machine in
            [EM_X86_64, EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_LOONGARCH, EM_CUDA, EM_NONE]
        {
            assert!((0..1024).all(|number| relocation(machine, number).is_none()));
        }
    }
}
