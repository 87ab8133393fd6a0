//! How a linked program of Clang's finds its images: `__tgt_bin_desc`, which no section names.

use crate::error::Error;
use crate::pointer::{Pointer, Pointers, address_of, pointing_to};
use crate::raw_llvm as raw;
use crate::span::Span;
use elf_core::File;

/// What a program says of one image: `__tgt_device_image`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceImage {
    /// File offset.
    pub at: u64,
    /// The image itself, inside its OffloadBinary.
    pub start: Pointer,
    /// Its end.
    pub end: Pointer,
    /// The first host entry.
    pub entries_begin: Pointer,
    /// The end of the host entries.
    pub entries_end: Pointer,
}

/// What a program registers at its start: `__tgt_bin_desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// File offset.
    pub at: u64,
    /// Number of images.
    pub count: u32,
    /// The [`DeviceImage`]s, one after another.
    pub images: Pointer,
    /// The first host entry.
    pub entries_begin: Pointer,
    /// The end of the host entries.
    pub entries_end: Pointer,
}

/// What a linked program says of the image whose bytes are `payload` of it
/// ([`OffloadImage::payload`](crate::OffloadImage::payload)); none if it says nothing.
///
/// The pointers to the image are looked for in data and in relocations: a pair of its start and its end is the beginning of
/// a `__tgt_device_image`.
///
/// # Errors
/// [`ErrorKind::Elf`](crate::ErrorKind::Elf) if the file's relocations or symbols cannot be read.
pub fn device_image(file: &File<'_>, payload: Span<'_>) -> Result<Option<DeviceImage>, Error> {
    let Some(start) = address_of(file, payload.at()) else { return Ok(None) };
    let end = Pointer::Address(start.saturating_add(payload.size()));
    let whole = Span::new(file.bytes(), 0);
    for (index, section, at) in pointing_to(file, start) {
        let Ok(raw) = whole.row::<raw::DeviceImage>("device image", at) else { continue };
        let pointers = Pointers::open(file, index, section)?;
        let image = DeviceImage {
            at,
            start: Pointer::Address(start),
            end: pointers.get(at.saturating_add(8), raw.image_end.get())?,
            entries_begin: pointers.get(at.saturating_add(16), raw.entries_begin.get())?,
            entries_end: pointers.get(at.saturating_add(24), raw.entries_end.get())?,
        };
        if image.end == end {
            return Ok(Some(image));
        }
    }
    Ok(None)
}

/// The descriptor whose first image is `image`; none if there is none.
///
/// # Errors
/// As [`device_image`].
pub fn descriptor(file: &File<'_>, image: &DeviceImage) -> Result<Option<Descriptor>, Error> {
    let Some(address) = address_of(file, image.at) else { return Ok(None) };
    let whole = Span::new(file.bytes(), 0);
    for (index, section, pointer) in pointing_to(file, address) {
        let Some(at) = pointer.checked_sub(8) else { continue };
        let Ok(raw) = whole.row::<raw::BinDesc>("descriptor", at) else { continue };
        let pointers = Pointers::open(file, index, section)?;
        let found = Descriptor {
            at,
            count: raw.num_device_images.get(),
            images: Pointer::Address(address),
            entries_begin: pointers.get(at.saturating_add(16), raw.host_entries_begin.get())?,
            entries_end: pointers.get(at.saturating_add(24), raw.host_entries_end.get())?,
        };
        if found.entries_begin == image.entries_begin && found.entries_end == image.entries_end {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
