//! How a library is loaded: a step after the other.

use super::error::LibraryError;
use super::file::FilePages;
use super::loaded::{Bytes, Loaded, image};
use super::needed;
use super::needed::Given;
use super::resolve::Resolver;
use super::scope::{Needed, Scope, share};
use crate::Host;
use crate::budget::image_limit;
use crate::error::Error;
use crate::mapped_image::MappedImage;
use crate::observer::LoadedLibrary;
use crate::start;
use crate::symbols::Keeper;
use crate::threads::{Threads, exit};
use crate::unwind::{Extent, LibraryTable, Unwinding};
use core::ops::Range;
use elf_core::names::{DF_1_NODELETE, DF_1_NOOPEN, DF_1_PIE, DF_STATIC_TLS, DF_SYMBOLIC, PT_LOAD};
use elf_core::{
    ApplyError, Arch as _, Kind, Record, Role, SectionMut, SegmentFlags, Stage, apply_dynamic, find,
};
use elf_image::{ErrorKind, Facts, Image, PageRange};
use elf_layout::{ThreadLocal, TlsBlock};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A relocation that a function of the library answers.
type Deferred = (Record, &'static Kind);

/// Loads the library that `bytes` are, but for `code`, and calls its constructors. `folder` is where it is said to be.
///
/// # Safety
/// Its code is sound to call, constructors, resolvers and destructors above all, and that of libraries that it needs.
pub(crate) unsafe fn load(
    bytes: Bytes,
    in_file: Option<&FilePages>,
    given: &mut Given<'_>,
    folder: Option<&Path>,
) -> Result<Arc<Loaded>, Error> {
    // SAFETY: as the caller vouches.
    let (loaded, calls, shared) = unsafe { prepare(&bytes, in_file, given, folder) }?;
    let loaded = Arc::new(loaded);
    let (start, size) = (loaded.memory.address(), loaded.memory.size());
    let range = start..start.saturating_add(size);
    exit::enter(std::slice::from_ref(&range), start, &(Arc::clone(&loaded) as Keeper));
    share(shared, &loaded);
    if calls.stays {
        core::mem::forget(Arc::clone(&loaded));
    }
    // SAFETY: the addresses are in the code; the caller vouches for it.
    unsafe { start::of_process().call(&calls.initialize) };
    let _ = loaded.finalize.set(calls.finalize);
    Ok(loaded)
}

/// Functions that are called first and last.
struct Calls {
    initialize: Vec<u64>,
    finalize: Vec<u64>,
    /// The library is never unloaded (`DF_1_NODELETE`): others keep its addresses.
    stays: bool,
}

type Prepared = (Loaded, Calls, Vec<(Box<[u8]>, u64)>);

/// All but the constructors.
unsafe fn prepare(
    bytes: &Bytes,
    in_file: Option<&FilePages>,
    given: &mut Given<'_>,
    folder: Option<&Path>,
) -> Result<Prepared, Error> {
    let file: &[u8] = (**bytes).as_ref();
    let image = image(file).map_err(LibraryError::from)?;
    let facts = image.facts().map_err(LibraryError::from)?;
    refuse(&image, &facts)?;
    let dynamic = image.dynamic().map_err(LibraryError::from)?;
    let dynamic = dynamic.ok_or_else(|| refused("a file without a dynamic section"))?;
    let name = needed::name(&dynamic)?;
    let wants_tp_offsets = given.wants_tp_offsets;
    // not all linkers set the flag
    given.wants_tp_offsets |= facts.flags & DF_STATIC_TLS != 0
        || given.source.is_some() && wants_tp_offsets_of_others(&image);
    // SAFETY: as the caller vouches.
    let needed = unsafe { needed::members(&dynamic, given, folder) };
    given.wants_tp_offsets = wants_tp_offsets;
    let needed = Needed::new(needed?);

    let limit = given.limit.unwrap_or(image_limit(file.len() as u64));
    let mapped = MappedImage::new(&image, in_file, limit)?;
    let bias = mapped.bias;
    let is_symbolic = facts.is_symbolic || facts.flags & DF_SYMBOLIC != 0;
    let mut scope = Scope::new(&needed, &mut *given.symbols, is_symbolic);
    let exports = image.exports().map_err(LibraryError::from)?;
    let mut resolver = Resolver::new(exports, bias, &mut scope);
    let relocated = Relocated::new(&image, &facts, mapped, &mut resolver, wants_tp_offsets)?;
    let Protected(relocated) = relocated.protect(&image, &mut resolver)?;
    let Relocated { mapped, threads, code, calls, .. } = relocated;
    let Resolver { shared, pairs, externals, .. } = resolver;
    let keepers = scope.keepers;
    let in_memory = image.file().segments().iter().filter(|segment| segment.r#type == PT_LOAD);
    let extent = Extent {
        segments: in_memory
            .map(|segment| {
                let start = bias.wrapping_add(segment.address);
                (start..start.wrapping_add(segment.memory_size), segment.flags)
            })
            .collect(),
        variables: threads.as_ref().map(Threads::range_end),
    };
    // SAFETY: the pages are the library's, which keeps them, and are relocated; nobody writes to a table of unwinders.
    let table = image.eh_frame_hdr().map(|(header, _)| unsafe {
        let header = mapped.base.wrapping_add(header);
        LibraryTable::new(header, mapped.readable(), &code, externals.into_inner())
    });
    // SAFETY: as above.
    let unwinding = unsafe { Unwinding::register_library(table, &code, extent) };
    let unwinding = unwinding.map_err(LibraryError::Unwinding)?;
    let MappedImage { memory, .. } = mapped;
    let shown = LoadedLibrary::new(file, name, bias, &code, &memory);
    let observed = given.observers.iter().map(|observer| observer.library_loaded(&shown));
    let observed = observed.filter_map(Result::transpose).collect::<Result<_, _>>();
    let observed = observed.map_err(Error::Observer)?;
    let loaded = Loaded {
        bytes: Arc::clone(bytes),
        name: name.as_bytes().into(),
        bias,
        code,
        finalize: OnceLock::new(),
        observed,
        unwinding,
        memory,
        threads,
        pairs: pairs.into_inner(),
        needed: needed.into_direct(),
        keepers,
    };
    Ok((loaded, calls, shared.into_inner()))
}

/// The image is relocated, but for what functions of the library answer, and checked; it is writable still.
struct Relocated {
    mapped: MappedImage,
    threads: Option<Threads>,
    deferred: Vec<Deferred>,
    code: Vec<Range<u64>>,
    calls: Calls,
}

/// All is relocated, and pages have their permissions.
struct Protected(Relocated);

impl Relocated {
    /// Relocates what is known without threads, gives these their block, near the thread pointer if that can be and somebody wants it, then
    /// relocates the rest.
    fn new(
        image: &Image<'_>,
        facts: &Facts,
        mut mapped: MappedImage,
        resolver: &mut Resolver<'_, '_>,
        mut wants_tp_offset: bool,
    ) -> Result<Self, Error> {
        let (base, bias) = (mapped.base, mapped.bias);
        let (mut deferred, mut has_tls) = (Vec::<Deferred>::new(), false);
        let plain = |record: &Record, kind: &'static Kind| {
            if is_tls(kind.value.of) || is_tls(kind.value.minus) {
                has_tls = true;
                wants_tp_offset |=
                    kind.value.of == Role::TpOffset || kind.value.minus == Role::TpOffset;
                return false;
            }
            let is_late = match kind.value.of {
                Role::Indirect => true,
                Role::Address | Role::Plt => resolver.is_indirect(record.symbol),
                _ => false,
            };
            if is_late {
                deferred.push((*record, kind));
            }
            !is_late
        };
        let content = mapped.content();
        image
            .relocate_where::<Host>(content, base, &*resolver, plain)
            .map_err(|error| failed(image, resolver, error))?;
        let threads = threads(image, content, wants_tp_offset, has_tls)?;
        resolver.static_tls_block = threads.as_ref().map(Threads::static_tls_block);
        if has_tls {
            let is_one =
                |_: &Record, kind: &'static Kind| is_tls(kind.value.of) || is_tls(kind.value.minus);
            image
                .relocate_where::<Host>(content, base, &*resolver, is_one)
                .map_err(|error| failed(image, resolver, error))?;
        }
        let externals = resolver.externals.borrow();
        let code = code(&mapped);
        let content = mapped.content();
        let is_code = |address: u64| {
            // a function that the library shows may be another one's with this name
            code.iter().any(|range| range.contains(&address)) || externals.contains(&address)
        };
        let calls = Calls::collect(facts, image, content, bias, is_code)?;
        Ok(Self { mapped, threads, deferred, code, calls })
    }

    /// Gives pages their permissions, and has functions of the library answer, which can be called then. What they answer goes to pages
    /// that are writable, or are so up to the end of relocation.
    fn protect(
        self,
        image: &Image<'_>,
        resolver: &mut Resolver<'_, '_>,
    ) -> Result<Protected, Error> {
        self.mapped.protect()?;
        resolver.is_executable = true;
        answer(&self.deferred, image, &self.mapped, resolver)?;
        self.mapped.end_relocation()?;
        Ok(Protected(self))
    }
}

fn refused(reason: &str) -> LibraryError {
    LibraryError::Refused { reason: reason.into() }
}

/// Fails for what is no library to be opened so.
fn refuse(image: &Image<'_>, facts: &Facts) -> Result<(), LibraryError> {
    if image.is_fixed() || facts.flags_1 & DF_1_PIE != 0 {
        return Err(refused("an executable, not a library"));
    }
    if facts.flags_1 & DF_1_NOOPEN != 0 {
        return Err(refused("the library says that it is not to be opened so (DF_1_NOOPEN)"));
    }
    Ok(())
}

/// Where the code of an image is.
fn code(mapped: &MappedImage) -> Vec<Range<u64>> {
    let code = mapped.pages.iter().filter(|range| range.flags.contains(SegmentFlags::EXECUTE));
    let range = |range: &PageRange| {
        let start = mapped.memory.address().wrapping_add(range.offset);
        start..start.wrapping_add(range.size)
    };
    code.map(range).collect()
}

const fn is_tls(role: Role) -> bool {
    matches!(role, Role::TlsModule | Role::DtpOffset | Role::TpOffset | Role::TlsDescFunction)
}

/// Whether code reaches variables of other libraries at one distance from the thread pointer.
fn wants_tp_offsets_of_others(image: &Image<'_>) -> bool {
    let mut records = image.relocations().filter_map(Result::ok).flatten();
    records.any(|record| {
        let kind = find(Host::KINDS, record.r#type).filter(|_| record.symbol != 0);
        kind.is_some_and(|kind| kind.value.of == Role::TpOffset)
    })
}

/// Why a relocation failed, in words.
fn failed(image: &Image<'_>, resolver: &Resolver<'_, '_>, error: elf_image::Error) -> LibraryError {
    let symbol = match error.kind {
        ErrorKind::Relocation(error) => error.symbol,
        _ => 0,
    };
    if let Some(why) = resolver.why(symbol) {
        return why;
    }
    let exports = image.exports().ok().flatten();
    let reference = exports.and_then(|exports| exports.reference(symbol).ok());
    let name = reference.map(|reference| reference.name.to_string()).unwrap_or_default();
    LibraryError::Relocation { error, name }
}

/// The block of thread-local variables, whose initial values are relocated.
fn threads(
    image: &Image<'_>,
    memory: &[u8],
    wants_tp_offset: bool,
    is_used: bool,
) -> Result<Option<Threads>, Error> {
    let Some(block) = image.tls().map_err(LibraryError::from)? else {
        let none = TlsBlock { offset: 0, file_size: 0, size: 0, alignment: 1 };
        return is_used.then(|| Threads::new(&none, &[], ThreadLocal::AsCompiled)).transpose();
    };
    let (file_size, size) = (block.data.len() as u64, block.size);
    let block = TlsBlock { offset: block.offset, file_size, size, alignment: block.alignment };
    if wants_tp_offset {
        Threads::new(&block, memory, ThreadLocal::AsCompiled).map(Some)
    } else {
        Threads::anywhere(&block, memory).map(Some)
    }
}

/// Stores what functions of the library answer to relocations, in order.
fn answer(
    deferred: &[Deferred],
    image: &Image<'_>,
    mapped: &MappedImage,
    resolver: &Resolver<'_, '_>,
) -> Result<(), LibraryError> {
    for (record, kind) in deferred {
        let mut word = [0; 8];
        // what is for loaders only fills a word
        let size = if kind.stage == Stage::Load { word.len() } else { kind.field.bytes };
        let address = mapped.base.wrapping_add(record.offset);
        let mut place = SectionMut { bytes: &mut word, address, big_endian: false };
        apply_dynamic::<Host>(&Record { offset: 0, ..*record }, &mut place, resolver).map_err(
            |error| {
                let error =
                    ApplyError { offset: image.start().wrapping_add(record.offset), ..error };
                let kind = ErrorKind::Relocation(error);
                failed(image, resolver, elf_image::Error { segment: None, kind })
            },
        )?;
        let offset = mapped.offset(record.offset);
        let is_writable = |range: &PageRange| {
            let end = range.offset.saturating_add(range.size);
            let is_inside = offset >= range.offset && offset.saturating_add(size as u64) <= end;
            is_inside && range.flags.contains(SegmentFlags::WRITE)
        };
        let word = word.get(..size).filter(|_| mapped.pages.iter().any(is_writable));
        let word =
            word.ok_or_else(|| refused("a resolver's answer goes where nothing can be written"))?;
        mapped.memory.store(offset, word);
    }
    Ok(())
}

impl Calls {
    /// The functions to call, in order, with their addresses checked.
    fn collect(
        facts: &Facts,
        image: &Image<'_>,
        memory: &[u8],
        bias: u64,
        is_code: impl Fn(u64) -> bool,
    ) -> Result<Self, LibraryError> {
        let array = |array: elf_image::InitArray| -> Result<Vec<u64>, LibraryError> {
            let outside = LibraryError::Initializer { address: array.address.wrapping_add(bias) };
            // the size of what is not there says nothing
            let size = if array.address == 0 { 0 } else { array.size };
            let range = image.range_of(array.address, size);
            let bytes = match range {
                None if size == 0 => &[],
                None => return Err(outside),
                Some(range) => {
                    memory.get(range.start as usize..range.end as usize).ok_or(outside)?
                }
            };
            let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            // as ld.so does
            Ok(words.filter(|word| *word != 0 && *word != u64::MAX).collect())
        };
        let one = |address: u64| (address != 0).then(|| address.wrapping_add(bias));
        let mut initialize: Vec<u64> = one(facts.init).into_iter().collect();
        initialize.extend(array(facts.init_array)?);
        let mut finalize = array(facts.fini_array)?;
        finalize.reverse();
        finalize.extend(one(facts.fini));
        for &address in initialize.iter().chain(&finalize) {
            if !is_code(address) {
                return Err(LibraryError::Initializer { address });
            }
        }
        Ok(Self { initialize, finalize, stays: facts.flags_1 & DF_1_NODELETE != 0 })
    }
}
