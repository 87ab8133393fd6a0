//! The libraries that a library needs (gABI ch. 8, "Shared Object Dependencies").

use super::error::LibraryError;
use super::handle::Handle;
use super::loaded::{Bytes, Held};
use crate::observer::Observer;
use crate::symbols::Symbols;
use core::fmt;
use elf_core::names::{DT_RPATH, DT_RUNPATH, DT_SONAME};
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
    Loaded(Held),
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

/// Libraries out of bytes, by the names that others need them by.
pub(crate) type Named = Vec<(Box<[u8]>, Held)>;

/// What a load is given beside the file, and those loads that it needs.
pub(crate) struct Given<'g> {
    pub(crate) loaded: &'g mut Named,
    pub(crate) source: Option<&'g mut Find<'g>>,
    /// Names that the source has not.
    pub(crate) unknown: Vec<Box<[u8]>>,
    pub(crate) symbols: &'g mut dyn Symbols,
    pub(crate) observers: &'g [Arc<dyn Observer>],
    /// How many bytes an image may have, if the caller says it.
    pub(crate) limit: Option<u64>,
}

impl Given<'_> {
    /// What the source has of this name, which it is asked for once.
    pub(crate) fn ask(&mut self, name: Name<'_>) -> Option<Needed> {
        let bytes = name.as_bytes();
        if self.unknown.iter().any(|known| **known == *bytes) {
            return None;
        }
        let found = self.source.as_mut()?(name);
        if found.is_none() {
            self.unknown.push(bytes.into());
        }
        found.map(|NeededLibrary(found)| found)
    }
}

/// The library of this name that the dynamic loader has, or finds.
///
/// # Safety
/// Its constructors run.
pub(crate) unsafe fn of_loader(
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
