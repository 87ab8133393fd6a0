//! Code on GPUs, and its launches.

use crate::border::{
    Bytes, Text, elements, empty, fallible, give, handle, infallible, needed, place,
};
use crate::device::Device;
use crate::device_faults::nv;
use crate::device_memory::DeviceMemory;
use crate::error::{Error, Status};
use crate::faults::io;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use exec_nv::{Argument, CubinLoader, NvDevice, NvImage, NvLaunch, NvProgram};
use std::sync::Arc;

/// Code on a GPU. Free it with `hoist_device_code_free`.
pub struct DeviceCode {
    device: NvDevice,
    image: Arc<NvImage>,
    label: Box<str>,
}

/// A kernel that can be launched. Free it with `hoist_kernel_free`.
pub struct Kernel {
    device: NvDevice,
    program: NvProgram,
}

/// `hoist_device_code_load_...`: hoist puts the code into the memory of the device, instead of the driver. It must be a linked cubin.
pub const HOIST_DEVICE_CODE_OWN_LOADER: u32 = 1;

/// `hoist_launch.flags`: waits until the kernel is done.
pub const HOIST_LAUNCH_WAIT: u32 = 1;
/// `hoist_launch.flags`: all blocks run at the same time, so that they can wait for each other.
pub const HOIST_LAUNCH_COOPERATIVE: u32 = 2;

/// How often a kernel runs, and what its blocks have.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Launch {
    /// Blocks, by x, y and z; 0 for y and z stands for 1.
    pub grid: [u32; 3],
    /// Threads of a block, by x, y and z; 0 for y and z stands for 1.
    pub block: [u32; 3],
    /// Blocks of a cluster, by x, y and z; zeros if there are no clusters, or those that the kernel says itself.
    pub cluster: [u32; 3],
    /// Bytes of shared memory of a block beside what the kernel declares.
    pub dynamic_shared: u32,
    /// `HOIST_LAUNCH_...`, added up.
    pub flags: u32,
}

/// What a kernel is given for a parameter: an address of memory, or bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelArgument {
    /// Memory, whose address the parameter becomes; it is kept until the kernel is done. NULL if the parameter is bytes.
    pub memory: *const DeviceMemory,
    /// How many bytes behind the start of the memory that address is.
    pub offset: u64,
    /// The bytes of a number or structure, if `memory` is NULL.
    pub data: *const c_void,
    /// How many bytes.
    pub size: usize,
}

/// The first of some arguments, or NULL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Arguments(*const KernelArgument);

/// Loads what of `bytes` is for the device.
fn load(device: &Device, label: &str, bytes: &[u8], flags: u32) -> Result<DeviceCode, Error> {
    let device = device.inner.clone();
    let loader = match flags {
        0 => CubinLoader::Driver,
        HOIST_DEVICE_CODE_OWN_LOADER => CubinLoader::Own,
        _ => return Err(Error::argument(format_args!("unknown flags {flags:#x}"))),
    };
    let image = device.load_with(bytes, loader);
    let image = image.map_err(|error| nv(&error).of_file(label))?;
    Ok(DeviceCode { device, image, label: label.into() })
}

/// Loads the code of a file that is for the device: of a cubin, PTX, a fatbin, or a library, program, object or archive that contains
/// such. Of the latter four, a kernel's code is loaded when the kernel is opened. `flags` are `HOIST_DEVICE_CODE_...`, added up.
///
/// Errors: `FILE`, `BAD_FILE`, `UNSUPPORTED`, `LAYOUT`, `MEMORY`, `DEVICE`; `NO_FIT` if there is no code for the device;
/// `INVALID_ARGUMENT` for unknown flags.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_code_load_file(
    device: Option<&Device>,
    path: Text,
    flags: u32,
    code: Option<&mut MaybeUninit<*mut DeviceCode>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let code = place(code, "code")?;
        let (device, path) = (handle(device, "device")?, path.path("path")?);
        let bytes = std::fs::read(path).map_err(|cause| io(&cause, path))?;
        give(code, load(device, &path.to_string_lossy(), &bytes, flags)?);
        Ok(())
    })
}

/// The same of `size` bytes in memory. `label` is what errors call them; NULL stands for `"memory"`.
///
/// Errors: as for `hoist_device_code_load_file`, but `FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_code_load_memory(
    device: Option<&Device>,
    label: Text,
    data: Bytes,
    size: usize,
    flags: u32,
    code: Option<&mut MaybeUninit<*mut DeviceCode>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let code = place(code, "code")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        give(code, load(handle(device, "device")?, label, bytes, flags)?);
        Ok(())
    })
}

/// Address on the device, and, unless `size` is NULL, size in bytes of the variable `name`. Constants are variables of what the driver
/// has loaded only.
///
/// Errors: `NOT_FOUND`, `DEVICE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_code_variable(
    code: Option<&DeviceCode>,
    name: Text,
    address: Option<&mut MaybeUninit<u64>>,
    size: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (address, size) = (empty(address), empty(size));
        let address = needed(address, "address")?;
        let code = handle(code, "code")?;
        let found = code.image.variable(name.get("name")?);
        let (at, length) = found.map_err(|error| nv(&error).of_file(&code.label))?;
        *address = at;
        if let Some(size) = size {
            *size = length;
        }
        Ok(())
    })
}

/// Frees code; NULL is none. Kernels of it can be launched until they are freed.
///
/// Threads: nobody uses the handle any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_code_free(code: Option<Box<DeviceCode>>) {
    infallible((), || drop(code));
}

/// The kernel `name`, mangled if it is so in the file.
///
/// Errors: `NOT_FOUND`, `BAD_FILE`, `UNSUPPORTED`, `NO_FIT`, `LAYOUT`, `MEMORY`, `DEVICE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_kernel_open(
    code: Option<&DeviceCode>,
    name: Text,
    kernel: Option<&mut MaybeUninit<*mut Kernel>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let kernel = place(kernel, "kernel")?;
        let code = handle(code, "code")?;
        let program = code.device.kernel(&code.image, name.get("name")?);
        let program = program.map_err(|error| nv(&error).of_file(&code.label))?;
        give(kernel, Kernel { device: code.device.clone(), program });
        Ok(())
    })
}

/// Launches a kernel, behind what was launched on its device before. `arguments` are `count` of them, one for each parameter; they are
/// compared with what the file says. Unless `seconds` is NULL, it is how long the kernel took, if the launch waits, else 0.
///
/// Errors: `LAUNCH` if the kernel or the device cannot do so; `OUT_OF_RANGE` of an offset; `BUSY` if memory is being copied; `DEVICE`,
/// of the kernel itself, too, if the launch waits; `INVALID_ARGUMENT` for unknown flags, and memory of another device.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_kernel_launch(
    kernel: Option<&Kernel>,
    launch: Option<&Launch>,
    arguments: Arguments,
    count: usize,
    seconds: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let seconds = empty(seconds);
        let kernel = handle(kernel, "kernel")?;
        let launch = handle(launch, "launch")?.native()?;
        // SAFETY: the number is that of `arguments`.
        let arguments = unsafe { elements(arguments.0, count, "arguments")? };
        let given = arguments.iter().map(Given::of).collect::<Result<Vec<_>, _>>()?;
        let native: Vec<_> = given.iter().map(Given::native).collect();
        // SAFETY: who launches a kernel guarantees it and its arguments.
        let took = unsafe { kernel.program.launch(kernel.device.queue(), &native, &launch) };
        let took = took.map_err(|error| nv(&error))?;
        if let Some((seconds, took)) = seconds.zip(took) {
            *seconds = took.as_secs_f64();
        }
        Ok(())
    })
}

/// Frees a kernel; NULL is none. What was launched runs to its end.
///
/// Threads: nobody uses the handle any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_kernel_free(kernel: Option<Box<Kernel>>) {
    infallible((), || drop(kernel));
}

impl Launch {
    fn native(&self) -> Result<NvLaunch, Error> {
        let flags = self.flags;
        if flags & !(HOIST_LAUNCH_WAIT | HOIST_LAUNCH_COOPERATIVE) != 0 {
            return Err(Error::argument(format_args!("unknown flags {flags:#x}")));
        }
        let filled = |[x, y, z]: [u32; 3]| [x, y.max(1), z.max(1)];
        Ok(NvLaunch {
            grid: filled(self.grid),
            block: filled(self.block),
            dynamic_shared: self.dynamic_shared,
            cluster: Some(self.cluster).filter(|&size| size != [0; 3]).map(filled),
            cooperative: flags & HOIST_LAUNCH_COOPERATIVE != 0,
            wait: flags & HOIST_LAUNCH_WAIT != 0,
            ..NvLaunch::new(1, 1)
        })
    }
}

/// An argument, with the part of the memory that it is.
enum Given<'a> {
    Memory(exec_core::View<exec_core::LruAllocator<exec_nv::NvAllocator>>),
    Bytes(&'a [u8]),
}

impl<'a> Given<'a> {
    fn of(argument: &'a KernelArgument) -> Result<Self, Error> {
        let &KernelArgument { memory, offset, data, size } = argument;
        // SAFETY: C gives NULL or a handle, which is freed when no call uses it.
        if let Some(memory) = unsafe { memory.as_ref() } {
            let left = memory.0.size().saturating_sub(offset);
            let view = memory.0.view(offset, left);
            return Ok(Self::Memory(view.map_err(|error| crate::device_faults::core(&error))?));
        }
        // SAFETY: the length is that of `data`.
        Ok(Self::Bytes(unsafe { elements(data.cast(), size, "data")? }))
    }

    const fn native(&self) -> Argument<'_> {
        match self {
            Self::Memory(view) => Argument::Buffer(view),
            Self::Bytes(bytes) => Argument::Bytes(bytes),
        }
    }
}
