//! How many warps of a kernel an SM runs at a time, by the size of its blocks.

use nvinfo::occupancy::{Demand, limits};
use serde::Serialize;

/// Threads of a warp: blocks are multiples of that.
const WARP: u32 = 32;
/// How many sizes of blocks there are.
const SIZES: u32 = 32;

/// Warps that an SM runs at a time, by the size of blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Curve {
    /// Warps that an SM can hold.
    pub of: u32,
    /// For blocks of 32 threads, of 64, and so on to 1024.
    pub warps: Vec<u32>,
    /// What keeps an SM from running more.
    pub limiters: Vec<&'static str>,
}

impl Curve {
    /// That of a kernel whose blocks ask for `demand`, whatever their threads; nothing if the limits of the architecture are not known.
    #[must_use]
    pub fn of(sm: u32, demand: Demand) -> Option<Self> {
        let limits = limits(sm)?;
        let runs: Vec<_> = (1..=SIZES)
            .map(|warps| limits.occupancy(&Demand { threads: warps * WARP, ..demand }))
            .collect();
        Some(Self {
            of: limits.warps,
            warps: runs.iter().map(|one| one.warps).collect(),
            limiters: runs.iter().map(|one| one.limiter.name()).collect(),
        })
    }

    /// Threads of a block, the warps that run, and what keeps more from it: by rising threads.
    pub fn points(&self) -> impl Iterator<Item = (u32, u32, &'static str)> {
        let sizes = (1..).map(|warps| warps * WARP);
        sizes
            .zip(&self.warps)
            .zip(&self.limiters)
            .map(|((threads, warps), limiter)| (threads, *warps, *limiter))
    }
}
