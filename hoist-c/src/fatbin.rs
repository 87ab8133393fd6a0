//! Fatbins: device code inside of host files.

use crate::border::{
    Bytes, Numbers, Rows, Text, empty, fallible, give, handle, infallible, needed, place, row,
};
use crate::buffer::Buffer;
use crate::error::{Error, Status, c_string};
use crate::faults::{container, io};
use core::ffi::c_char;
use core::mem::MaybeUninit;
use core::ops::Range;
use fatbin::{Container, CudaVersion, Item, Region, RegionEntry, Search, Span, TargetDevice};
use std::ffi::CString;

/// Device code of a file, to look at. Free it with `hoist_fatbin_free`.
pub struct Fatbin {
    pub(crate) bytes: Vec<u8>,
    pub(crate) label: Box<str>,
    pub(crate) regions: Vec<Range<usize>>,
    pub(crate) entries: Rows<FatbinEntry>,
    #[expect(dead_code, reason = "what pointers of rows lead to")]
    names: Vec<CString>,
}

/// An image in a region of device code. Pointers are good as long as the fatbin.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FatbinEntry {
    /// What it is: `"elf"` (a cubin), `"ptx"`, `"nvvm"` ...
    pub kind_name: *const c_char,
    /// The architecture, as tools write it (`"90a"`).
    pub architecture: *const c_char,
    /// How it is compressed (`"zstd"`); empty if it is not.
    pub compression: *const c_char,
    /// What the compiler called it, often the source's name; empty if it has none.
    pub identifier: *const c_char,
    /// The member of an archive that it is in; empty outside of archives.
    pub member: *const c_char,
    /// The section that it is in; empty outside of ELF files.
    pub section: *const c_char,
    /// The number of its region.
    pub region: usize,
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes it takes in the file, without its header.
    pub stored_size: u64,
    /// How many bytes it has when it is unpacked.
    pub unpacked_size: u64,
    /// Its flags, as the file has them.
    pub flags: u64,
    /// What it is, as the file has it: 1 PTX, 2 a cubin, 8 NVVM ...
    pub kind: u32,
    /// The number of its architecture (90).
    pub sm: u32,
    /// The version of the code's format, for PTX that of its ISA.
    pub code_major: u32,
    /// As above.
    pub code_minor: u32,
}

/// The most bytes that are unpacked if nothing else is said.
const LIMIT: usize = 1 << 30;

impl Fatbin {
    fn parse(label: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        let damaged = |error| container(&error, label);
        let (mut regions, mut entries, mut names) = (Vec::new(), Vec::new(), Vec::new());
        // the text of a `CString` stays where it is when the list grows
        let mut keep = |text: Vec<u8>| {
            let text = c_string(text);
            let pointer = text.as_ptr();
            names.push(text);
            pointer
        };
        for found in fatbin::walk(&bytes, Search::default()) {
            let found = found.map_err(damaged)?;
            let Container::Region(region) = found.container else { continue };
            let start = usize::try_from(region.at()).unwrap_or(usize::MAX);
            let place = (
                keep(found.place.member.map_or(Vec::new(), |member| member.as_bytes().to_vec())),
                keep(found.place.section.map_or(Vec::new(), |(_, name)| name.as_bytes().to_vec())),
            );
            for entry in region.entries() {
                let entry = entry.map_err(damaged)?;
                let (code_major, code_minor) = entry.code_version();
                entries.push(FatbinEntry {
                    kind_name: keep(entry.kind().name().into()),
                    architecture: keep(entry.sm().to_string().into()),
                    compression: keep(entry.compression().map_or("", |it| it.name()).into()),
                    identifier: keep(entry.identifier().as_bytes().to_vec()),
                    member: place.0,
                    section: place.1,
                    region: regions.len(),
                    offset: entry.at(),
                    stored_size: entry.stored_size(),
                    unpacked_size: entry.unpacked_size(),
                    flags: entry.flags().bits(),
                    kind: entry.kind().number().into(),
                    sm: entry.sm().number,
                    code_major: code_major.into(),
                    code_minor: code_minor.into(),
                });
            }
            regions.push(start..start.saturating_add(region.bytes().len()));
        }
        Ok(Self { bytes, label: label.into(), regions, entries: Rows(entries), names })
    }

    pub(crate) fn damaged(&self, error: fatbin::Error) -> Error {
        container(&error, &self.label)
    }

    pub(crate) fn region(&self, index: usize) -> Result<Region<'_>, Error> {
        let range = row(&self.regions, index, "region")?;
        let bytes = self.bytes.get(range.clone()).unwrap_or_default();
        Region::parse(Span::new(bytes, range.start as u64)).map_err(|error| self.damaged(error))
    }

    pub(crate) fn entry(&self, index: usize) -> Result<RegionEntry<'_>, Error> {
        let wanted = row(&self.entries.0, index, "entry")?;
        let region = self.region(wanted.region)?;
        for entry in region.entries() {
            let entry = entry.map_err(|error| self.damaged(error))?;
            if entry.at() == wanted.offset {
                return Ok(entry);
            }
        }
        Err(Error::new(Status::Internal, "an entry is not where it was"))
    }
}

/// Reads the device code of any file: a fatbin, an object, a program, a library, an archive, whatever contains it. A file without has
/// no regions. Containers of LLVM (`.llvm.offloading`) and cubins outside of regions are passed over.
///
/// Errors: `FILE`, `BAD_FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_open(
    path: Text,
    fatbin: Option<&mut MaybeUninit<*mut Fatbin>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let fatbin = place(fatbin, "fatbin")?;
        let path = path.path("path")?;
        let bytes = std::fs::read(path).map_err(|cause| io(&cause, path))?;
        give(fatbin, Fatbin::parse(&path.to_string_lossy(), bytes)?);
        Ok(())
    })
}

/// The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
///
/// Errors: `BAD_FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_parse(
    label: Text,
    data: Bytes,
    size: usize,
    fatbin: Option<&mut MaybeUninit<*mut Fatbin>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let fatbin = place(fatbin, "fatbin")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        give(fatbin, Fatbin::parse(label, bytes.to_vec())?);
        Ok(())
    })
}

/// How many regions the file has, of each of which a driver selects one image; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_region_count(fatbin: Option<&Fatbin>) -> usize {
    fatbin.map_or(0, |fatbin| fatbin.regions.len())
}

/// How many images all regions have together; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_entry_count(fatbin: Option<&Fatbin>) -> usize {
    fatbin.map_or(0, |fatbin| fatbin.entries.0.len())
}

/// Image `index` of all, from 0 on, region by region.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_entry(
    fatbin: Option<&Fatbin>,
    index: usize,
    entry: Option<&mut MaybeUninit<FatbinEntry>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let entry = place(entry, "entry")?;
        *entry = *row(&handle(fatbin, "fatbin")?.entries.0, index, "entry")?;
        Ok(())
    })
}

/// Image `index` of all, unpacked: at most `limit` bytes, 0 standing for 1 GiB.
///
/// Errors: `OUT_OF_RANGE`, `BAD_FILE`, `UNSUPPORTED` (obfuscated NVVM), `TOO_LARGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_unpack(
    fatbin: Option<&Fatbin>,
    index: usize,
    limit: usize,
    image: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let image = place(image, "image")?;
        let fatbin = handle(fatbin, "fatbin")?;
        let limit = if limit == 0 { LIMIT } else { limit };
        let unpacked = fatbin.entry(index)?.unpack(limit);
        give(image, Buffer(unpacked.map_err(|error| fatbin.damaged(error))?.into_owned()));
        Ok(())
    })
}

/// The image of region `region` that a driver for CUDA `driver_major.driver_minor` takes for a device of architecture `sm` (90): its
/// number among all, and, unless `image` is NULL, its bytes, unpacked (at most 1 GiB).
///
/// Errors: `NO_FIT` if none runs there; `OUT_OF_RANGE`, `BAD_FILE`, `UNSUPPORTED`, `TOO_LARGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_select(
    fatbin: Option<&Fatbin>,
    region: usize,
    sm: u32,
    driver_major: u16,
    driver_minor: u16,
    index: Option<&mut MaybeUninit<usize>>,
    image: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (index, image) = (empty(index), empty(image));
        let index = needed(index, "index")?;
        let fatbin = handle(fatbin, "fatbin")?;
        let damaged = |error| fatbin.damaged(error);
        let device = TargetDevice { sm, driver: CudaVersion::new(driver_major, driver_minor) };
        let selected = fatbin::select(fatbin.region(region)?.entries(), device).map_err(damaged)?;
        let selected = selected.ok_or_else(|| {
            let words = format_args!("{}: region {region} has nothing for sm_{sm}", fatbin.label);
            Error::new(Status::NoFit, words).file(&*fatbin.label)
        })?;
        let rows = &fatbin.entries.0;
        let found = rows.iter().position(|row| row.offset == selected.entry.at());
        if let Some(image) = image {
            let unpacked = selected.entry.unpack(LIMIT).map_err(damaged)?;
            let part = selected.part.as_ref().and_then(|part| part.of(&unpacked));
            give(image, Buffer(part.map_or_else(|| unpacked.to_vec(), <[u8]>::to_vec)));
        }
        *index = found.unwrap_or_default();
        Ok(())
    })
}

/// A region of the images whose numbers `indices` has, `count` of them, in this order, as they are stored: what is left of a region
/// when others are dropped. It is a file of its own (`.fatbin`).
///
/// Errors: `OUT_OF_RANGE`, `BAD_FILE`; `INVALID_ARGUMENT` without images.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_build(
    fatbin: Option<&Fatbin>,
    indices: Numbers,
    count: usize,
    region: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let region = place(region, "region")?;
        let fatbin = handle(fatbin, "fatbin")?;
        // SAFETY: the number is that of `indices`.
        let indices = unsafe { indices.get(count, "indices")? };
        if indices.is_empty() {
            return Err(Error::argument("there are no images"));
        }
        let entries = indices.iter().map(|&index| fatbin.entry(index).map(Item::Kept));
        let entries: Vec<Item<'_>> = entries.collect::<Result<_, _>>()?;
        let bytes = fatbin::region(&entries).map_err(|error| fatbin.damaged(error))?;
        give(region, Buffer(bytes));
        Ok(())
    })
}

/// Frees a fatbin; NULL is none.
///
/// Threads: nobody uses the fatbin any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_free(fatbin: Option<Box<Fatbin>>) {
    infallible((), || drop(fatbin));
}
