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
            .then_some((Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, Value { cooperative: 1 })),
        launch.cluster.map(|[x, y, z]| {
            let value = Value { clusterDim: ClusterForm { x, y, z } };
            (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value)
        }),
        asked.cluster_policy.map(|asked| {
            let value = Value { clusterSchedulingPolicyPreference: policy(asked) };
            (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, value)
        }),
        asked.programmatic.then_some((
            Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            Value { programmaticStreamSerializationAllowed: 1 },
        )),
        asked.priority.map(|priority| (Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, Value { priority })),
    ];
    rows.into_iter()
        .flatten()
        .map(|(id, value)| CUlaunchAttribute { id, pad: [0; 4], value })
        .collect()
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
