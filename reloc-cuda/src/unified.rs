//! Relocations of unified addresses where there is no table of them.

use crate::cuda::{
    R_CUDA_8_0, R_CUDA_32, R_CUDA_64, R_CUDA_ABS32_HI_32, R_CUDA_ABS32_LO_32, R_CUDA_UNIFIED,
    R_CUDA_UNIFIED_8_0, R_CUDA_UNIFIED_8_56, R_CUDA_UNIFIED_32, R_CUDA_UNIFIED32_HI_32,
    R_CUDA_UNIFIED32_LO_32,
};

/// The relocation that nvlink writes in the place of one of a unified address, when it makes no table of unified
/// addresses: the same field, with the plain address.
///
/// Relocations of `R_CUDA_ABS56_16_34` against `__UFT_OFFSET` are dropped then.
#[must_use]
pub const fn without_unified_table(number: u32) -> Option<u32> {
    match number {
        R_CUDA_UNIFIED => Some(R_CUDA_64),
        R_CUDA_UNIFIED_32 => Some(R_CUDA_32),
        // one byte of eight, by `mask()` in PTX
        R_CUDA_UNIFIED_8_0..=R_CUDA_UNIFIED_8_56 => {
            Some(R_CUDA_8_0.wrapping_add(number.wrapping_sub(R_CUDA_UNIFIED_8_0)))
        }
        R_CUDA_UNIFIED32_LO_32 => Some(R_CUDA_ABS32_LO_32),
        R_CUDA_UNIFIED32_HI_32 => Some(R_CUDA_ABS32_HI_32),
        _ => None,
    }
}
