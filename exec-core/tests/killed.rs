//! Processes that use one cache and are killed, and disks that are full. The processes are this test, run again.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use exec_core::{Cache as _, CacheError, DiskCache, Identity, Key, Lookup, Mode};
use tempfile::TempDir;

const LIMIT: u64 = 300_000;
const FOLDER: &str = "HOIST_TEST_CACHE";

fn key(number: u64) -> Key {
    Key::of(&Identity { name: "", version: "", target: "", options: &[] }, &number.to_string())
}

fn content(number: u64) -> Vec<u8> {
    vec![number as u8; 100 + (number as usize * 997) % 20_000]
}

/// Runs one of the ignored tests below in a process of its own.
fn start(test: &str, folder: &Path, shell: &str) -> Child {
    let script = format!("{shell} exec \"$0\" --exact {test} --ignored --nocapture");
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap()).env(FOLDER, folder);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[test]
#[ignore = "needs to be started by another test"]
fn worker() {
    let Some(folder) = folder() else { return };
    let cache = DiskCache::open(&folder, Mode::ReadWrite, LIMIT).unwrap();
    for round in 0u64.. {
        let number = (round * 13 + u64::from(std::process::id()) * 7) % 100;
        match cache.get(&key(number)).unwrap() {
            Lookup::Hit(image) if image == content(number) => {}
            Lookup::Miss => cache.put(&key(number), &content(number)).unwrap(),
            _ => {
                std::fs::write(folder.join("wrong"), number.to_string()).unwrap();
                panic!("wrong image");
            }
        }
    }
}

#[test]
fn killed_at_any_moment() {
    let folder = TempDir::new().unwrap();
    let mut images = 0;
    for round in 0..40u64 {
        let mut workers: Vec<Child> = (0..2).map(|_| start("worker", folder.path(), "")).collect();
        std::thread::sleep(Duration::from_micros(20_000 + round * 7_919 % 60_000));
        for worker in &mut workers {
            worker.kill().unwrap();
        }
        for worker in &mut workers {
            let status = worker.wait().unwrap();
            assert_eq!(
                std::os::unix::process::ExitStatusExt::signal(&status),
                Some(9),
                "round {round}: {status}"
            );
        }
        let cache = DiskCache::open(folder.path(), Mode::ReadWrite, LIMIT).unwrap();
        let verified = cache.verify().unwrap();
        assert!(verified.is_sound && verified.damaged == 0, "round {round}: {verified:?}");
        assert!(cache.stats().unwrap().bytes <= LIMIT);
        images = images.max(verified.good);
    }
    assert!(!folder.path().join("wrong").exists());
    assert!(images > 10, "the workers did nothing: {images}");
}

#[test]
#[ignore = "needs to be started by another test"]
fn on_a_small_disk() {
    let Some(folder) = folder() else { return };
    let cache = DiskCache::open(&folder, Mode::ReadWrite, 1 << 30).unwrap();
    let mut full = false;
    for number in 0..200 {
        full |= matches!(cache.put(&key(number), &content(number)), Err(CacheError::Write(_)));
        match cache.get(&key(number)) {
            Ok(Lookup::Hit(image)) => assert_eq!(image, content(number)),
            other => assert!(full && matches!(other, Ok(Lookup::Miss)), "{other:?}"),
        }
    }
    assert!(full);
    // what was there before is still there
    assert_eq!(cache.get(&key(0)).unwrap(), Lookup::Hit(content(0)));
    std::fs::write(folder.join("done"), "").unwrap();
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    // files of at most 256 KiB, and an error in place of a signal
    let status =
        start("on_a_small_disk", folder.path(), "trap '' XFSZ; ulimit -f 512;").wait().unwrap();
    assert!(status.success() && folder.path().join("done").exists(), "{status}");
    let cache = DiskCache::open(folder.path(), Mode::ReadWrite, 1 << 30).unwrap();
    let verified = cache.verify().unwrap();
    assert!(verified.is_sound && verified.damaged == 0 && verified.good > 3, "{verified:?}");
}
