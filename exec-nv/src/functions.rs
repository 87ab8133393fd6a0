//! The functions of the driver, looked up one by one: which of them a library has depends on its version.
//!
//! Types are those of `cudarc`. Results stay numbers: a driver may return one that no enumeration of today has.
#![expect(non_snake_case, reason = "names are CUDA's")]

use core::ffi::{c_char, c_int, c_uint, c_void};
use cudarc::driver::sys as cu;
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUlaunchConfig, CUlinkState, CUmodule,
    CUstream,
};
use libloading::Library;

/// Calls the macro `$with` with every function: name and arguments.
macro_rules! functions {
    ($with:ident) => {
        $with! {
            cuInit(flags: c_uint);
            cuDriverGetVersion(version: *mut c_int);
            cuGetErrorName(code: u32, name: *mut *const c_char);
            cuGetErrorString(code: u32, text: *mut *const c_char);

            cuDeviceGetCount(count: *mut c_int);
            cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
            cuDeviceGetName(name: *mut c_char, size: c_int, device: CUdevice);
            cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: CUdevice);
            cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
            cuDeviceGetAttribute(value: *mut c_int, attribute: u32, device: CUdevice);
            cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
            cuDeviceGetP2PAttribute(value: *mut c_int, attribute: u32, from: CUdevice, to: CUdevice);
            cuDeviceGetDefaultMemPool(pool: *mut cu::CUmemoryPool, device: CUdevice);

            cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
            cuDevicePrimaryCtxRelease_v2(device: CUdevice);
            cuDevicePrimaryCtxReset_v2(device: CUdevice);
            cuCtxGetCurrent(context: *mut CUcontext);
            cuCtxSetCurrent(context: CUcontext);
            cuCtxSynchronize();
            cuCtxGetLimit(value: *mut usize, limit: u32);
            cuCtxSetLimit(limit: u32, value: usize);
            cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
            cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
            cuCtxDisablePeerAccess(peer: CUcontext);

            cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
            cuMemAlloc_v2(address: *mut CUdeviceptr, size: usize);
            cuMemFree_v2(address: CUdeviceptr);
            cuMemGetAddressRange_v2(start: *mut CUdeviceptr, size: *mut usize, address: CUdeviceptr);
            cuMemAllocAsync(address: *mut CUdeviceptr, size: usize, stream: CUstream);
            cuMemAllocFromPoolAsync(address: *mut CUdeviceptr, size: usize, pool: cu::CUmemoryPool, stream: CUstream);
            cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
            cuMemAllocManaged(address: *mut CUdeviceptr, size: usize, flags: c_uint);
            cuMemPrefetchAsync(address: CUdeviceptr, size: usize, device: CUdevice, stream: CUstream);
            cuMemAdvise(address: CUdeviceptr, size: usize, advice: u32, device: CUdevice);
            cuMemHostAlloc(address: *mut *mut c_void, size: usize, flags: c_uint);
            cuMemHostGetDevicePointer_v2(device: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
            cuMemFreeHost(address: *mut c_void);
            cuMemHostRegister_v2(address: *mut c_void, size: usize, flags: c_uint);
            cuMemHostUnregister(address: *mut c_void);
            cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, size: usize);
            cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, size: usize);
            cuMemcpyDtoD_v2(to: CUdeviceptr, from: CUdeviceptr, size: usize);
            cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, size: usize, stream: CUstream);
            cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, size: usize, stream: CUstream);
            cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, size: usize, stream: CUstream);
            cuMemcpyPeer(
                to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, size: usize,
            );
            cuMemcpyPeerAsync(
                to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, size: usize, stream: CUstream,
            );
            cuMemsetD8_v2(address: CUdeviceptr, value: u8, count: usize);
            cuMemsetD8Async(address: CUdeviceptr, value: u8, count: usize, stream: CUstream);

            cuMemPoolGetAttribute(pool: cu::CUmemoryPool, attribute: u32, value: *mut c_void);
            cuMemPoolSetAttribute(pool: cu::CUmemoryPool, attribute: u32, value: *mut c_void);
            cuMemPoolTrimTo(pool: cu::CUmemoryPool, keep: usize);
            cuMemPoolSetAccess(pool: cu::CUmemoryPool, access: *const cu::CUmemAccessDesc, count: usize);

            cuMemGetAllocationGranularity(size: *mut usize, properties: *const cu::CUmemAllocationProp, option: u32);
            cuMemAddressReserve(address: *mut CUdeviceptr, size: usize, alignment: usize, wanted: CUdeviceptr, flags: u64);
            cuMemAddressFree(address: CUdeviceptr, size: usize);
            cuMemCreate(handle: *mut u64, size: usize, properties: *const cu::CUmemAllocationProp, flags: u64);
            cuMemRelease(handle: u64);
            cuMemMap(address: CUdeviceptr, size: usize, offset: usize, handle: u64, flags: u64);
            cuMemUnmap(address: CUdeviceptr, size: usize);
            cuMemSetAccess(address: CUdeviceptr, size: usize, access: *const cu::CUmemAccessDesc, count: usize);
            cuMemExportToShareableHandle(shared: *mut c_void, handle: u64, kind: u32, flags: u64);
            cuMemImportFromShareableHandle(handle: *mut u64, shared: *mut c_void, kind: u32);

            cuIpcGetMemHandle(handle: *mut cu::CUipcMemHandle, address: CUdeviceptr);
            cuIpcOpenMemHandle_v2(address: *mut CUdeviceptr, handle: cu::CUipcMemHandle, flags: c_uint);
            cuIpcCloseMemHandle(address: CUdeviceptr);
            cuIpcGetEventHandle(handle: *mut cu::CUipcEventHandle, event: CUevent);
            cuIpcOpenEventHandle(event: *mut CUevent, handle: cu::CUipcEventHandle);

            cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
            cuStreamDestroy_v2(stream: CUstream);
            cuStreamSynchronize(stream: CUstream);
            cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
            cuStreamBeginCapture_v2(stream: CUstream, mode: u32);
            cuStreamEndCapture(stream: CUstream, graph: *mut cu::CUgraph);
            cuEventCreate(event: *mut CUevent, flags: c_uint);
            cuEventDestroy_v2(event: CUevent);
            cuEventRecord(event: CUevent, stream: CUstream);
            cuEventQuery(event: CUevent);
            cuEventSynchronize(event: CUevent);
            cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);

            cuGraphCreate(graph: *mut cu::CUgraph, flags: c_uint);
            cuGraphDestroy(graph: cu::CUgraph);
            cuGraphDestroyNode(node: cu::CUgraphNode);
            cuGraphGetNodes(graph: cu::CUgraph, nodes: *mut cu::CUgraphNode, count: *mut usize);
            cuGraphAddEmptyNode(node: *mut cu::CUgraphNode, graph: cu::CUgraph, after: *const cu::CUgraphNode, count: usize);
            cuGraphAddKernelNode_v2(
                node: *mut cu::CUgraphNode, graph: cu::CUgraph, after: *const cu::CUgraphNode, count: usize,
                parameters: *const cu::CUDA_KERNEL_NODE_PARAMS_v2_st,
            );
            cuGraphAddMemcpyNode(
                node: *mut cu::CUgraphNode, graph: cu::CUgraph, after: *const cu::CUgraphNode, count: usize,
                parameters: *const cu::CUDA_MEMCPY3D_st, context: CUcontext,
            );
            cuGraphAddMemsetNode(
                node: *mut cu::CUgraphNode, graph: cu::CUgraph, after: *const cu::CUgraphNode, count: usize,
                parameters: *const cu::CUDA_MEMSET_NODE_PARAMS_st, context: CUcontext,
            );
            cuGraphKernelNodeSetAttribute(node: cu::CUgraphNode, attribute: u32, value: *const cu::CUlaunchAttributeValue);
            cuGraphNodeGetType(node: cu::CUgraphNode, kind: *mut u32);
            cuGraphInstantiateWithFlags(exec: *mut cu::CUgraphExec, graph: cu::CUgraph, flags: u64);
            cuGraphExecDestroy(exec: cu::CUgraphExec);
            cuGraphUpload(exec: cu::CUgraphExec, stream: CUstream);
            cuGraphLaunch(exec: cu::CUgraphExec, stream: CUstream);
            cuGraphExecKernelNodeSetParams_v2(
                exec: cu::CUgraphExec, node: cu::CUgraphNode, parameters: *const cu::CUDA_KERNEL_NODE_PARAMS_v2_st,
            );
            cuGraphExecUpdate_v2(exec: cu::CUgraphExec, graph: cu::CUgraph, outcome: *mut crate::functions::UpdateOutcome);

            cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
            cuModuleLoadDataEx(
                module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut u32, values: *mut *mut c_void,
            );
            cuModuleUnload(module: CUmodule);
            cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
            cuModuleGetGlobal_v2(address: *mut CUdeviceptr, size: *mut usize, module: CUmodule, name: *const c_char);
            cuLibraryLoadData(
                library: *mut cu::CUlibrary, code: *const c_void,
                jit_options: *mut u32, jit_values: *mut *mut c_void, jit_count: c_uint,
                options: *mut u32, values: *mut *mut c_void, count: c_uint,
            );
            cuLibraryUnload(library: cu::CUlibrary);
            cuLibraryGetKernel(kernel: *mut cu::CUkernel, library: cu::CUlibrary, name: *const c_char);
            cuLibraryGetGlobal(address: *mut CUdeviceptr, size: *mut usize, library: cu::CUlibrary, name: *const c_char);
            cuKernelGetFunction(function: *mut CUfunction, kernel: cu::CUkernel);
            cuFuncGetAttribute(value: *mut c_int, attribute: u32, function: CUfunction);
            cuFuncSetAttribute(function: CUfunction, attribute: u32, value: c_int);
            cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize);
            cuOccupancyMaxActiveBlocksPerMultiprocessor(
                blocks: *mut c_int, function: CUfunction, threads: c_int, dynamic_shared: usize,
            );
            cuOccupancyMaxPotentialBlockSize(
                blocks: *mut c_int, threads: *mut c_int, function: CUfunction, shared_of_block: *const c_void, dynamic_shared: usize,
                limit: c_int,
            );
            cuOccupancyMaxActiveClusters(clusters: *mut c_int, function: CUfunction, config: *const CUlaunchConfig);
            cuLaunchKernel(
                function: CUfunction,
                grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
                block_x: c_uint, block_y: c_uint, block_z: c_uint,
                dynamic_shared: c_uint, stream: CUstream,
                parameters: *mut *mut c_void, extra: *mut *mut c_void,
            );
            cuLaunchKernelEx(
                config: *const CUlaunchConfig, function: CUfunction, parameters: *mut *mut c_void, extra: *mut *mut c_void,
            );

            cuTensorMapEncodeTiled(
                map: *mut cu::CUtensorMap, kind: u32, rank: u32, address: *mut c_void, sizes: *const u64, strides: *const u64,
                tile: *const u32, steps: *const u32, interleave: u32, swizzle: u32, promotion: u32, fill: u32,
            );
            cuTensorMapEncodeIm2col(
                map: *mut cu::CUtensorMap, kind: u32, rank: u32, address: *mut c_void, sizes: *const u64, strides: *const u64,
                lower: *const c_int, upper: *const c_int, channels: u32, pixels: u32,
                steps: *const u32, interleave: u32, swizzle: u32, promotion: u32, fill: u32,
            );
            cuTensorMapEncodeIm2colWide(
                map: *mut cu::CUtensorMap, kind: u32, rank: u32, address: *mut c_void, sizes: *const u64, strides: *const u64,
                lower: c_int, upper: c_int, channels: u32, pixels: u32,
                steps: *const u32, interleave: u32, mode: u32, swizzle: u32, promotion: u32, fill: u32,
            );
            cuTensorMapReplaceAddress(map: *mut cu::CUtensorMap, address: *mut c_void);

            cuLinkCreate_v2(count: c_uint, options: *mut u32, values: *mut *mut c_void, state: *mut CUlinkState);
            cuLinkAddData_v2(
                state: CUlinkState, kind: u32, data: *mut c_void, size: usize, name: *const c_char,
                count: c_uint, options: *mut u32, values: *mut *mut c_void,
            );
            cuLinkComplete(state: CUlinkState, cubin: *mut *mut c_void, size: *mut usize);
            cuLinkDestroy(state: CUlinkState);
        }
    };
}
pub(crate) use functions;

/// What the driver says of an update of a graph: `CUgraphExecUpdateResultInfo`, whose first field may be a number that nobody knows yet.
#[derive(Debug)]
#[repr(C)]
pub struct UpdateOutcome {
    /// `CUgraphExecUpdateResult`.
    pub result: u32,
    /// The node that cannot be updated, or null.
    pub node: cu::CUgraphNode,
    /// The node that it depends on in the other graph, or null.
    pub from: cu::CUgraphNode,
}

/// Declares what a library has of them.
macro_rules! table {
    ($($symbol:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// Their names, in the order of the table.
        pub(crate) const NAMES: &[&str] = &[$(stringify!($symbol)),*];

        /// What the library has of them.
        pub(crate) struct Functions {
            $(pub(crate) $symbol: Option<unsafe extern "C" fn($($type),*) -> u32>,)*
        }

        impl Functions {
            /// Looks all of them up.
            pub(crate) fn find(library: &Library) -> Self {
                Self {
                    // SAFETY: these are the types that the CUDA driver API documents.
                    $($symbol: unsafe { library.get(concat!(stringify!($symbol), "\0").as_bytes()) }
                        .ok()
                        .map(|found| *found),)*
                }
            }
        }
    };
}
functions!(table);
