//! The libraries that a library needs (gABI ch. 8, "Shared Object Dependencies").

use super::error::LibraryError;
use super::file::FilePages;
use super::handle::Handle;
use super::loaded::{Bytes, Loaded, Member};
use crate::error::Error;
use crate::observer::Observer;
use crate::symbols::Symbols;
use core::fmt;
use elf_core::names::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME};
use elf_core::{DynamicSection, Name};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of libraries that the dynamic loader has to load itself: they are one with it.
const OF_THE_LOADER: [&str; 7] = [
    "libc.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libthread_db.so.1",
    "libc.so",
    "libc_malloc_debug.so.0",
];

/// The name of a library (`DT_SONAME`).
///
/// # Errors
/// [`LibraryError::Refused`] if it is one that only the dynamic loader can load.
pub(crate) fn name<'a>(dynamic: &DynamicSection<'a>) -> Result<Name<'a>, LibraryError> {
    let name = dynamic.texts(DT_SONAME).next().transpose().map_err(elf_image::Error::from)?;
    let name = name.unwrap_or_default();
    let starts: [&[u8]; 3] = [b"ld-linux", b"ld-musl-", b"libc.musl-"];
    let starts_so = starts.iter().any(|start| name.as_bytes().starts_with(start));
    if starts_so || OF_THE_LOADER.iter().any(|own| name == *own) {
        let reason = format!("{name} is a part of the dynamic loader, which alone can load it");
        return Err(LibraryError::Refused { reason });
    }
    Ok(name)
}

/// A library that another one needs, of the caller's: `Library::into` for one that is loaded already.
pub struct NeededLibrary(pub(crate) Needed);

/// What is given for a name.
pub(crate) enum Needed {
    Loaded(Arc<Loaded>),
    Bytes(Bytes),
}

impl NeededLibrary {
    /// One to be loaded out of `bytes`, with what it needs itself: `Vec<u8>`, `&'static [u8]`, a mapped file.
    pub fn bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Needed::Bytes(Arc::new(bytes)))
    }
}

impl fmt::Debug for NeededLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_tuple("NeededLibrary");
        match &self.0 {
            Needed::Loaded(loaded) => debug.field(loaded),
            Needed::Bytes(bytes) => debug.field(&(**bytes).as_ref().len()),
        };
        debug.finish()
    }
}

/// Who answers for libraries that are needed.
pub(crate) type Find<'g> = dyn FnMut(Name<'_>) -> Option<NeededLibrary> + 'g;

/// Loads a library: the function that has [`members`] called.
pub(crate) type Load = unsafe fn(
    Bytes,
    Option<&FilePages>,
    &mut Given<'_>,
    Option<&Path>,
) -> Result<Arc<Loaded>, Error>;

/// Libraries out of bytes, by the names that others need them by.
pub(crate) type Named = Vec<(Box<[u8]>, Arc<Loaded>)>;

/// What a load is given beside the file, and those loads that it needs.
pub(crate) struct Given<'g> {
    pub(crate) load: Load,
    pub(crate) loaded: &'g mut Named,
    pub(crate) source: Option<&'g mut Find<'g>>,
    /// Names of libraries that wait for those that they need.
    pub(crate) waiting: Vec<Box<[u8]>>,
    /// One of those has code that reaches variables of others at one distance from the thread pointer (`DF_STATIC_TLS`).
    pub(crate) wants_tp_offsets: bool,
    pub(crate) symbols: &'g mut dyn Symbols,
    pub(crate) observers: &'g [Arc<dyn Observer>],
    /// How many bytes an image may have, if the caller says it.
    pub(crate) limit: Option<u64>,
}

/// How far libraries that a library needs, and those that they need, may go.
const DEEPEST: usize = 64;

/// What it needs, in order: of those already loaded, of the caller's source, else of the dynamic loader.
///
/// # Errors
/// [`LibraryError::Needed`].
///
/// # Safety
/// Constructors of libraries run that the dynamic loader opens, or that the source has.
pub(crate) unsafe fn members(
    dynamic: &DynamicSection<'_>,
    given: &mut Given<'_>,
    folder: Option<&Path>,
) -> Result<Vec<Member>, LibraryError> {
    let mut members = Vec::new();
    for name in dynamic.texts(DT_NEEDED) {
        let name = name.map_err(elf_image::Error::from)?;
        // SAFETY: as the caller vouches.
        members.push(match unsafe { out_of_bytes(name, given) }? {
            Some(loaded) => Member::Loaded(loaded),
            // SAFETY: as the caller vouches.
            None => Member::Process(Arc::new(unsafe { of_loader(dynamic, name, folder) }?)),
        });
    }
    Ok(members)
}

/// The library of this name that is loaded out of bytes, or is to be.
///
/// # Safety
/// Its constructors run.
unsafe fn out_of_bytes(
    name: Name<'_>,
    given: &mut Given<'_>,
) -> Result<Option<Arc<Loaded>>, LibraryError> {
    let bytes = name.as_bytes();
    if let Some((_, found)) = given.loaded.iter().find(|(known, _)| **known == *bytes) {
        return Ok(Some(Arc::clone(found)));
    }
    let failed = |cause: String| LibraryError::Needed { name: name.to_string(), cause };
    let Some(source) = given.source.as_mut() else { return Ok(None) };
    let loaded = match source(name) {
        None => return Ok(None),
        Some(NeededLibrary(Needed::Loaded(loaded))) => loaded,
        Some(NeededLibrary(Needed::Bytes(file))) => {
            if given.waiting.iter().any(|waiting| **waiting == *bytes) {
                let cause = "it needs itself, by way of others, which only ld.so can resolve";
                return Err(failed(cause.into()));
            }
            if given.waiting.len() >= DEEPEST {
                return Err(failed(format!("more than {DEEPEST} libraries need each other")));
            }
            given.waiting.push(bytes.into());
            // SAFETY: as the caller vouches.
            let loaded = unsafe { (given.load)(file, None, given, None) };
            given.waiting.pop();
            loaded.map_err(|error| failed(error.to_string()))?
        }
    };
    given.loaded.push((bytes.into(), Arc::clone(&loaded)));
    Ok(Some(loaded))
}

/// The library of this name that the dynamic loader has, or finds.
///
/// # Safety
/// Its constructors run.
unsafe fn of_loader(
    dynamic: &DynamicSection<'_>,
    name: Name<'_>,
    folder: Option<&Path>,
) -> Result<Handle, LibraryError> {
    let failed = |cause| LibraryError::Needed { name: name.to_string(), cause };
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|error| failed(error.to_string()));
    let plain = text(name.as_bytes())?;
    // as ld.so: what is there of this name is it, wherever it came from
    if let Some(handle) = Handle::if_loaded(&plain) {
        return Ok(handle);
    }
    let path = match beside(dynamic, name, folder) {
        Some(path) => text(path.as_os_str().as_bytes())?,
        None => plain,
    };
    // SAFETY: as the caller vouches.
    unsafe { Handle::library(&path) }.map_err(failed)
}

/// The file of this name in the folders that the library wants to be searched.
fn beside(dynamic: &DynamicSection<'_>, name: Name<'_>, folder: Option<&Path>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return None;
    }
    let lists = [DT_RUNPATH, DT_RPATH].into_iter();
    let list = lists.filter_map(|tag| dynamic.texts(tag).next()).next()?.ok()?;
    for entry in list.as_bytes().split(|&byte| byte == b':').filter(|entry| !entry.is_empty()) {
        let entry = String::from_utf8_lossy(entry);
        let is_of_folder = entry.contains("$ORIGIN") || entry.contains("${ORIGIN}");
        let entry = match folder {
            Some(folder) => {
                let folder = folder.to_string_lossy();
                entry.replace("${ORIGIN}", &folder).replace("$ORIGIN", &folder)
            }
            None if is_of_folder => continue,
            None => entry.into_owned(),
        };
        let path = Path::new(&entry).join(OsStr::from_bytes(name.as_bytes()));
        if path.is_absolute() && path.is_file() {
            return Some(path);
        }
    }
    None
}
