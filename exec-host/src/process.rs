//! Symbols of this process and of libraries.

use crate::c_library;
use crate::copy_relocations;
use crate::descriptions::{self, LINKED_STATICALLY, is_linked_statically};
use crate::error::Error;
use crate::external::External;
use crate::opened::Opened;
use core::ffi::{c_int, c_void};
use core::ops::{ControlFlow, Range};
use elf_core::Name;
use elf_layout::is_linker_defined;
use exec_core::sync::Mutex;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::symbols::{Found, Symbols};
use crate::threads::Variables;
use crate::word;

/// What the process itself offers (libc and whatever else is loaded; libm, where it is a library of its own), and libraries
/// opened for this purpose.
///
/// Libraries stay open as long as this lives, and longer as long as a module lives that was loaded with this as its
/// [source](Symbols) and uses them. Who asks by [`find`](Self::find) must keep it alive as long as the code.
///
/// Libraries that others have opened for all (`RTLD_GLOBAL`) are kept by modules in the same way: `dlclose` by those who opened them does
/// not take them away, unless all that is used of them are thread-local variables.
///
/// ```
/// let mut process = exec_host::Process::new();
/// let strlen = process.find("strlen".into()).expect("the C library is there");
/// assert!(process.find("no_such_function".into()).is_none());
/// ```
#[derive(Debug)]
pub struct Process {
    libraries: Vec<Arc<Opened>>,
    /// Libraries that others have opened, by where they start.
    kept: BTreeMap<u64, Arc<Opened>>,
    known: Option<Known>,
    variables: Variables,
    copy_relocations: bool,
}

/// How many libraries came and went.
type Changes = (u64, u64);
/// What was known after so many of them.
type Known = (Changes, Arc<Segments>);

/// What the addresses of the process hold.
#[derive(Debug, Default)]
struct Segments {
    code: Vec<Range<u64>>,
    /// What is not writable, or was made so after relocation.
    constant: Vec<Range<u64>>,
    data: Vec<Range<u64>>,
    /// Whole libraries and their files.
    libraries: Vec<(Range<u64>, CString)>,
}

/// Programs that are not written in C may come without it.
const LIBM: &str = "libm.so.6";

/// What every library has for itself, and some show.
const OWN: [&str; 3] = ["_DYNAMIC", "_init", "_fini"];

/// Variables of the C library that no program may assign to (C17 7.21.1: expressions, not lvalues), and so never change.
const STREAMS: [&str; 3] = ["stdin", "stdout", "stderr"];

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

impl Process {
    /// The symbols of the process: none where it has no dynamic loader, as a program that is linked statically.
    #[must_use]
    pub fn new() -> Self {
        // each opens them: debuggers look at the dynamic loader's list then, and set breakpoints in modules that came and went
        let names = if is_linked_statically() { &[][..] } else { &[None, Some(OsStr::new(LIBM))] };
        let opened = names.iter().map(|name| {
            // SAFETY: the program's constructors have run; the mathematical library has none that do anything.
            Opened::by(|| unsafe { Library::open(*name, RTLD_LAZY | RTLD_LOCAL) })
        });
        let libraries = opened.flatten().map(Arc::new).collect();
        let (kept, known, variables) = (BTreeMap::new(), None, Variables::default());
        Self { libraries, kept, known, variables, copy_relocations: false }
    }

    /// Opens a library as `dlopen` does: a path if the name has a slash, else a name to search for. What was opened first is
    /// asked first.
    ///
    /// # Errors
    /// [`Error::Library`] with the words of the dynamic loader.
    ///
    /// # Safety
    /// The library's constructors run.
    pub unsafe fn open(&mut self, library: impl AsRef<Path>) -> Result<(), Error> {
        // SAFETY: as the caller says.
        unsafe { self.open_with(library.as_ref(), RTLD_LAZY | RTLD_LOCAL) }
    }

    /// The same for all (`RTLD_GLOBAL`): libraries that are opened later find its symbols, even if they do not say that they need it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As for [`open`](Self::open).
    pub unsafe fn open_global(&mut self, library: impl AsRef<Path>) -> Result<(), Error> {
        // SAFETY: as the caller says.
        unsafe { self.open_with(library.as_ref(), RTLD_LAZY | RTLD_GLOBAL) }
    }

    /// # Safety
    /// As for [`open`](Self::open).
    unsafe fn open_with(&mut self, library: &Path, flags: c_int) -> Result<(), Error> {
        if is_linked_statically() {
            let words = format!("{}: {LINKED_STATICALLY}", library.display());
            return Err(Error::Library(words.into()));
        }
        let library = Opened::by(|| {
            // SAFETY: the caller guarantees the library.
            let library = unsafe { Library::open(Some(library), flags) }?;
            Ok(self.variables.settle(library))
        });
        let library =
            library.map_err(|error: libloading::Error| Error::Library(Box::new(error)))?;
        self.libraries.push(Arc::new(library));
        Ok(())
    }

    /// Whether a variable of a library may be moved that code without `-fPIC` does not reach: such code takes it to be where the
    /// code is, as in an executable, whose linker and dynamic loader move it there (`R_X86_64_COPY`). Otherwise the code is
    /// refused.
    ///
    /// The libraries' own references by name are led to the new place, for as long as the process lives. `dlsym` gives the old one,
    /// symbols of this type the new one.
    ///
    /// # Safety
    /// While code is loaded, no other thread uses variables that it names; nobody has kept pointers to them that matter.
    pub const unsafe fn copy_relocations(&mut self, are_moved: bool) {
        self.copy_relocations = are_moved;
    }

    /// The symbol of this name: its address, and whether it is a function, or data that never change. A library that was asked for such
    /// data in this way is never closed.
    pub fn find(&mut self, name: Name<'_>) -> Option<External> {
        let (external, library) = self.find_in_library(name)?;
        if external.bytes().is_some() {
            // loads will read it, whenever that is
            core::mem::forget(library);
        }
        Some(external)
    }

    /// The symbol of this name, and the library that has it.
    fn find_in_library(&mut self, name: Name<'_>) -> Option<(External, Arc<Opened>)> {
        // old libraries show where they end themselves; what code counts from is the process's
        if is_linker_defined(name) && name != "__global_pointer$"
            || OWN.iter().any(|own| name == *own)
        {
            return None;
        }
        let (number, address) = (0..).zip(&self.libraries).find_map(|(number, library)| {
            let address = copy_relocations::current(address_in(library, name)?);
            (address != 0).then_some((number, address))
        })?;
        let known = self.known();
        let library = self.keeper(number, address, &known)?;
        let within = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&address));
        let external = if within(&known.code) {
            External::function(address)
        } else if STREAMS.iter().any(|stream| name == *stream) {
            // SAFETY: pointers that nobody assigns to.
            unsafe { External::constant_at(address, size_of::<*const c_void>() as u64) }
        } else if within(&known.constant) {
            // SAFETY: the dynamic loader says that so many bytes are there, and the segment is read-only. Who gets this has the library as
            // well, or it is never closed.
            let constant = |size| unsafe { External::constant_at(address, size) };
            size_of_symbol(address).map_or(External::new(address), constant)
        } else if within(&known.data) {
            External::new(address)
        } else {
            self.variables.find(name, address).unwrap_or(External::new(address))
        };
        Some((external, library))
    }
}

/// Who uses a symbol of a library keeps the library open.
impl Symbols for Process {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        self.find_in_library(name).map(|(external, library)| Found::Kept(external, library))
    }

    fn has_objects(&self) -> bool {
        false
    }

    fn copy_relocate(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        let found = self.find_in_library(name).filter(|_| self.copy_relocations);
        let Some((external, _)) = found.filter(|(external, _)| external.is_unknown()) else {
            return false;
        };
        let address = external.address();
        let size = size_of_symbol(address);
        // SAFETY: the dynamic loader knows the variable; who allowed moving guarantees the rest.
        size.is_some_and(|size| unsafe { copy_relocations::move_variable(address, size, limit) })
    }
}

impl Process {
    /// What the process has now: another library may be where one was that is closed.
    fn known(&mut self) -> Arc<Segments> {
        let mut changes: Changes = (0, 0);
        descriptions::each(|library| {
            changes = library.changes();
            ControlFlow::Break(())
        });
        if let Some((of, known)) = &self.known
            && *of == changes
            && changes != (0, 0)
        {
            return Arc::clone(known);
        }
        let known = Segments::shared(changes);
        self.known = Some((changes, Arc::clone(&known)));
        known
    }

    /// What keeps a symbol: the library that it was found in, or, if it was found among all that are open, the one that has it.
    fn keeper(&mut self, number: usize, address: u64, known: &Segments) -> Option<Arc<Opened>> {
        let asked = Arc::clone(self.libraries.get(number)?);
        if number > 0 {
            return Some(asked);
        }
        let Some((range, path)) = known.library_at(address) else {
            return Some(asked);
        };
        if let Some(kept) = self.kept.get(&range.start) {
            return Some(Arc::clone(kept));
        }
        let path = OsStr::from_bytes(path.to_bytes());
        // the program itself has no name, and is never closed
        let kept = (!path.is_empty()).then(|| {
            // SAFETY: it is not loaded by this if it is not there already, so that no constructor runs.
            Opened::by(|| unsafe { Library::open(Some(path), RTLD_NOW | libc::RTLD_NOLOAD) })
        });
        let kept = kept.and_then(Result::ok).map_or(asked, Arc::new);
        self.kept.insert(range.start, Arc::clone(&kept));
        Some(kept)
    }
}

impl Segments {
    /// The library that an address is in, and its file.
    fn library_at(&self, address: u64) -> Option<&(Range<u64>, CString)> {
        self.libraries.iter().find(|(range, _)| range.contains(&address))
    }

    /// The segments of everything that the dynamic loader has loaded after these changes, looked up once for all who ask.
    fn shared(changes: Changes) -> Arc<Self> {
        static LATEST: Mutex<Option<Known>> = Mutex::new(None);
        let latest = || LATEST.lock();
        if let Some((of, known)) = &*latest()
            && *of == changes
            && changes != (0, 0)
        {
            return Arc::clone(known);
        }
        // without the lock: the dynamic loader has one of its own. What has changed meanwhile is looked up again by the next who asks
        let known = Arc::new(Self::of_process());
        *latest() = Some((changes, Arc::clone(&known)));
        known
    }

    /// The segments of everything that the dynamic loader has loaded.
    fn of_process() -> Self {
        let mut known = Self::default();
        descriptions::each(|library| {
            let mut whole: Option<Range<u64>> = None;
            for header in library.headers() {
                let range = library.range(header);
                if header.p_type == libc::PT_LOAD {
                    let so_far = whole.unwrap_or_else(|| range.clone());
                    whole = Some(so_far.start.min(range.start)..so_far.end.max(range.end));
                }
                match header.p_type {
                    libc::PT_LOAD if header.p_flags & libc::PF_X != 0 => known.code.push(range),
                    libc::PT_LOAD if header.p_flags & libc::PF_W == 0 => known.constant.push(range),
                    libc::PT_LOAD => known.data.push(range),
                    libc::PT_GNU_RELRO => known.constant.push(range),
                    _ => {}
                }
            }
            known.libraries.extend(whole.map(|whole| (whole, library.path().to_owned())));
            ControlFlow::Continue(())
        });
        known
    }
}

/// What a library has of this name, of the version that it may name (`NAME@VERSION`).
fn address_in(library: &Library, name: Name<'_>) -> Option<u64> {
    let Some((base, version, _)) = name.version() else {
        // SAFETY: only the address is taken, as a pointer to nothing in particular.
        let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes()) }.ok()?;
        return Some(symbol.as_raw_ptr().expose_provenance() as u64);
    };
    let base = CString::new(base.as_bytes()).ok()?;
    let version = CString::new(version.as_bytes()).ok()?;
    // SAFETY: the copy is taken apart into the handle, and closes nothing.
    let handle = unsafe { core::ptr::read(library) }.into_raw();
    // SAFETY: the handle is open.
    let address = unsafe { c_library::dlvsym(handle, &base, &version) };
    Some(address.expose_provenance() as u64).filter(|&address| address != 0)
}

/// Size of the symbol that starts at `address`, as the dynamic loader knows it.
pub(crate) fn size_of_symbol(address: u64) -> Option<u64> {
    let pointer = core::ptr::with_exposed_provenance::<c_void>(address as usize);
    let (info, symbol) = c_library::symbol_at(pointer)?;
    if info.dli_saddr.addr() as u64 != address {
        return None;
    }
    // SAFETY: the symbol's entry lives as long as its library.
    let symbol = unsafe { &*symbol };
    Some(word::wide(symbol.st_size)).filter(|&size| size != 0)
}
