//! The libraries that a library needs (gABI ch. 8, "Shared Object Dependencies").

use super::error::LibraryError;
use super::handle::Handle;
use super::library_file::Bytes;
use super::loaded::Held;
use crate::observer::Observer;
use crate::symbols::Symbols;
use crate::threads::that_needs;
use core::fmt;
use elf_core::names::{DT_RPATH, DT_RUNPATH, DT_SONAME};
use elf_core::{DynamicSection, Name};
use exec_core::sync::Mutex;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
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
pub(crate) type Needer<'a> = (&'a DynamicSection<'a>, Option<&'a Path>);

/// The name that the dynamic loader knows what the first of `needers` needs by: a path may begin with the folder of who needs it.
fn known_as(needers: &[Needer<'_>], name: Name<'_>) -> Result<CString, LibraryError> {
    let folder = needers.first().and_then(|(_, folder)| *folder);
    let known = expanded(name.as_bytes(), folder).unwrap_or_else(|| name.as_bytes().into());
    CString::new(known).map_err(|error| failed(name, error.to_string()))
}

fn failed(name: Name<'_>, cause: String) -> LibraryError {
    LibraryError::Needed { name: name.to_string(), cause }
}

/// What the first of `needers` needs by this name, if it is there: as for ld.so wherever it came from.
pub(crate) fn there(needers: &[Needer<'_>], name: Name<'_>) -> Option<Arc<Handle>> {
    /// Libraries that stay, by the names that they were asked for by: those lead to them as long as the process.
    static STAYING: Mutex<BTreeMap<CString, Arc<Handle>>> = Mutex::new(BTreeMap::new());
    let name = known_as(needers, name).ok()?;
    if let Some(handle) = STAYING.lock().get(&name) {
        return Some(Arc::clone(handle));
    }
    let handle = Arc::new(Handle::if_loaded(&name)?);
    if handle.stays() {
        STAYING.lock().insert(name, Arc::clone(&handle));
    }
    Some(handle)
}

/// Has the dynamic loader load what the first of `needers`, which the second needs, and so on, needs by these names, as it would for a library of its own: in the order
/// of their constructors, and they look into each other. What is given keeps them.
///
/// # Errors
/// That of the last name, which may be another one's.
///
/// # Safety
/// Constructors run.
pub(crate) unsafe fn load(
    needers: &[Needer<'_>],
    names: &[Name<'_>],
) -> Result<Option<Handle>, LibraryError> {
    let Some(last) = names.last() else { return Ok(None) };
    let known = names.iter().map(|name| known_as(needers, *name));
    let known = known.collect::<Result<Vec<_>, _>>()?;
    let listed = folders(needers).filter(|_| known.iter().any(|name| !is_path(name)));
    if let ([only], None) = (&known[..], &listed) {
        // SAFETY: as the caller guarantees.
        return unsafe { Handle::library(only) }.map(Some).map_err(|words| failed(*last, words));
    }
    let known: Vec<&[u8]> = known.iter().map(|name| name.as_bytes()).collect();
    let listed = listed.as_ref().map(|(tag, list)| (*tag, &list[..]));
    let library = that_needs(&known, listed).map_err(|error| failed(*last, error.to_string()));
    let (_file, path) = library?;
    let path = CString::new(path).map_err(|error| failed(*last, error.to_string()))?;
    // SAFETY: as the caller guarantees.
    unsafe { Handle::library(&path) }.map(Some).map_err(|words| failed(*last, words))
}

/// The library of this name that the dynamic loader has, or finds: for the first of `needers`, which the second needs, and so on.
///
/// # Safety
/// Its constructors run.
pub(crate) unsafe fn of_loader(
    needers: &[Needer<'_>],
    name: Name<'_>,
) -> Result<Arc<Handle>, LibraryError> {
    if let Some(handle) = there(needers, name) {
        return Ok(handle);
    }
    // SAFETY: as the caller guarantees.
    let kept = unsafe { load(needers, &[name]) }?;
    // it is there now, by this name
    let handle = there(needers, name).or(kept.map(Arc::new));
    handle.ok_or_else(|| failed(name, String::from("the dynamic loader does not say where it is")))
}

fn is_path(name: &CStr) -> bool {
    name.to_bytes().contains(&b'/')
}

/// The folders in which ld.so looks for what the first of `needers` needs, as libraries list them, and how it is told:
/// `DT_RUNPATH` is a library's own, and comes behind what the user says; `DT_RPATH` is also that of all who need it, and of all that is needed.
pub(super) fn folders(needers: &[Needer<'_>]) -> Option<(u64, Vec<u8>)> {
    let of = |(dynamic, folder): &Needer<'_>, tag: u64| {
        let list = dynamic.texts(tag).next().and_then(Result::ok)?;
        let entries = list.as_bytes().split(|&byte| byte == b':' || byte == b';');
        let entries = entries.filter_map(|entry| expanded(entry, *folder));
        Some(entries.collect::<Vec<_>>().join(&b':'))
    };
    let (tag, list) = match needers.first().and_then(|needer| of(needer, DT_RUNPATH)) {
        Some(own) => (DT_RUNPATH, own),
        None => {
            let all = needers.iter().filter(|needer| of(needer, DT_RUNPATH).is_none());
            let lists = all.filter_map(|needer| of(needer, DT_RPATH));
            (DT_RPATH, lists.filter(|list| !list.is_empty()).collect::<Vec<_>>().join(&b':'))
        }
    };
    (!list.is_empty()).then_some((tag, list))
}

/// A path with `folder` for `$ORIGIN`; none if that is not known, or cannot be said in a list. Other words with `$` are for the dynamic loader.
pub(super) fn expanded(entry: &[u8], folder: Option<&Path>) -> Option<Vec<u8>> {
    let (mut path, mut rest) = (Vec::new(), entry);
    while let Some((first, behind)) = rest.split_first() {
        let words = [&b"${ORIGIN}"[..], b"$ORIGIN"];
        if let Some(behind) = words.into_iter().find_map(|word| rest.strip_prefix(word)) {
            let folder = folder?.as_os_str().as_bytes();
            if folder.iter().any(|byte| b":;$".contains(byte)) {
                return None;
            }
            path.extend_from_slice(folder);
            rest = behind;
        } else {
            path.push(*first);
            rest = behind;
        }
    }
    Some(path)
}
