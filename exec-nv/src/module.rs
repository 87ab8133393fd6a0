//! Modules and functions of the driver.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{
    CUdevice, CUfunction, CUfunction_attribute as Attribute, CUlaunchConfig, CUlibrary, CUmodule,
};

use exec_core::{Hold, LruAllocator};

use crate::context::Context;
use crate::driver::Driver;
use crate::error::Error;
use crate::image::KernelImage;
use crate::kernel::ParameterSlot;
use crate::memory::NvAllocator;

/// Code that the driver has loaded, until this is dropped.
#[derive(Debug)]
pub(crate) struct Module {
    context: Arc<Context>,
    code: Code,
    generation: u64,
    allowed: Arc<Allowed>,
}

/// How much dynamic shared memory functions are allowed, by device, generation and handle. The driver has one number for each function, whoever
/// launches it, and takes a smaller one than before, too.
type Allowed = Mutex<BTreeMap<(CUdevice, u64, usize), u32>>;

/// Where it is.
#[derive(Debug)]
enum Code {
    /// In the context.
    Module(CUmodule),
    /// In a library, which puts it into every context that asks for it.
    Library(Arc<Library>),
}

/// Code that the driver has loaded for all devices, until this is dropped.
#[derive(Debug)]
pub(crate) struct Library {
    driver: Arc<Driver>,
    handle: CUlibrary,
    allowed: Arc<Allowed>,
}

// SAFETY: handles are good on every thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}
// SAFETY: as above.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
const ERROR_LOG: [u32; 2] = [5, 6];

/// Has the driver load something: `load` gets the image, and options and their values, which ask for what the compiler says of PTX. That is
/// part of the error.
fn with_image(
    image: &KernelImage<'_>,
    load: impl FnOnce(*const c_void, &mut [u32; 2], &mut [*mut c_void; 2]) -> Result<(), Error>,
) -> Result<(), Error> {
    let bytes = match image {
        KernelImage::Cubin(bytes) => Cow::Borrowed(&**bytes),
        // the driver looks for its end
        KernelImage::Ptx(text) => Cow::Owned([text, &[0][..]].concat()),
    };
    let mut log = [0u8; 4096];
    let size = ptr::without_provenance_mut::<c_void>(log.len());
    let (mut options, mut values) = (ERROR_LOG, [log.as_mut_ptr().cast::<c_void>(), size]);
    load(bytes.as_ptr().cast(), &mut options, &mut values).map_err(|error| with_log(error, &log))
}

impl Library {
    /// Loads a cubin or PTX for whatever contexts there will be.
    pub(crate) fn load(driver: &Arc<Driver>, image: &KernelImage<'_>) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        with_image(image, |start, options, values| {
            let none = ptr::null_mut();
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            // SAFETY: as in `Module::load`.
            unsafe {
                driver.cuLibraryLoadData(
                    &raw mut handle,
                    start,
                    options,
                    values,
                    2,
                    none,
                    ptr::null_mut(),
                    0,
                )
            }
        })?;
        Ok(Self { driver: Arc::clone(driver), handle, allowed: Arc::default() })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing of it runs: queues keep what they run.
        let _ = unsafe { self.driver.cuLibraryUnload(self.handle) };
    }
}

impl Module {
    /// Loads a cubin or PTX. What the driver's compiler says of PTX is part of the error.
    pub(crate) fn load(context: &Arc<Context>, image: &KernelImage<'_>) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        with_image(image, |start, options, values| {
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            context.run(|driver| {
                // SAFETY: a whole cubin, whose header says how far it goes, or text that ends in NUL; the places are ours.
                unsafe { driver.cuModuleLoadDataEx(&raw mut handle, start, 2, options, values) }
            })
        })?;
        Ok(Self::of(context, Code::Module(handle), Arc::default()))
    }

    /// The code of a library in a context, which the driver puts there when it is asked for something of it.
    pub(crate) fn of_library(context: &Arc<Context>, library: &Arc<Library>) -> Self {
        Self::of(context, Code::Library(Arc::clone(library)), Arc::clone(&library.allowed))
    }

    fn of(context: &Arc<Context>, code: Code, allowed: Arc<Allowed>) -> Self {
        Self { context: Arc::clone(context), code, generation: context.generation(), allowed }
    }

    /// [`Error::Stale`] once the device was reset.
    fn check(&self) -> Result<(), Error> {
        self.context.check(self.generation)
    }

    /// The address of a variable, and its size.
    pub(crate) fn global(&self, name: &str) -> Result<(u64, u64), Error> {
        self.check()?;
        let name = CString::new(name).map_err(|_| Error::Name)?;
        let (mut address, mut size) = (0, 0);
        let (place, length, name) = (&raw mut address, &raw mut size, name.as_ptr());
        // SAFETY: the places are ours, the code is there.
        self.context.run(|driver| unsafe {
            match &self.code {
                Code::Module(module) => driver.cuModuleGetGlobal_v2(place, length, *module, name),
                Code::Library(library) => {
                    driver.cuLibraryGetGlobal(place, length, library.handle, name)
                }
            }
        })?;
        Ok((address, size as u64))
    }

    /// The kernel of this name.
    fn function(&self, name: &str) -> Result<CUfunction, Error> {
        self.check()?;
        let name = CString::new(name).map_err(|_| Error::Name)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the places are ours, the code is there.
        self.context.run(|driver| unsafe {
            match &self.code {
                Code::Module(module) => {
                    driver.cuModuleGetFunction(&raw mut handle, *module, name.as_ptr())
                }
                Code::Library(library) => {
                    let mut kernel = ptr::null_mut();
                    driver.cuLibraryGetKernel(&raw mut kernel, library.handle, name.as_ptr())?;
                    driver.cuKernelGetFunction(&raw mut handle, kernel)
                }
            }
        })?;
        Ok(handle)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Code::Module(module) = self.code {
            // SAFETY: ours, and nothing of it runs: queues keep what they run.
            let unload = |driver: &Driver| unsafe { driver.cuModuleUnload(module) };
            let _ = self.context.release(self.generation, unload);
        }
    }
}

/// Puts what the compiler said behind what the driver says.
fn with_log(error: Error, log: &[u8]) -> Error {
    let log = CStr::from_bytes_until_nul(log).unwrap_or_default().to_string_lossy();
    match error {
        Error::Driver { function, code, text } if !log.trim().is_empty() => {
            Error::Driver { function, code, text: format!("{text}: {}", log.trim()) }
        }
        error => error,
    }
}

/// A kernel of a module.
#[derive(Debug)]
pub(crate) struct Function {
    module: Arc<Module>,
    handle: CUfunction,
    /// Memory of ours that the code is in: a queue that runs the function keeps it.
    _code: Option<Hold<LruAllocator<NvAllocator>>>,
}

// SAFETY: as for `Module`.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// What the driver says of a loaded kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes, with what the system has of it.
    pub shared: u32,
    /// Local memory of a thread, in bytes.
    pub local: u32,
    /// Constants of the program, in bytes.
    pub constants: u32,
    /// Threads of a block at most.
    pub max_threads: u32,
    /// Number of the architecture of its code.
    pub binary_version: u32,
    /// Number of the architecture of the PTX it was made of.
    pub ptx_version: u32,
}

impl Function {
    pub(crate) fn of(
        module: &Arc<Module>,
        name: &str,
        code: Option<Hold<LruAllocator<NvAllocator>>>,
    ) -> Result<Self, Error> {
        let handle = module.function(name)?;
        Ok(Self { module: Arc::clone(module), handle, _code: code })
    }

    /// The driver's function.
    ///
    /// # Errors
    /// [`Error::Stale`] once the device was reset.
    pub(crate) fn handle(&self) -> Result<CUfunction, Error> {
        self.module.check()?;
        Ok(self.handle)
    }

    /// Allows the kernel something, or sets it a limit.
    pub(crate) fn set(&self, attribute: Attribute, value: u32) -> Result<(), Error> {
        let (function, value) = (self.handle()?, c_int::try_from(value).unwrap_or(c_int::MAX));
        // SAFETY: the function is there.
        self.module
            .context
            .run(|driver| unsafe { driver.cuFuncSetAttribute(function, attribute as u32, value) })
    }

    /// Allows the kernel so much dynamic shared memory, unless it may have more already: gives how much it may have.
    pub(crate) fn allow_shared(&self, bytes: u32) -> Result<u32, Error> {
        let module = &self.module;
        let function = (module.context.device(), module.generation, self.handle.addr());
        let mut all = module.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = all.entry(function).or_default();
        if bytes > *allowed {
            self.set(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)?;
            *allowed = bytes;
        }
        Ok(*allowed)
    }

    fn get(&self, attribute: Attribute) -> Result<u32, Error> {
        let (function, mut value) = (self.handle()?, 0);
        // SAFETY: the place is ours, the function is there.
        self.module.context.run(|driver| unsafe {
            driver.cuFuncGetAttribute(&raw mut value, attribute as u32, function)
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// How many blocks of so many threads, with so much dynamic shared memory, an SM runs at a time.
    pub(crate) fn active_blocks(&self, threads: u32, dynamic_shared: u32) -> Result<u32, Error> {
        let (function, mut blocks) = (self.handle()?, 0);
        let (threads, shared) = (c_int::try_from(threads).unwrap_or(c_int::MAX), dynamic_shared);
        // SAFETY: the place is ours, the function is there.
        self.module.context.run(|driver| unsafe {
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                function,
                threads,
                shared as usize,
            )
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// How many clusters of such a launch the device runs at a time.
    pub(crate) fn active_clusters(&self, config: &CUlaunchConfig) -> Result<u32, Error> {
        let (function, mut clusters) = (self.handle()?, 0);
        // SAFETY: the place is ours, the function and what the launch is like are there.
        self.module.context.run(|driver| unsafe {
            driver.cuOccupancyMaxActiveClusters(&raw mut clusters, function, config)
        })?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }

    /// Static shared memory of a block, in bytes.
    pub(crate) fn shared(&self) -> Result<u32, Error> {
        self.get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    }

    pub(crate) fn attributes(&self) -> Result<FunctionAttributes, Error> {
        Ok(FunctionAttributes {
            registers: self.get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared: self.shared()?,
            local: self.get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            constants: self.get(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads: self.get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            binary_version: self.get(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
            ptx_version: self.get(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        })
    }

    /// The parameters as the driver knows them; `None` if the driver is too old to say.
    pub(crate) fn parameters(&self) -> Result<Option<Vec<ParameterSlot>>, Error> {
        let (function, mut parameters) = (self.handle()?, Vec::new());
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the places are ours, the function is there.
            let outcome = self.module.context.run(|driver| unsafe {
                driver.cuFuncGetParamInfo(
                    function,
                    parameters.len(),
                    &raw mut offset,
                    &raw mut size,
                )
            });
            match outcome {
                Ok(()) => parameters.push(ParameterSlot {
                    offset: u32::try_from(offset).unwrap_or(u32::MAX),
                    size: u32::try_from(size).unwrap_or(u32::MAX),
                }),
                // `CUDA_ERROR_INVALID_VALUE`: there are no more
                Err(Error::Driver { code: 1, .. }) => return Ok(Some(parameters)),
                Err(Error::NoDriverFunction { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
