//! The images of LLVM's containers, unpacked where the container is compressed.

use std::borrow::Cow;

use anyhow::Result;
use fatbin::{Bundle, Container, Error, OffloadBinary, Span};
use serde::Serialize;

use super::super::names;
use crate::budget::Budget;

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
    pub(super) bytes: Cow<'a, [u8]>,
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

    fn into_owned<'b>(self) -> Image<'b> {
        let Self { index, container, kind, producer, triple, arch, offset: _, bytes } = self;
        let bytes = Cow::Owned(bytes.into_owned());
        Image { index, container, kind, producer, triple, arch, offset: None, bytes }
    }
}

/// Adds the images of a container to `all`.
///
/// # Errors
/// If the container or an image is damaged, or more is unpacked than is left; images before it are added.
pub(super) fn images<'a>(
    container: Container<'a>,
    budget: &Budget,
    all: &mut Vec<Image<'a>>,
) -> Result<()> {
    let at = container.at();
    let room = |size: usize| {
        budget.take(format_args!("the container at {at:#x}"), size as u64).map(|()| vec![0; size])
    };
    // images may lie over each other
    let mut keep = |inner: Vec<Image<'_>>| {
        for image in inner {
            budget.take(format_args!("an image at {at:#x}"), image.bytes.len() as u64)?;
            all.push(image.into_owned());
        }
        anyhow::Ok(())
    };
    match container {
        Container::Offload(binary) => match binary.inflate_size(usize::MAX)? {
            None => Ok(offload(binary, all)?),
            Some(size) => {
                let mut buffer = room(size)?;
                let mut inner = Vec::new();
                let result = offload(binary.inflate_into(&mut buffer)?, &mut inner);
                keep(inner)?;
                Ok(result?)
            }
        },
        Container::Bundle(entries) => Ok(bundle(entries, all)?),
        Container::CompressedBundle(compressed) => {
            let mut buffer = room(compressed.unpack_size(usize::MAX)?)?;
            let mut inner = Vec::new();
            let result = bundle(compressed.unpack_into(&mut buffer)?, &mut inner);
            keep(inner)?;
            Ok(result?)
        }
        _ => Ok(()),
    }
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
        bytes: Cow::Borrowed(span.bytes()),
    }
}

fn offload<'a>(binary: OffloadBinary<'a>, all: &mut Vec<Image<'a>>) -> Result<(), Error> {
    for image in binary.images() {
        let image = image?;
        let (kind, producer) = (image.kind(), image.producer());
        all.push(Image {
            kind: kind.name().map_or_else(|| kind.0.to_string(), str::to_owned),
            producer: producer.name().map_or_else(|| producer.0.to_string(), str::to_owned),
            triple: image.triple().unwrap_or_default().to_string(),
            arch: image.arch().unwrap_or_default().to_string(),
            ..plain("offload", image.payload())
        });
    }
    Ok(())
}

fn bundle<'a>(bundle: Bundle<'a>, all: &mut Vec<Image<'a>>) -> Result<(), Error> {
    for entry in bundle.entries() {
        let entry = entry?;
        let target = entry.target();
        all.push(Image {
            kind: String::from("o"),
            producer: entry.kind().to_string(),
            triple: target.triple.to_string(),
            arch: target.arch.to_string(),
            ..plain("bundle", entry.image)
        });
    }
    Ok(())
}
