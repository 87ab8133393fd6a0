//! Images for other addresses, processes and machines.

use crate::border::{Text, alone, fallible, give, handle, infallible, place, row};
use crate::error::{Error, Status};
use crate::image::{
    HOIST_LINK_ALLOW_UNDEFINED, HOIST_LINK_NO_RELAX, Image, ImageSegment, ImageSymbol,
};
use crate::linking::link;
use crate::objects::Objects;
use crate::source::SymbolSources;
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// Links objects, for any of the machines, into bytes that run at `base`. Nothing is mapped. `symbols` may be NULL: nothing is defined
/// beside the objects. `flags` are `HOIST_LINK_...`, added up. `limit` is how many bytes the image may have, 0 standing for 1 GiB and
/// 64 times the size of the objects.
///
/// Errors: `UNDEFINED_SYMBOL`, `RELOCATION`, `LAYOUT` (also if `base` has not the alignment of the objects), `UNSUPPORTED`, `BAD_FILE`,
/// `TOO_LARGE`, `MEMORY`; `INVALID_ARGUMENT` for unknown flags or without objects; `BUSY`.
/// Threads: any number at once, with different objects and symbols.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_link(
    objects: Option<&Objects>,
    symbols: Option<&SymbolSources>,
    base: u64,
    flags: u32,
    limit: u64,
    image: Option<&mut MaybeUninit<*mut Image>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let image = place(image, "image")?;
        if flags & !(HOIST_LINK_NO_RELAX | HOIST_LINK_ALLOW_UNDEFINED) != 0 {
            return Err(Error::argument(format_args!("unknown flags {flags:#x}")));
        }
        let list = alone(&handle(objects, "objects")?.0, "objects")?.clone();
        let mut sources = symbols.map(|symbols| alone(&symbols.0, "symbols")).transpose()?;
        let sources = sources.as_deref_mut().map_or(&mut [][..], |sources| sources.as_mut_slice());
        give(image, link(&list, sources, base, flags, Some(limit).filter(|&limit| limit != 0))?);
        Ok(())
    })
}

/// The image's bytes: what is to be at its base address. NULL if there are none, or `image` is NULL. Good as long as the image.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_data(image: Option<&Image>) -> *const c_void {
    let bytes = image.map(|image| image.bytes.as_slice()).filter(|bytes| !bytes.is_empty());
    bytes.map_or(core::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// How many bytes it has; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_size(image: Option<&Image>) -> usize {
    image.map_or(0, |image| image.bytes.len())
}

/// The address that it was linked for; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_base(image: Option<&Image>) -> u64 {
    image.map_or(0, |image| image.base)
}

/// The address that the global symbol `name` has where the image will run.
///
/// Errors: `NOT_FOUND`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_address(
    image: Option<&Image>,
    name: Text,
    address: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let address = place(address, "address")?;
        let name = name.get("name")?;
        let image = handle(image, "image")?;
        let rows = image.symbols.0.iter().zip(&image.names);
        let found = rows.filter(|(row, _)| row.binding != elf_core::names::STB_LOCAL);
        let found = found.filter(|(_, known)| known.as_bytes() == name.as_bytes());
        let found = found.map(|(row, _)| row.address).next();
        *address = found.ok_or_else(|| Error::not_found("symbol", name))?;
        Ok(())
    })
}

/// How many symbols the image has, local ones included; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_symbol_count(image: Option<&Image>) -> usize {
    image.map_or(0, |image| image.symbols.0.len())
}

/// Symbol `index`, from 0 on, object by object.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_symbol(
    image: Option<&Image>,
    index: usize,
    symbol: Option<&mut MaybeUninit<ImageSymbol>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let symbol = place(symbol, "symbol")?;
        *symbol = *row(&handle(image, "image")?.symbols.0, index, "symbol")?;
        Ok(())
    })
}

/// How many segments the image has; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_segment_count(image: Option<&Image>) -> usize {
    image.map_or(0, |image| image.segments.len())
}

/// Segment `index`, from 0 on.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_segment(
    image: Option<&Image>,
    index: usize,
    segment: Option<&mut MaybeUninit<ImageSegment>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let segment = place(segment, "segment")?;
        *segment = *row(&handle(image, "image")?.segments, index, "segment")?;
        Ok(())
    })
}

/// Frees an image; NULL is none.
///
/// Threads: nobody uses the image any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_image_free(image: Option<Box<Image>>) {
    infallible((), || drop(image));
}
