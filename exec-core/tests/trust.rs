//! Caches that others have a hand in are refused; caches that do not work stop nobody.

#![expect(clippy::unwrap_used, reason = "a test")]
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use exec_core::{
    Cache as _, CacheError, CacheMode, CacheWarning, CompileError, Compiler, DiskCache, Identity,
    Origin,
};
use rusqlite::Connection;
use tempfile::TempDir;

const LIMIT: u64 = 1 << 20;
const MODES: [CacheMode; 3] = [CacheMode::ReadOnly, CacheMode::ReadWrite, CacheMode::Required];
const NOBODY: u32 = 65534;

struct Upper;

impl Compiler for Upper {
    fn identity(&self) -> Identity<'_> {
        Identity { name: "upper", version: "", target: "", options: &[] }
    }

    fn compile(&self, source: &str) -> Result<Vec<u8>, CompileError> {
        Ok(source.to_uppercase().into_bytes())
    }
}

/// A folder with a cache that has an image, and the database.
fn filled() -> (TempDir, PathBuf, PathBuf) {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("cache");
    let cache = DiskCache::open(&folder, CacheMode::ReadWrite, LIMIT).unwrap();
    Upper.compile_cached("planted", &cache).unwrap();
    let database = folder.join("images-1.db");
    (root, folder, database)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Every way to open the folder is refused, and the message has the file, its owner and its mode.
#[track_caller]
fn is_refused(folder: &Path, at: &Path, what: &str) {
    let file = fs::symlink_metadata(at).unwrap();
    let (owner, mode) = (file.uid(), file.mode() & 0o7777);
    let at = at.display();
    let message = format!("the cache is refused: {at} {what} (owner {owner}, mode {mode:04o})");
    for mode in MODES {
        let error = DiskCache::open(folder, mode, LIMIT).unwrap_err();
        assert_eq!(error.to_string(), message);
        // nor is it passed over
        let error = DiskCache::open_or_off(folder, mode, LIMIT).unwrap_err();
        assert!(matches!(error, CacheError::Untrusted { .. }), "{error}");
    }
}

#[track_caller]
fn is_taken(folder: &Path) {
    for mode in MODES {
        let cache = DiskCache::open(folder, mode, LIMIT).unwrap();
        assert_eq!(Upper.compile_cached("planted", &cache).unwrap().origin, Origin::Cache);
    }
}

#[test]
fn what_others_can_write_is_refused() {
    let (_root, folder, database) = filled();
    is_taken(&folder);
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        set_mode(&folder, mode);
        is_refused(&folder, &folder, "can be written by others");
    }
    set_mode(&folder, 0o755);
    is_taken(&folder);
    for mode in [0o666, 0o620, 0o602] {
        set_mode(&database, mode);
        is_refused(&folder, &database, "can be written by others");
    }
    set_mode(&database, 0o644);
    for end in ["-wal", "-journal", "-shm"] {
        let beside = folder.join(format!("images-1.db{end}"));
        fs::write(&beside, "").unwrap();
        set_mode(&beside, 0o666);
        is_refused(&folder, &beside, "can be written by others");
        fs::remove_file(&beside).unwrap();
    }
    is_taken(&folder);
}

#[test]
fn a_folder_in_one_that_everybody_writes_is_refused() {
    let (root, folder, _) = filled();
    let root = root.path().canonicalize().unwrap();
    set_mode(&root, 0o777);
    is_refused(&folder, &root, "holds the cache and can be written by everybody");
    // as in /tmp, where nobody renames what is not his
    set_mode(&root, 0o1777);
    is_taken(&folder);
}

#[test]
fn links_are_refused() {
    let (root, folder, database) = filled();
    let link = root.path().join("link");
    symlink(&folder, &link).unwrap();
    is_refused(&link, &link, "is a symbolic link");
    is_refused(&root.path().join("link/"), &link, "is a symbolic link");
    is_refused(&root.path().join("link/."), &link, "is a symbolic link");
    let elsewhere = root.path().join("elsewhere.db");
    fs::rename(&database, &elsewhere).unwrap();
    symlink(&elsewhere, &database).unwrap();
    is_refused(&folder, &database, "is a symbolic link");
    fs::remove_file(&database).unwrap();
    fs::create_dir(&database).unwrap();
    is_refused(&folder, &database, "is no regular file");
    // a link on the way is the user's own
    let outer = root.path().join("outer");
    symlink(root.path(), &outer).unwrap();
    fs::remove_dir(&database).unwrap();
    fs::rename(&elsewhere, &database).unwrap();
    is_taken(&outer.join("cache"));
}

#[test]
fn what_belongs_to_somebody_else_is_refused() {
    let (_root, folder, database) = filled();
    if chown(&database, Some(NOBODY), None).is_err() {
        println!("skipped: what_belongs_to_somebody_else_is_refused: needs root");
        return;
    }
    is_refused(&folder, &database, "belongs to somebody else");
    chown(&database, Some(0), None).unwrap();
    chown(&folder, Some(NOBODY), None).unwrap();
    is_refused(&folder, &folder, "belongs to somebody else");
}

#[test]
fn a_cache_that_is_held_stops_nobody() {
    let (_root, folder, database) = filled();
    let holder = Connection::open(&database).unwrap();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let start = Instant::now();
    let (cache, warning) = DiskCache::open_or_off(&folder, CacheMode::ReadWrite, LIMIT).unwrap();
    assert!(matches!(warning, Some(CacheError::Open(_))), "{warning:?}");
    let compiled = Upper.compile_cached("planted", &cache).unwrap();
    assert_eq!((&compiled.image[..], compiled.origin), (&b"PLANTED"[..], Origin::Compiler));
    assert!(compiled.note.is_none());
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    // who must have it is told
    assert!(DiskCache::open_or_off(&folder, CacheMode::Required, LIMIT).is_err());
}

#[test]
fn a_cache_that_is_held_later_is_waited_for_once() {
    let (_root, folder, database) = filled();
    let cache = DiskCache::open(&folder, CacheMode::ReadWrite, LIMIT).unwrap();
    let holder = Connection::open(&database).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    for source in ["a", "b", "c"] {
        let compiled = Upper.compile_cached(source, &cache).unwrap();
        assert_eq!(compiled.image, source.to_uppercase().into_bytes());
        assert!(matches!(compiled.note, Some(CacheWarning::NotKept(_))), "{:?}", compiled.note);
    }
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert_eq!(Upper.compile_cached("planted", &cache).unwrap().origin, Origin::Cache);
}

#[test]
fn a_cache_that_cannot_be_stops_nobody() {
    let root = TempDir::new().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    for folder in [file.clone(), file.join("inside"), PathBuf::from("/proc/none")] {
        for mode in [CacheMode::ReadOnly, CacheMode::ReadWrite] {
            let opened = DiskCache::open_or_off(&folder, mode, LIMIT);
            let (cache, warning) = opened.unwrap();
            assert!(warning.is_some() || mode == CacheMode::ReadOnly, "{}", folder.display());
            assert_eq!(Upper.compile_cached("a", &cache).unwrap().image, b"A");
            assert!(cache.mode() == CacheMode::Off || mode == CacheMode::ReadOnly);
        }
    }
}
