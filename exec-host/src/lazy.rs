//! Functions that are compiled when they are called for the first time.

pub(crate) mod slot;

use crate::error::Error;
use crate::external::External;
use crate::machine;
use crate::memory::{Mapping, MappingOptions};
use crate::module::Module;
use crate::symbols::{Found, Keeper, Symbols};
use core::fmt;
use core::ptr;
use core::sync::atomic::Ordering;
use elf_core::{Name, SegmentFlags};
use elf_layout::Segment;
use exec_core::sync::{Mutex, MutexGuard};
use slot::{Function, Slot};
use std::collections::HashMap;
use std::sync::Arc;

/// Functions by name that are compiled when they are called for the first time: a source of [`Symbols`] for loads whose code calls them.
///
/// Each has a stub, which is its address for all who ask. The first call, from whatever thread, has it compiled; other threads that call it
/// meanwhile wait. From then on the stub is one jump.
///
/// ```
/// use exec_host::symbols::Symbols as _;
/// use exec_host::{LazyFunctions, LazyTarget, Loader, Process};
/// use std::sync::Arc;
///
/// # #[cfg(target_arch = "x86_64")] {
/// let lazy = LazyFunctions::new();
/// lazy.define("pair_b", || {
///     let object = include_bytes!("../../fixtures/x86_64/elftest.o"); // a compiler's work
///     let module = Loader::new().load([&object[..]], Process::new()).unwrap();
///     LazyTarget::of(&Arc::new(module), "foo").unwrap()
/// })?;
/// assert!(!lazy.is_compiled("pair_b"));
/// let stub = lazy.address("pair_b").unwrap(); // to be called, or as a symbol of other loads: `lazy.clone().or(Process::new())`
/// type Foo = unsafe extern "C" fn(i32) -> f32;
/// let foo = unsafe { core::mem::transmute::<usize, Foo>(stub as usize) };
/// assert_eq!(unsafe { foo(321) }, 12345999.0);
/// assert!(lazy.is_compiled("pair_b"));
/// # }
/// # Ok::<(), exec_host::Error>(())
/// ```
///
/// Modules that are loaded with this as their source keep it, and it keeps what was compiled. If compiled modules themselves use it, all
/// of them stay until [`release`](Self::release).
#[derive(Clone, Default)]
pub struct LazyFunctions(Arc<Functions>);

impl fmt::Debug for LazyFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0.by_name().len();
        f.debug_struct("LazyFunctions").field("number", &number).finish_non_exhaustive()
    }
}

/// What a function became: an address, and what has to live as long as it is called.
pub struct LazyTarget {
    address: u64,
    keeper: Option<Keeper>,
}

impl fmt::Debug for LazyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyTarget").field("address", &format_args!("{:#x}", self.address)).finish()
    }
}

impl LazyTarget {
    /// The function `name` of a module.
    ///
    /// # Errors
    /// As [`Module::function`].
    pub fn of<B: AsRef<[u8]> + Send + Sync + 'static>(
        module: &Arc<Module<B>>,
        name: &str,
    ) -> Result<Self, Error> {
        let address = module.function(name)?;
        Ok(Self { address, keeper: Some(Arc::clone(module) as Keeper) })
    }

    /// A function that is there as long as something is kept.
    pub(crate) const fn kept(address: u64, keeper: Option<Keeper>) -> Self {
        Self { address, keeper }
    }

    /// Any function. Who calls it guarantees the address.
    #[must_use]
    pub const fn at(address: u64) -> Self {
        Self { address, keeper: None }
    }
}

type ByName = HashMap<Box<[u8]>, (u64, Arc<Function>)>;

#[derive(Default)]
struct Functions {
    pages: Mutex<Vec<Page>>,
    /// Stubs, and what is behind them.
    by_name: Mutex<ByName>,
}

/// Stubs, and behind them their slots.
struct Page {
    memory: Mapping,
    used: u64,
}

const STUB: u64 = 16;
const _: () = assert!(size_of::<Slot>() as u64 == STUB);

impl LazyFunctions {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function that `compile` makes when it is called for the first time, and gives the address of its stub. One of the same name
    /// that was there before stays where it is used already.
    ///
    /// `compile` runs on the thread of that call, which has no way to go on without the function: a panic ends the process. It must not
    /// call the function itself.
    ///
    /// # Errors
    /// [`Error::Map`] if there is no memory for stubs.
    pub fn define(
        &self,
        name: &str,
        compile: impl FnOnce() -> LazyTarget + Send + 'static,
    ) -> Result<u64, Error> {
        let (stub, slot) = self.0.take()?;
        let function = Arc::new(Function::new(move || {
            let LazyTarget { address, keeper } = compile();
            (address, keeper)
        }));
        let kept = Arc::into_raw(Arc::clone(&function)).cast_mut();
        let slot = ptr::with_exposed_provenance::<Slot>(slot as usize);
        // SAFETY: the slot is in a page of ours, and nobody jumps by it yet.
        unsafe { &*slot }.function.store(kept, Ordering::Release);
        self.0.by_name().insert(name.as_bytes().into(), (stub, function));
        Ok(stub)
    }

    /// The address of a function's stub.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        self.0.by_name().get(name.as_bytes()).map(|(stub, _)| *stub)
    }

    /// Whether a function was compiled.
    #[must_use]
    pub fn is_compiled(&self, name: &str) -> bool {
        self.0.by_name().get(name.as_bytes()).is_some_and(|(_, function)| function.is_compiled())
    }

    /// Lets go of what was compiled: what nobody else has is unloaded.
    ///
    /// # Safety
    /// Nobody calls the functions any more.
    pub unsafe fn release(&self) {
        let functions: Vec<_> =
            self.0.by_name().drain().map(|(_, (_, function))| function).collect();
        functions.iter().for_each(|function| function.release());
    }
}

impl Functions {
    fn by_name(&self) -> MutexGuard<'_, ByName> {
        self.by_name.lock()
    }

    /// A stub and its slot.
    fn take(&self) -> Result<(u64, u64), Error> {
        let mut pages = self.pages.lock();
        let page_size = rustix::param::page_size() as u64;
        if pages.last().is_none_or(|page| page.used == page_size) {
            pages.push(Page::new(page_size)?);
        }
        let page = pages.last_mut().ok_or(Error::OutOfMemory { size: page_size })?;
        let stub = page.memory.address().saturating_add(page.used);
        page.used = page.used.saturating_add(STUB);
        Ok((stub, stub.saturating_add(page_size)))
    }
}

impl Page {
    fn new(page_size: u64) -> Result<Self, Error> {
        let size = page_size.saturating_mul(2);
        machine::descriptor::prepare();
        let mapping_options =
            MappingOptions { size, alignment: page_size, ..MappingOptions::default() };
        let mut memory = Mapping::new(&mapping_options)?;
        let address = memory.address();
        let (stubs, slots) = memory
            .bytes_mut()
            .split_at_mut_checked(page_size as usize)
            .ok_or(Error::OutOfMemory { size })?;
        let enter = (machine::lazy::enter as *const () as u64).to_le_bytes();
        let stubs = stubs.as_chunks_mut::<16>().0.iter_mut();
        let slots = slots.as_chunks_mut::<16>().0.iter_mut();
        for ((stub, slot), at) in stubs.zip(slots).zip((address..).step_by(16)) {
            *stub = machine::lazy::stub(at, at.saturating_add(page_size));
            if let Some((target, _)) = slot.split_first_chunk_mut() {
                *target = enter;
            }
        }
        let segment = |offset, flags| Segment { offset, size: page_size, flags };
        let segments = [
            segment(0, SegmentFlags::READ | SegmentFlags::EXECUTE),
            segment(page_size, SegmentFlags::READ | SegmentFlags::WRITE),
        ];
        memory.protect(segments.into_iter(), None)?;
        Ok(Self { memory, used: 0 })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let page_size = rustix::param::page_size() as u64;
        let slots = self.memory.address().saturating_add(page_size);
        for at in (slots..slots.saturating_add(self.used)).step_by(16) {
            let slot = ptr::with_exposed_provenance::<Slot>(at as usize);
            // SAFETY: the slot is in our page, where no code runs any more.
            let function = unsafe { &*slot }.function.swap(ptr::null_mut(), Ordering::Acquire);
            if !function.is_null() {
                // SAFETY: `define` has made it, for this slot alone.
                drop(unsafe { Arc::from_raw(function) });
            }
        }
    }
}

/// Who uses a function keeps all of them.
impl Symbols for LazyFunctions {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        let stub = self.0.by_name().get(name.as_bytes())?.0;
        Some(Found::Kept(External::function(stub), Arc::clone(&self.0) as Keeper))
    }

    fn has_objects(&self) -> bool {
        false
    }
}
