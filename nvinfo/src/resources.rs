//! What a function needs to run: registers, memory, barriers, limits of a launch.

use crate::attribute::Attribute;
use crate::bank::ConstantBank;
use crate::cubin::Cubin;
use crate::error::Error;
use crate::function::Function;
use crate::names::eiattr;
use crate::occupancy::Demand;
use crate::parameter::ParameterBank;
use crate::payload::Payload;
use crate::target::Toolkit;
use core::fmt;
use elf_core::SectionHeader;
use elf_core::names::{SHF_BARRIERS, SHF_CUDA_MERCURY, SHT_CUDA_INFO, SHT_REL, SHT_RELA};

// the four of all that this crate has to know; a crate above it has the others
const R_CUDA_TEX_HEADER_INDEX: u32 = 6;
const R_CUDA_SAMP_HEADER_INDEX: u32 = 7;
const R_CUDA_SURF_HEADER_INDEX: u32 = 52;
const R_CUDA_SAMP_HEADER_INDEX_0: u32 = 101;

/// Bytes of stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stack {
    /// So many at most.
    Bytes(u64),
    /// Without a bound that can be told: by recursion, or by calls of what is not known.
    Unbounded,
}

impl Stack {
    /// A size as the attributes have it: all ones are no size.
    pub(crate) const fn from_size(size: u32) -> Self {
        if size == u32::MAX { Self::Unbounded } else { Self::Bytes(size as u64) }
    }

    /// The bytes, if there is a bound.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Unbounded => None,
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => fmt::Display::fmt(bytes, f),
            Self::Unbounded => f.write_str("unbounded"),
        }
    }
}

/// What a function needs, and what a launch of a kernel must keep to. `None` says that the file does not record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread, with what a linker added for the functions that are called (`EIATTR_REGCOUNT`); if that is not
    /// recorded, [`header_registers`](Self::header_registers).
    pub registers: Option<u32>,
    /// Registers as the compiler left them in the section header, up to `sm_89`. A linker does not raise these.
    pub header_registers: Option<u32>,
    /// Bytes of stack of the function itself.
    pub frame_size: Option<u32>,
    /// Stack of a linked kernel with all it calls (`EIATTR_MIN_STACK_SIZE`).
    pub stack: Option<Stack>,
    /// Largest stack (`EIATTR_MAX_STACK_SIZE`), of older toolkits.
    pub max_stack: Option<u32>,
    /// Call and return stack (`EIATTR_CRS_STACK_SIZE`).
    pub crs_stack: Option<Stack>,
    /// Bytes of local memory of a thread that have a section of their own, beside the stack.
    pub local: u64,
    /// Bytes of static shared memory of a block that the program declared.
    pub shared: u64,
    /// Bytes of shared memory that the section of a linked kernel has for the system, beside those.
    pub reserved_shared: u64,
    /// Named barriers.
    pub barriers: u32,
    /// Virtual resources of a block (`EIATTR_VRC_CTA_INIT_COUNT`).
    pub virtual_resources: u32,
    /// Textures that it reaches by reference: headers whose indices a loader puts into constant bank 0.
    pub textures: u32,
    /// Samplers, likewise.
    pub samplers: u32,
    /// Surfaces, likewise.
    pub surfaces: u32,
    /// Registers that the compiler kept to.
    pub max_registers: Option<u32>,
    /// Most threads of a block, by dimension; their product is what counts.
    pub max_threads: Option<[u32; 3]>,
    /// Threads that a block must have, by dimension.
    pub required_threads: Option<[u32; 3]>,
    /// Blocks that a cluster must have, by dimension.
    pub cluster: Option<[u32; 3]>,
    /// Whether a launch must name its cluster.
    pub explicit_cluster: bool,
    /// Whether the grid of a launch counts clusters.
    pub blocks_are_clusters: bool,
    /// Most blocks of a cluster.
    pub max_cluster_rank: Option<u32>,
    /// Where the parameters are, if there are any.
    pub parameter_bank: Option<ParameterBank>,
    /// Bytes of parameters.
    pub parameter_size: Option<u32>,
    /// The toolkit whose interface the code was written for.
    pub toolkit: Option<Toolkit>,
    /// Bytes of code.
    pub code_size: u64,
}

impl Function<'_> {
    /// What it needs to run, and what a launch must keep to.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`](crate::ErrorKind::Elf) if a section leaves the file;
    /// [`ErrorKind::Truncated`](crate::ErrorKind::Truncated) and [`ErrorKind::UnknownFormat`](crate::ErrorKind::UnknownFormat)
    /// if a record is damaged.
    pub fn resources(&self) -> Result<Resources, Error> {
        Resources::of(self)
    }
}

impl Resources {
    /// Nothing: room for the needs of a function.
    pub const EMPTY: Self = Self {
        registers: None,
        header_registers: None,
        frame_size: None,
        stack: None,
        max_stack: None,
        crs_stack: None,
        local: 0,
        shared: 0,
        reserved_shared: 0,
        barriers: 0,
        virtual_resources: 0,
        textures: 0,
        samplers: 0,
        surfaces: 0,
        max_registers: None,
        max_threads: None,
        required_threads: None,
        cluster: None,
        explicit_cluster: false,
        blocks_are_clusters: false,
        max_cluster_rank: None,
        parameter_bank: None,
        parameter_size: None,
        toolkit: None,
        code_size: 0,
    };

    /// What the function's symbol and the header of its code say.
    pub(crate) fn of_headers(function: &Function<'_>) -> Self {
        let header = function.section_header();
        let own = !function.is_subroutine();
        let header_registers = (own && function.cubin().target().has_registers_in_header())
            .then_some(header.info >> 24);
        Self {
            registers: header_registers,
            header_registers,
            barriers: ((header.flags.bits() & SHF_BARRIERS) >> 20) as u32,
            code_size: if own { header.size } else { function.symbol().size },
            ..Self::EMPTY
        }
    }

    fn of(function: &Function<'_>) -> Result<Self, Error> {
        let cubin = function.cubin();
        let mut found = Self::of_headers(function);
        for row in cubin.attributes()? {
            if let Some((symbol, number, value)) = of_symbol(&row?)
                && symbol == function.index()
            {
                found.module_attribute(number, value);
            }
        }
        if !function.is_subroutine() {
            for section in cubin.file().sections() {
                if section.info == function.section() {
                    found.section(cubin, &section)?;
                }
                if bank_target(cubin, &section) == Some(function.section()) {
                    found.headers(cubin, &section)?;
                }
            }
        }
        Ok(found)
    }

    /// Takes what an attribute of the module says of this function.
    pub(crate) fn module_attribute(&mut self, number: u8, value: u32) {
        match number {
            eiattr::REGCOUNT => self.registers = Some(value),
            eiattr::FRAME_SIZE => self.frame_size = Some(value),
            eiattr::MIN_STACK_SIZE => self.stack = Some(Stack::from_size(value)),
            eiattr::MAX_STACK_SIZE => self.max_stack = Some(value),
            _ => {}
        }
    }

    /// Takes what a section that belongs to the function's code says.
    pub(crate) fn section(
        &mut self,
        cubin: &Cubin<'_>,
        section: &SectionHeader,
    ) -> Result<(), Error> {
        if section.flags.bits() & SHF_CUDA_MERCURY != 0 {
            return Ok(());
        }
        if section.r#type == SHT_CUDA_INFO {
            for row in cubin.attributes_in(section)? {
                self.attribute(&row?);
            }
            return Ok(());
        }
        if matches!(section.r#type, SHT_REL | SHT_RELA) {
            return Ok(());
        }
        let name = cubin.file().section_name(section).unwrap_or_default();
        if name.as_bytes().starts_with(b".nv.shared.") {
            let reserved = cubin.target().reserved_shared().min(section.size);
            self.reserved_shared = reserved;
            self.shared = section.size.saturating_sub(reserved);
        } else if name.as_bytes().starts_with(b".nv.local.") {
            self.local = section.size;
        }
        Ok(())
    }

    /// Counts the headers that relocations put into a bank of the function's.
    pub(crate) fn headers(
        &mut self,
        cubin: &Cubin<'_>,
        section: &SectionHeader,
    ) -> Result<(), Error> {
        for record in cubin.file().relocations(section)?.into_iter().flatten() {
            let count = match record.r#type {
                R_CUDA_TEX_HEADER_INDEX => &mut self.textures,
                R_CUDA_SAMP_HEADER_INDEX | R_CUDA_SAMP_HEADER_INDEX_0 => &mut self.samplers,
                R_CUDA_SURF_HEADER_INDEX => &mut self.surfaces,
                _ => continue,
            };
            *count = count.saturating_add(1);
        }
        Ok(())
    }

    /// Takes what an attribute of the function says.
    fn attribute(&mut self, attribute: &Attribute<'_>) {
        match (attribute.number, attribute.payload()) {
            (eiattr::CRS_STACK_SIZE, Payload::Number(size)) => {
                self.crs_stack = Some(Stack::from_size(size))
            }
            (eiattr::NUM_BARRIERS, Payload::Number(count)) => self.barriers = count,
            (eiattr::VRC_CTA_INIT_COUNT, Payload::Number(count)) => self.virtual_resources = count,
            (eiattr::MAXREG_COUNT, Payload::Number(count)) => self.max_registers = Some(count),
            (eiattr::MAX_THREADS, Payload::Triple(threads)) => self.max_threads = Some(threads),
            (eiattr::REQNTID, Payload::Triple(threads)) => self.required_threads = Some(threads),
            (eiattr::CTA_PER_CLUSTER, Payload::Triple(blocks)) => self.cluster = Some(blocks),
            (eiattr::EXPLICIT_CLUSTER, Payload::Flag) => self.explicit_cluster = true,
            (eiattr::BLOCKS_ARE_CLUSTERS, Payload::Flag) => self.blocks_are_clusters = true,
            (eiattr::MAX_CLUSTER_RANK, Payload::Number(rank)) => self.max_cluster_rank = Some(rank),
            (eiattr::PARAM_CBANK, Payload::ParameterBank(bank)) => self.parameter_bank = Some(bank),
            (eiattr::CBANK_PARAM_SIZE, Payload::Number(size)) => self.parameter_size = Some(size),
            (eiattr::CUDA_API_VERSION, Payload::Number(version)) => {
                self.toolkit = Some(Toolkit(version))
            }
            _ => {}
        }
    }

    /// Threads that a block must have, or may have at most, if the file says so.
    #[must_use]
    pub fn threads(&self) -> Option<u32> {
        let [x, y, z] = self.required_threads.or(self.max_threads)?;
        Some(x.saturating_mul(y).saturating_mul(z))
    }

    /// What a block of so many threads, with so many bytes of shared memory beside the static ones, asks of an SM.
    #[must_use]
    pub fn demand(&self, threads: u32, dynamic_shared: u64) -> Demand {
        Demand {
            threads,
            registers: self.registers.unwrap_or(0),
            shared: self.shared.saturating_add(dynamic_shared),
            barriers: self.barriers,
            virtual_resources: self.virtual_resources,
        }
    }
}

/// Symbol, attribute and value of a record that says something of a symbol.
pub(crate) fn of_symbol(attribute: &Attribute<'_>) -> Option<(u32, u8, u32)> {
    match attribute.payload() {
        Payload::OfSymbol { symbol, value } => Some((symbol, attribute.number, value)),
        _ => None,
    }
}

/// The section of the code whose bank the records of `section` change.
pub(crate) fn bank_target(cubin: &Cubin<'_>, section: &SectionHeader) -> Option<u32> {
    if !matches!(section.r#type, SHT_REL | SHT_RELA) || section.flags.bits() & SHF_CUDA_MERCURY != 0
    {
        return None;
    }
    let target = cubin.file().section(section.info).ok()?;
    ConstantBank::of(cubin.file(), section.info, target)?.owner
}
