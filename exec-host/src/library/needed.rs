//! The libraries that a library needs (gABI ch. 8, "Shared Object Dependencies").

use super::error::LibraryError;
use super::handle::Handle;
use super::loaded::{Bytes, Held};
use crate::observer::Observer;
use crate::symbols::Symbols;
use core::fmt;
use elf_core::names::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME};
use elf_core::{DynamicSection, File, Name};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
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
    /// The file that is opened, if it is one.
    pub(crate) path: Option<&'g Path>,
    /// How many bytes an image may have, if the caller says it.
    pub(crate) limit: Option<u64>,
    /// Functions that nobody has yet are looked for when they are called.
    pub(crate) is_lazy: bool,
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

/// A library that needs another one, and the folder that it is in, if that is known.
pub(crate) type Needer<'a> = (DynamicSection<'a>, Option<PathBuf>);

/// The library of this name that the dynamic loader has, or finds: for the first of `needers`, which the second needs, and so on.
///
/// # Safety
/// Its constructors run.
pub(crate) unsafe fn of_loader(
    needers: &[Needer<'_>],
    name: Name<'_>,
) -> Result<Handle, LibraryError> {
    let failed = |cause| LibraryError::Needed { name: name.to_string(), cause };
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|error| failed(error.to_string()));
    let plain = text(name.as_bytes())?;
    // as ld.so: what is there of this name is it, wherever it came from
    if let Some(handle) = Handle::if_loaded(&plain) {
        return Ok(handle);
    }
    let (folders, is_inherited) = folders(needers);
    let path = in_folders(&folders, name);
    let mut first = Vec::new();
    if let Some(path) = path.as_ref().filter(|_| is_inherited) {
        // SAFETY: as the caller guarantees.
        unsafe { open_needed(path, &folders, &mut vec![path.clone()], &mut first) };
    }
    let path = path.map_or(Ok(plain), |path| text(path.as_os_str().as_bytes()))?;
    // SAFETY: as the caller guarantees.
    unsafe { Handle::library(&path) }.map_err(failed)
}

/// The folders in which ld.so looks first for what the first of `needers` needs, and whether it looks there for what that needs, too:
/// `DT_RUNPATH` is a library's own, and comes behind what the user says; `DT_RPATH` is also that of all who need it.
fn folders(needers: &[Needer<'_>]) -> (Vec<PathBuf>, bool) {
    let of = |(dynamic, folder): &Needer<'_>, tag: u64| {
        let list = dynamic.texts(tag).next().and_then(Result::ok);
        list.map(|list| expanded(list.as_bytes(), folder.as_deref()))
    };
    if let Some(own) = needers.first().and_then(|needer| of(needer, DT_RUNPATH)) {
        let users = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let users = expanded(users.as_bytes(), None);
        return (users.into_iter().chain(own).collect(), false);
    }
    let all = needers.iter().filter(|needer| of(needer, DT_RUNPATH).is_none());
    (all.filter_map(|needer| of(needer, DT_RPATH)).flatten().collect(), true)
}

/// The folders of a list, those that are known: `$ORIGIN` is `folder`.
fn expanded(list: &[u8], folder: Option<&Path>) -> Vec<PathBuf> {
    let entry = |entry: &[u8]| {
        let (mut path, mut rest) = (Vec::new(), entry);
        while let Some((first, behind)) = rest.split_first() {
            let origin = [&b"${ORIGIN}"[..], b"$ORIGIN"]
                .into_iter()
                .find_map(|word| rest.strip_prefix(word));
            if let Some(behind) = origin {
                path.extend_from_slice(folder?.as_os_str().as_bytes());
                rest = behind;
            } else {
                path.push(*first);
                rest = behind;
            }
        }
        Some(PathBuf::from(OsString::from_vec(path)))
    };
    let entries = list.split(|&byte| byte == b':' || byte == b';').filter_map(entry);
    entries.filter(|folder| folder.is_absolute()).collect()
}

/// The file of this name in the first folder that has one.
fn in_folders(folders: &[PathBuf], name: Name<'_>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return None;
    }
    let name = OsStr::from_bytes(name.as_bytes());
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Opens what a library of the dynamic loader needs of folders that are searched for who needs it: the dynamic loader knows nothing of them.
/// What cannot be opened it will say.
///
/// # Safety
/// Constructors run.
unsafe fn open_needed(
    path: &Path,
    folders: &[PathBuf],
    known: &mut Vec<PathBuf>,
    opened: &mut Vec<Handle>,
) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let Ok(file) = File::parse_segments(&bytes) else { return };
    let Ok(Some(dynamic)) = file.dynamic_by_segment() else { return };
    let own = expanded_own(&dynamic, path);
    if dynamic.value(DT_RUNPATH).is_some() {
        return;
    }
    for name in dynamic.texts(DT_NEEDED).filter_map(Result::ok) {
        let Ok(plain) = CString::new(name.as_bytes()) else { continue };
        if in_folders(&own, name).is_some() || Handle::if_loaded(&plain).is_some() {
            continue;
        }
        let Some(path) = in_folders(folders, name).filter(|path| !known.contains(path)) else {
            continue;
        };
        known.push(path.clone());
        // SAFETY: as the caller guarantees.
        unsafe { open_needed(&path, folders, known, opened) };
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { continue };
        // SAFETY: as above.
        opened.extend(unsafe { Handle::library(&path) });
    }
}

/// The folders that a library at `path` has itself searched, for all.
fn expanded_own(dynamic: &DynamicSection<'_>, path: &Path) -> Vec<PathBuf> {
    let list = dynamic.texts(DT_RPATH).next().and_then(Result::ok);
    list.map(|list| expanded(list.as_bytes(), path.parent())).unwrap_or_default()
}
