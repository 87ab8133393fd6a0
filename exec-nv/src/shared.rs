//! What a device, its images and its programs share.

use std::sync::Arc;

use exec_core::{Limits, LruAllocator};

use crate::context::Context;
use crate::loader::Loader;
use crate::memory::NvAllocator;
use crate::properties::Properties;
use crate::queue::NvQueue;

/// What the device and its programs share.
#[derive(Debug)]
pub(crate) struct Shared {
    // first, so that nothing runs any more when the rest goes
    pub(crate) queue: NvQueue,
    pub(crate) allocator: Arc<LruAllocator<NvAllocator>>,
    pub(crate) context: Arc<Context>,
    pub(crate) properties: Properties,
    /// Who loads code where nobody says.
    pub(crate) loader: Loader,
    /// How much freed memory is kept.
    pub(crate) keep: Limits,
}

impl Shared {
    /// The device as `fatbin` chooses code for it.
    pub(crate) const fn target(&self) -> fatbin::Device {
        fatbin::Device { sm: self.properties.sm, driver: self.properties.driver }
    }
}
