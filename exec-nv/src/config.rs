//! Launches as the driver is told of them.

use cudarc::driver::sys::{
    CUclusterSchedulingPolicy as Policy, CUlaunchAttribute, CUlaunchAttributeID as Id,
    CUlaunchAttributeValue as Value, CUlaunchAttributeValue_union__bindgen_ty_1 as ClusterForm,
    CUlaunchConfig, CUstream,
};

use crate::launch::{ClusterPolicy, NvLaunch};

/// What the driver is told of a launch beside its form, one attribute for each thing that was asked for.
pub(crate) fn attributes(launch: &NvLaunch) -> Vec<CUlaunchAttribute> {
    let asked = launch.attributes;
    let policy = |policy| match policy {
        ClusterPolicy::Default => Policy::CU_CLUSTER_SCHEDULING_POLICY_DEFAULT,
        ClusterPolicy::Spread => Policy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD,
        ClusterPolicy::LoadBalancing => Policy::CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING,
    };
    let rows = [
        launch
            .cooperative
            .then(|| (Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value(|value| value.cooperative = 1))),
        launch.cluster.map(|[x, y, z]| {
            let value = value(|value| value.clusterDim = ClusterForm { x, y, z });
            (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value)
        }),
        asked.cluster_policy.map(|asked| {
            let value = value(|value| value.clusterSchedulingPolicyPreference = policy(asked));
            (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, value)
        }),
        asked.programmatic.then(|| {
            let value = value(|value| value.programmaticStreamSerializationAllowed = 1);
            (Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value)
        }),
        asked.priority.map(|priority| {
            (Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, value(|value| value.priority = priority))
        }),
    ];
    rows.into_iter()
        .flatten()
        .map(|(id, value)| CUlaunchAttribute { id, pad: [0; 4], value })
        .collect()
}

/// A value of 64 bytes that are zero but for what is set: the driver is given all of them.
fn value(set: impl FnOnce(&mut Value)) -> Value {
    let mut value = Value { pad: [0; 64] };
    set(&mut value);
    value
}

/// The launch with these attributes, which live as long as what is given is used.
pub(crate) const fn config(
    launch: &NvLaunch,
    stream: CUstream,
    attributes: &mut [CUlaunchAttribute],
) -> CUlaunchConfig {
    let ([grid_x, grid_y, grid_z], [x, y, z]) = (launch.grid, launch.block);
    CUlaunchConfig {
        gridDimX: grid_x,
        gridDimY: grid_y,
        gridDimZ: grid_z,
        blockDimX: x,
        blockDimY: y,
        blockDimZ: z,
        sharedMemBytes: launch.dynamic_shared,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    }
}
