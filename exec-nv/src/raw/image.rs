//! Cubins in memory of a GPU: laid out, relocated and put there by this crate.

use core::fmt;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use elf_core::Name;
use exec_core::{Allocator as _, Buffer, DeviceId, LruAllocator, Spec};
use nvinfo::{Cubin, Instructions, Resources};

use super::allocator::RawAllocator;
use super::error::Error as RawError;
use super::qmd::{BANKS, ConstantBank};
use super::system::System;
use crate::error::Error;
use crate::image::KernelImage;
use crate::kernel::Kernel;
use crate::own::reach::reached;
use crate::own::{OwnError, Plan};

/// Code on a GPU, until this and all programs of it are dropped.
pub struct RawImage<S: System> {
    allocator: Arc<LruAllocator<RawAllocator<S>>>,
    target: fatbin::TargetDevice,
    /// A file with code in many places, of which a kernel's is loaded when it is asked for.
    file: Option<Box<[u8]>>,
    parts: Mutex<Vec<Arc<Part<S>>>>,
}

/// A cubin in memory.
pub(super) struct Part<S: System> {
    cubin: Box<[u8]>,
    /// What was put there.
    image: Vec<u8>,
    memory: Buffer<LruAllocator<RawAllocator<S>>>,
}

/// A kernel that can be launched.
pub(super) struct LoadedKernel<S: System> {
    pub(super) kernel: Kernel,
    pub(super) resources: Resources,
    /// Device address of its first instruction.
    pub(super) program: u64,
    /// Constant banks by number; of the first, size and no address.
    pub(super) banks: [Option<ConstantBank>; BANKS],
    /// Bank 0 as the file has it.
    pub(super) bank: Vec<u8>,
    /// Where in it the parameters are.
    pub(super) parameters: usize,
    /// Whether its code calls anything: of functions in the kernel's own section compilers record no stack, whatever they take.
    pub(super) calls: bool,
    pub(super) part: Arc<Part<S>>,
}

/// Alignment of a kernel's first instruction.
const CODE_ALIGNMENT: u64 = 128;

impl<S: System> RawImage<S> {
    pub(super) fn load(
        allocator: &Arc<LruAllocator<RawAllocator<S>>>,
        target: fatbin::TargetDevice,
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let mut loaded =
            Self { allocator: Arc::clone(allocator), target, file: None, parts: Mutex::default() };
        if KernelImage::is_one(bytes) {
            let images = KernelImage::find(bytes, target, None)?;
            let parts = images.into_iter().map(|image| loaded.part(image));
            loaded.parts = Mutex::new(parts.collect::<Result<_, _>>()?);
        } else if fatbin::walk(bytes, fatbin::Search::default()).next().is_none() {
            return Err(Error::NoCode);
        } else {
            loaded.file = Some(bytes.into());
        }
        Ok(loaded)
    }

    /// The device that it is on.
    pub(super) fn device(&self) -> DeviceId {
        self.allocator.device()
    }

    /// Lays a cubin out, takes memory, relocates it for its address and copies it there.
    fn part(&self, image: KernelImage<'_>) -> Result<Arc<Part<S>>, Error> {
        let KernelImage::Cubin(cubin) = image else { return Err(OwnError::Ptx.into()) };
        let plan = Plan::of(&cubin)?;
        let spec = Spec::new().aligned(plan.alignment().max(256));
        let memory = Buffer::new(&self.allocator, plan.memory_size(), spec)?;
        let image = plan.write(memory.address()?)?;
        memory.copy_in(0, &image)?;
        let cubin = Cow::into_owned(cubin).into_boxed_slice();
        Ok(Arc::new(Part { cubin, image, memory }))
    }

    /// The kernel `name`, ready to be launched.
    pub(super) fn kernel(&self, name: &str) -> Result<LoadedKernel<S>, Error> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kernels = Vec::new();
        for part in &*parts {
            match Part::kernel(part, name) {
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
        Part::kernel(&part, name)
    }

    /// The address of a variable or constant on the device, and its size.
    ///
    /// # Errors
    /// [`Error::NoVariable`].
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Error> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        for part in &*parts {
            if let Some((offset, size)) = Plan::of(&part.cubin)?.symbol(name) {
                return Ok((part.memory.address()?.saturating_add(offset), size));
            }
        }
        Err(Error::NoVariable { name: name.into() })
    }
}

impl<S: System> Part<S> {
    pub(super) const fn memory(&self) -> &Buffer<LruAllocator<RawAllocator<S>>> {
        &self.memory
    }

    fn kernel(part: &Arc<Self>, name: &str) -> Result<LoadedKernel<S>, Error> {
        let cubin = Cubin::parse(&part.cubin)?;
        let kernel = Kernel::of_cubin(&cubin, name)?;
        let plan = Plan::of(&part.cubin)?;
        let damaged = |what| Error::from(OwnError::Damaged { what });
        let function = cubin.kernel(Name(name.as_bytes())).ok_or(damaged("the kernel"))?;
        plan.check_kernel(&function)?;
        for callee in reached(&cubin, function.index())? {
            let (symbol, called) = cubin.symbol(callee)?;
            if symbol.is_undefined() {
                let (symbol, section) = (called.to_string(), format!(".text.{name}"));
                return Err(OwnError::Undefined { symbol, section }.into());
            }
        }
        let resources = kernel.resources.ok_or(damaged("the kernel's records"))?;
        let base = part.memory.address()?;
        let code = plan.section(function.section()).ok_or(damaged("the place of the code"))?;
        let section = cubin.file().section(function.section())?;
        let calls = calls(cubin.file().section_data(&section)?);
        let (start, size) = (function.symbol().value, section.size);
        if start >= size || !start.is_multiple_of(CODE_ALIGNMENT) {
            return Err(damaged("the place of the code"));
        }
        let program = base.saturating_add(code).saturating_add(start);
        let (mut banks, mut bank) = ([None; BANKS], Vec::new());
        let of_kernel = |owner: Option<u32>| owner.is_none_or(|owner| owner == function.section());
        for found in cubin.constant_banks().filter(|bank| of_kernel(bank.owner)) {
            let start =
                plan.section(found.section).ok_or(damaged("the place of a constant bank"))?;
            let bytes = usize::try_from(start).ok().and_then(|start| {
                part.image.get(start..)?.get(..usize::try_from(found.header.size).ok()?)
            });
            let bytes = bytes.ok_or(damaged("the place of a constant bank"))?;
            let too_many = RawError::Kernel { name: name.into(), what: "a constant bank above 7" };
            let place = banks.get_mut(found.bank as usize).ok_or(too_many)?;
            let size = u32::try_from(bytes.len()).map_err(|_| damaged("a constant bank"))?;
            *place = Some(ConstantBank { address: base.saturating_add(start), size });
            if found.bank == 0 {
                bank = bytes.to_vec();
            }
        }
        if bank.is_empty() {
            return Err(damaged("constant bank 0"));
        }
        let parameters = match resources.parameter_bank {
            Some(parameters) => parameters.offset.into(),
            // without parameters nothing says where they are
            None => bank.len(),
        };
        let part = Arc::clone(part);
        Ok(LoadedKernel { kernel, resources, program, banks, bank, parameters, calls, part })
    }
}

/// Whether code calls: `CALL.ABS` or `CALL.REL`, whatever the form of what is called.
fn calls(code: &[u8]) -> bool {
    let opcodes = (0..code.len())
        .step_by(16)
        .filter_map(|at| Instructions::Volta.opcode(code, u32::try_from(at).ok()?));
    opcodes.into_iter().any(|opcode| matches!(opcode & 0x1ff, 0x143 | 0x144))
}

impl<S: System> fmt::Debug for RawImage<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawImage").field("target", &self.target).finish_non_exhaustive()
    }
}
