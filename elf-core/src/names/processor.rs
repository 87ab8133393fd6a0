//! What each processor's supplement to the gABI adds to the tables.

use self::supplement::Processor;
use crate::names::machine::*;

mod aarch64;
mod alpha;
mod amdgpu;
mod arc;
mod arm;
mod avr;
mod csky;
mod cuda;
mod hexagon;
mod i386;
mod ia64;
mod loongarch;
mod mips;
mod msp430;
mod nios2;
mod parisc;
mod ppc;
mod ppc64;
mod riscv;
mod s390;
mod sh;
mod sparc;
mod supplement;
mod tic6000;
mod x86_64;
mod xtensa;

/// The machines each file of this folder is for.
macro_rules! processors {
    ($($file:ident: $($machine:ident)|+;)*) => {
        $(pub use self::$file::*;)*

        /// The tables of `machine`.
        pub(super) const fn of(machine: u16) -> &'static Processor {
            match machine {
                $($($machine)|+ => &$file::PROCESSOR,)*
                _ => &Processor::PLAIN,
            }
        }
    };
}

processors! {
    aarch64: EM_AARCH64;
    alpha: EM_ALPHA | EM_FAKE_ALPHA;
    amdgpu: EM_AMDGPU;
    arc: EM_ARC_COMPACT | EM_ARC_COMPACT2;
    arm: EM_ARM;
    avr: EM_AVR;
    csky: EM_CSKY;
    cuda: EM_CUDA;
    hexagon: EM_HEXAGON;
    i386: EM_386 | EM_IAMCU;
    ia64: EM_IA_64;
    loongarch: EM_LOONGARCH;
    mips: EM_MIPS | EM_MIPS_RS3_LE;
    msp430: EM_MSP430;
    nios2: EM_ALTERA_NIOS2;
    parisc: EM_PARISC;
    ppc: EM_PPC;
    ppc64: EM_PPC64;
    riscv: EM_RISCV;
    s390: EM_S390;
    sh: EM_SH;
    sparc: EM_SPARC | EM_SPARC32PLUS | EM_SPARCV9;
    tic6000: EM_TI_C6000;
    x86_64: EM_X86_64;
    xtensa: EM_XTENSA;
}
