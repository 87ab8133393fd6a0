//! The libraries that a library needs (gABI ch. 8, "Shared Object Dependencies").

use super::error::LibraryError;
use super::handle::Handle;
use super::loaded::{Loaded, Member};
use elf_core::names::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME};
use elf_core::{DynamicSection, Name};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of libraries that the dynamic loader has to load itself: they are one with it.
const OF_THE_LOADER: [&str; 9] = [
    "libc.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libthread_db.so.1",
    "libc.so",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libc_malloc_debug.so.0",
];

/// The name of a library (`DT_SONAME`).
///
/// # Errors
/// [`LibraryError::Refused`] if it is one that only the dynamic loader can load.
pub(crate) fn name<'a>(dynamic: &DynamicSection<'a>) -> Result<Name<'a>, LibraryError> {
    let name = dynamic.texts(DT_SONAME).next().transpose().map_err(elf_image::Error::from)?;
    let name = name.unwrap_or_default();
    if OF_THE_LOADER.iter().any(|own| name == *own) || name.as_bytes().starts_with(b"libc.musl-") {
        let reason = format!("{name} is a part of the dynamic loader, which alone can load it");
        return Err(LibraryError::Refused { reason });
    }
    Ok(name)
}

/// What it needs, in order: of those already `loaded`, else of the dynamic loader.
///
/// # Errors
/// [`LibraryError::Needed`].
///
/// # Safety
/// Constructors of libraries run that the dynamic loader opens.
pub(crate) unsafe fn members(
    dynamic: &DynamicSection<'_>,
    loaded: &[Arc<Loaded>],
    folder: Option<&Path>,
) -> Result<Vec<Member>, LibraryError> {
    let mut members = Vec::new();
    for name in dynamic.texts(DT_NEEDED) {
        let name = name.map_err(elf_image::Error::from)?;
        if let Some(found) = loaded.iter().find(|one| *one.name == *name.as_bytes()) {
            members.push(Member::Loaded(Arc::clone(found)));
            continue;
        }
        let failed = |cause| LibraryError::Needed { name: name.to_string(), cause };
        let beside = beside(dynamic, name, folder);
        let path = beside.as_ref().map_or(name.as_bytes(), |path| path.as_os_str().as_bytes());
        let path = CString::new(path).map_err(|error| failed(error.to_string()))?;
        // SAFETY: as the caller vouches.
        let handle = unsafe { Handle::library(&path) }.map_err(failed)?;
        members.push(Member::Process(Arc::new(handle)));
    }
    Ok(members)
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
