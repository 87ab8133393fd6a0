//! Objects of the driver that files show to this process.

use super::call::resource_manager;
use super::client::{Client, Handle};
use super::error::Error;
use super::layout::resource_manager as rm;
use super::status::Status;
use super::system::System;

/// Ties an object to a file, for the file to be mapped.
pub(super) fn map_object<S: System>(
    client: &Client<S>,
    (parent, object): (Handle, Handle),
    file: &S::File,
    size: u64,
    flags: u32,
) -> Result<(), Error> {
    let mut map = rm::Nvos33WithFd {
        h_client: client.root().0,
        h_device: parent.0,
        h_memory: object.0,
        length: size,
        flags,
        fd: client.system().descriptor(file),
        ..Default::default()
    };
    client.resource_manager(resource_manager::MAP_MEMORY, &mut map)?;
    Status(map.status).check(resource_manager::MAP_MEMORY.name, object.0)
}
