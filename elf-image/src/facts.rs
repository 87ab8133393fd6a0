//! What else program headers and the dynamic section tell a loader.

use crate::error::{Error, ErrorKind};
use crate::image::Image;
use elf_core::names::{
    DT_FINI, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_FLAGS, DT_FLAGS_1, DT_INIT, DT_INIT_ARRAY,
    DT_INIT_ARRAYSZ, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, DT_SYMBOLIC, EM_386, EM_X86_64,
    GNU_PROPERTY_AARCH64_FEATURE_1_AND, GNU_PROPERTY_X86_FEATURE_1_AND, PT_GNU_EH_FRAME,
    PT_GNU_PROPERTY, PT_GNU_STACK, PT_NOTE, PT_TLS,
};
use elf_core::{Notes, SegmentFlags};

/// Initial values of thread-local variables (`PT_TLS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsTemplate<'a> {
    /// Offset in the image.
    pub offset: u64,
    /// Bytes of a thread's copy.
    pub size: u64,
    /// How many of them the file has; the others are zero.
    pub file_size: u64,
    /// The first of them, as the file has them; none if they are not [at hand](elf_core::File::parse_beginning).
    pub data: &'a [u8],
    /// Alignment of the copies: a power of two.
    pub alignment: u64,
}

/// An array of functions: address in the file, and size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitArray {
    /// Virtual address in the file.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// What the dynamic section says beside tables, addresses as the file has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DynamicFacts {
    /// `DT_PREINIT_ARRAY`: before all constructors, of executables.
    pub preinit_array: InitArray,
    /// `DT_INIT`: the first constructor, or 0.
    pub init: u64,
    /// `DT_INIT_ARRAY`: constructors.
    pub init_array: InitArray,
    /// `DT_FINI_ARRAY`: destructors, the last of them first.
    pub fini_array: InitArray,
    /// `DT_FINI`: the last destructor, or 0.
    pub fini: u64,
    /// `DT_FLAGS`: `DF_*`.
    pub flags: u64,
    /// `DT_FLAGS_1`: `DF_1_*`.
    pub flags_1: u64,
    /// `DT_SYMBOLIC`.
    pub is_symbolic: bool,
}

impl<'a> Image<'a> {
    /// What the dynamic section says of constructors and of how to load; all zero without one.
    ///
    /// # Errors
    /// As [`dynamic`](Self::dynamic).
    pub fn facts(&self) -> Result<DynamicFacts, Error> {
        let mut facts = DynamicFacts::default();
        let Some(dynamic) = self.dynamic()? else { return Ok(facts) };
        for entry in dynamic.entries().iter() {
            let place = match entry.tag.cast_unsigned() {
                DT_PREINIT_ARRAY => &mut facts.preinit_array.address,
                DT_PREINIT_ARRAYSZ => &mut facts.preinit_array.size,
                DT_INIT => &mut facts.init,
                DT_INIT_ARRAY => &mut facts.init_array.address,
                DT_INIT_ARRAYSZ => &mut facts.init_array.size,
                DT_FINI_ARRAY => &mut facts.fini_array.address,
                DT_FINI_ARRAYSZ => &mut facts.fini_array.size,
                DT_FINI => &mut facts.fini,
                DT_FLAGS => &mut facts.flags,
                DT_FLAGS_1 => &mut facts.flags_1,
                DT_SYMBOLIC => {
                    facts.is_symbolic = true;
                    continue;
                }
                _ => continue,
            };
            *place = entry.value;
        }
        Ok(facts)
    }

    /// The permissions of the stack (`PT_GNU_STACK`); `None` if the file does not say, which means an executable one on many systems.
    #[must_use]
    pub fn stack(&self) -> Option<SegmentFlags> {
        let header = self.file().segments().iter().find(|it| it.r#type == PT_GNU_STACK);
        header.map(|header| header.flags)
    }

    /// The thread-local variables.
    ///
    /// # Errors
    /// If their initial values are not in the file; [`ErrorKind::Outside`] if they are not what is loaded at their address,
    /// [`ErrorKind::FileSize`], [`ErrorKind::Alignment`].
    pub fn tls(&self) -> Result<Option<TlsTemplate<'a>>, Error> {
        let Some((number, header)) = self.loaded(PT_TLS)? else { return Ok(None) };
        let data = self.file().segment_data(&header).unwrap_or_default();
        let alignment = header.alignment.max(1);
        if !alignment.is_power_of_two() {
            return Err(Error::of(number, ErrorKind::Alignment(alignment)));
        }
        let (address, size) = (header.address, header.file_size);
        if size > header.memory_size {
            let kind = ErrorKind::FileSize { file: size, memory: header.memory_size };
            return Err(Error::of(number, kind));
        }
        let offset = match self.range_of(address, size) {
            Some(range) => range.start,
            // of zeros only it matters to nobody
            None if size == 0 => 0,
            None => return Err(Error::of(number, ErrorKind::Outside { address, size })),
        };
        Ok(Some(TlsTemplate { offset, size: header.memory_size, file_size: size, data, alignment }))
    }

    /// Offset and size in the image of the table that finds unwinding rules (`PT_GNU_EH_FRAME`).
    #[must_use]
    pub fn eh_frame_hdr(&self) -> Option<(u64, u64)> {
        let header = self.file().segments().iter().find(|it| it.r#type == PT_GNU_EH_FRAME)?;
        let range = self.range_of(header.address, header.memory_size)?;
        Some((range.start, header.memory_size))
    }

    /// The bits of the property that all objects of the file must have for it to be there: of x86 CET's IBT and SHSTK, of AArch64 BTI,
    /// PAC and GCS, of RISC-V its control flow integrity (`GNU_PROPERTY_*_FEATURE_1_AND`); 0 if the file has none.
    ///
    /// # Errors
    /// If the notes are damaged.
    pub fn feature_bits(&self) -> Result<u32, Error> {
        let machine = self.file().header().machine;
        let wanted = match machine {
            EM_X86_64 | EM_386 => GNU_PROPERTY_X86_FEATURE_1_AND,
            _ => GNU_PROPERTY_AARCH64_FEATURE_1_AND,
        };
        let segments = self.file().segments();
        let has_own = segments.iter().any(|it| it.r#type == PT_GNU_PROPERTY);
        let r#type = if has_own { PT_GNU_PROPERTY } else { PT_NOTE };
        let encoding = self.file().encoding();
        // notes of one alignment are a segment
        let numbered = (0..u32::MAX).zip(segments.iter());
        for (number, header) in numbered.filter(|(_, it)| it.r#type == r#type) {
            let fail = |error| Error::of(number, ErrorKind::Elf(error));
            let data = self.file().segment_data(&header).map_err(fail)?;
            let notes = Notes::new(data, encoding, header.alignment, header.offset);
            for note in notes.map_err(fail)? {
                for property in note.map_err(fail)?.properties().into_iter().flatten() {
                    let property = property.map_err(fail)?;
                    if property.r#type == wanted {
                        return Ok(property.value().unwrap_or(0) as u32);
                    }
                }
            }
        }
        Ok(0)
    }
}
