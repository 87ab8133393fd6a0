//! How objects get into memory, and who is told.

mod elsewhere;
mod files;
mod room;
mod stages;

use crate::Host;
use crate::at_once;
use crate::budget;
use crate::error::Error;
use crate::external::External;
use crate::image::LinkedImage;
use crate::memory::{
    CodeArena, HUGE_PAGE, Mapping, MappingOptions, MemoryRequirements, MemorySource, SPREAD, Spare,
};
use crate::module::{Module, Parts};
use crate::notable::Notable;
use crate::observer::Observer;
use crate::symbols::{LoadSymbols, SharedBytes, Symbols, from_fn};
use crate::threads::{self, initial_exec};
use crate::words;
use core::sync::atomic::AtomicBool;
use elf_core::{File, Name};
use elf_layout::archives::NameNumbers;
use elf_layout::{HeapStorage as Slots, ImageMode, Layout, Options, ThreadLocal};
use files::{out_of_reach, parse};
use room::{GRAIN, is_small, memory_for};
use stages::{Allocated, Contents, Sections};
use std::sync::Arc;

/// Where addresses end that 32 bits with a sign hold.
const LOW: u64 = 1 << 31;

/// Loads modules, all in one way: which memory, and who is told of them. It may be shared by threads.
///
/// ```
/// use exec_host::{Loader, Process};
///
/// # #[cfg(target_arch = "x86_64")] {
/// let loader = Loader::new().dual_mapping(true); // no page is ever made executable that was writable
/// let object = include_bytes!("../../fixtures/x86_64/elftest.o");
/// let module = loader.load([&object[..]], Process::new())?;
/// # assert!(module.address("foo").is_some());
/// # }
/// # Ok::<(), exec_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Loader {
    observers: Vec<Arc<dyn Observer>>,
    is_dual_mapped: bool,
    is_huge: bool,
    is_replaceable: bool,
    relaxes: bool,
    spare: Option<Arc<Spare>>,
    limit: Option<u64>,
    arena: Option<CodeArena>,
    source: Option<Arc<dyn MemorySource>>,
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

/// How objects are laid out.
#[derive(Clone, Copy)]
struct How<'n> {
    access: ThreadLocal,
    in_arena: bool,
    /// If it is known which names are one.
    numbers: Option<&'n NameNumbers>,
}

/// What is there beside a layout, once the objects are laid out.
struct Found {
    notable: Notable,
    /// Memory that the image may get.
    memory: Option<Mapping>,
}

/// Objects that sources of symbols gave.
type Joined = Vec<SharedBytes>;

impl Loader {
    /// Loads as [`Module::load`] does.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            observers: Vec::new(),
            is_dual_mapped: false,
            is_huge: false,
            is_replaceable: false,
            relaxes: true,
            spare: None,
            limit: None,
            arena: None,
            source: None,
        }
    }

    /// Has every load and unload told to `observer`: a debugger, a profiler. Those that were added first are told first.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Whether code is written through other addresses than those where it is executed, to pages of a file in memory
    /// (`memfd_create`) that is sealed before anything can be executed. No page is made executable that was not so when it was
    /// mapped: for processes under a policy that forbids it (`PR_SET_MDWE`, `execmem` of SELinux, a filter of system calls).
    #[must_use]
    pub const fn dual_mapping(mut self, is_wanted: bool) -> Self {
        self.is_dual_mapped = is_wanted;
        self
    }

    /// Whether modules whose code fills a huge page (2 MiB) ask for such pages: from the pool of `MAP_HUGETLB` if it has any,
    /// else transparent ones. Every segment then starts on a huge page. [`Module::bytes_in_huge_pages`] says what was got. Without this, images
    /// of 3 to 32 MiB begin with a huge page and are written to such ones if the system gives any; segments stand close as ever.
    #[must_use]
    pub const fn huge_pages(mut self, are_wanted: bool) -> Self {
        self.is_huge = are_wanted;
        self
    }

    /// Whether functions of what is loaded can be [replaced](Module::replace) later. Every global function then has a stub, by which
    /// it is called, from inside of the load too, and which is its address for all who ask. Compilers must not inline it, or call
    /// it as a local function: `-fPIC` for C and C++.
    #[must_use]
    pub const fn replaceable(mut self, are_functions: bool) -> Self {
        self.is_replaceable = are_functions;
        self
    }

    /// Whether instructions that use the global offset table become others that need it not, where that does the same
    /// ([`Options::relax`]), and calls of RISC-V code become shorter. They do unless this says otherwise.
    #[must_use]
    pub const fn relax(mut self, is_wanted: bool) -> Self {
        self.relaxes = is_wanted;
        self
    }

    /// Whether memory of small modules that are gone, at most 1 MiB of it, stays for those that come from this loader or a clone of
    /// it. Mapping and unmapping are most of what such a load costs. In between it is writable and not executable: nothing is
    /// ever both.
    #[must_use]
    pub fn reuse_memory(mut self, is_wanted: bool) -> Self {
        self.spare = is_wanted.then(Arc::default);
        self
    }

    /// How many bytes an image may have at most. Without this, 16 GiB and 64 times the size of its objects: a small object may ask
    /// for any amount of zeros.
    #[must_use]
    pub const fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Puts small modules into memory that they share: less than some 16 KiB, without indirect functions, not
    /// [replaceable](Self::replaceable). Others have memory of their own. [`CodeArena`] says what then holds.
    #[must_use]
    pub fn arena(mut self, arena: &CodeArena) -> Self {
        self.arena = Some(arena.clone());
        self
    }

    /// Has modules in memory of `source` instead of the system's, but for those in an [`arena`](Self::arena).
    #[must_use]
    pub fn memory(mut self, source: impl MemorySource + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Loads objects into one stretch of memory: code, read-only data and writable data apart, nothing writable and executable.
    ///
    /// `symbols` answers for what no object defines, and is kept by the module as far as it is used. No code runs.
    ///
    /// # Errors
    /// What is wrong with which object; memory that cannot be had; what an observer says. Nothing stays mapped. Objects that
    /// came out of an [`ArchiveSource`](crate::symbols::ArchiveSource) count behind those given.
    pub fn load<B: AsRef<[u8]>>(
        &self,
        objects: impl IntoIterator<Item = B>,
        symbols: impl Symbols,
    ) -> Result<Module<B>, Error> {
        self.load_all(objects.into_iter().collect(), None, symbols)
    }

    /// The same for objects of which it is known which names are one, as who has chosen members of archives does: their names need not be
    /// read and compared again.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_numbered<B: AsRef<[u8]>>(
        &self,
        objects: impl IntoIterator<Item = B>,
        numbers: &NameNumbers,
        symbols: impl Symbols,
    ) -> Result<Module<B>, Error> {
        self.load_all(objects.into_iter().collect(), Some(numbers), symbols)
    }

    fn load_all<B: AsRef<[u8]>>(
        &self,
        objects: Vec<B>,
        numbers: Option<&NameNumbers>,
        mut symbols: impl Symbols,
    ) -> Result<Module<B>, Error> {
        let mut in_arena = self.arena.is_some();
        loop {
            let mut links = LoadSymbols::to_process(&mut symbols);
            let mut limit = None;
            let how = (in_arena, numbers);
            let linked = self.link_all(&objects, &mut links, how, |layout, found, links| {
                limit = layout.limit();
                self.place(layout, found, links)
            });
            let error = match linked {
                Ok((joined, parts)) => return Ok(Module::new(objects, joined, parts)),
                Err(error) => error,
            };
            drop(links);
            // more than was to be seen before, or no room so near: it gets memory of its own
            let is_full = matches!(error, Error::OutOfMemory { .. } | Error::NoLowMemory { .. });
            if core::mem::take(&mut in_arena) && is_full {
                continue;
            }
            // a variable that is moved is not moved again
            let is_near = out_of_reach(&objects, &error).is_some_and(|(name, is_absolute)| {
                // code that holds the address itself, in 32 bits with a sign, has none of its own that limits it
                symbols.copy_relocate(name, limit.or(is_absolute.then_some(LOW)))
            });
            if !is_near {
                return Err(error);
            }
        }
    }

    /// Relocates objects for an address where they are not: in another process, in memory of a device, in a file that will be
    /// mapped. Nothing is mapped here, and observers are not told.
    ///
    /// `place` is asked once, when it is known how much room the objects take, for the address that they will have.
    ///
    /// # Errors
    /// As [`load`](Self::load); [`Error::Layout`] if the address is no multiple of the alignment or not below the limit.
    pub fn link<B: AsRef<[u8]>>(
        &self,
        objects: impl IntoIterator<Item = B>,
        mut symbols: impl Symbols,
        mut place: impl FnMut(MemoryRequirements) -> u64,
    ) -> Result<LinkedImage, Error> {
        let objects: Vec<B> = objects.into_iter().collect();
        let mut links = LoadSymbols::new(&mut symbols);
        let (_, image) =
            self.link_all(&objects, &mut links, (false, None), |layout, found, links| {
                let room = MemoryRequirements {
                    size: layout.size(),
                    alignment: layout.alignment(),
                    limit: layout.limit(),
                };
                LinkedImage::new(layout, &found.notable, place(room), links)
            })?;
        Ok(image)
    }

    /// Lays objects out, with those that have to join them, and finishes the layout. Gives those that joined as well.
    fn link_all<B: AsRef<[u8]>, T>(
        &self,
        objects: &[B],
        links: &mut LoadSymbols<'_>,
        (in_arena, numbers): (bool, Option<&NameNumbers>),
        mut finish: impl FnMut(
            &mut Layout<'_, '_, Host>,
            &mut Found,
            &mut LoadSymbols<'_>,
        ) -> Result<T, Error>,
    ) -> Result<(Joined, T), Error> {
        let (joined, found) = links.join(objects.iter().map(AsRef::as_ref))?;
        let numbers = found.as_ref().or(numbers);
        let given = objects.iter().map(AsRef::as_ref);
        let bytes: Vec<&[u8]> = given.chain(joined.iter().map(AsRef::as_ref)).collect();
        let files = parse(&bytes)?;
        let mut slots = Slots::new();
        let access = if self.relaxes { ThreadLocal::LocalExec } else { ThreadLocal::AsCompiled };
        let in_arena = in_arena && !self.is_replaceable && is_small(&files);
        let how = How { access, in_arena, numbers };
        let is_elsewhere = in_arena || !links.are_to_process();
        let look = |shall_end: Option<&AtomicBool>| {
            let notable = Notable::of(&files)?;
            let room = self.room_ahead(&notable, is_elsewhere).zip(shall_end);
            let memory = room.and_then(|((most, least), end)| Mapping::ahead(most, least, end));
            Ok::<_, Error>(Found { notable, memory })
        };
        let (found, layout) =
            at_once::beside(&files, look, || self.plan(&files, &mut slots, how, links));
        let mut found = found?;
        let mut layout = layout.map_err(|error| words::explain(error, &files, links))?;
        let mut finished = finish(&mut layout, &mut found, links);
        if let Err(refused) = &finished
            && access == ThreadLocal::LocalExec
            && threads::may_be_elsewhere(refused)
        {
            let elsewhere = How { access: ThreadLocal::AsCompiled, ..how };
            let layout = self.plan(&files, &mut slots, elsewhere, links);
            let mut layout = layout.map_err(|error| {
                let error = threads::why(words::explain(error, &files, links), refused);
                words::explain(error, &files, links)
            })?;
            let again = finish(&mut layout, &mut found, links);
            finished = again.map_err(|error| threads::why(error, refused));
            if matches!(finished, Err(Error::NearThreadLocal { .. }))
                && let Some(done) = self.by_descriptors(&files, in_arena, links, &mut finish)
            {
                finished = Ok(done);
            }
        }
        links.check()?;
        let finished = finished.map_err(|error| words::explain(error, &files, links))?;
        Ok((joined, finished))
    }

    /// The same with code of initial exec that asks descriptors instead, if there is any and it can all be so.
    fn by_descriptors<T>(
        &self,
        files: &[File<'_>],
        in_arena: bool,
        links: &mut LoadSymbols<'_>,
        finish: &mut impl FnMut(
            &mut Layout<'_, '_, Host>,
            &mut Found,
            &mut LoadSymbols<'_>,
        ) -> Result<T, Error>,
    ) -> Option<T> {
        let variables = initial_exec::variables(files);
        let changed = files.iter().enumerate();
        let changed: Vec<_> = changed
            .map(|(number, file)| initial_exec::by_descriptors(file, number, &variables))
            .collect();
        if changed.iter().all(Option::is_none) {
            return None;
        }
        let bytes = files.iter().zip(&changed);
        let bytes: Vec<&[u8]> =
            bytes.map(|(file, changed)| changed.as_deref().unwrap_or(file.bytes())).collect();
        let (files, mut slots) = (parse(&bytes).ok()?, Slots::new());
        let mut found = Found { notable: Notable::of(&files).ok()?, memory: None };
        let how = How { access: ThreadLocal::AsCompiled, in_arena, numbers: None };
        let mut layout = self.plan(&files, &mut slots, how, links).ok()?;
        finish(&mut layout, &mut found, links).ok()
    }

    /// How many bytes of memory the image may take, and how many it will fill for certain, if another thread may bring in such memory
    /// while the objects are laid out.
    fn room_ahead(&self, notable: &Notable, is_elsewhere: bool) -> Option<(u64, u64)> {
        let is_special = is_elsewhere
            || self.is_dual_mapped
            || self.is_huge
            || self.spare.is_some()
            || self.source.is_some()
            // it will be refused
            || self.limit.is_some_and(|limit| notable.filled > limit);
        if is_special || notable.filled < Mapping::LEAST_AHEAD {
            return None;
        }
        // GOT entries, stubs, and what is between sections
        let most = notable.loaded.saturating_add(notable.loaded / 4);
        Some((most, notable.filled))
    }

    /// Lays the files out.
    fn plan<'a, 's>(
        &self,
        files: &'s [File<'a>],
        slots: &'s mut Slots<'a>,
        How { access, in_arena, numbers }: How<'_>,
        links: &mut LoadSymbols<'_>,
    ) -> Result<Layout<'a, 's, Host>, Error> {
        // only who runs here can have entries changed
        let indirect_functions = links.are_to_process();
        let options = |page_size| Options {
            mode: ImageMode::Segments { page_size },
            relax: self.relaxes,
            thread_local: access,
            indirect_functions,
            replaceable_functions: self.is_replaceable && indirect_functions,
            spread: if in_arena { SPREAD } else { 0 },
            ..Options::default()
        };
        let page = if in_arena { GRAIN } else { rustix::param::page_size() as u64 };
        let externals = &mut |name: Name<'_>| links.find(name).map(External::for_layout);
        let (count, scan) = (at_once::scan_parts(files), &mut at_once::scan);
        let mut plan = |slots: &'s mut Slots<'a>, options| {
            slots.plan_in_parts(files, numbers, options, externals, count, scan)
        };
        if self.is_huge && !in_arena {
            let code = files.iter().flat_map(|file| file.sections());
            let code =
                code.filter(|section| section.flags.contains(elf_core::SectionFlags::EXECINSTR));
            if code.fold(0u64, |total, section| total.saturating_add(section.size))
                >= HUGE_PAGE as u64
            {
                let huge = options(page.max(HUGE_PAGE as u64));
                let layout = plan(slots, huge).map_err(Error::Layout)?;
                budget::check_image(&layout, self.limit)?;
                return Ok(layout);
            }
        }
        let layout = plan(slots, options(page)).map_err(Error::Layout)?;
        budget::check_image(&layout, self.limit)?;
        Ok(layout)
    }

    /// Goes through the steps of a load. Whatever fails, the state before it is dropped, and undoes what was done.
    fn place(
        &self,
        layout: &mut Layout<'_, '_, Host>,
        Found { notable, memory }: &mut Found,
        links: &mut LoadSymbols<'_>,
    ) -> Result<Parts, Error> {
        // stacks of this process are not to be executed
        if let Some((object, section)) = notable.stack {
            return Err(Error::ExecutableStack { object, section, name: Box::default() });
        }
        let allocated = self.allocate(layout, memory.take(), links.near())?;
        let ((layout, base), variables) =
            (allocated.image(), allocated.variables(&notable.variables));
        let relocated = allocated.relocate(notable, links)?;
        let looks_up = links.looks_up();
        let (contents, registered) = at_once::beside(
            layout.files(),
            |_| Contents::of(layout, base, &variables, looks_up),
            || {
                let registered = relocated.check(notable)?.protect()?.register(&self.observers)?;
                Ok::<_, Error>((registered, Sections::of(layout, base)))
            },
        );
        let (registered, sections) = registered?;
        Ok(registered.into_parts((contents, sections), variables, links))
    }

    /// Takes memory for a layout, that which is there `ahead` if it will do.
    fn allocate<'l>(
        &self,
        layout: &'l mut Layout<'_, '_, Host>,
        ahead: Option<Mapping>,
        near: Option<u64>,
    ) -> Result<Allocated<'l>, Error> {
        if let Some(fixed) = layout.fixed_sections().next() {
            let (object, section) = (fixed.object, fixed.section);
            return Err(Error::FixedAddress {
                object,
                section,
                name: Box::default(),
                address: fixed.segment.offset,
            });
        }
        let mapping_options = MappingOptions {
            size: layout.size(),
            alignment: layout.alignment(),
            limit: layout.limit(),
            near,
            is_dual_mapped: self.is_dual_mapped,
            is_huge: layout.alignment() >= HUGE_PAGE as u64 && self.is_huge,
            spare: self.spare.as_ref(),
            source: self.source.as_deref(),
        };
        let memory = memory_for(layout, self.arena.as_ref(), ahead, &mapping_options)?;
        Allocated::new(layout, memory)
    }
}

impl<B: AsRef<[u8]>> Module<B> {
    /// Loads objects into one stretch of memory: code, read-only data and writable data apart, nothing writable and executable.
    ///
    /// `externals` answers for symbols that no object defines; [`Process::find`](crate::Process::find) knows those of the
    /// process. No code runs. [`Loader::load`] has more to choose from.
    ///
    /// # Errors
    /// What is wrong with which object; memory that cannot be had. Nothing stays mapped.
    pub fn load(
        objects: impl IntoIterator<Item = B>,
        externals: &mut dyn FnMut(Name<'_>) -> Option<External>,
    ) -> Result<Self, Error> {
        Loader::new().load(objects, from_fn(externals))
    }
}
