//! Shared libraries out of bytes: real ones of the machine, and small ones that show a thing each.
#![cfg(test)]
#![cfg(target_arch = "x86_64")]

use exec_host::library::{Library, LibraryError, LibraryLoader};
use exec_host::symbols::from_fn;
use exec_host::{Error, External, Loader, Process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library of the system, if it is there.
fn system(name: &str) -> Option<Vec<u8>> {
    let folders = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"];
    folders.iter().find_map(|folder| std::fs::read(Path::new(folder).join(name)).ok())
}

/// Compiles C or C++ to a library, or what else the arguments say.
fn compile(folder: &Path, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let (source_path, output) = (folder.join(name), folder.join(format!("{name}.so")));
    std::fs::write(&source_path, source).unwrap();
    let compiler = if name.ends_with(".cc") { "g++" } else { "gcc" };
    let mut command = Command::new(compiler);
    command.args(["-O1", "-fPIC", "-shared"]).arg(&source_path).args(arguments);
    let result = command.arg("-o").arg(&output).output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    output
}

fn open(path: &Path) -> Result<Library, Error> {
    let bytes = std::fs::read(path).unwrap();
    // SAFETY: constructors of the tests' libraries do no harm.
    unsafe { LibraryLoader::new().open(bytes) }
}

/// Calls a function without arguments.
fn call(library: &Library, name: &str) -> i64 {
    // SAFETY: the tests' functions have this type.
    let function = unsafe { library.get::<unsafe extern "C-unwind" fn() -> i64>(name) }.unwrap();
    // SAFETY: as above.
    unsafe { function() }
}

#[test]
fn zlib_compresses() {
    let Some(bytes) = system("libz.so.1") else {
        println!("skipped: zlib_compresses: needs libz.so.1");
        return;
    };
    // SAFETY: zlib.
    let zlib = unsafe { LibraryLoader::new().open(bytes) }.unwrap();
    type Code = unsafe extern "C" fn(*mut u8, *mut u64, *const u8, u64) -> i32;
    // SAFETY: the functions have these types (<zlib.h>).
    let (compress, expand) =
        unsafe { (zlib.get::<Code>("compress").unwrap(), zlib.get::<Code>("uncompress").unwrap()) };
    let text: Vec<u8> = (0..100_000u32).flat_map(|it| (it / 7).to_le_bytes()).collect();
    let (mut packed, mut back) = (vec![0; 500_000], vec![0; text.len()]);
    let (mut size, mut length) = (packed.len() as u64, back.len() as u64);
    // SAFETY: sizes are those of the buffers.
    unsafe {
        assert_eq!(compress(packed.as_mut_ptr(), &mut size, text.as_ptr(), text.len() as u64), 0);
        assert_eq!(expand(back.as_mut_ptr(), &mut length, packed.as_ptr(), size), 0);
    }
    assert!(size < 200_000 && back == text);
    assert_eq!(zlib.name(), "libz.so.1");
    let missing = zlib.function("no_such").unwrap_err().to_string();
    assert_eq!(missing, "the library does not define no_such");
}

const ORDER: &str = r#"
#include <stdlib.h>
static int order;
static long first, second, arguments = -1;
long *told;
__attribute__((constructor(101))) static void one(int argc, char **argv, char **envp) {
    first = ++order; arguments = envp != 0 && argv != 0;
}
__attribute__((constructor(102))) static void two(void) { second = ++order; }
__attribute__((destructor)) static void last(void) { if (told) *told += 1; }
static void at_end(void) { if (told) *told += 10; }
long tell(long *where) { told = where; atexit(at_end); return 0; }
long state(void) { return first * 100 + second * 10 + arguments; }
long count(void) { static long calls; return ++calls; }
"#;

/// Constructors in their order; destructors and what was registered when it goes; two copies with states of their own.
#[test]
fn constructors_and_destructors() {
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), "order.c", ORDER, &[]);
    let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
    assert_eq!(call(&one, "state"), 121);
    assert_eq!((call(&one, "count"), call(&one, "count"), call(&two, "count")), (1, 2, 1));
    let mut told = 0i64;
    // SAFETY: the type of the source; the variable outlives the library.
    unsafe {
        let tell = one.get::<unsafe extern "C" fn(*mut i64) -> i64>("tell").unwrap();
        tell(&raw mut told);
    }
    drop(two);
    drop(one);
    assert_eq!(told, 11);
}

const THREADS: &str = r#"
static __thread long own = 5;
__thread long shown = 7;
static __thread char zeros[100];
extern __thread int other_errno __asm__("errno");
long add(void) { zeros[99]++; return (own += 1) * 100 + shown + zeros[99]; }
"#;

/// Variables of all models, in threads that were there before and in new ones.
#[test]
fn thread_local_variables() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["global-dynamic", "local-dynamic", "initial-exec"] {
        for dialect in ["gnu", "gnu2"] {
            let (model, dialect) =
                (format!("-ftls-model={model}"), format!("-mtls-dialect={dialect}"));
            let path = compile(folder.path(), "threads.c", THREADS, &[&model, &dialect]);
            let (start, begin) = std::sync::mpsc::channel::<Library>();
            let early = std::thread::spawn(move || {
                let library = begin.recv().unwrap();
                (call(&library, "add"), call(&library, "add"))
            });
            let library = open(&path).unwrap();
            start.send(library.clone()).unwrap();
            assert_eq!(early.join().unwrap(), (608, 709), "{model} {dialect}");
            assert_eq!((call(&library, "add"), call(&library, "add")), (608, 709));
            let late = library.clone();
            assert_eq!(std::thread::spawn(move || call(&late, "add")).join().unwrap(), 608);
        }
    }
}

const THROWS: &str = r#"
#include <stdexcept>
#include <string>
struct Counted { static int count; Counted() { count++; } ~Counted() { count--; } };
int Counted::count = 0;
extern "C" long inner(long (*call)()) { Counted one; return call(); }
extern "C" long thrower() { throw std::runtime_error(std::string("from a library")); }
extern "C" long catches(long (*call)()) {
    try { inner(call); } catch (const std::runtime_error &error) {
        return error.what() == std::string("from a library") ? 10 + Counted::count : -1;
    }
    return -2;
}
"#;

/// Exceptions within a library, and out of one into another.
#[test]
fn exceptions() {
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), "throws.cc", THROWS, &[]);
    let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
    for throws in [&one, &two] {
        let thrower = throws.function("thrower").unwrap();
        // SAFETY: the types of the source.
        let catches = unsafe { one.get::<unsafe extern "C-unwind" fn(u64) -> i64>("catches") };
        // SAFETY: as above.
        assert_eq!(unsafe { catches.unwrap()(thrower) }, 10);
    }
}

const INDIRECT: &str = r#"
static long one(void) { return 1; }
static long two(void) { return 2; }
static void *find(void) { return (void *)two; }
long chosen(void) __attribute__((ifunc("find")));
static long hidden(void) __attribute__((ifunc("find")));
long (*pointer)(void) = chosen;
long all(void) { return chosen() * 100 + hidden() * 10 + pointer() + 0 * one(); }
"#;

#[test]
fn indirect_functions() {
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), "indirect.c", INDIRECT, &[]);
    let library = open(&path).unwrap();
    assert_eq!(call(&library, "all"), 222);
    assert_eq!(call(&library, "chosen"), 2);
}

/// One library needs another that was loaded out of bytes, by name and version; objects use both, and they objects.
#[test]
fn libraries_and_objects_together() {
    let folder = tempfile::tempdir().unwrap();
    let versions = folder.path().join("versions");
    std::fs::write(&versions, "V1 { local: old; }; V2 { global: answer; own; } V1;").unwrap();
    let script = format!("-Wl,--version-script={}", versions.display());
    let base = "long old(void) { return 1; } long answer(void) { return 42; } long own(void) { return 7; }";
    let lower = compile(folder.path(), "lower.c", base, &["-Wl,-soname,liblower.so.1", &script]);
    let upper = "extern long answer(void); extern long offered(void); long own(void) { return 8; }
        long sum(void) { return answer() + offered() * 1000 + own() * 100; }";
    let upper = compile(folder.path(), "upper.c", upper, &[lower.to_str().unwrap()]);
    let refused = open(&upper).unwrap_err();
    let Error::Linked(refused) = refused else { panic!("{refused}") };
    assert!(matches!(*refused, LibraryError::Needed { .. }), "{refused}");
    assert!(refused.to_string().starts_with("needs liblower.so.1: "), "{refused}");

    extern "C" fn offered() -> i64 {
        3
    }
    let lower = open(&lower).unwrap();
    let ours = from_fn(|name| {
        (name == "offered").then(|| External::function(offered as *const () as u64))
    });
    let bytes = std::fs::read(&upper).unwrap();
    // SAFETY: no constructors that matter.
    let nobody = unsafe { LibraryLoader::new().library(&lower).open(bytes.clone()) };
    assert_eq!(nobody.unwrap_err().to_string(), "symbol offered is undefined");
    // SAFETY: as above.
    let upper = unsafe { LibraryLoader::new().library(&lower).symbols(ours).open(bytes) }.unwrap();
    drop(lower); // kept by the one that needs it
    assert_eq!(call(&upper, "sum"), 42 + 3000 + 800);

    let object = folder.path().join("object.o");
    std::fs::write(
        folder.path().join("object.c"),
        "extern long sum(void); long twice(void) { return 2 * sum(); }",
    )
    .unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-c", "-O1", "-o"]).arg(&object).arg(folder.path().join("object.c"));
    assert!(compiler.status().unwrap().success());
    let object = std::fs::read(object).unwrap();
    use exec_host::symbols::Symbols as _;
    let module = Loader::new().load([object], upper.clone().or(Process::new())).unwrap();
    drop(upper); // kept by the module
    // SAFETY: the type of the source.
    let twice = unsafe { module.get::<unsafe extern "C" fn() -> i64>("twice") }.unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { twice() }, 2 * 3842);
}

#[test]
fn what_is_refused() {
    let refused = |bytes: Vec<u8>| {
        // SAFETY: it is refused.
        unsafe { LibraryLoader::new().open(bytes) }.unwrap_err().to_string()
    };
    if let Some(libc) = system("libc.so.6") {
        let words = "libc.so.6 is a part of the dynamic loader, which alone can load it";
        assert_eq!(refused(libc), words);
    }
    assert_eq!(refused(vec![1, 2, 3]), "not an ELF file");
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(refused(program), "an executable, not a library");
    let object = include_bytes!("../../fixtures/x86_64/elftest.o").to_vec();
    assert_eq!(refused(object), "a file of type 1, neither an executable nor a shared object");
    let imports = include_bytes!("../../fixtures/x86_64/libshared.so").to_vec();
    assert_eq!(refused(imports), "symbol imported is undefined");
    let other = include_bytes!("../../fixtures/aarch64/libshared.so").to_vec();
    assert_eq!(refused(other), "a file for machine 183, not 62");
}

/// Memory of this process, in pages: address space, and what is there.
fn pages() -> [i64; 2] {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().unwrap());
    [words.next().unwrap(), words.next().unwrap()]
}

#[test]
fn a_thousand_loads_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = compile(folder.path(), "again.c", THREADS, &[]);
    for _ in 0..20 {
        call(&open(&path).unwrap(), "add");
    }
    let before = pages();
    for _ in 0..1000 {
        call(&open(&path).unwrap(), "add");
    }
    let after = pages();
    // other tests run beside
    assert!(after[0] - before[0] < 40_000, "{before:?} {after:?}");
    assert!(after[1] - before[1] < 20_000, "{before:?} {after:?}");
}

/// Any change of a library leaves a reason, or a library: nothing of it is called.
#[test]
fn changes_of_tables() {
    let bytes = include_bytes!("../../fixtures/x86_64/libshared-relr.so");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut loaded, mut refused) = (0, 0);
    for _ in 0..2000 {
        let mut changed = bytes.to_vec();
        let at = next() as usize % changed.len();
        changed[at] = next() as u8;
        let ours = from_fn(|_| Some(External::function(0x1000)));
        // SAFETY: the library has no constructors; one that a change makes up is refused, or is its code.
        match unsafe { LibraryLoader::new().symbols(ours).open(changed) } {
            Ok(_) => loaded += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(loaded > 100 && refused > 100, "{loaded} loaded, {refused} refused");
}
