//! How a library is loaded: a step after the other.

use super::error::LibraryError;
use super::loaded::{Bytes, Loaded, call, image};
use super::resolve::Resolver;
use super::scope::{Scope, breadth_first, share};
use super::{frames, needed};
use crate::Host;
use crate::error::Error;
use crate::memory::{Mapping, MappingOptions};
use crate::symbols::{Keeper, Symbols};
use crate::threads::{Threads, exit};
use crate::unwind::Unwinding;
use core::ops::Range;
use elf_core::names::{DF_1_NODELETE, DF_1_PIE, DF_SYMBOLIC};
use elf_core::{Kind, Record, Role, SectionMut, SegmentFlags, apply_dynamic};
use elf_image::{ErrorKind, Facts, Image, PageRange};
use elf_layout::{ThreadLocal, TlsBlock};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A relocation that a function of the library answers.
type Deferred = Record;

/// What a load is given beside the file.
pub(crate) struct Given<'g> {
    pub(crate) loaded: &'g [Arc<Loaded>],
    pub(crate) folder: Option<&'g Path>,
    pub(crate) symbols: &'g mut dyn Symbols,
}

/// Loads the library that `bytes` are and calls its constructors.
///
/// # Safety
/// Its code is sound to call, constructors, resolvers and destructors above all, and that of libraries that it needs.
pub(crate) unsafe fn load(bytes: Bytes, given: Given<'_>) -> Result<Arc<Loaded>, Error> {
    // SAFETY: as the caller vouches.
    let (loaded, calls, shared) = unsafe { prepare(&bytes, given) }?;
    let loaded = Arc::new(loaded);
    let (start, size) = (loaded.memory.address(), loaded.memory.size());
    let range = start..start.saturating_add(size);
    exit::enter(std::slice::from_ref(&range), start, &(Arc::clone(&loaded) as Keeper));
    share(shared, &loaded);
    if calls.stays {
        core::mem::forget(Arc::clone(&loaded));
    }
    // SAFETY: the addresses are in the code; the caller vouches for it.
    unsafe { call(&calls.initialize) };
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
unsafe fn prepare(bytes: &Bytes, given: Given<'_>) -> Result<Prepared, Error> {
    let file: &[u8] = (**bytes).as_ref();
    let image = image(file).map_err(LibraryError::from)?;
    let facts = image.facts();
    let refused = |reason: &str| LibraryError::Refused { reason: reason.into() };
    if image.is_fixed() || facts.flags_1 & DF_1_PIE != 0 {
        return Err(refused("an executable, not a library").into());
    }
    let dynamic = image.dynamic().ok_or_else(|| refused("a file without a dynamic section"))?;
    let name = needed::name(dynamic)?;
    // SAFETY: as the caller vouches.
    let direct = unsafe { needed::members(dynamic, given.loaded, given.folder) }?;
    let members = breadth_first(&direct);

    let page = rustix::param::page_size() as u64;
    let pages: Vec<PageRange> = image.pages(page).map_err(LibraryError::from)?.collect();
    let both = SegmentFlags::WRITE | SegmentFlags::EXECUTE;
    if pages.iter().any(|range| range.flags.contains(both)) {
        return Err(Error::WriteExecute);
    }
    let before = image.start() & page.wrapping_sub(1);
    let size = pages.iter().map(|range| range.size).sum();
    let mapping_options =
        MappingOptions { size, alignment: image.alignment(), ..MappingOptions::default() };
    let mut memory = Mapping::new(&mapping_options)?;
    let base = memory.address().wrapping_add(before);
    let bias = image.bias(base).map_err(LibraryError::from)?;
    let code: Vec<Range<u64>> = pages
        .iter()
        .filter(|range| range.flags.contains(SegmentFlags::EXECUTE))
        .map(|range| memory.address().wrapping_add(range.offset))
        .zip(pages.iter().filter(|range| range.flags.contains(SegmentFlags::EXECUTE)))
        .map(|(start, range)| start..start.wrapping_add(range.size))
        .collect();

    let is_symbolic = facts.is_symbolic || facts.flags & DF_SYMBOLIC != 0;
    let mut scope = Scope::new(&members, given.symbols, is_symbolic);
    let exports = image.exports().map_err(LibraryError::from)?;
    let resolver = Resolver::new(exports, bias, &mut scope);
    let (mut deferred, mut has_tls, mut wants_tp_offset) = (Vec::<Deferred>::new(), false, false);
    let start = usize::try_from(before).unwrap_or(0);
    let end = start.saturating_add(usize::try_from(image.size()).unwrap_or(0));
    let content = memory.bytes_mut().get_mut(start..end).unwrap_or_default();
    image.write_zeroed(content).map_err(LibraryError::from)?;
    let plain = |record: &Record, kind: &'static Kind| {
        if is_tls(kind.value.of) || is_tls(kind.value.minus) {
            has_tls = true;
            wants_tp_offset |=
                kind.value.of == Role::TpOffset || kind.value.minus == Role::TpOffset;
            return false;
        }
        let is_late = kind.value.of == Role::Indirect || resolver.is_indirect(record.symbol);
        if is_late {
            deferred.push(*record);
        }
        !is_late
    };
    let failed = |error| failed(&image, &resolver, error);
    image.relocate_where::<Host>(content, base, &resolver, plain).map_err(failed)?;
    let threads = threads(&image, content, wants_tp_offset, has_tls)?;
    resolver.area.set(threads.as_ref().map(Threads::area));
    if has_tls {
        let is_one =
            |_: &Record, kind: &'static Kind| is_tls(kind.value.of) || is_tls(kind.value.minus);
        image.relocate_where::<Host>(content, base, &resolver, is_one).map_err(failed)?;
    }
    let externals = resolver.externals.borrow();
    let table = frames::table(&image, content, base, &code, &externals)?;
    drop(externals);
    let calls = calls(&facts, &image, content, bias, &code)?;
    for range in &pages {
        // what is relocated later, and all that stays writable, is so already
        if !range.flags.contains(SegmentFlags::WRITE) {
            memory.set_permissions(range.offset, range.size, range.flags)?;
        }
    }
    resolver.is_executable.set(true);
    for record in &deferred {
        let word = answer(&image, record, base, &resolver)?;
        let offset = before.wrapping_add(record.offset);
        let is_writable = |range: &PageRange| {
            let end = range.offset.saturating_add(range.size);
            range.flags.contains(SegmentFlags::WRITE)
                && offset >= range.offset
                && offset.saturating_add(8) <= end
        };
        if !pages.iter().any(is_writable) {
            return Err(refused("a resolver's answer goes where nothing can be written").into());
        }
        memory.store(offset, word);
    }
    for range in pages.iter().filter(|range| range.is_relro) {
        memory.set_permissions(range.offset, range.size, range.final_flags())?;
    }
    let Resolver { shared, pairs, .. } = resolver;
    let keepers = scope.keepers;
    // SAFETY: the table was checked, is relocated, and lies in memory that the library keeps and does not write.
    let unwinding = unsafe { Unwinding::register(table.into_iter(), &code, false) };
    let loaded = Loaded {
        bytes: Arc::clone(bytes),
        name: name.as_bytes().into(),
        bias,
        code,
        finalize: OnceLock::new(),
        unwinding,
        memory,
        threads,
        pairs: pairs.into_inner(),
        needed: direct,
        keepers,
    };
    Ok((loaded, calls, shared.into_inner()))
}

const fn is_tls(role: Role) -> bool {
    matches!(role, Role::TlsModule | Role::DtpOffset | Role::TpOffset | Role::TlsDescFunction)
}

/// Why a relocation failed, in words.
fn failed(image: &Image<'_>, resolver: &Resolver<'_, '_>, error: elf_image::Error) -> LibraryError {
    if let Some(why) = resolver.failed.borrow_mut().take() {
        return why;
    }
    let symbol = match error.kind {
        ErrorKind::Relocation(error) => error.symbol,
        _ => 0,
    };
    let exports = image.exports().ok().flatten();
    let wanted = exports.and_then(|exports| exports.wanted(symbol).ok());
    let name = wanted.map(|wanted| wanted.name.to_string()).unwrap_or_default();
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

/// The word of a relocation that a function of the library answers.
fn answer(
    image: &Image<'_>,
    record: &Record,
    base: u64,
    resolver: &Resolver<'_, '_>,
) -> Result<u64, LibraryError> {
    let mut word = [0; 8];
    let address = base.wrapping_add(record.offset);
    let mut place = SectionMut { bytes: &mut word, address, big_endian: false };
    let record = Record { offset: 0, ..*record };
    apply_dynamic::<Host>(&record, &mut place, resolver).map_err(|error| {
        let error = elf_image::Error { segment: None, kind: ErrorKind::Relocation(error) };
        failed(image, resolver, error)
    })?;
    Ok(u64::from_le_bytes(word))
}

/// The functions to call, in order, with their addresses checked.
fn calls(
    facts: &Facts,
    image: &Image<'_>,
    memory: &[u8],
    bias: u64,
    code: &[Range<u64>],
) -> Result<Calls, LibraryError> {
    let array = |array: elf_image::InitArray| -> Vec<u64> {
        // the size of what is not there says nothing
        let start = image.offset_of(array.address).filter(|_| array.address != 0);
        let start = start.and_then(|start| usize::try_from(start).ok());
        let bytes = start.zip(usize::try_from(array.size).ok());
        let bytes = bytes.and_then(|(start, size)| memory.get(start..)?.get(..size));
        let words = bytes.unwrap_or_default().chunks_exact(8);
        let words = words.filter_map(|word| word.first_chunk().copied().map(u64::from_le_bytes));
        // as ld.so does
        words.filter(|word| *word != 0 && *word != u64::MAX).collect()
    };
    let one = |address: u64| (address != 0).then(|| address.wrapping_add(bias));
    let initialize: Vec<u64> = one(facts.init).into_iter().chain(array(facts.init_array)).collect();
    let backwards = array(facts.fini_array).into_iter().rev();
    let finalize: Vec<u64> = backwards.chain(one(facts.fini)).collect();
    for &address in initialize.iter().chain(&finalize) {
        if !code.iter().any(|range| range.contains(&address)) {
            return Err(LibraryError::Initializer { address });
        }
    }
    Ok(Calls { initialize, finalize, stays: facts.flags_1 & DF_1_NODELETE != 0 })
}
