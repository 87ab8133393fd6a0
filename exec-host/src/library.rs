//! Shared libraries out of bytes: what `dlopen` gives, without a file.
//!
//! ```
//! use exec_host::library::LibraryLoader;
//!
//! # if cfg!(target_arch = "x86_64") && let Ok(bytes) = std::fs::read("/lib/x86_64-linux-gnu/libz.so.1") {
//! // SAFETY: constructors of zlib do no harm.
//! let zlib = unsafe { LibraryLoader::new().open(bytes)? };
//! // SAFETY: the function has this type (<zlib.h>).
//! let crc32 = unsafe { zlib.get::<unsafe extern "C" fn(u64, *const u8, u32) -> u64>("crc32")? };
//! // SAFETY: nine bytes are there.
//! assert_eq!(unsafe { crc32(0, b"123456789".as_ptr(), 9) }, 0xcbf4_3926);
//! # }
//! # Ok::<(), exec_host::Error>(())
//! ```
//!
//! A library's references are looked for where the dynamic loader looks: in the program and what was opened for all, in the library itself,
//! in what it needs, breadth first (what stands for one of them, `DT_FILTER`, `DT_AUXILIARY`, before it), by name and version; those that are loaded because it needs them look where it does, and may need each
//! other. Constructors run in the order of the dynamic loader, destructors the other way round. What it needs are libraries that were [loaded so](LibraryLoader::library), or that the caller
//! [has](LibraryLoader::needed), else libraries of the dynamic loader. Several loads of one library have states of their own.
//!
//! All references are bound when it is loaded: what is missing is known before any of its code runs, and nothing is written later to what is
//! read-only then (RELRO). A [lazy](LibraryLoader::lazy) load leaves functions that nobody has to their first call.
//!
//! Libraries that are there when the process ends are finalized then, each before those that it needs.
//!
//! # What is not as with `dlopen`
//!
//! The dynamic loader knows nothing of such a library: the program's `dlsym`, `dladdr` and `dl_iterate_phdr` do not find it, and libraries that are
//! opened later do not bind to it, nor do those that it needs, unless they are [given](LibraryLoader::needed): what it has under a name of theirs (a variable of an
//! inline function, by clang) is there twice then. [`Library::symbol_at`] names what is at an address, and [observers](LibraryLoader::observer) are told. Libraries
//! out of bytes themselves have a `dladdr` and a `dl_iterate_phdr` that know them, a `dlsym` (`RTLD_DEFAULT`, `RTLD_NEXT`), and a `dlopen` that looks into
//! the folders of the library (`DT_RUNPATH`). What their code, or that of objects, opens by it is loaded as they are if it needs one of them (plug-ins, extensions of an
//! interpreter, parts of a virtual machine), and such a handle is for their `dlsym`, `dlclose` and `dlinfo`. So it is with what libraries of the dynamic loader open that one
//! of these needs (GModule, libltdl, QtCore), where that loader has none of the name itself: their references to these functions are led to ours, and they stay. To the program
//! and to other libraries such a handle means nothing, and what those open, they open without us. A library that the caller opens again is loaded again. Symbols that all libraries share (`STB_GNU_UNIQUE`) are not seen in libraries of the dynamic loader that
//! this one does not need. Versions that only say what a dynamic loader has to be able to (`GLIBC_ABI_DT_RELR`) are not looked for: a library
//! loads that is too new for the process's. A library that wants to execute the stack is refused, and so is one of D whose runtime is a library of
//! its own, which asks the dynamic loader for it.

mod ahead;
mod answers;
mod at_exit;
mod by_name;
pub(crate) mod d_runtime;
mod definition;
mod depth_first;
pub(crate) mod described;
mod error;
pub(crate) mod file;
mod group;
pub(crate) mod handle;
mod hash_table;
mod hashes;
mod inside;
mod joins;
mod late;
mod later;
mod library_file;
pub(crate) mod link_map;
mod load;
mod loaded;
mod members;
mod names_of;
mod needed;
mod of_process;
pub(crate) mod opens;
mod order;
mod part;
mod plug_ins;
mod relocate;
mod resolve;
mod scope;
mod search_list;
mod tables;
mod unit;
mod versions;

pub use error::LibraryError;
pub use needed::NeededLibrary;

use crate::dlsym;
use crate::error::Error;
use crate::external::External;
use crate::function::{FunctionPointer, TypedFunction, place_of};
use crate::observer::Observer;
use crate::symbols::{Found, Symbols};
use by_name::Meaning;
use core::fmt;
use definition::Definition;
use elf_core::Name;
use elf_core::names::STT_FUNC;
use elf_image::SymbolReference;
use file::OpenFile;
use library_file::LibraryFile;
use loaded::Held;
use needed::{Find, Given, Named, Needed};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A library in memory. The last copy of it that is dropped calls its destructors and gives everything back, unless other libraries
/// or modules use it, or it says that it stays (`DF_1_NODELETE`).
#[derive(Clone, Debug)]
pub struct Library(Held);

/// How a library is loaded.
#[derive(Default)]
pub struct LibraryLoader<'s> {
    loaded: Named,
    folder: Option<PathBuf>,
    source: Option<Box<Find<'s>>>,
    symbols: Option<Box<dyn Symbols + 's>>,
    observers: Vec<Arc<dyn Observer>>,
    limit: Option<u64>,
    is_lazy: bool,
}

impl fmt::Debug for LibraryLoader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibraryLoader").field("loaded", &self.loaded).finish_non_exhaustive()
    }
}

impl<'s> LibraryLoader<'s> {
    /// Without libraries or symbols beside those of the process.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a library be found by those that need one of its name (`DT_SONAME`).
    #[must_use]
    pub fn library(mut self, library: &Library) -> Self {
        self.loaded.push((library.0.name.clone(), library.0.clone()));
        self
    }

    /// Has `source` asked for libraries that are needed, by the name that says so, before the dynamic loader: a program has them inside of
    /// itself, in an archive. Each name is asked for once a load; what `source` has not is left to the dynamic loader. What is loaded for
    /// it goes with the last library that uses it.
    ///
    /// ```
    /// use exec_host::library::{LibraryLoader, NeededLibrary};
    ///
    /// # let plug_in: &[u8] = b"";
    /// # static CODEC: &[u8] = b"";
    /// let loader = LibraryLoader::new()
    ///     .needed(|name| (name == "libcodec.so.2").then(|| NeededLibrary::bytes(CODEC)));
    /// ```
    #[must_use]
    pub fn needed(mut self, source: impl FnMut(Name<'_>) -> Option<NeededLibrary> + 's) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Has the load told to `observer`, with those that it needs, and their unloads: a debugger, a profiler. Those that were added first
    /// are told first.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// The folder that `$ORIGIN` stands for where the library says where to look for others (`DT_RUNPATH`). A relative one is in the current
    /// folder of now.
    #[must_use]
    pub fn origin(mut self, folder: impl Into<PathBuf>) -> Self {
        // what libraries say of a folder that is not absolute is passed over
        let folder = folder.into();
        self.folder = Some(std::path::absolute(&folder).unwrap_or(folder));
        self
    }

    /// How many bytes an image may have at most, of this library and of each that is loaded because it is needed. Without this, 16 GiB and 64
    /// times the size of its file: a small file may ask for any amount of zeros.
    #[must_use]
    pub const fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Leaves functions that nobody has to their first call, as `dlopen` does with `RTLD_LAZY`: a library loads that refers to what its program
    /// has not, or has later, opened for all (`RTLD_GLOBAL`). Who calls one that there is not even then, from whatever thread, ends the process,
    /// with words on standard error and status 127, as the dynamic loader does. What is found is bound at once in any case; and so is all of a
    /// library that says so itself (`-z now`), variables, and functions whose address is taken.
    ///
    /// ```
    /// use exec_host::library::LibraryLoader;
    ///
    /// let loader = LibraryLoader::new().lazy();
    /// ```
    #[must_use]
    pub const fn lazy(mut self) -> Self {
        self.is_lazy = true;
        self
    }

    /// Has these asked last: modules of objects, functions of the program. Objects and archives are not loaded for it.
    #[must_use]
    pub fn symbols(mut self, symbols: impl Symbols + 's) -> Self {
        self.symbols = Some(Box::new(symbols));
        self
    }

    /// Loads the library that `bytes` are: `Vec<u8>`, `&'static [u8]`, a mapped file. They are kept for its symbols. The C library and the
    /// dynamic loader itself are refused.
    ///
    /// # Errors
    /// [`Error::Linked`] with the [reason](LibraryError), [`Error::ThreadLocal`], [`Error::WriteExecute`], [`Error::Observer`], or there is
    /// no memory.
    ///
    /// # Safety
    /// The library's code is sound to call in this process: constructors, and destructors when it goes, resolvers of indirect
    /// functions; and so are those of libraries that it needs.
    pub unsafe fn open(
        self,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Library, Error> {
        let content = LibraryFile::new(Arc::new(bytes))?;
        // SAFETY: as the caller guarantees.
        unsafe { self.load(content, None, None) }
    }

    /// Loads the library that the file at `path` is, as [`open`](Self::open) does: faster, because its pages are mapped from the file instead
    /// of copied, unless there are [observers](Self::observer). Its folder is its [origin](Self::origin), if no other was said.
    /// The file may be removed or replaced by another one meanwhile.
    ///
    /// ```
    /// use exec_host::library::LibraryLoader;
    ///
    /// # if cfg!(target_arch = "x86_64") && std::path::Path::new("/lib/x86_64-linux-gnu/libz.so.1").exists() {
    /// // SAFETY: constructors of zlib do no harm, and nobody writes to its file.
    /// let zlib = unsafe { LibraryLoader::new().open_file("/lib/x86_64-linux-gnu/libz.so.1")? };
    /// assert_eq!(zlib.name(), "libz.so.1");
    /// # }
    /// # Ok::<(), exec_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be read; else as [`open`](Self::open).
    ///
    /// # Safety
    /// As of [`open`](Self::open); and as for `dlopen`, nobody writes to the file or makes it shorter as long as the library is there: its
    /// code, variables and tables of symbols, which safe functions read, would not be what they were, or not there.
    pub unsafe fn open_file(mut self, path: impl AsRef<Path>) -> Result<Library, Error> {
        let path = path.as_ref();
        if self.folder.is_none() {
            self.folder = match path.is_absolute() {
                true => path.parent().map(Path::to_owned),
                false => {
                    std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.to_owned()))
                }
            };
        }
        let file = OpenFile::new(path)?;
        // who is told of a library is shown all of its file
        let may_map = self.observers.is_empty();
        let beginning = may_map.then(|| file.beginning()).flatten();
        let content = match beginning.and_then(LibraryFile::of_beginning) {
            Some(content) => content,
            // SAFETY: as the caller guarantees.
            None => LibraryFile::new(Arc::new(unsafe { file.whole(may_map) }?))?,
        };
        let in_file = Some(&file).filter(|file| may_map && file.has_pages());
        // SAFETY: as the caller guarantees.
        unsafe { self.load(content, in_file, Some(path)) }
    }

    /// Loads what the bytes are, but for pages `in_file`, of the file at `path`.
    ///
    /// # Safety
    /// As for [`open`](Self::open).
    unsafe fn load(
        mut self,
        content: LibraryFile,
        in_file: Option<&OpenFile<'_>>,
        path: Option<&Path>,
    ) -> Result<Library, Error> {
        opens::open_out_of_bytes(joins::open);
        dlsym::open_by(plug_ins::stands_for);
        let mut symbols = self.symbols.unwrap_or_else(|| Box::new(()));
        let mut given = Given {
            loaded: &mut self.loaded,
            source: match &mut self.source {
                Some(source) => Some(&mut **source),
                None => None,
            },
            unknown: Vec::new(),
            symbols: &mut symbols,
            observers: &self.observers,
            path,
            limit: self.limit,
            is_lazy: self.is_lazy,
        };
        // SAFETY: the caller guarantees the library.
        unsafe { load::load(content, in_file, &mut given, self.folder.as_deref()) }.map(Library)
    }
}

impl From<Library> for NeededLibrary {
    fn from(library: Library) -> Self {
        Self(Needed::Loaded(library.0))
    }
}

impl Library {
    /// The function `name` of the default version, as a pointer that cannot outlive the library: as `dlsym` has it, the library's own, else
    /// that of the first library that has one of those that it needs, breadth first.
    ///
    /// # Errors
    /// [`LibraryError::NoSymbol`], [`LibraryError::NotFunction`].
    ///
    /// # Safety
    /// `F` is the type of the function. Calling it, which is `unsafe` again, runs code of the library.
    pub unsafe fn get<F: FunctionPointer>(
        &self,
        name: &str,
    ) -> Result<TypedFunction<'_, F>, Error> {
        let address = self.function(name)?;
        // SAFETY: the address is in code of the library, or of one that it keeps; the caller guarantees the type.
        Ok(TypedFunction::new(unsafe { F::at(address as usize) }))
    }

    /// The function `name` of a version, as `dlvsym` has it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// # Safety
    /// As of [`get`](Self::get).
    pub unsafe fn get_version<F: FunctionPointer>(
        &self,
        name: &str,
        version: &str,
    ) -> Result<TypedFunction<'_, F>, Error> {
        let address = self.function_version(name, version)?;
        // SAFETY: as above.
        Ok(TypedFunction::new(unsafe { F::at(address as usize) }))
    }

    /// The address of the function that [`get`](Self::get) gives, good as long as the library.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn function(&self, name: &str) -> Result<u64, Error> {
        self.function_of(SymbolReference { name: name.into(), version: None })
    }

    /// The address of the function that [`get_version`](Self::get_version) gives, good as long as the library.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn function_version(&self, name: &str, version: &str) -> Result<u64, Error> {
        self.function_of(SymbolReference { name: name.into(), version: Some(version.into()) })
    }

    fn function_of(&self, reference: SymbolReference<'_>) -> Result<u64, Error> {
        let found = by_name::find(&self.0, reference, None);
        match found.ok_or_else(|| LibraryError::NoSymbol(reference.name.to_string()))? {
            Meaning { definition: Definition::Address(address), is_code: true } if address != 0 => {
                Ok(address)
            }
            _ => Err(LibraryError::NotFunction(reference.name.to_string()).into()),
        }
    }

    /// The address of the symbol `name` of the default version, whatever it is, good as long as the library; of a thread-local variable none.
    /// It is looked for as [`get`](Self::get) does.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let reference = SymbolReference { name: name.into(), version: None };
        match by_name::find(&self.0, reference, None)?.definition {
            Definition::Address(address) => Some(address),
            _ => None,
        }
    }

    /// Whether the library itself shows a symbol of this name, not one that it needs.
    #[must_use]
    pub fn shows(&self, name: &str) -> bool {
        by_name::own(&self.0, SymbolReference { name: name.into(), version: None }).is_some()
    }

    /// The function that `address` is in, mangled if it was so, and how many bytes behind its start: for backtraces. Of functions that are not
    /// exported the name is known if the file has its symbol table (`.symtab`) still; of a library that was opened as a [file](LibraryLoader::open_file),
    /// if that was there, unchanged, when this was first called. On Arm the lowest bit of an address says whether code is Thumb's, as in pointers and
    /// return addresses, and does not count.
    #[must_use]
    pub fn symbol_at(&self, address: u64) -> Option<(Name<'_>, u64)> {
        let (address, functions) = (place_of(STT_FUNC, address), self.0.functions());
        let here = functions.into_iter().filter_map(|function| {
            let offset = address.checked_sub(function.address)?;
            (offset < function.size).then_some((function.name, offset))
        });
        here.min_by_key(|(_, offset)| *offset)
    }

    /// Its name (`DT_SONAME`); empty if it has none.
    #[must_use]
    pub fn name(&self) -> Name<'_> {
        Name(&self.0.name)
    }

    /// Address and size of the memory that the library occupies, in bytes.
    #[must_use]
    pub fn extent(&self) -> (u64, u64) {
        (self.0.memory.address(), self.0.size)
    }

    /// What is added to addresses that the file has, to get those in memory.
    #[must_use]
    pub fn bias(&self) -> u64 {
        self.0.bias
    }
}

/// What the library shows. Who uses one of its symbols keeps it.
impl Symbols for Library {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        let named = by_name::own(&self.0, SymbolReference { name, version: None })?;
        let external = match named.definition {
            Definition::Address(address) if self.0.is_code(address) => External::function(address),
            Definition::Address(address) => External::new(address),
            Definition::ThreadLocal { module, offset, tp_offset } => {
                External::thread_local(module, offset, tp_offset)
            }
            Definition::Indirect(_) => return None,
        };
        Some(Found::Kept(external, self.0.keeper()))
    }

    fn has_objects(&self) -> bool {
        false
    }
}
