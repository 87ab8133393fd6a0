//! Libraries that are opened as files: their pages are mapped.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::Error;
use exec_host::library::{Library, LibraryLoader};
use exec_host::observer::{Loaded, LoadedLibrary, Observed, Observer};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use system::{Map, is_emulated, mapped, of_this_machine};

/// Much code, variables that are relocated, and functions at both ends.
const SOURCE: &str = r#"
static long long variable = 40;
long long *pointer = &variable;
long long first(void) { return *pointer + 1; }
__asm__(".text\n.globl many\nmany:\n.zero 300000\n");
extern char many[];
#ifdef ZEROS
static char zeros[20000];
__attribute__((constructor)) static void check(void) {
    for (int at = 0; at < 20000; at++) if (zeros[at]++) __builtin_trap();
}
#endif
__attribute__((section(".text.unlikely"))) long long code(void) { return many[299999]; }
long long last(void) { return (*pointer)++; }
"#;

/// Compiles a library to a file in the folder.
fn compile(folder: &Path, source: &str, options: &[&str]) -> PathBuf {
    let (input, output) = (folder.join("much.c"), folder.join("libmuch.so"));
    std::fs::write(&input, source).unwrap();
    let mut command = Command::new(of_this_machine("gcc"));
    let command = command.args(["-O1", "-fPIC", "-shared", "-nostdlib"]).args(options);
    let result = command.arg(&input).arg("-o").arg(&output).output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    output
}

fn open(path: &Path) -> Result<Library, Error> {
    // SAFETY: the tests' libraries have no constructors that do harm, and what is done to their files is what is tested.
    unsafe { LibraryLoader::new().open_file(path) }
}

fn call(library: &Library, name: &str) -> i64 {
    // SAFETY: the tests' functions have this type.
    let function = unsafe { library.get::<unsafe extern "C" fn() -> i64>(name) }.unwrap();
    // SAFETY: as above.
    unsafe { function() }
}

/// What is mapped of a library.
fn maps(library: &Library) -> Vec<Map> {
    let (start, size) = library.extent();
    mapped(&(start..start + size))
}

/// How many bytes of it are mapped from a file of this name; nothing is writable that runs, or was only while it was relocated.
fn in_file(library: &Library, name: &str) -> u64 {
    let mut bytes = 0;
    for map in maps(library) {
        assert!(!map.permissions.contains("wx"), "{map:?}");
        if map.path.contains(name) {
            assert!(map.permissions.ends_with('p'), "{map:?}");
            bytes += map.range.end - map.range.start;
        }
    }
    bytes
}

#[test]
fn pages_are_mapped() {
    let folder = tempfile::tempdir().unwrap();
    for (options, has_sections) in [
        (&["-Wl,-z,separate-code"][..], true),
        // code stands among tables, in one segment
        (&["-Wl,-z,noseparate-code"], true),
        (&["-Wl,-z,max-page-size=0x10000"], true),
        // variables that are zero follow others in a page
        (&["-Wl,-z,separate-code", "-DZEROS"], true),
        // segments are gone by
        (&["-Wl,-z,separate-code"], false),
    ] {
        let path = compile(folder.path(), SOURCE, options);
        let mut bytes = std::fs::read(&path).unwrap();
        if !has_sections {
            // e_shoff, e_shentsize, e_shnum, e_shstrndx
            let is_64 = cfg!(target_pointer_width = "64");
            bytes[if is_64 { 0x28..0x30 } else { 0x20..0x24 }].fill(0);
            bytes[if is_64 { 0x3a..0x40 } else { 0x2e..0x34 }].fill(0);
            std::fs::write(&path, &bytes).unwrap();
        }
        let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
        // SAFETY: no constructors.
        let copy = unsafe { LibraryLoader::new().open(bytes) }.unwrap();
        for library in [&one, &two, &copy] {
            assert_eq!((call(library, "first"), call(library, "code")), (41, 0), "{options:?}");
            assert_eq!((call(library, "last"), call(library, "last")), (40, 41));
        }
        if !is_emulated() {
            assert!(in_file(&one, "libmuch") >= 250_000, "{options:?}: {:?}", maps(&one));
            assert_eq!(in_file(&copy, "libmuch"), 0);
        }
        assert_eq!(one.symbol_at(one.function("last").unwrap() + 1).unwrap().0, "last");
        // another file of this name is another file
        let other = folder.path().join("other.so");
        std::fs::write(&other, "no library").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(call(&one, "last"), 42);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(call(&two, "last"), 42);
    }
}

/// Functions that are not shown are in a table that is read when somebody asks for their names, of the file that was opened.
#[test]
fn names_of_what_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        "__attribute__((noinline)) static long long hidden(void) { __asm__(\"\"); return 7; }
        long long first(void) { return (unsigned long)hidden; }
        long long last(void) { return hidden(); }";
    let path = compile(folder.path(), source, &["-Wl,-z,separate-code"]);
    let library = open(&path).unwrap();
    let hidden = call(&library, "first") as u64;
    assert_eq!(library.symbol_at(hidden), Some(("hidden".into(), 0)));
    let last = library.function("last").unwrap();
    assert_eq!(library.symbol_at(last), Some(("last".into(), 0)));
    // it is known from now on
    std::fs::remove_file(&path).unwrap();
    assert_eq!(library.symbol_at(hidden), Some(("hidden".into(), 0)));
    for is_there in [false, true] {
        let path = compile(folder.path(), source, &["-Wl,-z,separate-code"]);
        let library = open(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        if is_there {
            // the number of the file that is gone may be its own
            std::fs::write(&path, [&bytes[..], &[0]].concat()).unwrap();
        }
        let hidden = call(&library, "first") as u64;
        assert_eq!(library.symbol_at(hidden), None);
        let last = library.function("last").unwrap();
        assert_eq!(library.symbol_at(last), Some(("last".into(), 0)));
        assert_eq!(call(&library, "last"), 7);
    }
}

/// A file whose segments share pages is copied, also where its beginning alone was read first.
#[test]
fn segments_that_share_pages() {
    let folder = tempfile::tempdir().unwrap();
    // few bytes of code, and many of constants behind what is read first
    let source = "static long long variable = 40; long long *pointer = &variable;
        __asm__(\".section .rodata\\n.globl many\\nmany: .zero 40000\\n.text\"); extern const char many[];
        long long first(void) { return *pointer + 1 + many[39999]; }";
    let path = compile(
        folder.path(),
        source,
        &["-Wl,-z,separate-code,-z,max-page-size=0x100,-z,common-page-size=0x100"],
    );
    let (library, bytes) = (open(&path).unwrap(), std::fs::read(&path).unwrap());
    assert_eq!((call(&library, "first"), in_file(&library, "libmuch")), (41, 0));
    // SAFETY: no constructors.
    let copy = unsafe { LibraryLoader::new().open(bytes) }.unwrap();
    assert_eq!((call(&copy, "first"), copy.extent().1), (41, library.extent().1));
}

/// Words among code that are relocated: the page becomes the library's own.
#[test]
fn words_in_code_are_relocated() {
    let folder = tempfile::tempdir().unwrap();
    let word = if cfg!(target_pointer_width = "64") { ".quad" } else { ".long" };
    let source = "long long variable = 40; extern long long *word; long long first(void) { return *word + 1; }
        __asm__(\".text\\n.zero 100000\\n.balign 8\\n.globl word\\nword: {word} variable\\n.zero 100000\\n\");";
    let source = source.replace("{word}", word);
    let path = compile(folder.path(), &source, &["-Wl,-z,notext", "-Wl,-z,separate-code"]);
    let before = std::fs::read(&path).unwrap();
    let library = open(&path).unwrap();
    assert_eq!(call(&library, "first"), 41);
    assert!(is_emulated() || in_file(&library, "libmuch") >= 150_000, "{:?}", maps(&library));
    assert!(std::fs::read(&path).unwrap() == before);
}

/// What is read when a file is opened is an error if it is not there.
#[test]
fn half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), SOURCE, &["-Wl,-z,separate-code"]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let refused = open(&path).unwrap_err().to_string();
    assert!(refused.contains("is outside its"), "{refused}");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(call(&open(&path).unwrap(), "first"), 41);
}

/// The words of an error, but for addresses in memory, where two loads differ.
fn without_addresses(words: &str) -> String {
    let mut parts = words.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        let is_address = digits > 8 || cfg!(target_pointer_width = "32") && digits == 8;
        text += if is_address { &part[digits..] } else { part };
    }
    text
}

/// Every truncation and many changes of a file with much code: a reason, or a library. Nothing of it is called.
#[test]
fn changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), SOURCE, &["-Wl,-z,separate-code"]);
    let bytes = std::fs::read(&path).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let rounds = if is_emulated() { 100 } else { 1000 };
    let (mut loaded, mut refused) = (0, 0);
    let changed = folder.path().join("changed.so");
    for round in 0..rounds {
        let mut other = bytes.clone();
        if round % 10 == 0 {
            other.truncate((next() % bytes.len() as u64) as usize);
        } else {
            // headers, or anything behind the code
            let at = if round % 2 == 0 {
                next() % 0x300
            } else {
                bytes.len() as u64 - 1 - next() % 0x2000
            };
            other[at as usize] = next() as u8;
        }
        let _ = std::fs::remove_file(&changed);
        std::fs::write(&changed, &other).unwrap();
        // SAFETY: one that a change makes up is refused, or is its code.
        let from_bytes = unsafe { LibraryLoader::new().limit(1 << 30).open(other) };
        // SAFETY: as above; nobody changes the file meanwhile.
        let from_file = unsafe { LibraryLoader::new().limit(1 << 30).open_file(&changed) };
        match (from_bytes, from_file) {
            (Ok(one), Ok(other)) => {
                assert_eq!(one.extent().1, other.extent().1);
                loaded += 1;
            }
            (Err(one), Err(other)) => {
                let (one, other) = (one.to_string(), other.to_string());
                assert_eq!(without_addresses(&one), without_addresses(&other), "round {round}");
                refused += 1;
            }
            (one, other) => panic!("round {round}: {one:?}, {other:?}"),
        }
    }
    assert!(loaded > rounds / 20 && refused > rounds / 20, "{loaded} loaded, {refused} refused");
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.so");
    let error = open(&missing).unwrap_err();
    assert!(matches!(&error, Error::File { path, .. } if *path == missing), "{error}");
    let error = open(folder.path()).unwrap_err();
    assert!(error.to_string().starts_with(&folder.path().display().to_string()), "{error}");
    let empty = folder.path().join("empty.so");
    std::fs::write(&empty, "").unwrap();
    assert_eq!(open(&empty).unwrap_err().to_string(), "not an ELF file");
}

/// Who is told of a library is shown all of its file.
#[test]
fn observers_see_the_file() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    #[derive(Debug)]
    struct Sees(Vec<u8>);
    impl Observer for Sees {
        fn loaded(&self, _: &Loaded<'_>) -> std::io::Result<Option<Observed>> {
            Ok(None)
        }

        fn library_loaded(&self, library: &LoadedLibrary<'_>) -> std::io::Result<Option<Observed>> {
            SEEN.fetch_add(usize::from(library.file() == self.0), Ordering::Relaxed);
            Ok(None)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), SOURCE, &["-Wl,-z,separate-code"]);
    let observer = Sees(std::fs::read(&path).unwrap());
    // SAFETY: no constructors, and nobody writes to the file.
    let library = unsafe { LibraryLoader::new().observer(observer).open_file(&path) }.unwrap();
    assert_eq!((SEEN.load(Ordering::Relaxed), call(&library, "first")), (1, 41));
}

/// Unwinders and those who were told forget a library that is refused while it is still there.
#[test]
fn observers_refuse_a_library() {
    static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);
    /// Reads code when it goes.
    struct Reads(*const u8);
    // SAFETY: it is read only, by who drops it.
    unsafe impl Send for Reads {}
    // SAFETY: as above.
    unsafe impl Sync for Reads {}
    impl Drop for Reads {
        fn drop(&mut self) {
            // SAFETY: a library is mapped until all who were told of it have forgotten it.
            let _ = unsafe { self.0.read_volatile() };
            FORGOTTEN.fetch_add(1, Ordering::Relaxed);
        }
    }
    #[derive(Debug)]
    struct Told(bool);
    impl Observer for Told {
        fn loaded(&self, _: &Loaded<'_>) -> std::io::Result<Option<Observed>> {
            Ok(None)
        }

        fn library_loaded(&self, library: &LoadedLibrary<'_>) -> std::io::Result<Option<Observed>> {
            if self.0 {
                return Err(std::io::Error::other("not this one"));
            }
            let first = library.functions()[0].address;
            let code = core::ptr::with_exposed_provenance(first as usize);
            Ok(Some(Box::new(Reads(code))))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), SOURCE, &[]);
    for _ in 0..3 {
        let loader = LibraryLoader::new().observer(Told(false)).observer(Told(true));
        // SAFETY: no constructors, and nobody writes to the file.
        let error = unsafe { loader.open_file(&path) }.unwrap_err();
        assert!(matches!(&error, Error::Observer(_)), "{error}");
    }
    assert_eq!(FORGOTTEN.load(Ordering::Relaxed), 3);
}
