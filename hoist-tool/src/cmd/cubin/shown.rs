//! Kernels of a cubin, and its module.

use anyhow::Result;
use nvinfo::Cubin;
use serde::Serialize;

use super::kernel::{Kernel, kernels};
use super::module::Module;
use crate::pattern::Pattern;

/// Kernels, and the module unless one kernel was asked for.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
}

/// What `cubin` holds: all of it, or the kernels that the patterns mean; nothing if it has none of these.
///
/// # Errors
/// If it is damaged.
pub fn report(
    cubin: &Cubin<'_>,
    wanted: &[Pattern],
    threads: Option<u32>,
) -> Result<Option<Shown>> {
    let kernels = kernels(cubin, wanted, threads)?;
    match wanted {
        [] => Ok(Some(Shown { kernels, module: Some(Module::of(cubin)?) })),
        _ if kernels.is_empty() => Ok(None),
        _ => Ok(Some(Shown { kernels, module: None })),
    }
}
