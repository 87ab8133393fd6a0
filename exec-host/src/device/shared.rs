//! What a device and its programs share.

use exec_core::sync::Mutex;
use std::sync::Arc;

use exec_core::LruAllocator;

use super::allocator::HostAllocator;
use super::queue::Queue;
use crate::{Loader, Process};

/// What the device and its programs share.
#[derive(Debug)]
pub(super) struct Shared {
    // first, so that nothing runs any more when the rest goes
    pub(super) queue: Queue,
    pub(super) allocator: Arc<LruAllocator<HostAllocator>>,
    pub(super) loader: Loader,
    pub(super) process: Arc<Mutex<Process>>,
    pub(super) is_guarded: bool,
}
