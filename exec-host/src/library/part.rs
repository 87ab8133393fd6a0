//! A library on its way into memory: its part in each step of a load.

use super::definition::Definition;
use super::described::Described;
use super::error::LibraryError;
use super::file::OpenFile;
use super::group::Node;
use super::later::Later;
use super::loaded::{Loaded, NeededLibraries};
use super::needed::Given;
use super::relocate::{failed, relocate, width};
use super::resolve::Resolver;
use crate::Host;
use crate::budget::image_limit;
use crate::error::Error;
use crate::mapped_image::MappedImage;
use crate::observer::LoadedLibrary;
use crate::symbols::Keeper;
use crate::threads::Threads;
use crate::unwind::{self, Extent, LibraryTable, Unwinding};
use crate::word;
use core::ops::Range;
use elf_core::names::{DF_1_NODELETE, DF_STATIC_TLS, PT_LOAD};
use elf_core::{
    ApplyError, Arch as _, Kind, Name, Record, Role, SectionMut, SegmentFlags, Stage,
    apply_dynamic, find,
};
use elf_image::{DynamicFacts, ErrorKind, Exports, Image, PageRange};
use elf_layout::{ThreadLocal, TlsBlock};
use exec_core::sync::OnceLock;
use std::ffi::CString;
use std::sync::Arc;

/// Functions that are called first and last.
pub(crate) struct Calls {
    pub(crate) initialize: Vec<u64>,
    pub(crate) finalize: Vec<u64>,
    /// The library is never unloaded (`DF_1_NODELETE`): others keep its addresses.
    pub(crate) stays: bool,
}

/// A library that is being loaded.
pub(crate) struct Part<'n> {
    pub(crate) image: Image<'n>,
    pub(crate) facts: DynamicFacts,
    pub(crate) mapped: MappedImage,
    code: Vec<Range<u64>>,
    /// It has code that reaches variables of others at one distance from the thread pointer.
    pub(crate) reaches_others: bool,
    /// Somebody has such code that may mean its variables.
    pub(crate) wants_tp_offset: bool,
    threads: Option<Threads>,
    later: Later,
    calls: Option<Calls>,
}

impl<'n> Part<'n> {
    /// In memory, with nothing relocated.
    pub(crate) fn new(
        node: &'n Node,
        in_file: Option<&OpenFile<'_>>,
        limit: Option<u64>,
        has_others: bool,
    ) -> Result<Self, Error> {
        let image = *node.content.image();
        let header = image.file().header();
        if image.file().encoding().is_big_endian() && header.machine == Host::MACHINE {
            let reason = String::from("a library with big-endian data");
            return Err(LibraryError::Refused { reason }.into());
        }
        let mapped =
            MappedImage::new(&image, in_file, limit.unwrap_or(image_limit(image.file().size())))?;
        let code = code(&mapped);
        // not all linkers set the flag
        let reaches_others = has_others
            && (node.facts.flags & DF_STATIC_TLS != 0 || wants_tp_offsets_of_others(&image));
        Ok(Self {
            image,
            facts: node.facts,
            mapped,
            code,
            reaches_others,
            wants_tp_offset: false,
            threads: None,
            later: Later::default(),
            calls: None,
        })
    }

    /// Relocates what is known without threads and without calling anybody.
    pub(crate) fn relocate(&mut self, resolver: &mut Resolver<'_, '_>) -> Result<(), Error> {
        let Self { image, mapped, later, .. } = self;
        relocate(image, mapped, resolver, later)?;
        // addends that are in the places are read before anything is written there
        let content = mapped.content();
        for (record, _) in later.answered.iter_mut().filter(|(record, _)| record.addend.is_none()) {
            let start = usize::try_from(record.offset).unwrap_or(usize::MAX);
            let held = content.get(start..).and_then(|rest| rest.first_chunk());
            record.addend = Some(held.map_or(0, |held| isize::from_le_bytes(*held) as i64));
        }
        Ok(())
    }

    /// Gives threads their block, whose initial values are relocated: near the thread pointer if somebody wants it.
    pub(crate) fn give_threads(&mut self, resolver: &mut Resolver<'_, '_>) -> Result<(), Error> {
        let wants = self.wants_tp_offset || self.later.wants_tp_offset;
        let has = !self.later.of_threads.is_empty();
        self.threads = threads(&self.image, self.mapped.content(), wants, has)?;
        resolver.set_block(self.threads.as_ref().map(Threads::static_tls_block));
        Ok(())
    }

    /// Relocates what speaks of threads, and finds the functions to call.
    pub(crate) fn relocate_thread_local(
        &mut self,
        resolver: &mut Resolver<'_, '_>,
    ) -> Result<(), Error> {
        let Self { image, facts, mapped, code, calls, later, .. } = self;
        for (record, kind) in &later.of_threads {
            if !mapped.is_open(record.offset, width(kind)) {
                mapped.open()?;
            }
            let address = mapped.base;
            let mut place = SectionMut { bytes: mapped.content(), address, big_endian: false };
            apply_dynamic::<Host>(record, &mut place, resolver).map_err(|error| {
                let offset = image.start().wrapping_add(record.offset);
                let kind = ErrorKind::Relocation(ApplyError { offset, ..error });
                failed(image, resolver, elf_image::Error { segment: None, kind })
            })?;
        }
        let bias = mapped.bias;
        let externals = resolver.externals.borrow();
        let is_code = |address: u64| {
            // a function that the library shows may be another one's with this name
            code.iter().any(|range| range.contains(&address)) || externals.contains(&address)
        };
        *calls = Some(Calls::collect(facts, image, mapped.content(), bias, is_code)?);
        Ok(())
    }

    /// Gives pages their permissions, but for those that [answers](Self::answer) go to: functions of the library can be called then.
    pub(crate) fn protect(&mut self, resolver: &mut Resolver<'_, '_>) -> Result<(), Error> {
        resolver.is_executable = true;
        self.mapped.protect(self.later.answered.is_empty())
    }

    /// Has functions of the libraries answer. What they answer goes to pages that are writable, or are so up to the end of relocation.
    pub(crate) fn answer(&mut self, resolver: &mut Resolver<'_, '_>) -> Result<(), Error> {
        self.check_resolvers(resolver)?;
        Ok(answer(&self.later.answered, &self.image, &self.mapped, resolver)?)
    }

    /// Fails if a resolver of its own that is to be called is not in its code.
    fn check_resolvers(&self, resolver: &Resolver<'_, '_>) -> Result<(), LibraryError> {
        let Self { image, mapped, code, later, .. } = self;
        for (record, kind) in &later.answered {
            let address = if kind.value.of == Role::Indirect {
                Some(mapped.bias.wrapping_add_signed(record.addend.unwrap_or(0)))
            } else if let Some(Definition::Indirect(address)) =
                resolver.definition(record.symbol, false)
            {
                // that of another library is not looked at
                Some(address).filter(|it| it.wrapping_sub(mapped.base) < image.size())
            } else {
                None
            };
            let is_code = |address: &u64| code.iter().any(|range| range.contains(address));
            if let Some(address) = address.filter(|address| !is_code(address)) {
                return Err(LibraryError::Initializer { address });
            }
        }
        Ok(())
    }

    /// Makes it known to unwinders and observers.
    ///
    /// # Safety
    /// Its code is sound to call.
    #[expect(clippy::vec_box, reason = "code has their addresses, which stay")]
    pub(crate) unsafe fn finish(
        self,
        node: &Node,
        given: &Given<'_>,
        pairs: Vec<Box<[usize; 2]>>,
        externals: Vec<u64>,
        keepers: Vec<Keeper>,
    ) -> Result<(Loaded, Calls), Error> {
        let Self { image, mapped, code, threads, calls, .. } = self;
        let bias = mapped.bias;
        let in_memory = image.file().segments().iter().filter(|it| it.r#type == PT_LOAD);
        let extent = Extent {
            segments: in_memory
                .map(|segment| {
                    let start = bias.wrapping_add(segment.address);
                    (start..start.wrapping_add(segment.memory_size), segment.flags)
                })
                .collect(),
            variables: threads.as_ref().map(Threads::range_end),
            name: CString::new(&*node.file).unwrap_or_default(),
        };
        // SAFETY: the pages are the library's, which keeps them, and are relocated; nobody writes to a table of unwinders.
        let table = unwind::table_of(&image).map(|(header, size)| unsafe {
            let header = (mapped.base.wrapping_add(header), size);
            LibraryTable::new(header, mapped.readable(), &code, externals)
        });
        // SAFETY: as above.
        let registered = unsafe { Unwinding::register_library(table, &code, extent) };
        let MappedImage { memory, pages, .. } = mapped;
        // what is declared last goes first: unwinders read the memory when they forget it, if an observer refuses the load
        let unwinding = registered.map_err(LibraryError::Unwinding)?;
        let mut observed = Vec::new();
        if !given.observers.is_empty() {
            let (file, name) = (node.content.bytes(), Name(&node.name));
            let symbols = node.content.exports().map(Exports::symbols);
            let shown = LoadedLibrary::new(file, name, bias, &code, &memory, symbols);
            for observer in given.observers {
                observed.extend(observer.library_loaded(&shown).map_err(Error::Observer)?);
            }
        }
        let (start, size) = (memory.address(), pages.iter().map(|range| range.size).sum());
        let end = start.saturating_add(size);
        let described = Described::enter(start, end, bias, &node.file, &node.content);
        let loaded = Loaded {
            content: Arc::clone(&node.content),
            name: node.name.clone(),
            folder: node.folder.clone(),
            bias,
            code,
            finalize: OnceLock::new(),
            observed,
            unwinding,
            described,
            memory,
            size,
            threads,
            pairs,
            links: NeededLibraries::default(),
            keepers,
        };
        let none = Calls { initialize: Vec::new(), finalize: Vec::new(), stays: false };
        Ok((loaded, calls.unwrap_or(none)))
    }
}

fn refused(reason: &str) -> LibraryError {
    LibraryError::Refused { reason: reason.into() }
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

/// Whether code reaches variables of other libraries at one distance from the thread pointer.
fn wants_tp_offsets_of_others(image: &Image<'_>) -> bool {
    let mut records = image.relocations().filter_map(Result::ok).flatten();
    records.any(|record| {
        let kind = find(Host::KINDS, record.r#type).filter(|_| record.symbol != 0);
        kind.is_some_and(|kind| kind.value.of == Role::TpOffset)
    })
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
    let (file_size, size) = (block.file_size, block.size);
    let block = TlsBlock { offset: block.offset, file_size, size, alignment: block.alignment };
    if wants_tp_offset {
        Threads::new(&block, memory, ThreadLocal::AsCompiled).map(Some)
    } else {
        Threads::anywhere(&block, memory).map(Some)
    }
}

/// Stores what functions of the library answer to relocations, in order.
fn answer(
    answered: &[(Record, &'static Kind)],
    image: &Image<'_>,
    mapped: &MappedImage,
    resolver: &Resolver<'_, '_>,
) -> Result<(), LibraryError> {
    for (record, kind) in answered {
        let mut word = word::bytes(0);
        // what is for loaders only fills a word
        let size = if kind.stage == Stage::Load { word.len() } else { kind.field.bytes() };
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
        let word = word.get(..size).filter(|_| mapped.is_writable(offset, size as u64));
        let word =
            word.ok_or_else(|| refused("a resolver's answer goes where nothing can be written"))?;
        mapped.memory.store(offset, word);
    }
    Ok(())
}

impl Calls {
    /// The functions to call, in order, with their addresses checked.
    fn collect(
        facts: &DynamicFacts,
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
            // as ld.so does
            Ok(word::words(bytes).filter(|word| !matches!(*word, 0 | word::MAX)).collect())
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
