//! The cache on disk, and compilers that use it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exec_core::{
    Cache as _, CacheError, CacheMode, CacheWarning, CompileError, Compiler, DiskCache, Identity,
    Key, Lookup, NoCache, Origin, Stats,
};
use tempfile::TempDir;

const LIMIT: u64 = 1 << 20;

/// Upper case, for an image.
struct Upper {
    version: &'static str,
    runs: AtomicU64,
}

impl Upper {
    fn new(version: &'static str) -> Self {
        Self { version, runs: AtomicU64::new(0) }
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }
}

impl Compiler for Upper {
    fn identity(&self) -> Identity<'_> {
        Identity { name: "upper", version: self.version, target: "", options: &[] }
    }

    fn compile(&self, source: &str) -> Result<Vec<u8>, CompileError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        if source.contains('!') {
            return Err(CompileError::Rejected { name: "upper".into(), messages: "no `!`".into() });
        }
        Ok(source.to_uppercase().into_bytes())
    }
}

fn open(folder: &Path, mode: CacheMode) -> DiskCache {
    DiskCache::open(folder, mode, LIMIT).unwrap()
}

fn key(number: u64) -> Key {
    Key::of(&Identity { name: "", version: "", target: "", options: &[] }, &number.to_string())
}

fn database(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("images-1.db")
}

#[test]
fn what_was_compiled_once_is_there() {
    let folder = TempDir::new().unwrap();
    let compiler = Upper::new("1");
    {
        let cache = open(folder.path(), CacheMode::ReadWrite);
        let first = compiler.compile_cached("abc", &cache).unwrap();
        assert_eq!((&first.image[..], first.origin), (&b"ABC"[..], Origin::Compiler));
        assert!(first.note.is_none());
    }
    let cache = open(folder.path(), CacheMode::ReadWrite);
    let second = compiler.compile_cached("abc", &cache).unwrap();
    assert_eq!((&second.image[..], second.origin), (&b"ABC"[..], Origin::Cache));
    assert_eq!(compiler.runs(), 1);
    // another version is another compiler
    let newer = Upper::new("2");
    assert_eq!(newer.compile_cached("abc", &cache).unwrap().origin, Origin::Compiler);
    // errors are not kept
    for _ in 0..2 {
        let error = compiler.compile_cached("no!", &cache).unwrap_err();
        assert_eq!(error.to_string(), "upper: no `!`");
    }
    assert_eq!(compiler.runs(), 3);
    let stats = cache.stats().unwrap();
    assert_eq!((stats.images, stats.bytes), (2, 6));
    assert_eq!(cache.clear().unwrap().images, 2);
    assert_eq!(cache.stats().unwrap().images, 0);
}

#[test]
fn modes() {
    let folder = TempDir::new().unwrap();
    let compiler = Upper::new("1");
    let with = |mode, source| compiler.compile_cached(source, &open(folder.path(), mode));
    // not there yet
    assert!(matches!(
        with(CacheMode::Required, "a"),
        Err(CompileError::Required { note: None, .. })
    ));
    assert_eq!(with(CacheMode::ReadOnly, "a").unwrap().origin, Origin::Compiler);
    assert!(!database(&folder).exists());
    with(CacheMode::ReadWrite, "a").unwrap();
    assert_eq!(with(CacheMode::Off, "a").unwrap().origin, Origin::Compiler);
    assert_eq!(with(CacheMode::ReadOnly, "a").unwrap().origin, Origin::Cache);
    assert_eq!(with(CacheMode::Required, "a").unwrap().origin, Origin::Cache);
    assert_eq!(with(CacheMode::ReadOnly, "b").unwrap().origin, Origin::Compiler);
    assert!(matches!(with(CacheMode::Required, "b"), Err(CompileError::Required { .. })));
    let reader = open(folder.path(), CacheMode::ReadOnly);
    assert!(matches!(reader.put(&key(1), b"1"), Err(CacheError::ReadOnly)));
    assert!(matches!(reader.clear(), Err(CacheError::ReadOnly)));
    assert_eq!(compiler.compile_cached("a", &NoCache).unwrap().origin, Origin::Compiler);
}

#[test]
fn a_damaged_image_is_compiled_anew_and_told() {
    let folder = TempDir::new().unwrap();
    let compiler = Upper::new("1");
    let source = "a rather long source ".repeat(50);
    compiler.compile_cached(&source, &open(folder.path(), CacheMode::ReadWrite)).unwrap();
    let mut bytes = fs::read(database(&folder)).unwrap();
    let found = bytes.windows(20).position(|window| window == b"A RATHER LONG SOURCE").unwrap();
    bytes[found] ^= 1;
    fs::write(database(&folder), &bytes).unwrap();
    let required = compiler.compile_cached(&source, &open(folder.path(), CacheMode::Required));
    assert!(matches!(
        required,
        Err(CompileError::Required { note: Some(CacheWarning::Damaged), .. })
    ));
    let cache = open(folder.path(), CacheMode::ReadWrite);
    let again = compiler.compile_cached(&source, &cache).unwrap();
    assert!(matches!((again.origin, again.note), (Origin::Compiler, Some(CacheWarning::Damaged))));
    assert_eq!(again.image, source.to_uppercase().into_bytes());
    assert_eq!(compiler.compile_cached(&source, &cache).unwrap().origin, Origin::Cache);
    // and what verifying does about it
    drop(cache);
    let mut bytes = fs::read(database(&folder)).unwrap();
    let found = bytes.windows(20).position(|window| window == b"A RATHER LONG SOURCE").unwrap();
    bytes[found] ^= 1;
    fs::write(database(&folder), &bytes).unwrap();
    let cache = open(folder.path(), CacheMode::ReadWrite);
    cache.put(&key(1), b"good").unwrap();
    let verified = cache.verify().unwrap();
    assert_eq!((verified.good, verified.damaged, verified.is_sound), (1, 1, true));
    assert_eq!(cache.verify().unwrap().damaged, 0);
}

#[test]
fn no_damage_anywhere_gives_a_wrong_image_or_an_error() {
    let folder = TempDir::new().unwrap();
    let compiler = Upper::new("1");
    let sources: Vec<String> =
        (0..20).map(|number| format!("source {number} ").repeat(40)).collect();
    {
        let cache = open(folder.path(), CacheMode::ReadWrite);
        sources.iter().for_each(|source| drop(compiler.compile_cached(source, &cache).unwrap()));
    }
    let good = fs::read(database(&folder)).unwrap();
    let mut told = 0;
    let mut damage = |bytes: &[u8]| {
        for name in fs::read_dir(folder.path()).unwrap() {
            fs::remove_file(name.unwrap().path()).unwrap();
        }
        fs::write(database(&folder), bytes).unwrap();
        let Ok(cache) = DiskCache::open(folder.path(), CacheMode::ReadWrite, LIMIT) else {
            panic!("not opened")
        };
        for source in &sources {
            let compiled = compiler.compile_cached(source, &cache).unwrap();
            assert_eq!(compiled.image, source.to_uppercase().into_bytes());
            told += u32::from(matches!(compiled.note, Some(CacheWarning::Damaged)));
        }
    };
    for at in (0..good.len()).step_by(good.len() / 60) {
        damage(&good[..at]);
        let mut bytes = good.clone();
        let end = (at + 100).min(bytes.len());
        bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
        damage(&bytes);
    }
    damage(b"this is no database at all, and never was; it is longer than a header of one hundred bytes, though");
    assert!(told > 60, "{told}");
}

#[test]
fn the_least_recently_used_goes_first() {
    let folder = TempDir::new().unwrap();
    let has = |cache: &DiskCache, number| matches!(cache.get(&key(number)), Ok(Lookup::Hit(_)));
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, 1000).unwrap();
    for number in 0..10 {
        cache.put(&key(number), &[number as u8; 100]).unwrap();
    }
    assert_eq!(cache.stats().unwrap().bytes, 1000);
    std::thread::sleep(Duration::from_millis(2));
    assert!(has(&cache, 0));
    cache.put(&key(10), &[0; 150]).unwrap();
    let kept: Vec<u64> = (0..11).filter(|number| has(&cache, *number)).collect();
    assert_eq!(kept, [0, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert!(matches!(
        cache.put(&key(11), &[0; 1001]),
        Err(CacheError::TooLarge { size: 1001, limit: 1000 })
    ));
    cache.put(&key(12), &[0; 1000]).unwrap();
    assert_eq!(cache.stats().unwrap().images, 1);
    // a hit that was not written down when it happened is when the cache is closed
    drop(cache);
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, 1000).unwrap();
    cache.put(&key(13), &[0; 0]).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    assert!(has(&cache, 12));
    drop(cache);
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, 1000).unwrap();
    cache.put(&key(14), &[0; 0]).unwrap();
    assert!(has(&cache, 12) && has(&cache, 14));
    // and images are replaced
    cache.put(&key(14), &[1; 5]).unwrap();
    assert_eq!(cache.get(&key(14)).unwrap(), Lookup::Hit(vec![1; 5]));
}

#[test]
fn several_at_once() {
    let folder = TempDir::new().unwrap();
    std::thread::scope(|threads| {
        for thread in 0..4u64 {
            let folder = folder.path();
            threads.spawn(move || {
                let cache = DiskCache::open(folder, CacheMode::ReadWrite, 50_000).unwrap();
                for round in 0..100 {
                    let number = (thread * 31 + round * 7) % 60;
                    match cache.get(&key(number)).unwrap() {
                        Lookup::Hit(image) => assert_eq!(image, vec![number as u8; 1000]),
                        Lookup::Miss => cache.put(&key(number), &vec![number as u8; 1000]).unwrap(),
                        Lookup::Damaged => panic!("damaged"),
                    }
                }
            });
        }
    });
    let cache = open(folder.path(), CacheMode::ReadWrite);
    let verified = cache.verify().unwrap();
    assert!(verified.is_sound && verified.damaged == 0 && verified.good <= 50, "{verified:?}");
}

/// All make the same database at the same moment.
#[test]
fn several_make_it_at_once() {
    for _ in 0..40 {
        let folder = TempDir::new().unwrap();
        let barrier = std::sync::Barrier::new(16);
        std::thread::scope(|threads| {
            for _ in 0..16 {
                threads.spawn(|| {
                    barrier.wait();
                    DiskCache::open(folder.path(), CacheMode::ReadWrite, LIMIT).unwrap();
                });
            }
        });
    }
}

#[test]
fn a_folder_that_cannot_be_is_an_error() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let opened = DiskCache::open(&file, CacheMode::ReadWrite, LIMIT);
    assert!(matches!(opened, Err(CacheError::Open(_))));
    assert_eq!(open(&file, CacheMode::Off).stats().unwrap(), Stats::default());
}

#[cfg(unix)]
#[test]
fn the_folder_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let inside = folder.path().join("a").join("b");
    open(&inside, CacheMode::ReadWrite);
    assert_eq!(fs::metadata(inside).unwrap().permissions().mode() & 0o777, 0o700);
}
