//! A library's file, and what its headers and tables say: read once, asked often.

use super::error::LibraryError;
use super::file::Beginning;
use crate::mapped_image::is_large;
use elf_core::names::PT_DYNAMIC;
use elf_core::{DynamicSection, File};
use elf_image::{AddressKind, Error, Exports, Image};
use std::sync::Arc;

/// Bytes of a file, whatever holds them.
pub(crate) type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The bytes of a library, and where in them is what.
pub(crate) struct LibraryFile {
    /// Of the bytes below.
    views: Views<'static>,
    content: Content,
}

/// Bytes that stay where they are.
enum Content {
    Whole(Bytes),
    Beginning(Arc<Beginning>),
}

/// What is borrowed from a library's bytes.
#[derive(Clone, Copy)]
struct Views<'b> {
    image: Image<'b>,
    dynamic: DynamicSection<'b>,
    exports: Option<Exports<'b>>,
}

impl<'b> Views<'b> {
    /// `dynamic` is the dynamic section, if it is not among the bytes of the file that are at hand.
    fn of(file: File<'b>, dynamic: Option<&'b [u8]>) -> Result<Self, LibraryError> {
        let image = Image::parse(file, AddressKind::Virtual)?;
        // one with debugging information only has the program headers still
        let mut segments = file.segments().iter();
        if segments.any(|segment| segment.r#type == PT_DYNAMIC && segment.file_size == 0) {
            return Err(without_dynamic());
        }
        let image = match dynamic {
            Some(dynamic) => image.with_dynamic_in(dynamic)?,
            None => image.with_dynamic()?,
        };
        let dynamic = image.dynamic()?.ok_or_else(without_dynamic)?;
        Ok(Self { image, dynamic, exports: image.exports()? })
    }
}

impl LibraryFile {
    /// Reads the headers and finds the tables.
    ///
    /// # Errors
    /// [`LibraryError`], of a file that is none of a library, or is damaged.
    pub(crate) fn new(bytes: Bytes) -> Result<Self, LibraryError> {
        // SAFETY: what `as_ref` gives is there, and the same, as long as what it is asked of is borrowed: that does not move, and lives as long
        // as this, which gives nothing away that lives longer.
        let content: &'static [u8] = unsafe { &*core::ptr::from_ref((*bytes).as_ref()) };
        let file = File::parse_segments(content).map_err(Error::from)?;
        let views = Views::of(file, None)?;
        Ok(Self { views, content: Content::Whole(bytes) })
    }

    /// The same of a file whose tables are all in its beginning, and whose segments are to be mapped.
    pub(crate) fn of_beginning(beginning: Beginning) -> Option<Self> {
        let content = Arc::new(beginning);
        // SAFETY: it does not move, nothing of it changes but what `whole` makes, and it lives as long as this, which gives nothing away that
        // lives longer.
        let borrowed: &'static Beginning = unsafe { &*core::ptr::from_ref(&*content) };
        let file = File::parse_beginning(borrowed.bytes(), borrowed.size()).ok()?;
        let views = Views::of(file, borrowed.dynamic()).ok()?;
        // the bytes of a large segment are copied, not mapped
        let is_enough = !is_large(&views.image) && views.image.relocations().all(|it| it.is_ok());
        is_enough.then_some(Self { views, content: Content::Beginning(content) })
    }

    /// All bytes; none of a file that is not there any more, or has changed, if they were not needed before.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Whole(bytes) => (**bytes).as_ref(),
            Content::Beginning(beginning) => beginning.whole().unwrap_or_default(),
        }
    }

    pub(crate) const fn image(&self) -> &Image<'_> {
        &self.views.image
    }

    pub(crate) const fn dynamic(&self) -> &DynamicSection<'_> {
        &self.views.dynamic
    }

    /// The symbols that it shows to others, if it has a table of them.
    pub(crate) const fn exports(&self) -> Option<&Exports<'_>> {
        self.views.exports.as_ref()
    }
}

fn without_dynamic() -> LibraryError {
    LibraryError::Refused { reason: String::from("a file without a dynamic section") }
}
