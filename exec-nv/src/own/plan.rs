//! Where the parts of a cubin go in a device's memory.

use elf_core::names::{SHF_CUDA_MERCURY, STO_CUDA_MANAGED};
use elf_core::{Definition, Name, Query, Role};
use nvinfo::{Cubin, Function};
use reloc_cuda::Load;

use super::entry::FIRST_SM;
use super::error::OwnError;
use crate::error::Error;

/// Where the sections of a linked cubin go, of a file that the own loader can load.
///
/// ```
/// use exec_nv::own::Plan;
///
/// let cubin = include_bytes!("../../../fixtures/cuda/kernels-13.5-sm_80.cubin");
/// let plan = Plan::of(cubin)?;
/// let image = plan.write(0x7f00_0000_0000)?;
/// let (counter, size) = plan.variable("counter").expect("a variable");
/// assert_eq!((image[counter as usize], size), (7, 4));
/// # Ok::<(), exec_nv::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    bytes: &'a [u8],
    offsets: Vec<u64>,
    size: u64,
    alignment: u64,
    /// Sections that want an address that nobody here knows.
    undefined: Vec<(u32, OwnError)>,
}

/// Bytes that instruction fetch may read behind the code.
const READ_AHEAD: u64 = 4096;

impl<'a> Plan<'a> {
    /// Finds a place for every section.
    ///
    /// # Errors
    /// [`Error::Own`], [`Error::Cubin`].
    pub fn of(bytes: &'a [u8]) -> Result<Self, Error> {
        let cubin = Cubin::parse(bytes)?;
        let sm = cubin.target().sm.unwrap_or(0);
        if sm < FIRST_SM {
            return Err(OwnError::Architecture { sm }.into());
        }
        if !cubin.file().encoding().is_64() {
            return Err(OwnError::Not64.into());
        }
        let mut offsets = vec![0; cubin.file().sections().len()];
        let load = Load::plan(cubin.file(), &mut offsets).map_err(OwnError::Load)?;
        let (size, alignment) = (load.size(), load.alignment());
        let mut plan = Self { bytes, offsets, size, alignment, undefined: Vec::new() };
        plan.check(&cubin)?;
        Ok(plan)
    }

    /// Refuses what only the driver's loader can do, and notes what kernels may not reach.
    fn check(&mut self, cubin: &Cubin<'a>) -> Result<(), Error> {
        let managed = |(_, symbol, _): &(u32, elf_core::Symbol, Name<'_>)| {
            symbol.other & STO_CUDA_MANAGED != 0 && !symbol.is_undefined()
        };
        if let Some((_, _, name)) = cubin.symbols_named().find(managed) {
            return Err(OwnError::Managed { symbol: name.to_string() }.into());
        }
        for section in cubin.file().sections() {
            if section.flags.bits() & SHF_CUDA_MERCURY != 0 {
                continue;
            }
            let Some(rows) = cubin.file().relocations(&section)? else { continue };
            let target = cubin.file().section(section.info)?;
            let name = cubin.file().section_name(&target)?;
            if self.section(section.info).is_none() || is_bank(name) {
                continue;
            }
            for record in rows {
                let (symbol, symbol_name) = cubin.symbol(record.symbol)?;
                if record.symbol != 0 && symbol.is_undefined() {
                    let error = OwnError::Undefined {
                        symbol: symbol_name.to_string(),
                        section: name.to_string(),
                    };
                    self.undefined.push((section.info, error));
                }
            }
        }
        Ok(())
    }

    /// Whether a kernel can run from the image as far as its code goes: neither that, nor what it may reach, has an address that
    /// only the driver's loader knows, and it has no textures. Other kernels are not reached.
    ///
    /// # Errors
    /// [`OwnError::Undefined`], [`OwnError::Textures`]; [`Error::Cubin`].
    pub fn check_kernel(&self, kernel: &Function<'_>) -> Result<(), Error> {
        let needs = kernel.resources()?;
        if needs.textures > 0 || needs.samplers > 0 || needs.surfaces > 0 {
            return Err(OwnError::Textures { kernel: kernel.name().to_string() }.into());
        }
        let is_other_kernel = |section: u32| {
            let mut kernels = kernel.cubin().kernels();
            section != kernel.section() && kernels.any(|other| other.section() == section)
        };
        let reached = self.undefined.iter().find(|(section, _)| !is_other_kernel(*section));
        reached.map_or(Ok(()), |(_, error)| Err(error.clone().into()))
    }

    /// The file.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of memory that the image takes, with room behind the code.
    #[must_use]
    pub const fn memory_size(&self) -> u64 {
        self.size.saturating_add(READ_AHEAD)
    }

    /// Alignment of the image's address.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Offset of section `index` in the image, if it is there.
    #[must_use]
    pub fn section(&self, index: u32) -> Option<u64> {
        let offset = self.offsets.get(usize::try_from(index).ok()?)?;
        // what `Load` writes for sections that are not in the image
        Some(*offset).filter(|&offset| offset != u64::MAX)
    }

    /// Offset in the image, and size, of a variable or function. Not of constants, which are in the shells.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let (section, offset, size) = self.defined(name)?;
        let cubin = Cubin::parse(self.bytes).ok()?;
        let header = cubin.file().section(section).ok()?;
        let of_bank = is_bank(cubin.file().section_name(&header).ok()?);
        (!of_bank).then_some((offset, size))
    }

    /// Offset in the image, and size, of a variable, constant or function.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        self.defined(name).map(|(_, offset, size)| (offset, size))
    }

    /// Section, offset in the image, and size, of what has a name.
    fn defined(&self, name: &str) -> Option<(u32, u64, u64)> {
        let cubin = Cubin::parse(self.bytes).ok()?;
        let table = cubin.symbols()?;
        let (index, symbol) = table.find(Name(name.as_bytes()))?;
        let Ok(Definition::Section(section)) = table.section_of(index, &symbol) else {
            return None;
        };
        Some((section, self.section(section)?.checked_add(symbol.value)?, symbol.size))
    }

    /// The image as it stands at `base`. Addresses that only the driver knows, in constant banks, are 0.
    ///
    /// # Errors
    /// [`Error::Own`].
    pub fn write(&self, base: u64) -> Result<Vec<u8>, Error> {
        let cubin = Cubin::parse(self.bytes)?;
        let mut offsets = vec![0; self.offsets.len()];
        let load = Load::plan(cubin.file(), &mut offsets).map_err(OwnError::Load)?;
        let no_room = || exec_core::Error::OutOfMemory { size: load.size() };
        let size = usize::try_from(load.size()).map_err(|_| no_room())?;
        let mut image = Vec::new();
        image.try_reserve_exact(size).map_err(|_| no_room())?;
        image.resize(size, 0);
        let answer = |query: &Query| match query.role {
            // of banks: `check` has seen to it
            Role::Address | Role::Generic | Role::Unified | Role::Descriptor => Some(0),
            Role::HeaderIndex | Role::TextureSlot | Role::SurfaceDescriptor => Some(0),
            _ => None,
        };
        load.write(&mut image, base, &answer).map_err(OwnError::Load)?;
        Ok(image)
    }
}

/// Whether a section is a constant bank.
pub(crate) fn is_bank(name: Name<'_>) -> bool {
    name.as_bytes().starts_with(b".nv.constant")
}
