//! A linked cubin as it will stand in a device's memory: one image, relocated for its address.
//!
//! All sections that occupy memory go into the image in file order, each aligned to 128 bytes or more: code, variables, and the
//! contents of the constant banks, each kernel's its own. Shared and local memory have no bytes there: their sizes are known.

mod error;
mod resolve;
mod write;

pub use error::{LoadError, LoadErrorKind};

use elf_core::names::{EM_CUDA, ET_EXEC, SHF_CUDA_MERCURY};
use elf_core::{File, SectionFlags, SectionHeader, SymbolTable};

/// Least alignment of a section in an image, in bytes.
pub const SECTION_ALIGNMENT: u64 = 128;

/// Offset of a section that is not in the image.
const NOT_LOADED: u64 = u64::MAX;

/// Where the sections of a linked cubin go.
///
/// ```
/// use elf_core::{File, Query};
/// use reloc_cuda::Load;
///
/// let bytes = include_bytes!("../../fixtures/cuda/kernels-13.5-sm_80.cubin");
/// let file = File::parse(bytes)?;
/// let mut offsets = [0; 64]; // one for every section
/// let load = Load::plan(&file, &mut offsets)?;
///
/// let mut image = [0; 0x4000];
/// load.write(&mut image, 0x7f00_0000_0000, &|_: &Query| None)?; // as it will stand there, wherever it is now
/// let (table, _) = load.symbol("table".into()).expect("a variable");
/// assert_eq!(image[table as usize..][..4], [1, 0, 0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Load<'a, 's> {
    file: File<'a>,
    symbols: Option<SymbolTable<'a>>,
    offsets: &'s [u64],
    size: u64,
    alignment: u64,
}

impl<'a, 's> Load<'a, 's> {
    /// Finds a place for every section; `offsets` has room for as many numbers as there are sections.
    ///
    /// # Errors
    /// [`LoadErrorKind::NotLinked`], [`LoadErrorKind::NotCuda`] for other files, [`LoadErrorKind::Storage`] without room,
    /// [`LoadErrorKind::Alignment`], [`LoadErrorKind::TooLarge`] and [`LoadErrorKind::Elf`] for damaged ones.
    pub fn plan(file: &File<'a>, offsets: &'s mut [u64]) -> Result<Self, LoadError> {
        let header = file.header();
        if header.machine != EM_CUDA || file.encoding().is_big_endian() {
            return Err(LoadError::new(0, LoadErrorKind::NotCuda { machine: header.machine }));
        }
        if header.r#type != ET_EXEC {
            return Err(LoadError::new(0, LoadErrorKind::NotLinked { r#type: header.r#type }));
        }
        let needed = file.sections().len();
        let Some(offsets) = offsets.get_mut(..needed) else {
            return Err(LoadError::new(0, LoadErrorKind::Storage { needed }));
        };
        let (mut end, mut most) = (0u64, SECTION_ALIGNMENT);
        for ((index, section), offset) in (0..u32::MAX).zip(file.sections()).zip(offsets.iter_mut())
        {
            *offset = NOT_LOADED;
            if !is_loaded(file, &section) {
                continue;
            }
            let alignment = section.alignment.max(SECTION_ALIGNMENT);
            if !alignment.is_power_of_two() {
                return Err(LoadError::new(index, LoadErrorKind::Alignment(alignment)));
            }
            let too_large = LoadError::new(index, LoadErrorKind::TooLarge);
            let start = end.checked_next_multiple_of(alignment).ok_or(too_large)?;
            end = start.checked_add(section.size).ok_or(too_large)?;
            most = most.max(alignment);
            *offset = start;
        }
        let symbols = file.symbol_table().map_err(LoadError::elf(0))?;
        Ok(Self { file: *file, symbols, offsets, size: end, alignment: most })
    }

    /// Size of the image in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Alignment that the image's address must have, in bytes.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Offset of section `index` from the image's start; `None` if it is not in the image.
    #[must_use]
    pub fn section(&self, index: u32) -> Option<u64> {
        let offset = self.offsets.get(usize::try_from(index).ok()?)?;
        Some(*offset).filter(|&offset| offset != NOT_LOADED)
    }

    /// Offset from the image's start, and size, of the function or variable of this name.
    #[must_use]
    pub fn symbol(&self, name: elf_core::Name<'_>) -> Option<(u64, u64)> {
        let table = self.symbols?;
        let (index, symbol) = table.find(name)?;
        match table.section_of(index, &symbol) {
            Ok(elf_core::Definition::Section(section)) => {
                Some((self.section(section)?.wrapping_add(symbol.value), symbol.size))
            }
            _ => None,
        }
    }

    /// Bytes of shared memory that a launch of the kernel whose code is section `text` takes of a block before dynamic ones, with
    /// what the system has of them.
    #[must_use]
    pub fn shared_size(&self, text: u32) -> u64 {
        self.of_kernel(text, b".nv.shared.")
    }

    /// Bytes of local memory of a thread, beside the stack, for the kernel whose code is section `text`.
    #[must_use]
    pub fn local_size(&self, text: u32) -> u64 {
        self.of_kernel(text, b".nv.local.")
    }

    fn of_kernel(&self, text: u32, prefix: &[u8]) -> u64 {
        let named = |section: &SectionHeader| starts_with(&self.file, section, prefix);
        let mut sections = self.file.sections().iter();
        sections.find(|one| one.info == text && named(one)).map_or(0, |section| section.size)
    }
}

/// Whether a section has bytes in the image: code, variables, constant banks.
fn is_loaded(file: &File<'_>, section: &SectionHeader) -> bool {
    section.flags.contains(SectionFlags::ALLOC)
        && section.flags.bits() & SHF_CUDA_MERCURY == 0
        && ![&b".nv.shared."[..], b".nv_debug.shared", b".nv.local."]
            .iter()
            .any(|prefix| starts_with(file, section, prefix))
}

fn starts_with(file: &File<'_>, section: &SectionHeader, prefix: &[u8]) -> bool {
    file.section_name(section).is_ok_and(|name| name.as_bytes().starts_with(prefix))
}
