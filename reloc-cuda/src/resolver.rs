//! Who resolves a relocation.

use crate::cuda::{
    R_CUDA_64, R_CUDA_ABS32_HI_32, R_CUDA_ABS32_LO_32, R_CUDA_UNIFIED, R_CUDA_UNIFIED32_HI_32,
    R_CUDA_UNIFIED32_LO_32,
};

/// Who resolves a relocation, as nvlink's table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolver {
    /// It says nothing.
    Nobody,
    /// A device linker: offsets in shared memory and in constant banks, which are known when kernels are put together. No linked
    /// file has one.
    Linker,
    /// Whoever loads the linked file: addresses of code and of global memory, descriptors, headers.
    Driver,
    /// A linker if it knows the value, as it does for shared memory; else whoever loads the file.
    Either,
}

/// The relocation that nvlink writes in the place of one of a unified address, when it makes no table of unified addresses: the
/// same field, with the plain address.
///
/// Observed for these three. Relocations of `R_CUDA_ABS56_16_34` against `__UFT_OFFSET` are dropped then.
#[must_use]
pub const fn without_unified_table(number: u32) -> Option<u32> {
    match number {
        R_CUDA_UNIFIED => Some(R_CUDA_64),
        R_CUDA_UNIFIED32_LO_32 => Some(R_CUDA_ABS32_LO_32),
        R_CUDA_UNIFIED32_HI_32 => Some(R_CUDA_ABS32_HI_32),
        _ => None,
    }
}
