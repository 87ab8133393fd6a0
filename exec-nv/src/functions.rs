//! The functions of the driver, looked up one by one: which of them a library has depends on its version.
//!
//! Types are those of `cudarc`. Results stay numbers: a driver may return one that no enumeration of today has.
#![expect(non_snake_case, reason = "names are CUDA's")]

use core::ffi::{c_char, c_int, c_uint, c_void};
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

            cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
            cuMemAlloc_v2(address: *mut CUdeviceptr, size: usize);
            cuMemFree_v2(address: CUdeviceptr);
            cuMemAllocAsync(address: *mut CUdeviceptr, size: usize, stream: CUstream);
            cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
            cuMemAllocManaged(address: *mut CUdeviceptr, size: usize, flags: c_uint);
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
            cuMemsetD8_v2(address: CUdeviceptr, value: u8, count: usize);

            cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
            cuStreamDestroy_v2(stream: CUstream);
            cuStreamSynchronize(stream: CUstream);
            cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
            cuEventCreate(event: *mut CUevent, flags: c_uint);
            cuEventDestroy_v2(event: CUevent);
            cuEventRecord(event: CUevent, stream: CUstream);
            cuEventQuery(event: CUevent);
            cuEventSynchronize(event: CUevent);
            cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);

            cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
            cuModuleLoadDataEx(
                module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut u32, values: *mut *mut c_void,
            );
            cuModuleUnload(module: CUmodule);
            cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
            cuModuleGetGlobal_v2(address: *mut CUdeviceptr, size: *mut usize, module: CUmodule, name: *const c_char);
            cuFuncGetAttribute(value: *mut c_int, attribute: u32, function: CUfunction);
            cuFuncSetAttribute(function: CUfunction, attribute: u32, value: c_int);
            cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize);
            cuOccupancyMaxActiveBlocksPerMultiprocessor(
                blocks: *mut c_int, function: CUfunction, threads: c_int, dynamic_shared: usize,
            );
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

/// Declares what a library has of them.
macro_rules! table {
    ($($symbol:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
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
