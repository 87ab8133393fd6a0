//! The images of LLVM's containers, unpacked where the container is compressed: of one at a time.

use anyhow::Result;
use elf_core::File;
use fatbin::{Bundle, BundleEntry, Container, ImageKind, OffloadBinary, Span, target_images};
use serde::Serialize;

use super::super::names;
use crate::budget::Budget;
use crate::form::SPIRV;

/// An image.
#[derive(Clone, Debug)]
pub(super) struct Image<'a> {
    /// Its number in the file.
    pub(super) index: usize,
    container: &'static str,
    pub(super) kind: String,
    producer: String,
    triple: String,
    pub(super) arch: String,
    /// Offset in the file; none if its container is compressed.
    offset: Option<u64>,
    pub(super) bytes: &'a [u8],
}

/// What is said of an image.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) index: usize,
    pub(super) container: &'static str,
    pub(super) kind: String,
    pub(super) producer: String,
    pub(super) triple: String,
    pub(super) arch: String,
    pub(super) offset: Option<u64>,
    pub(super) size: usize,
}

impl Image<'_> {
    /// With its number in the file.
    pub(super) fn numbered(self, index: usize) -> Self {
        Self { index, ..self }
    }

    pub(super) fn row(&self) -> Row {
        let Self { index, container, offset, .. } = *self;
        let shown = |text: &String| crate::printable::Printable::from(&**text).to_string();
        Row {
            index,
            container,
            kind: shown(&self.kind),
            producer: shown(&self.producer),
            triple: shown(&self.triple),
            arch: shown(&self.arch),
            offset,
            size: self.bytes.len(),
        }
    }

    /// The name that clang-offload-packager gives, with nothing in it that leads out of a folder.
    pub(super) fn file_name(&self, stem: &str) -> String {
        let Self { triple, arch, index, kind, .. } = self;
        let stem = names::plain(&format!("{stem}-{triple}-{arch}").replace('/', "_"));
        format!("{stem}.{index}.{}", names::plain(kind))
    }
}

/// Calls `each` with the images of a container of `file`, up to its first error. What is unpacked of it goes afterwards.
///
/// # Errors
/// If the container or an image is damaged, or more is unpacked than is left; `each` was called with the images before it. That of `each`.
pub(super) fn images(
    file: &[u8],
    container: Container<'_>,
    budget: &Budget,
    each: &mut dyn FnMut(Image<'_>) -> Result<()>,
) -> Result<()> {
    let at = container.at();
    let room = |size: usize| {
        budget.take(format_args!("the container at {at:#x}"), size as u64).map(|()| vec![0; size])
    };
    match container {
        Container::Offload(binary) => match binary.inflate_size(usize::MAX)? {
            None => offload(binary, each),
            Some(size) => {
                let mut buffer = room(size)?;
                let binary = binary.inflate_into(&mut buffer)?;
                offload(binary, &mut |image| unpacked(image, at, budget, each))
            }
        },
        Container::Bundle(entries) => bundle(entries, each),
        Container::CompressedBundle(compressed) => {
            let mut buffer = room(compressed.unpack_size(usize::MAX)?)?;
            let entries = compressed.unpack_into(&mut buffer)?;
            bundle(entries, &mut |image| unpacked(image, at, budget, each))
        }
        Container::TargetSection(section) => target_section(file, &section, each),
        _ => Ok(()),
    }
}

/// Calls `each` with an image of a compressed container at `at`, in which images may lie over each other.
fn unpacked(
    image: Image<'_>,
    at: u64,
    budget: &Budget,
    each: &mut dyn FnMut(Image<'_>) -> Result<()>,
) -> Result<()> {
    budget.take(format_args!("an image at {at:#x}"), image.bytes.len() as u64)?;
    each(Image { offset: None, ..image })
}

fn plain<'a>(container: &'static str, span: Span<'a>) -> Image<'a> {
    Image {
        index: 0,
        container,
        kind: String::new(),
        producer: String::new(),
        triple: String::new(),
        arch: String::new(),
        offset: Some(span.at()),
        bytes: span.bytes(),
    }
}

fn offload(binary: OffloadBinary<'_>, each: &mut dyn FnMut(Image<'_>) -> Result<()>) -> Result<()> {
    for image in binary.images() {
        let image = image?;
        let (kind, producer) = (image.kind(), image.producer());
        each(Image {
            kind: kind.name().map_or_else(|| kind.0.to_string(), str::to_owned),
            producer: producer.name().map_or_else(|| producer.0.to_string(), str::to_owned),
            triple: image.triple().unwrap_or_default().to_string(),
            arch: image.arch().unwrap_or_default().to_string(),
            ..plain("offload", image.payload())
        })?;
    }
    Ok(())
}

fn bundle(bundle: Bundle<'_>, each: &mut dyn FnMut(Image<'_>) -> Result<()>) -> Result<()> {
    for entry in bundle.entries() {
        let entry = entry?;
        let target = entry.target();
        each(Image {
            kind: String::from("o"),
            producer: entry.kind().to_string(),
            triple: target.triple.to_string(),
            arch: target.arch.to_string(),
            ..plain("bundle", entry.image)
        })?;
    }
    Ok(())
}

/// The images of a section that is named for a target: those that the file has a table of, or the section as a whole.
fn target_section(
    file: &[u8],
    section: &BundleEntry<'_>,
    each: &mut dyn FnMut(Image<'_>) -> Result<()>,
) -> Result<()> {
    let target = section.target();
    let mut tell = |image: Span<'_>| {
        let kind = match image.bytes() {
            bytes if bytes.starts_with(&SPIRV) => ImageKind::SPIRV,
            [b'B', b'C', 0xc0, 0xde, ..] => ImageKind::BITCODE,
            [0x50, 0xed, 0x55, 0xba, ..] => ImageKind::FATBINARY,
            _ => ImageKind::OBJECT,
        };
        each(Image {
            kind: kind.name().unwrap_or_default().to_owned(),
            producer: section.kind().to_string(),
            triple: target.triple.to_string(),
            arch: target.arch.to_string(),
            ..plain("target section", image)
        })
    };
    let whole = section.image;
    let end = |span: Span<'_>| span.at().saturating_add(span.size());
    let mut is_listed = false;
    if let Ok(file) = File::parse(file) {
        for image in target_images(&file)? {
            let image = image?;
            if image.at() >= whole.at() && end(image) <= end(whole) {
                is_listed = true;
                tell(image)?;
            }
        }
    }
    if is_listed { Ok(()) } else { tell(whole) }
}
