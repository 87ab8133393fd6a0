//! What a GPU is, as the resource manager says.

use super::client::{Client, Handle};
use super::error::Error;
use super::layout::control::{self, gr_info};
use super::local_memory::Shape;
use super::status::NOT_SUPPORTED;
use super::system::System;

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Architecture: 90 for sm_90.
    pub sm: u32,
    /// How many of what there can be: sizes of buffers follow from it.
    pub shape: Shape,
    /// SMs that there are: parts of a chip may be switched off.
    pub sms: u32,
    /// What the maker calls it, if the driver says.
    pub name: Option<String>,
}

impl Facts {
    pub(super) fn ask<S: System>(client: &Client<S>, subdevice: Handle) -> Result<Self, Error> {
        let asked = [
            gr_info::SM_VERSION,
            gr_info::MAX_WARPS_PER_SM,
            gr_info::NUM_GPCS,
            gr_info::NUM_TPC_PER_GPC,
            gr_info::NUM_SM_PER_TPC,
        ];
        let mut facts = asked.map(|index| control::GrInfo { index, data: 0 });
        client.graphics_facts(subdevice, &mut facts)?;
        let [version, warps_per_sm, gpcs, tpcs_per_gpc, sms_per_tpc] = facts.map(|fact| fact.data);
        let sm = (version >> 8).saturating_mul(10).saturating_add(version & 0xf);
        let shape = Shape { gpcs, tpcs_per_gpc, sms_per_tpc, warps_per_sm };
        let sms = match tpcs(client, subdevice, gpcs)? {
            Some(tpcs) => tpcs.saturating_mul(sms_per_tpc),
            None => u32::try_from(shape.sms()).unwrap_or(u32::MAX),
        };
        Ok(Self { sm, shape, sms, name: name(client, subdevice)? })
    }
}

/// Nothing where a sandbox does not pass a control on.
fn unless_unsupported(outcome: Result<(), Error>) -> Result<Option<()>, Error> {
    match outcome {
        Err(Error::Refused { status: NOT_SUPPORTED, .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// GPCs that are asked for at most.
const MAX_GPCS: u32 = 32;

/// How many TPCs are switched on.
fn tpcs<S: System>(client: &Client<S>, subdevice: Handle, gpcs: u32) -> Result<Option<u32>, Error> {
    let mut count = 0u32;
    for gpc_id in 0..gpcs.min(MAX_GPCS) {
        let mut mask = control::GrGetTpcMask { gpc_id, ..Default::default() };
        let asked = client.control(subdevice, control::GR_GET_TPC_MASK, &mut mask);
        if unless_unsupported(asked)?.is_none() {
            return Ok(None);
        }
        count = count.saturating_add(mask.tpc_mask.count_ones());
    }
    Ok(Some(count).filter(|&count| count > 0))
}

fn name<S: System>(client: &Client<S>, subdevice: Handle) -> Result<Option<String>, Error> {
    let mut name = control::GpuGetNameString::default();
    let asked = client.control(subdevice, control::GPU_GET_NAME_STRING, &mut name);
    if unless_unsupported(asked)?.is_none() {
        return Ok(None);
    }
    let end = name.name.iter().position(|&byte| byte == 0).unwrap_or(name.name.len());
    let text = name.name.get(..end).unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(text).into_owned()).filter(|name| !name.is_empty()))
}

/// How much memory a GPU has and how much is free, in bytes.
pub(super) fn memory<S: System>(
    client: &Client<S>,
    subdevice: Handle,
) -> Result<(u64, u64), Error> {
    use control::fb_info::{HEAP_FREE, HEAP_SIZE};

    let mut facts = [HEAP_SIZE, HEAP_FREE].map(|index| control::GrInfo { index, data: 0 });
    client.memory_facts(subdevice, &mut facts)?;
    // in KiB
    let [total, free] = facts.map(|fact| u64::from(fact.data) << 10);
    Ok((total, free))
}
