//! How objects are loaded.

use crate::border::{Bytes, Text, alone, changed, fallible, give, handle, infallible, place};
use crate::error::{Error, Status};
use crate::faults::{host, io};
use crate::module::Module;
use crate::object::Object;
use crate::objects::Objects;
use crate::observer::{Observer, perf_map};
use crate::source::SymbolSources;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use exec_host::observer::{GdbInterface, JitDump};
use exec_host::symbols::{ArchiveSource, Symbols};
use exec_host::{CodeArena, Process};
use std::sync::Mutex;

/// How objects are loaded: which memory, and who is told. Free it with `hoist_loader_free`.
#[derive(Default)]
pub struct Loader(Mutex<exec_host::Loader>);

/// Changes a loader.
fn set(
    loader: Option<NonNull<Loader>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    change: impl FnOnce(exec_host::Loader) -> Result<exec_host::Loader, Error>,
) -> Status {
    fallible(error, || {
        let mut loader = alone(&handle(changed(loader), "loader")?.0, "loader")?;
        *loader = change(loader.clone())?;
        Ok(())
    })
}

/// A loader with default options. Never NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_new() -> Box<Loader> {
    Box::default()
}

/// Whether code is written through other addresses than those where it is executed: no page becomes executable that was writable.
/// Off at first.
///
/// Errors: `BUSY`.
/// Threads: one call at a time for each loader; another one is answered `BUSY`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_set_dual_mapping(
    loader: Option<NonNull<Loader>>,
    is_wanted: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.dual_mapping(is_wanted)))
}

/// Whether modules whose code fills a huge page (2 MiB) ask for such pages. Off at first.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_set_huge_pages(
    loader: Option<NonNull<Loader>>,
    are_wanted: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.huge_pages(are_wanted)))
}

/// Whether functions can be replaced later (`hoist_module_replace`). Calls between them then go through stubs; compile with `-fPIC`,
/// so that compilers do not inline them or call them as local ones. Off at first.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_set_replaceable(
    loader: Option<NonNull<Loader>>,
    are_functions: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.replaceable(are_functions)))
}

/// Whether instructions that use the global offset table become others that do the same without it. On at first.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_set_relax(
    loader: Option<NonNull<Loader>>,
    is_wanted: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.relax(is_wanted)))
}

/// Whether up to 1 MiB of memory of modules that are gone stays for those that come. Off at first.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_set_reuse_memory(
    loader: Option<NonNull<Loader>>,
    is_wanted: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.reuse_memory(is_wanted)))
}

/// Has small modules (less than some 16 KiB, not replaceable) share pages and mappings: for very many of them.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_use_arena(
    loader: Option<NonNull<Loader>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.arena(&CodeArena::new())))
}

/// How many bytes a module may take at most. At first 16 GiB and 64 times the size of its objects.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_set_limit(
    loader: Option<NonNull<Loader>>,
    bytes: u64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.limit(bytes)))
}

/// Tells gdb of all modules: breakpoints, lines, unwinding.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_tell_gdb(
    loader: Option<NonNull<Loader>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.observer(GdbInterface)))
}

/// Tells perf of all modules, by its map of this process (`/tmp/perf-PID.map`).
///
/// Errors: `FILE` if the map cannot be written; `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_tell_perf(
    loader: Option<NonNull<Loader>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.observer(perf_map()?)))
}

/// Writes all functions that are loaded, with their code and lines, to `jit-PID.dump` in `folder`, for `perf record -k CLOCK_MONOTONIC` and
/// `perf inject --jit`.
///
/// Errors: `FILE` if that cannot be written, or not be mapped executable; `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_tell_jitdump(
    loader: Option<NonNull<Loader>>,
    folder: Text,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| {
        let folder = folder.path("folder")?;
        let dump = JitDump::create(folder).map_err(|cause| io(&cause, folder))?;
        Ok(loader.observer(dump))
    })
}

/// Tells the program of all modules. See `hoist_observer`, which is copied.
///
/// Errors: `INVALID_ARGUMENT` if `observer->loaded` is NULL; `BUSY`.
/// Threads: as for `hoist_loader_set_dual_mapping`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_tell(
    loader: Option<NonNull<Loader>>,
    observer: Option<&Observer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |loader| Ok(loader.observer(Observer::given(observer)?)))
}

/// Loads objects into memory of this process: code, read-only data and writable data apart, no page writable and executable. No
/// code runs; constructors are for `hoist_module_initialize`.
///
/// `loader` may be NULL: default options. `symbols` may be NULL: what the process has (`hoist_symbols_add_process`). All three can be
/// freed or used again afterwards. On error `*module` is NULL and nothing stays mapped.
///
/// Errors: what is wrong with which object (`BAD_FILE`, `UNSUPPORTED`, `LAYOUT`, `RELOCATION`, `UNDEFINED_SYMBOL` ...); `MEMORY`,
/// `TOO_LARGE`, `THREAD_LOCAL`; `INVALID_ARGUMENT` if there are no objects; `OTHER` if an observer refuses; `BUSY`.
/// Threads: any number at once, with different objects and symbols; a loader may be shared.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_load(
    loader: Option<&Loader>,
    objects: Option<&Objects>,
    symbols: Option<&SymbolSources>,
    module: Option<&mut MaybeUninit<*mut Module>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let module = place(module, "module")?;
        let list = alone(&handle(objects, "objects")?.0, "objects")?.clone();
        let loader = loader.map(|loader| {
            // a loader is changed for moments only
            loader.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
        });
        let loader = loader.unwrap_or_default();
        let (objects, archives) = (list.objects(), list.archives());
        let loaded = match symbols {
            Some(symbols) => load(&loader, objects, archives, &mut *alone(&symbols.0, "symbols")?),
            None => load(&loader, objects, archives, Process::new()),
        };
        give(module, loaded?);
        Ok(())
    })
}

fn load(
    loader: &exec_host::Loader,
    objects: Vec<Object>,
    archives: Vec<ArchiveSource>,
    symbols: impl Symbols,
) -> Result<Module, Error> {
    if objects.is_empty() {
        return Err(Error::argument(
            "there are no objects: members of archives are taken only for them",
        ));
    }
    let bytes = objects.iter().map(|object| object.bytes.clone());
    // an empty list would be asked, too
    let loaded = if archives.is_empty() {
        loader.load(bytes, symbols)
    } else {
        loader.load(bytes, archives.or(symbols))
    };
    loaded.map(Module::new).map_err(|error| host(&error, &objects))
}

/// Loads one object from a file, with default options and the symbols of the process: `hoist_loader_load` in one step. Archives are
/// refused.
///
/// Errors: `FILE`; as `hoist_loader_load`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_load_file(
    path: Text,
    module: Option<&mut MaybeUninit<*mut Module>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let module = place(module, "module")?;
        let path = path.path("path")?;
        let bytes = std::fs::read(path).map_err(|cause| io(&cause, path))?;
        let object = Object { label: path.to_string_lossy().into(), bytes: bytes.into() };
        give(module, load(&exec_host::Loader::new(), vec![object], Vec::new(), Process::new())?);
        Ok(())
    })
}

/// The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
///
/// Errors: as `hoist_loader_load`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_load_memory(
    label: Text,
    data: Bytes,
    size: usize,
    module: Option<&mut MaybeUninit<*mut Module>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let module = place(module, "module")?;
        let label = label.optional("label")?.unwrap_or("memory");
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        let object = Object { label: label.into(), bytes: bytes.into() };
        give(module, load(&exec_host::Loader::new(), vec![object], Vec::new(), Process::new())?);
        Ok(())
    })
}

/// Frees a loader; NULL is none. What it has loaded stays.
///
/// Threads: nobody uses the loader any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_loader_free(loader: Option<Box<Loader>>) {
    infallible((), || drop(loader));
}
