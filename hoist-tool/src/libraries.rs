//! Shared libraries among what `hoist run` is given, by path, by the name that programs need them by, or as members of archives.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use elf_core::names::ET_DYN;
use exec_host::library::{Library, LibraryLoader};
use exec_host::observer::Observer;

use crate::budget::Limits;
use crate::mapped::Mapped;
use crate::member::Member;
use inside::Inside;

mod inside;

/// Where libraries are, beside the folders of `LD_LIBRARY_PATH`.
const FOLDERS: [&str; 10] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/riscv64-linux-gnu",
    "/usr/lib/riscv64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Opens those of the files that are shared libraries, in order, and takes them out. `observers` are told. An image has at most as many
/// bytes as `limits` say. With `is_lazy`, functions that nobody has are left to their first call.
///
/// # Errors
/// Which one cannot be loaded, and why.
///
/// # Safety
/// Constructors of the libraries run, and destructors when they go. Nobody writes to the files meanwhile.
pub unsafe fn open(
    files: &mut Vec<PathBuf>,
    observers: &[Arc<dyn Observer>],
    limits: Limits,
    is_lazy: bool,
) -> Result<Vec<Library>> {
    let (mut opened, mut rest) = (Vec::new(), Vec::new());
    for path in files.drain(..) {
        let Some(found) = Found::of(&path)? else {
            rest.push(path);
            continue;
        };
        let mut loader = LibraryLoader::new();
        if let Some(limit) = limits.limit {
            loader = loader.limit(limit);
        }
        if is_lazy {
            loader = loader.lazy();
        }
        for observer in observers {
            loader = loader.observer(Arc::clone(observer));
        }
        for earlier in &opened {
            loader = loader.library(earlier);
        }
        let library = match found {
            // SAFETY: as the caller says.
            Found::File(path) => unsafe { loader.open_file(&path) },
            Found::Member(member, bytes) => {
                let mut inside = Inside::of(member, bytes.bytes());
                // SAFETY: as the caller says.
                let library = unsafe { loader.needed(|name| inside.find(name)).open(bytes) };
                inside.check()?;
                library
            }
        };
        opened.push(library.with_context(|| path.display().to_string())?);
    }
    *files = rest;
    Ok(opened)
}

/// Where a library is.
enum Found {
    File(PathBuf),
    Member(Member, Mapped),
}

impl Found {
    /// What a word means, if that is a library.
    fn of(word: &Path) -> Result<Option<Self>> {
        if let Some(path) = find(word) {
            return Ok(Some(path).filter(|path| is_library_file(path)).map(Self::File));
        }
        let Some(member) = Member::named(word) else { return Ok(None) };
        let bytes = member.read()?;
        Ok(is_library(bytes.bytes()).then_some(Self::Member(member, bytes)))
    }
}

/// The file of this path, or, if it is but a name, the one that the dynamic loader finds in the usual folders.
fn find(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let name = path.to_str().filter(|name| !name.contains('/') && name.contains(".so"))?;
    let listed = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let listed = env::split_paths(&listed).filter(|folder| !folder.as_os_str().is_empty());
    let folders = listed.chain(FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Whether a file is a shared library.
fn is_library_file(path: &Path) -> bool {
    let mut head = [0; 18];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && is_library(&head)
}

/// Whether a shared library begins so.
fn is_library(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF") && head.get(16) == Some(&(ET_DYN as u8))
}
