//! Cubins: code for NVIDIA GPUs.

use crate::border::{Bytes, Text, alone, fallible, give, handle, infallible, place, row};
use crate::buffer::Buffer;
pub use crate::cubin_rows::Cubin;
use crate::cubin_rows::KernelRows;
use crate::error::{Error, Status};
use crate::faults::{io, links};
use crate::objects::Objects;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use nvinfo::occupancy::{Limiter, limits};
use reloc_cuda::link::{LinkOptions, link_with};

/// A number that the cubin does not say.
pub const HOIST_NOT_RECORDED: u32 = 0xffff_ffff;
/// `hoist_cubin_kernel_row.stack`: the cubin does not say.
pub const HOIST_STACK_NOT_RECORDED: u64 = 0xffff_ffff_ffff_ffff;
/// `hoist_cubin_kernel_row.stack`: recursion or calls through pointers, so that no bound can be told.
pub const HOIST_STACK_UNBOUNDED: u64 = 0xffff_ffff_ffff_fffe;

/// What a cubin is for. Pointers are good as long as the cubin.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinInfo {
    /// The architecture (`"sm_90a"`), empty if the cubin does not say.
    pub architecture: *const c_char,
    /// Its number (90), or `HOIST_NOT_RECORDED`.
    pub sm: u32,
    /// That of the PTX it was made of, or `HOIST_NOT_RECORDED`.
    pub virtual_sm: u32,
    /// The CUDA toolkit that made it, or `HOIST_NOT_RECORDED`.
    pub toolkit_major: u32,
    /// As above.
    pub toolkit_minor: u32,
    /// Whether addresses have 64 bits.
    pub is_64: bool,
    /// Whether it is to be linked still.
    pub is_relocatable: bool,
}

/// A kernel, and what it needs. Numbers that the cubin does not say are `HOIST_NOT_RECORDED`. Pointers are good as long as the cubin.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinKernel {
    /// Its name, mangled.
    pub name: *const c_char,
    /// Size of its code in bytes.
    pub code_size: u64,
    /// Shared memory of a block in bytes, what launches add aside.
    pub shared: u64,
    /// Shared memory that the system takes of it, in bytes.
    pub reserved_shared: u64,
    /// Local memory of a thread in bytes.
    pub local: u64,
    /// Stack of a thread in bytes, functions that it calls included; or `HOIST_STACK_...`.
    pub stack: u64,
    /// How many parameters it has.
    pub parameter_count: usize,
    /// How many attributes it has.
    pub attribute_count: usize,
    /// Registers of a thread.
    pub registers: u32,
    /// The most that it may have (`--maxrregcount`).
    pub max_registers: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// Size of its own frame in bytes.
    pub frame_size: u32,
    /// Size of all parameters in bytes.
    pub parameter_size: u32,
    /// The most threads of a block, by x, y and z.
    pub max_threads: [u32; 3],
    /// The very numbers of threads that a block must have, by x, y and z.
    pub required_threads: [u32; 3],
    /// Blocks of a cluster, by x, y and z.
    pub cluster: [u32; 3],
    /// The most blocks of a cluster.
    pub max_cluster_rank: u32,
    /// How many textures it uses.
    pub textures: u32,
    /// How many surfaces it uses.
    pub surfaces: u32,
    /// How many samplers it uses.
    pub samplers: u32,
    /// The number of its section in the file.
    pub section: u32,
    /// The number of its symbol in the file.
    pub symbol: u32,
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinParameter {
    /// Which one it is, from 0 on.
    pub ordinal: u32,
    /// Where it begins among the parameters, in bytes.
    pub offset: u32,
    /// Its size in bytes.
    pub size: u32,
    /// Of pointers, the binary logarithm of the alignment that is promised for what they lead to.
    pub pointee_alignment: u32,
    /// The constant bank that it is in, or `HOIST_NOT_RECORDED`.
    pub bank: u32,
}

/// An attribute (`.nv.info.KERNEL`). Pointers are good as long as the cubin.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CubinAttribute {
    /// Its name (`"EIATTR_REGCOUNT"`), empty if it is not known.
    pub name: *const c_char,
    /// Where its record begins in the file.
    pub offset: u64,
    /// Its bytes, of format 4; else NULL.
    pub data: *const c_void,
    /// How many they are.
    pub data_size: usize,
    /// Its number.
    pub number: u32,
    /// `EIFMT_NVAL` (1): nothing, `EIFMT_BVAL` (2): a byte, `EIFMT_HVAL` (3): two bytes, `EIFMT_SVAL` (4): bytes.
    pub format: u32,
    /// The value, of formats 2 and 3.
    pub value: u32,
}

/// How many blocks of a kernel fit a multiprocessor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CubinOccupancy {
    /// Blocks.
    pub blocks: u32,
    /// Warps of these blocks.
    pub warps: u32,
    /// Warps that a multiprocessor can have.
    pub of_warps: u32,
    /// What there is not enough of for more (`"registers"`). Never NULL; it is never freed.
    pub limiter: *const c_char,
}

impl Default for CubinOccupancy {
    fn default() -> Self {
        Self { blocks: 0, warps: 0, of_warps: 0, limiter: c"".as_ptr() }
    }
}

fn kernel(cubin: Option<&Cubin>, index: usize) -> Result<&KernelRows, Error> {
    row(&handle(cubin, "cubin")?.kernels, index, "kernel")
}

/// Reads a cubin out of a file.
///
/// Errors: `FILE`, `BAD_FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_open(
    path: Text,
    cubin: Option<&mut MaybeUninit<*mut Cubin>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let cubin = place(cubin, "cubin")?;
        let path = path.path("path")?;
        let bytes = std::fs::read(path).map_err(|cause| io(&cause, path))?;
        give(cubin, Cubin::parse(&path.to_string_lossy(), bytes)?);
        Ok(())
    })
}

/// The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
///
/// Errors: `BAD_FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_parse(
    label: Text,
    data: Bytes,
    size: usize,
    cubin: Option<&mut MaybeUninit<*mut Cubin>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let cubin = place(cubin, "cubin")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        give(cubin, Cubin::parse(label, bytes.to_vec())?);
        Ok(())
    })
}

/// What the cubin is for.
///
/// Errors: `INVALID_ARGUMENT`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_get_info(
    cubin: Option<&Cubin>,
    info: Option<&mut MaybeUninit<CubinInfo>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let info = place(info, "info")?;
        *info = *row(&handle(cubin, "cubin")?.info.0, 0, "header")?;
        Ok(())
    })
}

/// How many kernels the cubin has; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_kernel_count(cubin: Option<&Cubin>) -> usize {
    cubin.map_or(0, |cubin| cubin.kernels.len())
}

/// Kernel `index`, from 0 on, and what it needs.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_kernel(
    cubin: Option<&Cubin>,
    index: usize,
    kernel_info: Option<&mut MaybeUninit<CubinKernel>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let place = place(kernel_info, "kernel")?;
        *place = *row(&kernel(cubin, index)?.row.0, 0, "kernel")?;
        Ok(())
    })
}

/// The number of the kernel of this name, mangled if it is so in the cubin.
///
/// Errors: `NOT_FOUND`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_find_kernel(
    cubin: Option<&Cubin>,
    name: Text,
    index: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let index = place(index, "index")?;
        let name = name.get("name")?;
        let kernels = &handle(cubin, "cubin")?.kernels;
        let found = kernels.iter().position(|kernel| kernel.name.as_bytes() == name.as_bytes());
        *index = found.ok_or_else(|| Error::not_found("kernel", name))?;
        Ok(())
    })
}

/// Parameter `index` of kernel `kernel_index`, both from 0 on, in the order of the source.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_parameter(
    cubin: Option<&Cubin>,
    kernel_index: usize,
    index: usize,
    parameter: Option<&mut MaybeUninit<CubinParameter>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let parameter = place(parameter, "parameter")?;
        *parameter = *row(&kernel(cubin, kernel_index)?.parameters, index, "parameter")?;
        Ok(())
    })
}

/// Attribute `index` of kernel `kernel_index`, both from 0 on, in the order of the file.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_attribute(
    cubin: Option<&Cubin>,
    kernel_index: usize,
    index: usize,
    attribute: Option<&mut MaybeUninit<CubinAttribute>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let attribute = place(attribute, "attribute")?;
        *attribute = *row(&kernel(cubin, kernel_index)?.attributes.0, index, "attribute")?;
        Ok(())
    })
}

/// How many blocks of `threads` threads, with so many bytes of dynamic shared memory, fit a multiprocessor of the cubin's
/// architecture.
///
/// Errors: `OUT_OF_RANGE`; `UNSUPPORTED` if the architecture's limits are not known.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_occupancy(
    cubin: Option<&Cubin>,
    kernel_index: usize,
    threads: u32,
    dynamic_shared: u64,
    occupancy: Option<&mut MaybeUninit<CubinOccupancy>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let occupancy = place(occupancy, "occupancy")?;
        let kernel = kernel(cubin, kernel_index)?;
        let sm = row(&handle(cubin, "cubin")?.info.0, 0, "header")?.sm;
        let unknown =
            || Error::new(Status::Unsupported, format_args!("limits of sm_{sm} are not known"));
        let found = limits(sm).ok_or_else(unknown)?;
        let found = found.occupancy(&kernel.resources.demand(threads, dynamic_shared));
        *occupancy = CubinOccupancy {
            blocks: found.blocks,
            warps: found.warps,
            of_warps: found.of_warps,
            limiter: match found.limiter {
                Limiter::Barriers => c"barriers",
                Limiter::Blocks => c"blocks",
                Limiter::Registers => c"registers",
                Limiter::Shared => c"shared memory",
                Limiter::VirtualResources => c"virtual resources",
                Limiter::Warps => c"warps",
            }
            .as_ptr(),
        };
        Ok(())
    })
}

/// Links relocatable cubins, as nvlink does, to one that can be loaded. Archives among the objects are refused. `sm` is the architecture
/// (90), 0 standing for that of the first.
///
/// Errors: `BAD_FILE`, `UNSUPPORTED`, `UNDEFINED_SYMBOL`, `RELOCATION`, `LAYOUT`, `TOO_LARGE`; fields are those of the first error, the
/// message has all. `INVALID_ARGUMENT` without objects; `BUSY`.
/// Threads: any number at once, with different objects.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_link(
    objects: Option<&Objects>,
    sm: u32,
    linked: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let linked = place(linked, "linked")?;
        let list = alone(&handle(objects, "objects")?.0, "objects")?.clone();
        if !list.archives().is_empty() {
            return Err(Error::argument("an archive among cubins: add it as a whole"));
        }
        let objects = list.objects();
        let bytes: Vec<&[u8]> = objects.iter().map(|object| &*object.bytes).collect();
        let options = LinkOptions { sm: Some(sm).filter(|&sm| sm != 0), kernels: &[] };
        let made = link_with(&bytes, options).map_err(|errors| links(&errors, &objects))?;
        give(linked, Buffer(made.bytes));
        Ok(())
    })
}

/// Frees a cubin; NULL is none.
///
/// Threads: nobody uses the cubin any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_free(cubin: Option<Box<Cubin>>) {
    infallible((), || drop(cubin));
}
