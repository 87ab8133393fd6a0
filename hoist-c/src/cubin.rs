//! Cubins: code for NVIDIA GPUs.

use crate::border::{Bytes, Text, Texts, alone, fallible, give, handle, infallible, place, row};
use crate::buffer::Buffer;
use crate::cubin_rows::{
    Cubin, CubinAttribute, CubinInfo, CubinKernel, CubinOccupancy, CubinParameter, KernelRows,
};
use crate::error::{Error, Status};
use crate::faults::{io, links};
use crate::objects::Objects;
use core::mem::MaybeUninit;
use nvinfo::occupancy::{Limiter, limits};
use reloc_cuda::link::{LinkErrors, LinkOptions, LinkedCubin, link_relocatable, link_with};

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
/// Errors: `OUT_OF_RANGE`; `UNSUPPORTED` if the architecture's limits are not known; `INVALID_ARGUMENT` for 0 threads.
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
        if threads == 0 {
            return Err(Error::argument("a block has a thread at least"));
        }
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
        let options = LinkOptions { sm: Some(sm).filter(|&sm| sm != 0), kernels: &[] };
        give(linked, linked_of(objects, |bytes| link_with(bytes, options))?);
        Ok(())
    })
}

/// The same with some kernels only: those whose names have one of `count` texts in them. Others are dropped, with what they alone reach.
///
/// Errors: as `hoist_cubin_link`; `INVALID_ARGUMENT` if a text is NULL or not UTF-8.
/// Threads: any number at once, with different objects.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_link_kernels(
    objects: Option<&Objects>,
    sm: u32,
    kernels: Texts,
    count: usize,
    linked: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let linked = place(linked, "linked")?;
        // SAFETY: the length is that of `kernels`.
        let kernels = unsafe { kernels.get(count, "kernels")? };
        let kernels =
            kernels.iter().map(|text| text.get("a kernel")).collect::<Result<Vec<_>, _>>()?;
        let options = LinkOptions { sm: Some(sm).filter(|&sm| sm != 0), kernels: &kernels };
        give(linked, linked_of(objects, |bytes| link_with(bytes, options))?);
        Ok(())
    })
}

/// Puts relocatable cubins together into one that is relocatable still, as `nvlink -r` does: linked later, it is what the objects are. Names
/// that are undefined stay so.
///
/// Errors: as `hoist_cubin_link`, but those of what is undefined or too large.
/// Threads: any number at once, with different objects.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_link_relocatable(
    objects: Option<&Objects>,
    sm: u32,
    linked: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let linked = place(linked, "linked")?;
        let sm = Some(sm).filter(|&sm| sm != 0);
        give(linked, linked_of(objects, |bytes| link_relocatable(bytes, sm))?);
        Ok(())
    })
}

/// What becomes of cubins.
fn linked_of(
    objects: Option<&Objects>,
    link: impl FnOnce(&[&[u8]]) -> Result<LinkedCubin, LinkErrors>,
) -> Result<Buffer, Error> {
    let list = alone(&handle(objects, "objects")?.0, "objects")?.clone();
    if !list.archives().is_empty() {
        return Err(Error::argument("an archive among cubins: add it as a whole"));
    }
    let objects = list.objects();
    let bytes: Vec<&[u8]> = objects.iter().map(|object| &*object.bytes).collect();
    let made = link(&bytes).map_err(|errors| links(&errors, &objects))?;
    Ok(Buffer(made.bytes))
}

/// Frees a cubin; NULL is none.
///
/// Threads: nobody uses the cubin any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_cubin_free(cubin: Option<Box<Cubin>>) {
    infallible((), || drop(cubin));
}
