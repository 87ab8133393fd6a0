//! OffloadBinaries built from images.

use crate::error::{Error, ErrorKind};
use crate::offload::{ImageKind, OffloadBinary, Producer};
use crate::raw_llvm as raw;
use crate::sink::Sink;

/// An image to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewImage<'a> {
    /// What the image is.
    pub kind: ImageKind,
    /// Which programming model it is for.
    pub producer: Producer,
    /// Flags: bit 0 for metadata without image.
    pub flags: u32,
    /// Keys and values: `triple`, `arch`. Neither may hold a NUL.
    pub strings: &'a [(&'a str, &'a str)],
    /// The image.
    pub payload: &'a [u8],
}

const HEADER: usize = size_of::<raw::Header>();
const ENTRY: usize = size_of::<raw::Entry>();
const PAIR: usize = size_of::<raw::StringEntry>();

impl NewImage<'_> {
    /// Offset of the texts.
    const fn texts_at(&self) -> usize {
        (HEADER + ENTRY).saturating_add(self.strings.len().saturating_mul(PAIR))
    }

    /// Offset of the image.
    fn image_at(&self) -> usize {
        let text = |text: &str| text.len().saturating_add(1);
        let pairs = self.strings.iter().map(|(key, value)| text(key).saturating_add(text(value)));
        padded(pairs.fold(self.texts_at(), usize::saturating_add))
    }

    fn size(&self) -> usize {
        padded(self.image_at().saturating_add(self.payload.len()))
    }

    /// Looks for a NUL in a text, which would end where it is read. The binary starts at `start`; gives where the next does.
    fn check(&self, start: usize) -> Result<usize, Error> {
        let mut at = start.saturating_add(self.texts_at());
        for text in self.strings.iter().flat_map(|&(key, value)| [key, value]) {
            if let Some(nul) = text.bytes().position(|byte| byte == 0) {
                let kind = ErrorKind::Invalid { what: "byte of a string", value: 0 };
                return Err(Error { at: at.saturating_add(nul) as u64, kind });
            }
            at = at.saturating_add(text.len()).saturating_add(1);
        }
        Ok(start.saturating_add(self.size()))
    }

    fn write(&self, sink: &mut Sink<'_>) -> Result<(), Error> {
        sink.row(&raw::Header {
            magic: raw::OFFLOAD_MAGIC.into(),
            version: 1.into(),
            size: (self.size() as u64).into(),
            entries_offset: (HEADER as u64).into(),
            entries_count: (ENTRY as u64).into(),
        })?;
        sink.row(&raw::Entry {
            image_kind: self.kind.0.into(),
            offload_kind: self.producer.0.into(),
            flags: self.flags.into(),
            string_offset: ((HEADER + ENTRY) as u64).into(),
            num_strings: (self.strings.len() as u64).into(),
            image_offset: (self.image_at() as u64).into(),
            image_size: (self.payload.len() as u64).into(),
        })?;
        let mut at = self.texts_at();
        for (key, value) in self.strings {
            let value_at = at.saturating_add(key.len()).saturating_add(1);
            sink.row(&raw::StringEntry {
                key_offset: (at as u64).into(),
                value_offset: (value_at as u64).into(),
            })?;
            at = value_at.saturating_add(value.len()).saturating_add(1);
        }
        for text in self.strings.iter().flat_map(|&(key, value)| [key, value]) {
            sink.bytes(text.as_bytes())?;
            sink.bytes(&[0])?;
        }
        zeros(sink, at)?;
        sink.padded(&[self.payload])
    }
}

/// Zeros from `at` to a multiple of 8.
fn zeros(sink: &mut Sink<'_>, at: usize) -> Result<(), Error> {
    let zeros = [0; 8];
    sink.bytes(zeros.get(..padded(at).saturating_sub(at)).unwrap_or(&[]))
}

/// Rounds up to a multiple of [`OffloadBinary::ALIGNMENT`].
const fn padded(size: usize) -> usize {
    size.saturating_add(7) & !7
}
const _: () = assert!(OffloadBinary::ALIGNMENT == 8);

/// The bytes that OffloadBinaries of these images take.
#[must_use]
pub fn offload_size(images: &[NewImage<'_>]) -> usize {
    images.iter().map(NewImage::size).fold(0, usize::saturating_add)
}

/// Writes an OffloadBinary for each image, one after another, into a buffer of exactly [`offload_size`] bytes.
///
/// They are of version 1, which all versions of LLVM from 14 on read, and which holds one image each.
///
/// # Errors
/// [`ErrorKind::Buffer`] if the buffer has another size, [`ErrorKind::Invalid`] of a NUL in a key or value, at the offset that it would
/// have. The buffer is as it was then.
pub fn write_offload(images: &[NewImage<'_>], into: &mut [u8]) -> Result<(), Error> {
    images.iter().try_fold(0, |start, image| image.check(start))?;
    let mut sink = Sink::new(into, offload_size(images))?;
    images.iter().try_for_each(|image| image.write(&mut sink))
}

/// An OffloadBinary for each image, one after another.
///
/// # Errors
/// As [`write_offload`].
#[cfg(feature = "alloc")]
pub fn offload(images: &[NewImage<'_>]) -> Result<alloc::vec::Vec<u8>, Error> {
    let mut bytes = alloc::vec![0; offload_size(images)];
    write_offload(images, &mut bytes)?;
    Ok(bytes)
}
