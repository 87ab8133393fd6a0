//! Relocations of BPF: kernel documentation, "LLVM relocations".

use crate::names::table::Names;

pub(super) const BPF: Names = rows! {
    R_BPF_NONE        = 0,
    R_BPF_64_64       = 1,
    R_BPF_64_ABS64    = 2,
    R_BPF_64_ABS32    = 3,
    R_BPF_64_NODYLD32 = 4,
    R_BPF_64_32       = 10,
};
