//! Extension modules of Python, and the libraries that they need, out of bytes.

#[path = "../needed/mod.rs"]
mod needed;

use elf_core::Name;
use exec_host::library::{Library, LibraryLoader, NeededLibrary};
use needed::is_of_loader;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

pub(crate) type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The interpreter as a program.
pub(crate) type Main = unsafe extern "C" fn(c_int, *const *const c_char) -> c_int;

/// Makes a module known as a built-in one: its name, and the function that makes it.
type AppendInittab =
    unsafe extern "C" fn(*const c_char, unsafe extern "C" fn() -> *mut c_void) -> c_int;

/// Libraries that were needed, each once for all modules.
#[derive(Default)]
pub(crate) struct Needed(RefCell<BTreeMap<String, Library>>);

impl Needed {
    /// The library of this name out of bytes, with what it needs.
    pub(crate) fn find(&self, name: Name<'_>) -> Option<NeededLibrary> {
        let name = name.to_str().filter(|name| !is_of_loader(name))?;
        if let Some(known) = self.0.borrow().get(name) {
            return Some(known.clone().into());
        }
        let bytes = needed::read(name)?;
        // SAFETY: who runs the program asks for what it needs.
        let library = unsafe { LibraryLoader::new().needed(|name| self.find(name)).open(bytes) };
        let library = library.ok()?;
        self.0.borrow_mut().insert(name.to_owned(), library.clone());
        Some(library.into())
    }
}

/// The interpreter.
pub(crate) enum Python {
    /// The dynamic loader's, for all.
    Opened(*mut c_void),
    /// Out of bytes.
    Loaded(Library),
}

impl Python {
    pub(crate) fn of_loader(path: &str) -> Result<Self> {
        let path = CString::new(path)?;
        // SAFETY: who runs the program asks for the library.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err("the dynamic loader refuses the interpreter".into());
        }
        Ok(Self::Opened(handle))
    }

    pub(crate) fn of_bytes(path: &Path, needed: &Needed) -> Result<Self> {
        let loader = LibraryLoader::new().needed(|name| needed.find(name));
        // SAFETY: as above.
        Ok(Self::Loaded(unsafe { loader.open(std::fs::read(path)?)? }))
    }

    /// The address of a function.
    pub(crate) fn function(&self, name: &str) -> Result<usize> {
        match self {
            Self::Opened(handle) => {
                let wanted = CString::new(name)?;
                // SAFETY: the handle is open.
                let found = unsafe { libc::dlsym(*handle, wanted.as_ptr()) };
                let found = Some(found.expose_provenance()).filter(|found| *found != 0);
                Ok(found.ok_or_else(|| format!("no {name}"))?)
            }
            Self::Loaded(library) => Ok(usize::try_from(library.function(name)?)?),
        }
    }

    /// A loader of modules.
    fn loader(&self) -> LibraryLoader<'static> {
        match self {
            Self::Opened(_) => LibraryLoader::new(),
            Self::Loaded(library) => LibraryLoader::new().library(library).symbols(library.clone()),
        }
    }
}

/// Modules in memory, by their names with dots.
pub(crate) struct Modules {
    loaded: BTreeMap<String, Library>,
    /// Those that could not be loaded, and why.
    pub(crate) refused: Vec<(String, String)>,
}

impl Modules {
    /// Loads the modules in a folder and below, beside `python`, whose functions they call.
    pub(crate) fn load(python: &Python, folder: &Path, needed: &Needed) -> Result<Self> {
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        let mut modules = Self { loaded: BTreeMap::new(), refused: Vec::new() };
        for path in files {
            let Some(name) = name(folder, &path) else { continue };
            let loader = python.loader().origin(path.parent().unwrap_or(folder));
            let loader = loader.needed(|name| needed.find(name));
            // SAFETY: who runs the program asks for the modules.
            match unsafe { loader.open(std::fs::read(&path)?) } {
                Ok(library) => drop(modules.loaded.insert(name, library)),
                Err(error) => modules.refused.push((name, error.to_string())),
            }
        }
        Ok(modules)
    }

    /// Has the interpreter, which is not initialized yet, take them for built-in modules.
    pub(crate) fn announce(&self, python: &Python) -> Result<()> {
        let append = python.function("PyImport_AppendInittab")?;
        // SAFETY: the function has this type.
        let append = unsafe { std::mem::transmute::<usize, AppendInittab>(append) };
        for (name, library) in &self.loaded {
            let own = name.rsplit('.').next().unwrap_or(name);
            // SAFETY: so are these functions defined.
            let make = unsafe { library.get(&format!("PyInit_{own}")) };
            let Ok(make) = make else { continue };
            // SAFETY: the interpreter keeps the name, which is never given back.
            if unsafe { append(CString::new(name.as_str())?.into_raw(), *make) } != 0 {
                return Err(format!("{name}: the interpreter has no memory").into());
            }
            eprintln!("LOADED {name}");
        }
        Ok(())
    }
}

/// The name of a module by its path: `package/module.cpython-311-x86_64-linux-gnu.so`.
fn name(folder: &Path, path: &Path) -> Option<String> {
    let path = path.strip_prefix(folder).ok()?.to_str()?;
    let stem = path.strip_suffix(".so")?;
    let (folders, own) = stem.rsplit_once('/').map_or((None, stem), |(of, own)| (Some(of), own));
    let own = own.split('.').next()?;
    Some(folders.map_or_else(|| own.to_owned(), |of| format!("{}.{own}", of.replace('/', "."))))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<std::io::Result<_>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "so") {
            files.push(path);
        }
    }
    Ok(())
}
