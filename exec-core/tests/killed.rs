//! Processes that use one cache and are killed, and disks that are full. The processes are this test, run again.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use exec_core::{Cache as _, CacheError, CacheMode, DiskCache, Identity, Key, Lookup};
use tempfile::TempDir;

const LIMIT: u64 = 300_000;
const FOLDER: &str = "HOIST_TEST_CACHE";

fn key(number: u64) -> Key {
    Key::of(&Identity { name: "", version: "", target: "", options: &[] }, &number.to_string())
}

fn content(number: u64) -> Vec<u8> {
    vec![number as u8; 100 + (number as usize * 997) % 20_000]
}

/// Runs one of the ignored tests below in a process of its own, after what a shell does first.
fn start(test: &str, folder: &Path, shell: &[&str], first: &str) -> Child {
    let script = format!("{first} exec \"$0\" --exact {test} --ignored --nocapture");
    let mut words = shell.iter().chain(&["/bin/sh", "-c"]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(script).arg(std::env::current_exe().unwrap()).env(FOLDER, folder);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What a test ends with that has come to its end.
const DONE: i32 = 42;

/// Runs a test that ends so, on a disk of its own that `mount` puts at the folder. Nothing if this system does not let us.
fn on_a_disk(test: &str, folder: &Path, mount: &str) -> Option<()> {
    const ALONE: [&str; 2] = ["unshare", "-rm"];
    let script = format!("cd / && {mount}");
    let mut tried = Command::new("unshare");
    tried.args(["-rm", "/bin/sh", "-c", &script]).env(FOLDER, folder).stderr(Stdio::null());
    if !tried.status().is_ok_and(|status| status.success()) {
        println!("skipped: {test}: needs unshare and mount");
        return None;
    }
    let status = start(test, folder, &ALONE, &format!("{script} &&")).wait().unwrap();
    assert_eq!(status.code(), Some(DONE), "{test}");
    Some(())
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[test]
#[ignore = "needs to be started by another test"]
fn worker() {
    let Some(folder) = folder() else { return };
    let cache = DiskCache::open(&folder, CacheMode::ReadWrite, LIMIT).unwrap();
    for round in 0u64.. {
        let number = (round * 13 + u64::from(std::process::id()) * 7) % 100;
        match cache.get(&key(number)).unwrap() {
            Lookup::Hit(image) if image == content(number) => {}
            Lookup::Miss => {
                cache.put(&key(number), &content(number)).unwrap();
                std::fs::write(working(&folder, std::process::id()), "").unwrap();
            }
            _ => {
                std::fs::write(folder.join("wrong"), number.to_string()).unwrap();
                panic!("wrong image");
            }
        }
    }
}

/// A file that a worker makes when it has put something into the cache.
fn working(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("working-{process}"))
}

#[test]
fn killed_at_any_moment() {
    let folder = TempDir::new().unwrap();
    let mut images = 0;
    for round in 0..40u64 {
        let mut workers: Vec<Child> =
            (0..2).map(|_| start("worker", folder.path(), &[], "")).collect();
        // half of them while they work, half of them at any time before
        let start = Instant::now();
        let works = |worker: &Child| working(folder.path(), worker.id()).exists();
        while round % 2 == 0 && !workers.iter().any(works) {
            assert!(start.elapsed() < Duration::from_secs(60), "the workers do nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(round * 7_919 % 60_000));
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
        let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, LIMIT).unwrap();
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
    let cache = DiskCache::open(&folder, CacheMode::ReadWrite, 1 << 30).unwrap();
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
    let verified = cache.verify().unwrap();
    assert!(verified.is_sound && verified.damaged == 0 && verified.good > 3, "{verified:?}");
    // and for who comes later, unless there is no room to open it
    match DiskCache::open(&folder, CacheMode::ReadWrite, 1 << 30) {
        Ok(later) => assert_eq!(later.get(&key(0)).unwrap(), Lookup::Hit(content(0))),
        Err(error) => assert!(matches!(error, CacheError::Open(_)), "{error}"),
    }
    std::process::exit(DONE);
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    // files of at most 256 KiB, and an error in place of a signal
    let limits = "trap '' XFSZ; ulimit -f 512;";
    let status = start("on_a_small_disk", folder.path(), &[], limits).wait().unwrap();
    assert_eq!(status.code(), Some(DONE));
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, 1 << 30).unwrap();
    let verified = cache.verify().unwrap();
    assert!(verified.is_sound && verified.damaged == 0 && verified.good > 3, "{verified:?}");
    on_a_disk(
        "on_a_small_disk",
        folder.path(),
        &format!("mount -t tmpfs -o size=400k,mode=700 none \"${FOLDER}\""),
    );
}

#[test]
#[ignore = "needs to be started by another test"]
fn on_a_read_only_disk() {
    let Some(folder) = folder() else { return };
    for mode in [CacheMode::ReadOnly, CacheMode::Required] {
        let cache = DiskCache::open(&folder, mode, LIMIT).unwrap();
        assert_eq!(cache.get(&key(1)).unwrap(), Lookup::Hit(content(1)));
        assert_eq!(cache.get(&key(2)).unwrap(), Lookup::Miss);
        assert!(matches!(cache.put(&key(2), b"2"), Err(CacheError::ReadOnly)));
        assert!(cache.verify().unwrap().is_sound);
    }
    // who wants to write is told at once
    let error = DiskCache::open(&folder, CacheMode::ReadWrite, LIMIT).unwrap_err();
    assert!(matches!(error, CacheError::Open(_)), "{error}");
    let missing = folder.join("none");
    assert!(matches!(
        DiskCache::open(&missing, CacheMode::ReadWrite, LIMIT),
        Err(CacheError::Open(_))
    ));
    assert_eq!(
        DiskCache::open(&missing, CacheMode::ReadOnly, LIMIT).unwrap().get(&key(1)).unwrap(),
        Lookup::Miss
    );
    std::process::exit(DONE);
}

#[test]
fn a_read_only_disk_is_read_and_writing_is_an_error() {
    let folder = TempDir::new().unwrap();
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, LIMIT).unwrap();
    cache.put(&key(1), &content(1)).unwrap();
    drop(cache);
    let mount = format!(
        "mount --bind \"${FOLDER}\" \"${FOLDER}\" && mount -o remount,ro,bind \"${FOLDER}\""
    );
    on_a_disk("on_a_read_only_disk", folder.path(), &mount);
    let cache = DiskCache::open(folder.path(), CacheMode::Required, LIMIT).unwrap();
    assert_eq!(cache.get(&key(1)).unwrap(), Lookup::Hit(content(1)));
}
