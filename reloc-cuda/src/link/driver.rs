//! Functions that the driver has: nobody defines them in a linked file.

/// What names of the driver's own functions begin with.
const PREFIX: &[u8] = b"__cuda_syscall";

/// The others, as nvlink 13.5 knows them by name; sorted.
const NAMES: [&str; 50] = [
    "__assertfail",
    "__profile",
    "cnpCtxSynchronize",
    "cnpDeviceGetAttribute",
    "cnpDeviceGetName",
    "cnpDeviceGetTotalMem",
    "cnpEventCreate",
    "cnpEventDestroy",
    "cnpEventRecord",
    "cnpFuncGetAttribute",
    "cnpGetCacheConfig",
    "cnpGetDevice",
    "cnpGetDeviceCount",
    "cnpGetLastError",
    "cnpGetLimit",
    "cnpGetParameterBuffer",
    "cnpGetParameterBufferV2",
    "cnpGetSharedMemConfig",
    "cnpLaunchDevice",
    "cnpLaunchDeviceV2",
    "cnpSetLastError",
    "cnpStreamCreate",
    "cnpStreamDestroy",
    "cnpStreamWaitEvent",
    "cudaDeviceMemcpyAsync",
    "cudaDeviceMemcpyBatchAsync",
    "cudaFabricOpErrorStatusCount",
    "cudaFabricOpErrorStatusGet",
    "cudaGraphKernelNodeSetEnabled",
    "cudaGraphKernelNodeSetGridDim",
    "cudaGraphKernelNodeSetParam",
    "cudaGraphKernelNodeUpdatesApply",
    "cudaGraphLaunch",
    "cudaGraphSetConditional",
    "cudaResizeSharedMemory",
    "cudaSubgridScheduleManageWarpSpecializedWorkspaceAndDependencies",
    "cudaSubgridSynchronousWorkspaceAdvanceWorkset",
    "cudaSubgridSynchronousWorkspaceCompleteAndFetchWorkItem",
    "cudaSubgridSynchronousWorkspaceGetWorksetUserData",
    "cudaSubgridSynchronousWorkspaceInitialize",
    "cudaSubgridWarpSpecializedWorkspaceAdvanceWorkset",
    "cudaSubgridWarpSpecializedWorkspaceCompleteWorkItem",
    "cudaSubgridWarpSpecializedWorkspaceFetchWorkItem",
    "cudaSubgridWarpSpecializedWorkspaceGetWorksetUserData",
    "cudaSubgridWarpSpecializedWorkspaceInitialize",
    "cudaSubgridWarpSpecializedWorkspaceWaitOnWorkItemDependencies",
    "free",
    "malloc",
    "vfprintf",
    "vprintf",
];

/// Whether the driver has a function of this name.
pub(super) fn has(name: &[u8]) -> bool {
    name.starts_with(PREFIX) || NAMES.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{NAMES, has};

    #[test]
    fn names_are_found() {
        assert!(NAMES.is_sorted());
        assert!(NAMES.iter().all(|name| has(name.as_bytes())));
        assert!(has(b"__cuda_syscall_cnpv2GetDevice") && !has(b"printf"));
    }
}
