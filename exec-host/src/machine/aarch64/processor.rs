//! `__aarch64_cpu_features` of compiler-rt and libgcc, whose numbers are part of the interface of both compilers.

use super::atomics;
use crate::external::External;
use crate::processor::bits::bits;
use exec_core::sync::OnceLock;
use std::arch::is_aarch64_feature_detected as has;

pub(crate) fn find(name: &str) -> Option<External> {
    static FOUND: OnceLock<u64> = OnceLock::new();
    match name {
        "__init_cpu_features_resolver" | "__init_cpu_features" => {
            Some(External::function(init as *const () as u64))
        }
        "__aarch64_cpu_features" => {
            let features: &u64 = FOUND.get_or_init(detect);
            let address = (&raw const *features).expose_provenance() as u64;
            // SAFETY: what was found out is never changed.
            Some(unsafe { External::constant_at(address, size_of::<u64>() as u64) })
        }
        _ => atomics::find(name),
    }
}

/// There is nothing left to do.
extern "C" fn init() {}

/// `enum CPUFeatures`, as far as it can be known.
#[rustfmt::skip]
fn detect() -> u64 {
    let [low, high] = bits(&[
        (0, has!("rand")),
        (1, has!("flagm")),
        (3, has!("fhm")),
        (4, has!("dotprod")),
        (5, has!("sm4")),
        (6, has!("rdm")),
        (7, has!("lse")),
        (8, has!("asimd")), // fp comes with it
        (9, has!("asimd")),
        (10, has!("crc")),
        (11, has!("sha2")), // sha1 comes with it
        (12, has!("sha2")),
        (13, has!("sha3")),
        (14, has!("aes")),
        (15, has!("pmull")),
        (16, has!("fp16")),
        (17, has!("dit")),
        (18, has!("dpb")),
        (19, has!("dpb2")),
        (20, has!("jsconv")),
        (21, has!("fcma")),
        (22, has!("rcpc")),
        (23, has!("rcpc2")),
        (24, has!("frintts")),
        (26, has!("i8mm")),
        (27, has!("bf16")),
        (30, has!("sve")),
        (31, has!("sve") && has!("bf16")),
        (33, has!("sve") && has!("i8mm")),
        (34, has!("f32mm")),
        (35, has!("f64mm")),
        (36, has!("sve2")),
        (37, has!("sve2-aes")),
        (38, has!("sve2-aes")),
        (39, has!("sve2-bitperm")),
        (40, has!("sve2-sha3")),
        (41, has!("sve2-sm4")),
        (43, has!("mte")),
        (44, has!("mte")),
        (46, has!("sb")),
        (48, has!("ssbs")),
        (49, has!("ssbs")),
        (50, has!("bti")),
        (63, true), // it was found out
    ]);
    u64::from(high) << 32 | u64::from(low)
}
