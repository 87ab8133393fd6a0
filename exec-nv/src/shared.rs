//! What a device, its images and its programs share.

use std::sync::{Arc, Mutex, Weak};

use exec_core::{Limits, LruAllocator};

use crate::context::Context;
use crate::loader::CubinLoader;
use crate::memory::NvAllocator;
use crate::properties::DeviceProperties;
use crate::queue::NvQueue;

/// What the device and its programs share.
#[derive(Debug)]
pub(crate) struct Shared {
    // first, so that nothing runs any more when the rest goes
    pub(crate) queue: NvQueue,
    pub(crate) allocator: Arc<LruAllocator<NvAllocator>>,
    /// Allocators for memory of other kinds.
    pub(crate) others: Mutex<Vec<Weak<LruAllocator<NvAllocator>>>>,
    pub(crate) context: Arc<Context>,
    pub(crate) properties: DeviceProperties,
    /// Who loads code where nobody says.
    pub(crate) loader: CubinLoader,
    /// How much freed memory is kept.
    pub(crate) keep: Limits,
}

impl Shared {
    /// The device as `fatbin` chooses code for it.
    pub(crate) const fn target(&self) -> fatbin::TargetDevice {
        fatbin::TargetDevice { sm: self.properties.sm, driver: self.properties.driver }
    }
}
