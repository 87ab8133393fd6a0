//! A module: objects loaded together.

#[cfg(feature = "demangle")]
mod demangled;
pub(crate) mod inspect;

use crate::contents::Placed;
use crate::dlsym::names::Entered;
use crate::error::Error;
use crate::external::External;
use crate::fragments::Fragments;
use crate::function::{FunctionPointer, TypedFunction};
use crate::initialize::{Calls, Order};
use crate::memory::{Mapping, bytes_in_huge_pages};
use crate::observer::Observed;
use crate::resolvers::Resolvers;
use crate::start::{self, Start};
use crate::switches::Switches;
use crate::symbols::{Exports, Found, Keeper, SharedBytes, Symbols};
use crate::threads::{Threads, exit};
use crate::unwind::Unwinding;
use core::ffi::{c_char, c_int};
use core::fmt;
use core::ops::Range;
use elf_core::{File, Name, SegmentFlags};
use exec_core::sync::OnceLock;
use std::sync::{Arc, Once};

/// Objects in executable memory. Dropping it runs what their code has registered with `__cxa_atexit`, then, if it was
/// [initialized](Self::initialize), their destructors, and gives everything back: [when](crate#unloading), and [what forks
/// do](crate#forks).
///
/// `B` holds the bytes of an object: `&[u8]`, `Vec<u8>`, a mapped file. They are kept for their symbol names.
pub struct Module<B> {
    objects: Vec<B>,
    /// Members of archives that the objects asked for.
    joined: Vec<SharedBytes>,
    /// Somebody has guaranteed constructors and destructors.
    initialized: Once,
    exports: OnceLock<Exports>,
    /// Threads keep them that have destructors of the objects to run when they end.
    parts: Arc<Parts>,
}

/// What a load consists of, in the order in which it goes.
pub(crate) struct Parts {
    pub(crate) calls: Calls,
    pub(crate) fragments: Fragments,
    #[expect(dead_code, reason = "dropped before the memory")]
    pub(crate) observed: Vec<Observed>,
    #[expect(dead_code, reason = "dropped before the memory")]
    pub(crate) unwinding: Unwinding,
    pub(crate) names: Option<Entered>,
    /// Addresses of the symbols that are not local, object by object; 0 if undefined.
    pub(crate) globals: Vec<Box<[u64]>>,
    pub(crate) code: Vec<Range<u64>>,
    /// The sections that are in memory, object by object.
    pub(crate) sections: Vec<Box<[Placed]>>,
    /// Addresses and sizes of all symbols of the objects whose code has become shorter.
    pub(crate) moved: Vec<Box<[(u64, u64)]>>,
    pub(crate) segments: Box<[(Range<u64>, SegmentFlags)]>,
    pub(crate) resolvers: Resolvers,
    pub(crate) switches: Switches,
    /// Thread-local variables that the objects define, by name.
    pub(crate) variables: Vec<(Box<[u8]>, External)>,
    /// The code may register what threads are to do when they end.
    pub(crate) registers: bool,
    pub(crate) memory: Mapping,
    /// The variables stay as long as the code.
    pub(crate) threads: Option<Box<Threads>>,
    /// What the code refers to.
    #[expect(dead_code, reason = "dropped behind the code")]
    pub(crate) keepers: Vec<Keeper>,
}

impl Parts {
    /// Address and size from the first byte to the last.
    fn extent(&self) -> (u64, u64) {
        let ranges = self.memory.ranges();
        let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        (start, end.saturating_sub(start))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if self.registers {
            exit::leave(&self.memory.ranges());
        }
    }
}

impl<B> fmt::Debug for Module<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, size) = self.parts.extent();
        f.debug_struct("Module")
            .field("objects", &self.objects.len())
            .field("address", &format_args!("{address:#x}"))
            .field("size", &size)
            .finish_non_exhaustive()
    }
}

impl<B: AsRef<[u8]>> Module<B> {
    pub(crate) fn new(objects: Vec<B>, joined: Vec<SharedBytes>, parts: Parts) -> Self {
        let parts = Arc::new(parts);
        if parts.registers {
            let ranges = parts.memory.ranges();
            exit::enter(&ranges, parts.calls.handle(), &(Arc::clone(&parts) as Keeper));
        }
        let initialized = Once::new();
        Self { objects, joined, initialized, exports: OnceLock::new(), parts }
    }

    /// Runs the resolvers of the objects' indirect functions, then their constructors, in the order of their priorities, once. They get
    /// `argc`, `argv` and `envp` of this process, as the C library has them.
    /// Functions are given out only afterwards. The destructors will run when the module is dropped.
    ///
    /// # Safety
    /// Constructors and destructors are code of the objects: whatever they do must be sound in this process.
    pub unsafe fn initialize(&self) {
        // SAFETY: the caller guarantees the code; the process's own arguments stay.
        unsafe { self.initialize_with(start::of_process()) };
    }

    /// The same for the objects of a program: its constructors get these arguments in place of those of this process.
    ///
    /// # Safety
    /// As for [`initialize`](Self::initialize). `argv` has `argc` pointers to strings that end in NUL, and a null pointer; nobody frees
    /// them as long as the code runs.
    pub unsafe fn initialize_as(&self, argc: c_int, argv: *const *const c_char) {
        // SAFETY: as the caller says.
        unsafe { self.initialize_with(Start { count: argc, words: argv }) };
    }

    /// # Safety
    /// As for [`initialize_as`](Self::initialize_as).
    unsafe fn initialize_with(&self, start: Start) {
        self.initialized.call_once(|| {
            // SAFETY: the caller guarantees resolvers and constructors; they are in our code, which is executable now, and none of it
            // has run.
            unsafe {
                self.parts.resolvers.run(&self.parts.memory);
                self.parts.calls.run(Order::Preinitialize, start);
                self.parts.fragments.run_first(start);
                self.parts.calls.run(Order::Initialize, start);
            }
        });
    }

    /// Runs what dropping the module would run, for the end of a program: the code stays mapped, because other threads may be in it
    /// until the process is gone.
    ///
    /// # Safety
    /// It is called once, behind [`initialize`](Self::initialize), and the module is never dropped.
    pub unsafe fn finish(&self) {
        // SAFETY: who initialized the module guaranteed its destructors as well, and for what its code has registered.
        unsafe {
            self.parts.calls.run_registered();
            self.parts.calls.run(Order::Finalize, start::of_process());
            self.parts.fragments.run_last(start::of_process());
        }
    }

    /// Whether there are constructors or resolvers that [`initialize`](Self::initialize) has not run yet.
    #[must_use]
    pub fn needs_initialization(&self) -> bool {
        let has_none = self.parts.calls.needs_no_initialization()
            && self.parts.resolvers.are_none()
            && self.parts.fragments.need_no_initialization();
        !has_none && !self.initialized.is_completed()
    }

    /// The function `name`, as a pointer that cannot outlive the module.
    ///
    /// # Errors
    /// [`Error::NoSymbol`], [`Error::NotFunction`]; [`Error::NotInitialized`] if there are constructors still to run.
    ///
    /// # Safety
    /// `F` is the type of the function. Calling it, which is `unsafe` again, runs code of the objects: whatever that does must be sound.
    pub unsafe fn get<F: FunctionPointer>(
        &self,
        name: &str,
    ) -> Result<TypedFunction<'_, F>, Error> {
        let address = self.function(name)?;
        // SAFETY: the address is in our code; the caller guarantees the type.
        Ok(TypedFunction::new(unsafe { F::at(address as usize) }))
    }

    /// The address of the function `name`, good as long as the module.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn function(&self, name: &str) -> Result<u64, Error> {
        if self.needs_initialization() {
            return Err(Error::NotInitialized);
        }
        let address = self.address(name).ok_or_else(|| Error::NoSymbol(name.into()))?;
        if self.parts.code.iter().any(|range| range.contains(&address)) {
            Ok(address)
        } else {
            Err(Error::NotFunction(name.into()))
        }
    }

    /// The address of the symbol `name`, whatever it is, good as long as the module.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let name = Name::from(name);
        let is_it = |found: Name<'_>| {
            found == name || found.version().is_some_and(|(base, _, first)| first && base == name)
        };
        self.bytes().zip(&self.parts.globals).find_map(|(object, addresses)| {
            let table = File::parse(object).ok()?.symbol_table().ok()??;
            let symbols = table.symbols().iter().skip(table.first_global());
            let found = symbols.zip(addresses.iter()).find(|(symbol, address)| {
                **address != 0 && !symbol.is_undefined() && table.name_of(symbol).is_ok_and(is_it)
            });
            found.map(|(_, &address)| address)
        })
    }

    /// Address and size of the memory that the module occupies, in bytes; in a [`CodeArena`](crate::CodeArena), of that from the first
    /// of its segments to the last, between which are those of others.
    #[must_use]
    pub fn extent(&self) -> (u64, u64) {
        self.parts.extent()
    }

    /// How many bytes of the module are on huge pages, as the system tells at this moment.
    ///
    /// # Errors
    /// If `/proc/self/smaps` cannot be read.
    pub fn bytes_in_huge_pages(&self) -> std::io::Result<u64> {
        let (start, size) = self.extent();
        bytes_in_huge_pages(&(start..start.saturating_add(size)))
    }

    /// What later loads may use.
    pub(crate) fn exports(&self) -> &Exports {
        let Parts { names, globals, code, variables, .. } = &*self.parts;
        if let Some(names) = names {
            return names.exports();
        }
        let all = |_, _| true;
        let objects = || self.bytes().map(|bytes| File::parse(bytes).ok());
        self.exports.get_or_init(|| Exports::collect(objects(), globals, code, variables, all))
    }

    pub(crate) const fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// The objects in the order of their numbers.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.objects.iter().map(AsRef::as_ref).chain(self.joined.iter().map(AsRef::as_ref))
    }
}

/// What other components see of the module: its global symbols that are not hidden (gABI ch. 5, "Symbol Visibility"). Who
/// uses one keeps the module.
impl<B: AsRef<[u8]> + Send + Sync + 'static> Symbols for Arc<Module<B>> {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        let external = self.exports().get(name)?;
        Some(Found::Kept(external, Self::clone(self) as Keeper))
    }

    fn has_objects(&self) -> bool {
        false
    }
}

impl<B> Drop for Module<B> {
    fn drop(&mut self) {
        // SAFETY: it was registered by code of ours, which somebody guaranteed who called it; no function is borrowed any more.
        unsafe { self.parts.calls.run_registered() };
        if self.initialized.is_completed() {
            // SAFETY: who initialized the module guaranteed its destructors as well.
            unsafe {
                self.parts.calls.run(Order::Finalize, start::of_process());
                self.parts.fragments.run_last(start::of_process());
            }
        }
    }
}
