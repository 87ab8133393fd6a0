//! What program headers say of memory, and its contents.

use crate::error::{Error, ErrorKind};
use core::ops::Range;
use elf_core::names::{ET_DYN, ET_EXEC, PT_DYNAMIC, PT_LOAD};
use elf_core::{Arch, DynamicSection, File, ProgramHeader, SegmentFlags};

/// Which addresses segments are placed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// `p_vaddr`: what code computes with.
    Virtual,
    /// `p_paddr`: where boot loaders put what will be mapped elsewhere.
    Physical,
}

/// An executable or shared object, by its program headers.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    file: File<'a>,
    addresses: AddressKind,
    /// Lowest address of a segment.
    start: u64,
    size: u64,
    alignment: u64,
    /// What is added to a virtual address to get that which segments are placed by; nothing if the segments differ in it.
    shift: Option<u64>,
    /// The number behind that of the last segment that is loaded.
    end: u32,
    /// The dynamic section, if it was [found](Self::with_dynamic) once for all.
    dynamic: Option<DynamicSection<'a>>,
}

/// A segment that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadSegment<'a> {
    /// Number of its program header.
    pub number: u32,
    /// Its first byte, in bytes from the start of the image.
    pub offset: u64,
    /// Bytes in memory.
    pub size: u64,
    /// How many of them are in the file, from `file_offset` on; the others are zero.
    pub file_size: u64,
    /// Where they are in the file.
    pub file_offset: u64,
    /// Those that are in the file; none if they are not all [at hand](File::parse_beginning).
    pub data: &'a [u8],
    /// Its permissions.
    pub flags: SegmentFlags,
}

impl<'a> Image<'a> {
    /// Checks the segments that are loaded, and sums them up.
    ///
    /// # Errors
    /// All but the last of [`ErrorKind`], with the segment's number.
    pub fn parse(file: File<'a>, addresses: AddressKind) -> Result<Self, Error> {
        let r#type = file.header().r#type;
        if r#type != ET_EXEC && r#type != ET_DYN {
            return Err(Error::new(ErrorKind::Type(r#type)));
        }
        let limit = end_of_space(&file);
        // the alignment less one, of segments all together and of each
        let mut low = 0;
        let (mut start, mut end) = (0, 0);
        let (mut before, mut address_before) = (0, 0);
        let (mut shift, mut first_shift) = (true, 0);
        let mut left = SEGMENTS;
        let (mut next, mut behind) = (0, 0);
        while let Some((number, header)) = next_loaded(&file, &mut next, u32::MAX) {
            let fail = |kind| Error::of(number, kind);
            let is_first = left == SEGMENTS;
            left = left.checked_sub(1).ok_or(fail(ErrorKind::TooMany { limit: SEGMENTS }))?;
            let address = place(&header, addresses);
            let ProgramHeader { file_size, memory_size, offset, alignment, .. } = header;
            let own_low = alignment.saturating_sub(1);
            if alignment & own_low != 0 {
                return Err(fail(ErrorKind::Alignment(alignment)));
            }
            if (header.address ^ offset) & own_low != 0 {
                let address = header.address;
                return Err(fail(ErrorKind::Misaligned { address, offset, alignment }));
            }
            low |= own_low;
            if file_size > memory_size {
                return Err(fail(ErrorKind::FileSize { file: file_size, memory: memory_size }));
            }
            file.segment_range(&header).map_err(|error| fail(ErrorKind::Elf(error)))?;
            let end_here = end_of(address, memory_size, limit);
            let end_here =
                end_here.filter(|_| end_of(header.address, memory_size, limit).is_some());
            let too_large = ErrorKind::TooLarge { address, size: memory_size };
            let end_here = end_here.ok_or(fail(too_large))?;
            let distance = address.wrapping_sub(header.address);
            if is_first {
                (start, first_shift) = (address, distance);
            } else if address < end {
                return Err(fail(match address < address_before {
                    true => ErrorKind::Order { address, before },
                    false => ErrorKind::Overlap { address, with: before },
                }));
            }
            shift &= first_shift == distance;
            (before, address_before, end) = (number, address, end_here);
            behind = next;
        }
        if left == SEGMENTS {
            return Err(Error::new(ErrorKind::NoSegments));
        }
        let size = end.wrapping_sub(start);
        if usize::try_from(size).is_err() {
            return Err(Error::new(ErrorKind::TooLarge { address: start, size }));
        }
        let (alignment, shift) = (low.wrapping_add(1), shift.then_some(first_shift));
        let (end, dynamic) = (behind, None);
        Ok(Self { file, addresses, start, size, alignment, shift, end, dynamic })
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &File<'a> {
        &self.file
    }

    /// The dynamic section, if there is one: that of the segment.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if it is not what is loaded at its address, and if the table of its strings is not in the file.
    pub fn dynamic(&self) -> Result<Option<DynamicSection<'a>>, Error> {
        if self.dynamic.is_some() {
            return Ok(self.dynamic);
        }
        if self.loaded(PT_DYNAMIC)?.is_none() {
            return Ok(None);
        }
        Ok(self.file.dynamic_by_segment()?)
    }

    /// The same image, which need not look for its dynamic section again at each question: for who asks many.
    ///
    /// # Errors
    /// As [`dynamic`](Self::dynamic).
    pub fn with_dynamic(self) -> Result<Self, Error> {
        Ok(Self { dynamic: self.dynamic()?, ..self })
    }

    /// The same, where the bytes of the segment of the dynamic section were read by themselves, not with the
    /// [beginning](File::parse_beginning) of the file.
    ///
    /// # Errors
    /// As [`dynamic`](Self::dynamic).
    pub fn with_dynamic_in(self, bytes: &'a [u8]) -> Result<Self, Error> {
        let Some((_, header)) = self.loaded(PT_DYNAMIC)? else { return Ok(self) };
        let (address, size) = (header.address, header.file_size);
        let bytes = usize::try_from(size).ok().and_then(|size| bytes.get(..size));
        let bytes = bytes.ok_or(Error::new(ErrorKind::Outside { address, size }))?;
        let dynamic = self.file.dynamic_in(header.offset, bytes)?;
        Ok(Self { dynamic: Some(dynamic), ..self })
    }

    /// The first segment of this type, with its number: what is loaded at its address is what it has in the file.
    pub(crate) fn loaded(&self, r#type: u32) -> Result<Option<(u32, ProgramHeader)>, Error> {
        let mut segments = (0..u32::MAX).zip(self.file.segments().iter());
        let found = segments.find(|(_, header)| header.r#type == r#type);
        let Some((number, header)) = found else { return Ok(None) };
        let range = self.file.segment_range(&header);
        range.map_err(|error| Error::of(number, ErrorKind::Elf(error)))?;
        let ProgramHeader { address, file_size: size, offset, .. } = header;
        let is_there = |(at, rest): (u64, u64)| at == offset && size <= rest;
        // of nothing it matters to nobody
        if size != 0 && !self.file.loaded_at(address).is_some_and(is_there) {
            return Err(Error::of(number, ErrorKind::Outside { address, size }));
        }
        Ok(Some((number, header)))
    }

    /// Whether it can stand at one address only, its [start](Self::start) (`ET_EXEC`).
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        self.file.header().r#type == ET_EXEC
    }

    /// The address of the first byte, as the file has it.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Bytes of memory.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// What the distance between [`start`](Self::start) and the address in memory must be a multiple of: a power of two.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        self.alignment
    }

    /// What is added to virtual addresses of the file if the first byte is at address `base` when the code runs.
    ///
    /// # Errors
    /// [`ErrorKind::Base`] if it cannot be there; [`ErrorKind::TooLarge`] if it would end behind the last address.
    pub fn bias(&self, base: u64) -> Result<u64, Error> {
        let distance = base.wrapping_sub(self.start);
        let is_right = match self.is_fixed() {
            true => distance == 0 || Some(base) == self.virtual_start(),
            false => distance & self.alignment.wrapping_sub(1) == 0,
        };
        if !is_right {
            let (start, alignment) = (self.start, self.alignment);
            return Err(Error::new(ErrorKind::Base { base, start, alignment }));
        }
        if end_of(base, self.size, end_of_space(&self.file)).is_none() {
            return Err(Error::new(ErrorKind::TooLarge { address: base, size: self.size }));
        }
        Ok(base.wrapping_sub(self.virtual_start().unwrap_or(self.start)))
    }

    /// The first virtual address.
    fn virtual_start(&self) -> Option<u64> {
        Some(self.start.wrapping_sub(self.shift?))
    }

    /// Where a program begins (`e_entry`), if the first byte of the image is at `base`; `None` if the file has no entry, or the image
    /// cannot be there. By [physical addresses](AddressKind::Physical), an entry outside of the virtual ones is a physical one, as
    /// kernels have it.
    #[must_use]
    pub fn entry(&self, base: u64) -> Option<u64> {
        let entry = Some(self.file.header().entry).filter(|entry| *entry != 0)?;
        let bias = self.bias(base).ok()?;
        let in_image = entry.wrapping_sub(self.start);
        let is_physical = self.addresses == AddressKind::Physical
            && self.offset_of(entry).is_none()
            && in_image < self.size;
        Some(if is_physical { base.wrapping_add(in_image) } else { entry.wrapping_add(bias) })
    }

    /// The offset in the image of what has this virtual address in the file; `None` if that is outside.
    #[must_use]
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.virtual_start()?);
        (offset < self.size).then_some(offset)
    }

    /// The offsets in the image of `size` bytes that have this virtual address in the file; `None` if they are not all inside.
    #[must_use]
    pub fn range_of(&self, address: u64, size: u64) -> Option<Range<u64>> {
        let offset = address.wrapping_sub(self.virtual_start()?);
        let end = offset.checked_add(size).filter(|end| *end <= self.size)?;
        Some(offset..end)
    }

    /// The segments that are loaded, in order: they rise, and do not overlap.
    #[must_use]
    pub const fn segments(&self) -> Segments<'a> {
        let Self { file, addresses, start, end, .. } = *self;
        Segments { file, addresses, start, next: 0, end }
    }

    /// Fills the memory: what segments have in the file, and zeros for all else.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if it has not [`size`](Self::size) bytes, and if what segments have is not [at hand](File::parse_beginning):
    /// nothing is written then.
    pub fn write(&self, memory: &mut [u8]) -> Result<(), Error> {
        self.fill(memory, |rest| rest.fill(0))
    }

    /// The same of memory that is zero already.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_zeroed(&self, memory: &mut [u8]) -> Result<(), Error> {
        self.fill(memory, |_| {})
    }

    /// Copies the segments; `zero` is given what is between them and behind.
    fn fill(&self, memory: &mut [u8], zero: impl Fn(&mut [u8])) -> Result<(), Error> {
        self.check_memory(memory)?;
        self.check_data()?;
        let mut at = 0usize;
        for LoadSegment { offset, data, .. } in self.segments() {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            if let Some(gap) = memory.get_mut(at..start) {
                zero(gap);
            }
            let place = memory.get_mut(start..).and_then(|rest| rest.get_mut(..data.len()));
            if let Some(place) = place {
                place.copy_from_slice(data);
            }
            at = start.saturating_add(data.len());
        }
        if let Some(rest) = memory.get_mut(at..) {
            zero(rest);
        }
        Ok(())
    }

    /// Fails unless what segments have in the file is at hand.
    fn check_data(&self) -> Result<(), Error> {
        if self.file.bytes().len() as u64 == self.file.size() {
            return Ok(());
        }
        let mut next = 0;
        while let Some((number, header)) = next_loaded(&self.file, &mut next, self.end) {
            let data = self.file.segment_data(&header);
            data.map_err(|error| Error::of(number, ErrorKind::Elf(error)))?;
        }
        Ok(())
    }

    /// Fails unless the file is for the architecture.
    pub(crate) fn check_machine<A: Arch>(&self) -> Result<(), Error> {
        let (found, expected) = (self.file().header().machine, A::MACHINE);
        if found != expected {
            return Err(Error::new(ErrorKind::Machine { found, expected }));
        }
        let is_64 = self.file().encoding().is_64();
        if is_64 != (A::ADDRESS_SIZE == 8) {
            return Err(Error::new(ErrorKind::Class { is_64 }));
        }
        Ok(())
    }

    pub(crate) const fn check_memory(&self, memory: &[u8]) -> Result<(), Error> {
        let (size, given) = (self.size, memory.len() as u64);
        if size == given {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Memory { size, given }))
    }

    /// Where relocated words are, if that can be told: the difference between addresses of the file and offsets in the image.
    pub(crate) fn relocated_start(&self) -> Result<u64, Error> {
        self.virtual_start().ok_or(Error::new(ErrorKind::Distances))
    }
}

/// What is behind the last address.
const fn end_of_space(file: &File<'_>) -> u64 {
    if file.encoding().is_64() { u64::MAX } else { 1 << 32 }
}

/// The end of `size` bytes at `address`, unless that is behind `limit`.
// its callers are several; where code is scarcer than time they share it
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn end_of(address: u64, size: u64, limit: u64) -> Option<u64> {
    address.checked_add(size).filter(|end| *end <= limit)
}

/// Most segments that are loaded: work with pages grows with their square.
const SEGMENTS: u32 = 1024;

/// The segments of an image that are loaded, in order.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    file: File<'a>,
    addresses: AddressKind,
    start: u64,
    /// Number of the program header that is looked at next.
    next: u32,
    /// That of the first that is not looked at.
    end: u32,
}

impl<'a> Iterator for Segments<'a> {
    type Item = LoadSegment<'a>;

    fn next(&mut self) -> Option<LoadSegment<'a>> {
        let (number, header) = next_loaded(&self.file, &mut self.next, self.end)?;
        Some(LoadSegment {
            number,
            offset: place(&header, self.addresses).wrapping_sub(self.start),
            size: header.memory_size,
            file_size: header.file_size,
            file_offset: header.offset,
            data: self.file.segment_data(&header).unwrap_or_default(),
            flags: header.flags,
        })
    }
}

impl core::iter::FusedIterator for Segments<'_> {}

/// The next header of a segment that takes memory, before that of number `end`, with its number.
fn next_loaded(file: &File<'_>, next: &mut u32, end: u32) -> Option<(u32, ProgramHeader)> {
    loop {
        let number = Some(*next).filter(|number| *number < end)?;
        let header = usize::try_from(number).ok().and_then(|index| file.segments().get(index))?;
        *next = number.saturating_add(1);
        if header.r#type == PT_LOAD && header.memory_size != 0 {
            return Some((number, header));
        }
    }
}

const fn place(header: &ProgramHeader, addresses: AddressKind) -> u64 {
    match addresses {
        AddressKind::Virtual => header.address,
        AddressKind::Physical => header.physical_address,
    }
}
