//! What the driver's debugger knows of a channel that was stopped (`ctrl83dedebug.h`).

use super::class;
use super::client::Handle;
use super::error::Error;
use super::gpu::Gpu;
use super::layout::{control, objects};
use super::mmu_fault::MmuFault;
use super::system::System;

/// Asks which access of a compute object failed. A sandbox may not pass the question on, and a driver may know of none.
pub(super) fn mmu_fault<S: System>(
    gpu: &Gpu<S>,
    object: Handle,
) -> Result<Option<MmuFault>, Error> {
    let client = gpu.client();
    let mut parameters = objects::Nv83deAllocParameters {
        h_app_client: client.root().0,
        h_class3d_object: object.0,
        ..Default::default()
    };
    let debugger = client.alloc(gpu.device(), class::DEBUGGER, Some(&mut parameters))?;
    let mut faults = control::DebugReadMmuFaultInfo::default();
    let asked = client.control(debugger, control::DEBUG_READ_MMU_FAULT_INFO, &mut faults);
    client.free(gpu.device(), debugger)?;
    asked?;
    let first = faults.mmu_fault_info_list.first().filter(|_| faults.count > 0);
    Ok(first.map(|entry| MmuFault {
        address: entry.fault_address,
        kind: entry.fault_type,
        access: entry.access_type,
    }))
}
