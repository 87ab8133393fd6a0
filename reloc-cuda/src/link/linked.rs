//! How to link, and what comes of it.

use alloc::string::String;
use alloc::vec::Vec;

/// A linked cubin.
#[derive(Clone, Debug)]
pub struct LinkedCubin {
    /// The file.
    pub bytes: Vec<u8>,
    /// Kernels whose stack has no bound that can be told: a launch must be given one.
    pub unbounded: Vec<String>,
    /// What became of the Mercury form of the code.
    pub mercury: LinkedMercury,
    /// The functions that stayed, and what each may call.
    pub functions: Vec<LinkedFunction>,
}

/// How to link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkOptions<'o> {
    /// The architecture (90 for `sm_90`); that of the first object without it.
    pub sm: Option<u32>,
    /// Kernels that are used: those with one of these texts in their name, all if there is none. Others are dropped, with what
    /// they alone reach.
    pub kernels: &'o [&'o str],
}

/// A function of a linked cubin, or one of the driver's that it calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedFunction {
    /// Its name, mangled.
    pub name: String,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// Whether its address is taken, so that it may be called without its name.
    pub is_address_taken: bool,
    /// The registers that it needs itself, 0 if no object says.
    pub registers: u32,
    /// Positions of what it may call, by name or through an address.
    pub callees: Vec<usize>,
}

/// What became of the Mercury form of the code (`.nv.merc.*`, `.nv.capmerc.*`), which objects have from `sm_100` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkedMercury {
    /// The architecture has none.
    None,
    /// The linked file has it.
    Merged,
    /// The linked file has machine code alone, and its note says so.
    LeftOut {
        /// Index of the object because of which.
        object: usize,
        /// What that has or lacks, as in "it has no Mercury form".
        why: &'static str,
    },
}

impl LinkedMercury {
    /// What the linked file's note says.
    pub(super) fn remark(&self) -> String {
        match self {
            Self::LeftOut { object, why } => {
                alloc::format!("without Mercury: of object {object}, {why}")
            }
            _ => String::new(),
        }
    }
}
