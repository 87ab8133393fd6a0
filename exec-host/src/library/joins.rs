//! Libraries that code of a library opens, and that need that one: plug-ins, parts of a virtual machine, extensions of an interpreter. The
//! dynamic loader does not know the library, and would load it a second time for them, with variables of its own, or find it nowhere. So
//! they are loaded as it was, with what they need of it.

use super::file::OpenFile;
use super::handle::Handle;
use super::library_file::LibraryFile;
use super::load;
use super::loaded::Held;
use super::needed::{self, Given, Named};
use super::opens::Wanted;
use super::plug_ins;
use crate::error::Error;
use core::ffi::c_void;
use elf_core::DynamicSection;
use elf_core::names::{DT_NEEDED, DT_RPATH, DT_RUNPATH};
use std::ffi::{CString, OsStr};
use std::fs::metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// So many libraries may need one another before one is needed that is there.
const MOST: usize = 16;

/// A handle of what code of this library, or of objects, opens, if that is a library out of bytes, or needs one; `None` leaves it to the
/// dynamic loader.
///
/// # Safety
/// Constructors run.
pub(super) unsafe fn open(caller: Option<&Held>, wanted: Wanted<'_>) -> Option<*mut c_void> {
    let mut met = plug_ins::met_by(caller);
    if wanted.of_process {
        // to its own libraries the dynamic loader's come first: another one of the name is for those that it was loaded for
        met.retain(|held| !plug_ins::name_of(held).is_some_and(is_of_loader));
    }
    let path = match wanted.name.contains(&b'/') {
        true => PathBuf::from(OsStr::from_bytes(wanted.name)),
        false => {
            if let Some(held) = plug_ins::called(&met, wanted.name) {
                return Some(plug_ins::open(held));
            }
            let caller = caller?;
            in_folders(caller.content.dynamic(), caller.folder.as_deref(), wanted.name)?
        }
    };
    if let Some(held) = plug_ins::of_file(&met, &metadata(&path).ok()?) {
        return Some(plug_ins::open(held));
    }
    if wanted.is_there {
        return None;
    }
    // SAFETY: as the caller guarantees.
    let held = unsafe { join(&path, wanted.is_lazy, &mut met, MOST) }?;
    Some(plug_ins::open(&held))
}

/// The library of this file, if it needs one of these, itself or by way of others, which are loaded with it and are among these then. One
/// that cannot be loaded so is left to the dynamic loader.
///
/// # Safety
/// Constructors run.
unsafe fn join(path: &Path, is_lazy: bool, met: &mut Vec<Held>, most: usize) -> Option<Held> {
    let path = std::path::absolute(path).ok()?;
    if let Some(held) = plug_ins::of_file(met, &metadata(&path).ok()?) {
        return Some(held.clone());
    }
    let file = OpenFile::new(&path).ok()?;
    let content = content_of(&file).ok()?;
    let mut named = Named::new();
    for name in content.dynamic().texts(DT_NEEDED).filter_map(Result::ok) {
        let name = name.as_bytes();
        let found = match plug_ins::called(met, name) {
            Some(held) => Some(held.clone()),
            None if most == 0 || is_of_loader(name) => None,
            None => in_folders(content.dynamic(), path.parent(), name)
                // SAFETY: as the caller guarantees.
                .and_then(|path| unsafe { join(&path, is_lazy, met, most.saturating_sub(1)) }),
        };
        named.extend(found.map(|held| (name.into(), held)));
    }
    if named.is_empty() {
        return None;
    }
    let mut given = Given {
        loaded: &mut named,
        source: None,
        unknown: Vec::new(),
        symbols: &mut (),
        observers: &[],
        path: Some(&path),
        limit: None,
        is_lazy,
    };
    let in_file = file.has_pages().then_some(&file);
    // SAFETY: as the caller guarantees.
    let held = unsafe { load::load(content, in_file, &mut given, path.parent()) }.ok()?;
    met.push(held.clone());
    Some(held)
}

fn content_of(file: &OpenFile<'_>) -> Result<LibraryFile, Error> {
    if let Some(content) = file.beginning().and_then(LibraryFile::of_beginning) {
        return Ok(content);
    }
    // SAFETY: as of a file that the dynamic loader is given, nobody writes to it.
    Ok(LibraryFile::new(std::sync::Arc::new(unsafe { file.whole(true) }?))?)
}

/// Whether the dynamic loader has a library of this name already.
fn is_of_loader(name: &[u8]) -> bool {
    CString::new(name).ok().and_then(|name| Handle::if_loaded(&name)).is_some()
}

/// The file of this name in the folders that a library says, and the user (`LD_LIBRARY_PATH`), whose come before those of `DT_RUNPATH`.
fn in_folders(dynamic: &DynamicSection<'_>, folder: Option<&Path>, name: &[u8]) -> Option<PathBuf> {
    if name.contains(&b'/') {
        return needed::expanded(name, folder).map(|path| PathBuf::from(OsStr::from_bytes(&path)));
    }
    let users = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let (tag, own) = needed::folders(&[(dynamic, folder)]).unwrap_or((DT_RUNPATH, Vec::new()));
    let (first, last) = match tag {
        DT_RPATH => (&*own, users.as_bytes()),
        _ => (users.as_bytes(), &*own),
    };
    let folders =
        [first, last].into_iter().flat_map(|list| list.split(|byte| b":;".contains(byte)));
    let folders = folders.filter(|folder| !folder.is_empty()).map(OsStr::from_bytes);
    let mut paths = folders.map(|folder| Path::new(folder).join(OsStr::from_bytes(name)));
    paths.find(|path| path.is_file())
}
