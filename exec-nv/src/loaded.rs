//! Images on a device: loaded by the driver, or by us.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use exec_core::{Buffer, DeviceId, LruAllocator, Spec};
use nvinfo::Cubin;

use crate::context::Context;
use crate::error::Error;
use crate::image::KernelImage;
use crate::kernel::Kernel;
use crate::loader::CubinLoader;
use crate::memory::NvAllocator;
use crate::module::{Function, Library, Module};
use crate::own::{OwnError, Plan, shell};
use crate::shared::Shared;

/// Code on a device, until this and all programs of it are dropped.
pub struct NvImage {
    context: Arc<Context>,
    allocator: Arc<LruAllocator<NvAllocator>>,
    target: fatbin::TargetDevice,
    loader: CubinLoader,
    /// A file with code in many places, of which a kernel's is loaded when it is asked for.
    file: Option<Box<[u8]>>,
    parts: Mutex<Vec<Arc<Part>>>,
}

/// Code that was loaded at once.
enum Part {
    /// By the driver.
    Driver { image: KernelImage<'static>, module: Arc<Module> },
    /// By us.
    Own(OwnPart),
}

/// A cubin in memory of ours.
struct OwnPart {
    cubin: Box<[u8]>,
    image: Vec<u8>,
    memory: Buffer<LruAllocator<NvAllocator>>,
    shells: Mutex<BTreeMap<String, Arc<Module>>>,
}

impl NvImage {
    pub(crate) fn load(device: &Shared, bytes: &[u8], loader: CubinLoader) -> Result<Self, Error> {
        let target = device.target();
        let one = KernelImage::is_one(bytes);
        let mut loaded = Self {
            context: Arc::clone(&device.context),
            allocator: Arc::clone(&device.allocator),
            target,
            loader,
            file: None,
            parts: Mutex::default(),
        };
        if one {
            let images = KernelImage::find(bytes, target, None)?;
            let parts = images.into_iter().map(|image| loaded.part(image));
            loaded.parts = Mutex::new(parts.collect::<Result<_, _>>()?);
        } else {
            if fatbin::walk(bytes, fatbin::Search::default()).next().is_none() {
                return Err(Error::NoCode);
            }
            loaded.file = Some(bytes.into());
        }
        Ok(loaded)
    }

    /// What libraries of the driver have, on this device.
    pub(crate) fn of_libraries(
        device: &Shared,
        libraries: &[(KernelImage<'static>, Arc<Library>)],
    ) -> Self {
        let part = |(image, library): &(KernelImage<'static>, Arc<Library>)| {
            let module = Arc::new(Module::of_library(&device.context, library));
            Arc::new(Part::Driver { image: image.clone(), module })
        };
        Self {
            context: Arc::clone(&device.context),
            allocator: Arc::clone(&device.allocator),
            target: device.target(),
            loader: CubinLoader::Driver,
            file: None,
            parts: Mutex::new(libraries.iter().map(part).collect()),
        }
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> DeviceId {
        self.context.id()
    }

    fn part(&self, image: KernelImage<'_>) -> Result<Arc<Part>, Error> {
        let part = match (self.loader, image) {
            (CubinLoader::Driver, image) => {
                let module = Arc::new(Module::load(&self.context, &image)?);
                Part::Driver { image: image.into_owned(), module }
            }
            (CubinLoader::Own, KernelImage::Cubin(cubin)) => Part::Own(self.own(cubin)?),
            (CubinLoader::Own, KernelImage::Ptx(_)) => return Err(OwnError::Ptx.into()),
        };
        Ok(Arc::new(part))
    }

    /// Puts a cubin into memory of ours.
    fn own(&self, cubin: Cow<'_, [u8]>) -> Result<OwnPart, Error> {
        let plan = Plan::of(&cubin)?;
        let spec = Spec::new().aligned(plan.alignment().max(256));
        let memory = Buffer::new(&self.allocator, plan.memory_size(), spec)?;
        let image = plan.write(memory.address()?)?;
        memory.copy_in(0, &image)?;
        let cubin = cubin.into_owned().into_boxed_slice();
        Ok(OwnPart { cubin, image, memory, shells: Mutex::default() })
    }

    /// The kernel `name`, ready to be launched, and what is known of it.
    pub(crate) fn function(&self, name: &str) -> Result<(Function, Kernel), Error> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kernels = Vec::new();
        for part in &*parts {
            match self.function_of(part, name) {
                Err(Error::NoKernel { kernels: others, .. }) => kernels.extend(others),
                outcome => return outcome,
            }
        }
        let Some(file) = &self.file else {
            return Err(Error::NoKernel { name: name.into(), kernels });
        };
        let found = KernelImage::find(file, self.target, Some(name))?.into_iter().next();
        let part = self.part(found.ok_or(Error::NoCode)?)?;
        parts.push(Arc::clone(&part));
        self.function_of(&part, name)
    }

    fn function_of(&self, part: &Part, name: &str) -> Result<(Function, Kernel), Error> {
        match part {
            Part::Driver { image: KernelImage::Cubin(cubin), module } => {
                let kernel = Kernel::of_cubin(&Cubin::parse(cubin)?, name)?;
                Ok((Function::of(module, name, None)?, kernel))
            }
            Part::Driver { image: ptx @ KernelImage::Ptx(_), module } => {
                let kernels = ptx.kernels()?;
                if !kernels.iter().any(|kernel| kernel == name) {
                    return Err(Error::NoKernel { name: name.into(), kernels });
                }
                let function = Function::of(module, name, None)?;
                let parameters = function.parameters()?;
                let kernel = Kernel { name: name.into(), parameters, resources: None, sm: None };
                Ok((function, kernel))
            }
            Part::Own(own) => {
                let kernel = Kernel::of_cubin(&Cubin::parse(&own.cubin)?, name)?;
                let shell = own.shell(&self.context, name)?;
                Ok((Function::of(&shell, name, Some(own.memory.hold()?))?, kernel))
            }
        }
    }

    /// The address of a variable on the device, and its size. Of an image that the own loader has loaded, constants are not
    /// among them: [`set_constant`](Self::set_constant).
    ///
    /// # Errors
    /// [`Error::NoVariable`]; what the driver says.
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Error> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        for part in &*parts {
            match &**part {
                Part::Driver { module, .. } => match module.global(name) {
                    // `CUDA_ERROR_NOT_FOUND`
                    Err(Error::Driver { code: 500, .. }) => {}
                    outcome => return outcome,
                },
                Part::Own(own) => {
                    if let Some((offset, size)) = Plan::of(&own.cubin)?.variable(name) {
                        let address = own.memory.address()?.saturating_add(offset);
                        return Ok((address, size));
                    }
                }
            }
        }
        Err(Error::NoVariable { name: name.into() })
    }

    /// Copies what a variable holds.
    ///
    /// # Errors
    /// As [`variable`](Self::variable); [`Error::Core`] if the variable has fewer bytes than are asked for.
    ///
    /// # Safety
    /// No kernel that runs writes the variable.
    pub unsafe fn read_variable(&self, name: &str, bytes: &mut [u8]) -> Result<(), Error> {
        let address = self.place(name, bytes.len() as u64)?;
        // SAFETY: so many bytes are there; the caller guarantees the rest.
        self.context.transfer(|driver, stream| unsafe {
            driver.cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), address, bytes.len(), stream)
        })
    }

    /// Changes what a variable holds, from its beginning.
    ///
    /// # Errors
    /// As [`variable`](Self::variable); [`Error::Core`] if there are more bytes than the variable has.
    ///
    /// # Safety
    /// No kernel that runs uses the variable, and those that come can do with what it holds then.
    pub unsafe fn write_variable(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let address = self.place(name, bytes.len() as u64)?;
        // SAFETY: as above.
        self.context.transfer(|driver, stream| unsafe {
            driver.cuMemcpyHtoDAsync_v2(address, bytes.as_ptr().cast(), bytes.len(), stream)
        })
    }

    /// Where a variable of at least this size is.
    fn place(&self, name: &str, size: u64) -> Result<u64, Error> {
        let (address, available) = self.variable(name)?;
        if size > available {
            return Err(exec_core::Error::Outside { offset: 0, size, available }.into());
        }
        Ok(address)
    }

    /// Changes a constant, for all kernels of the image that programs were made of before. Waits for all that runs on the device.
    ///
    /// # Errors
    /// [`Error::NoVariable`], [`Error::Core`] if there are more bytes than the constant has; what the driver says.
    pub fn set_constant(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut modules = Vec::new();
        for part in &*parts {
            match &**part {
                Part::Driver { module, .. } => modules.push(Arc::clone(module)),
                Part::Own(own) => {
                    let shells = own.shells.lock().unwrap_or_else(PoisonError::into_inner);
                    modules.extend(shells.values().cloned());
                }
            }
        }
        let mut found = false;
        self.context.wait()?;
        for module in modules {
            let (address, available) = match module.global(name) {
                Err(Error::Driver { code: 500, .. }) => continue,
                outcome => outcome?,
            };
            let size = bytes.len() as u64;
            if size > available {
                return Err(exec_core::Error::Outside { offset: 0, size, available }.into());
            }
            // SAFETY: so many bytes are there, and nothing runs that was there before.
            self.context.transfer(|driver, stream| unsafe {
                driver.cuMemcpyHtoDAsync_v2(address, bytes.as_ptr().cast(), bytes.len(), stream)
            })?;
            found = true;
        }
        if found { Ok(()) } else { Err(Error::NoVariable { name: name.into() }) }
    }
}

impl OwnPart {
    /// The module that launches a kernel.
    fn shell(&self, context: &Arc<Context>, name: &str) -> Result<Arc<Module>, Error> {
        let mut shells = self.shells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = shells.get(name) {
            return Ok(Arc::clone(module));
        }
        let shell = shell(&Plan::of(&self.cubin)?, &self.image, self.memory.address()?, name)?;
        let module = Arc::new(Module::load(context, &KernelImage::Cubin(Cow::Owned(shell)))?);
        shells.insert(name.into(), Arc::clone(&module));
        Ok(module)
    }
}

impl fmt::Debug for NvImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NvImage").field("loader", &self.loader).finish_non_exhaustive()
    }
}
