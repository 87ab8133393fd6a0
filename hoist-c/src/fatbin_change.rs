//! Files whose device code is changed, and which stay what they are otherwise.

use crate::border::{Bytes, Numbers, Text, fallible, give, handle, place, row};
use crate::buffer::Buffer;
use crate::error::{Error, Known, Status};
use crate::fatbin::Fatbin;
use crate::faults::{container, of_elf};
use core::mem::MaybeUninit;
use core::ops::Range;
use elf_rewrite::{ErrorKind as RewriteErrorKind, Rewriter};
use fatbin::{
    CompressionMethod, Container, EntryKind, Item, NewEntry, Region, RegionEntry, Search, Sm,
    Suffix,
};
use std::borrow::Cow;

/// `hoist_fatbin_replace`: takes code for another architecture, or of another kind, than it takes the place of.
pub const HOIST_FATBIN_ANY_CODE: u32 = 1;

/// The whole file with `size` bytes at `data`, a cubin or PTX, in the place of image `index` of all. Whatever the file is - a fatbin, an
/// object, a program, a library, an archive - it stays usable as such. `compression` is `"none"`, `"zlib"`, `"lz4"`, `"lz4 frame"` or
/// `"zstd"`; NULL stands for that of the image before. `flags` are `HOIST_FATBIN_...`, added up.
///
/// Errors: `OUT_OF_RANGE`; `BAD_FILE`; `NO_FIT` if the code is for another architecture or of another kind; `UNSUPPORTED` of files that
/// cannot be changed, and images that are several in one; `LAYOUT` if something stands against the change; `INVALID_ARGUMENT` for unknown
/// flags and methods.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_replace(
    fatbin: Option<&Fatbin>,
    index: usize,
    data: Bytes,
    size: usize,
    compression: Text,
    flags: u32,
    file: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let file = place(file, "file")?;
        let fatbin = handle(fatbin, "fatbin")?;
        if flags & !HOIST_FATBIN_ANY_CODE != 0 {
            return Err(Error::argument(format_args!("unknown flags {flags:#x}")));
        }
        let method = compression.optional("compression")?.map(method).transpose()?;
        // SAFETY: the length is that of `data`.
        let code = with_nul(unsafe { data.get(size, "data")? });
        let number = row(&fatbin.entries.0, index, "entry")?.region;
        let region = fatbin.region(number)?;
        let old = fatbin.entry(index)?;
        let new = successor(fatbin, &old, &code, flags)?;
        let damaged = |error| fatbin.damaged(error);
        let stored = match method.unwrap_or_else(|| old.compression()) {
            Some(method) => Some((method, method.pack(new.stored).map_err(damaged)?)),
            None => None,
        };
        let new = match &stored {
            Some((method, stored)) => new.compressed(*method, stored),
            None => new,
        };
        let item = |entry: RegionEntry<'_>| entry.at() == old.at();
        let items = region.entries().map(|entry| {
            entry.map(|entry| if item(entry) { Item::New(new) } else { Item::Kept(entry) })
        });
        let items = items.collect::<Result<Vec<_>, _>>().map_err(damaged)?;
        let change = (number, fatbin::region(&items).map_err(damaged)?);
        give(file, Buffer(changed(fatbin, vec![change])?));
        Ok(())
    })
}

/// The whole file with those images only whose numbers `indices` has, `count` of them. Regions of which none is left stay, without
/// images: what they held does not run any more.
///
/// Errors: `OUT_OF_RANGE`, `BAD_FILE`; `UNSUPPORTED`, `LAYOUT` as for `hoist_fatbin_replace`; `INVALID_ARGUMENT` without images.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_fatbin_prune(
    fatbin: Option<&Fatbin>,
    indices: Numbers,
    count: usize,
    file: Option<&mut MaybeUninit<*mut Buffer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let file = place(file, "file")?;
        let fatbin = handle(fatbin, "fatbin")?;
        // SAFETY: the number is that of `indices`.
        let indices = unsafe { indices.get(count, "indices")? };
        if indices.is_empty() {
            return Err(Error::argument("there are no images"));
        }
        let rows = &fatbin.entries.0;
        let mut is_kept = vec![false; rows.len()];
        for &index in indices {
            row(rows, index, "entry")?;
            if let Some(kept) = is_kept.get_mut(index) {
                *kept = true;
            }
        }
        let damaged = |error| fatbin.damaged(error);
        let mut is_kept = is_kept.into_iter();
        let mut changes = Vec::new();
        for number in 0..fatbin.regions.len() {
            let all = fatbin.region(number)?.entries().collect::<Result<Vec<_>, _>>();
            let all = all.map_err(damaged)?;
            // rows are in this order
            let kept = all.iter().zip(&mut is_kept).filter(|(_, is_kept)| *is_kept);
            let items: Vec<_> = kept.map(|(entry, _)| Item::Kept(*entry)).collect();
            if items.len() < all.len() {
                changes.push((number, fatbin::region(&items).map_err(damaged)?));
            }
        }
        give(file, Buffer(changed(fatbin, changes)?));
        Ok(())
    })
}

/// A method of compression by its name.
fn method(name: &str) -> Result<Option<CompressionMethod>, Error> {
    if name == "none" {
        return Ok(None);
    }
    let found = CompressionMethod::ALL.into_iter().find(|method| method.name() == name);
    let unknown = || Error::argument(format_args!("unknown compression {name}"));
    found.ok_or_else(unknown).map(Some)
}

/// PTX has a NUL behind it in a region.
fn with_nul(code: &[u8]) -> Cow<'_, [u8]> {
    let is_text = !code.starts_with(b"\x7fELF") && !code.ends_with(&[0]);
    if is_text { [code, &[0]].concat().into() } else { code.into() }
}

/// What comes in the place of an image, not compressed.
fn successor<'a>(
    fatbin: &Fatbin,
    old: &RegionEntry<'a>,
    code: &'a [u8],
    flags: u32,
) -> Result<NewEntry<'a>, Error> {
    let label = &*fatbin.label;
    let refused = |status, words| Error::new(status, format!("{label}: {words}")).file(label);
    if old.kind() == EntryKind::Concatenated {
        return Err(refused(Status::Unsupported, "the image is several in one".to_owned()));
    }
    let is_elf = code.starts_with(b"\x7fELF");
    let new = if is_elf { NewEntry::cubin(code) } else { NewEntry::ptx(code) };
    let new = new.map_err(|error| container(&error, "the new code"))?;
    let new = new.with_sm(of_family(code, new.sm)).in_place_of(old);
    let is_same = new.kind == old.kind() && new.sm == old.sm();
    if !is_same && flags & HOIST_FATBIN_ANY_CODE == 0 {
        let words = format!("{} for {} in the place of ", new.kind, new.sm);
        let words = words + &format!("{} for {}", old.kind(), old.sm());
        return Err(refused(Status::NoFit, words));
    }
    Ok(new)
}

/// The architecture of a cubin, with the suffix `f` if the note of the tool that made it has it.
fn of_family(code: &[u8], sm: Sm) -> Sm {
    let target = nvinfo::Cubin::parse(code).ok().map(|cubin| *cubin.target());
    let is_family = target.is_some_and(|it| it.suffix == nvinfo::TargetSuffix::Family);
    if is_family && sm.suffix == Suffix::None { Sm { suffix: Suffix::Family, ..sm } } else { sm }
}

/// The file with regions that become others: each by its number.
fn changed(fatbin: &Fatbin, changes: Vec<(usize, Vec<u8>)>) -> Result<Vec<u8>, Error> {
    let old = &*fatbin.bytes;
    if changes.is_empty() {
        return Ok(old.to_vec());
    }
    let refused = |error| rewriting(&error, &fatbin.label);
    let range = |number| row(&fatbin.regions, number, "region").map(offsets);
    let new = changes.iter().map(|(number, new)| Ok((range(*number)?, new)));
    let new = new.collect::<Result<Vec<_>, Error>>()?;
    let rewriter = Rewriter::of_device_code(old, new).map_err(refused)?;
    let plan = rewriter.plan().map_err(refused)?;
    let mut written = Vec::new();
    let done = plan.write(old, &mut written);
    done.map_err(|cause| Error::new(Status::Internal, cause))?;
    check(fatbin, &written, &changes)?;
    Ok(written)
}

/// Looks at what was written: each region that changed is there, if it has images, and no other one was lost.
fn check(fatbin: &Fatbin, written: &[u8], changes: &[(usize, Vec<u8>)]) -> Result<(), Error> {
    let damaged = |error| fatbin.damaged(error);
    let mut there: Vec<Region<'_>> = Vec::new();
    for found in fatbin::walk(written, Search::Always) {
        if let Container::Region(region) = found.map_err(damaged)?.container {
            there.push(region);
        }
    }
    let is_filled = |region: &Region<'_>| region.entries().next().is_some();
    let mut expected = 0_usize;
    for number in 0..fatbin.regions.len() {
        let change = changes.iter().find(|(changed, _)| *changed == number);
        let region = match change {
            Some((_, new)) => Region::parse(new.as_slice()).map_err(damaged)?,
            None => fatbin.region(number)?,
        };
        if !is_filled(&region) {
            continue;
        }
        expected = expected.saturating_add(1);
        if !there.iter().any(|found| found.bytes() == region.bytes()) {
            let words = format_args!("{}: region {number} would be lost", fatbin.label);
            return Err(Error::new(Status::Internal, words));
        }
    }
    if there.iter().filter(|region| is_filled(region)).count() != expected {
        let words = format_args!("{}: would not have {expected} regions", fatbin.label);
        return Err(Error::new(Status::Internal, words));
    }
    Ok(())
}

const fn offsets(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

/// What stands against a change.
fn rewriting(error: &elf_rewrite::Error, label: &str) -> Error {
    let status = match &error.kind {
        RewriteErrorKind::DeviceCode(error) => return container(error, label),
        RewriteErrorKind::Elf(elf) => of_elf(elf.kind),
        RewriteErrorKind::Windows
        | RewriteErrorKind::Unknown
        | RewriteErrorKind::Type(_)
        | RewriteErrorKind::Encoding
        | RewriteErrorKind::ThinArchive
        | RewriteErrorKind::BsdSymbols
        | RewriteErrorKind::Machine(_)
        | RewriteErrorKind::Relocations(_) => Status::Unsupported,
        _ => Status::Layout,
    };
    let numbers = Known { offset: Some(error.at), ..Known::default() };
    Error::new(status, format_args!("{label}: {error}")).file(label).with(numbers)
}
