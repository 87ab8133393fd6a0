//! What a launch can be asked for beside grid, block and memory.

use super::LaunchError;
use crate::properties::DeviceProperties;

/// The first architecture on which a kernel can start while the one before it ends.
const PROGRAMMATIC: u32 = 90;
/// The first architecture with clusters.
const CLUSTERS: u32 = 90;

/// What a launch can be asked for beside grid, block and memory. The default asks for nothing.
///
/// ```
/// use exec_nv::{ClusterPolicy, LaunchAttributes, NvLaunch};
///
/// let attributes = LaunchAttributes { programmatic: true, ..LaunchAttributes::NONE };
/// let launch = NvLaunch { cluster: Some([2, 1, 1]), attributes, ..NvLaunch::new(64, 128) };
/// assert!(launch.attributes.cluster_policy.is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchAttributes {
    /// Whether it may start before the kernel in front of it in the queue has ended: *programmatic dependent launch*. It then waits by
    /// itself (`griddepcontrol.wait`, `cudaGridDependencySynchronize`) before it uses what that kernel writes. From `sm_90` on.
    pub programmatic: bool,
    /// Its priority, instead of the queue's: see [`NvDevice::priorities`](crate::NvDevice::priorities). The driver takes the nearest
    /// that there is.
    pub priority: Option<i32>,
    /// How the blocks of a cluster are spread over SMs.
    pub cluster_policy: Option<ClusterPolicy>,
}

/// How the blocks of a cluster are spread over SMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterPolicy {
    /// As the driver likes.
    Default,
    /// Over as many as there are.
    Spread,
    /// To where there is least to do.
    LoadBalancing,
}

impl LaunchAttributes {
    /// Nothing is asked for.
    pub const NONE: Self = Self { programmatic: false, priority: None, cluster_policy: None };

    pub(super) const fn check(&self, device: &DeviceProperties) -> Result<(), LaunchError> {
        if self.programmatic && device.sm < PROGRAMMATIC {
            return Err(LaunchError::Architecture {
                what: "programmatic dependent launch",
                found: device.sm,
                needed: PROGRAMMATIC,
            });
        }
        if self.cluster_policy.is_some() && !device.cluster_launch {
            return Err(LaunchError::Architecture {
                what: "cluster policies",
                found: device.sm,
                needed: CLUSTERS,
            });
        }
        Ok(())
    }
}
