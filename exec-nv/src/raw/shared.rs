//! What a device without CUDA and its programs share.

use std::sync::Arc;

use exec_core::LruAllocator;

use super::allocator::RawAllocator;
use super::context::Context;
use super::queue::RawQueue;
use super::system::System;
use crate::properties::DeviceProperties;

/// What the device and its programs share.
#[derive(Debug)]
pub(super) struct Shared<S: System> {
    // first, so that nothing runs any more when the rest goes
    pub(super) queue: RawQueue<S>,
    pub(super) allocator: Arc<LruAllocator<RawAllocator<S>>>,
    pub(super) context: Arc<Context<S>>,
    pub(super) properties: DeviceProperties,
}
