//! Shared libraries out of bytes: real ones of the machine, and small ones that show a thing each.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::{Library, LibraryError, LibraryLoader, NeededLibrary};
use exec_host::symbols::from_fn;
use exec_host::{Error, External, Loader, Process};
use std::ffi::{CStr, c_char, c_long};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use system::{ARCH, OTHER, fixture, is_emulated, of_this_machine};

/// A library of the system, if it is there: of the machine, or where the cross compilers have theirs.
fn of_the_system(name: &str) -> Option<Vec<u8>> {
    let own = [format!("/lib/{ARCH}-linux-gnu"), format!("/usr/{ARCH}-linux-gnu/lib")];
    let mut folders = own.iter().map(String::as_str).chain(["/usr/lib64"]);
    folders.find_map(|folder| std::fs::read(Path::new(folder).join(name)).ok())
}

/// Compiles C or C++ to a library, or what else the arguments say.
fn compile(folder: &Path, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let (source_path, output) = (folder.join(name), folder.join(format!("{name}.so")));
    std::fs::write(&source_path, source).unwrap();
    let compiler = if name.ends_with(".cc") { "g++" } else { "gcc" };
    let mut command = Command::new(of_this_machine(compiler));
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

/// `long` is as long as a word.
fn wide(number: impl Into<i64>) -> i64 {
    number.into()
}

/// Calls a function without arguments.
fn call(library: &Library, name: &str) -> i64 {
    // SAFETY: the tests' functions have this type.
    let function = unsafe { library.get::<unsafe extern "C-unwind" fn() -> c_long>(name) }.unwrap();
    // SAFETY: as above.
    wide(unsafe { function() })
}

#[test]
fn zlib_compresses() {
    let Some(bytes) = of_the_system("libz.so.1") else {
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
    assert_eq!(missing, "neither the library nor what it needs defines no_such");
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
static int given; static char **words;
__attribute__((constructor(103))) static void three(int argc, char **argv, char **envp) { given = argc; words = argv; }
long number(void) { return given; }
const char *word(long at) { return words[at]; }
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
    // those of the process
    assert_eq!(call(&one, "number"), std::env::args().count() as i64);
    // SAFETY: the type of the source, and there are so many words.
    unsafe {
        let word = one.get::<unsafe extern "C" fn(c_long) -> *const c_char>("word").unwrap();
        for (at, own) in (0..).zip(std::env::args()) {
            assert_eq!(CStr::from_ptr(word(at)).to_str().unwrap(), own);
        }
    }
    let mut told: c_long = 0;
    // SAFETY: the type of the source; the variable outlives the library.
    unsafe {
        let tell = one.get::<unsafe extern "C" fn(*mut c_long) -> c_long>("tell").unwrap();
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
    let dialects: &[&str] = match ARCH {
        "x86_64" => &["-mtls-dialect=gnu", "-mtls-dialect=gnu2"],
        "aarch64" => &["-mtls-dialect=trad", "-mtls-dialect=desc"],
        "arm" => &["-mtls-dialect=gnu", "-mtls-dialect=gnu2"],
        // GCC 12 has one
        _ => &["-O1"],
    };
    for model in ["global-dynamic", "local-dynamic", "initial-exec"] {
        for dialect in dialects {
            let model = format!("-ftls-model={model}");
            let path = compile(folder.path(), "threads.c", THREADS, &[&model, dialect]);
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

/// gold asks for the module of local variables by the symbol of their section.
#[test]
fn thread_local_variables_of_sections() {
    let gold = of_this_machine("ld.gold");
    let says = Command::new(gold).arg("--version").output();
    if !says.is_ok_and(|output| output.status.success()) {
        println!("skipped: thread_local_variables_of_sections: needs {gold}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = r#"
        #define GENERAL __attribute__((tls_model("global-dynamic"))) static __thread
        GENERAL long own = 5, zeros[3]; GENERAL short last = 4;
        long add(void) { zeros[1] += ++own; return own + 10 * zeros[1] + 1000 * last++; }"#;
    let path = compile(folder.path(), "sections.c", source, &["-fuse-ld=gold"]);
    let library = open(&path).unwrap();
    assert_eq!((call(&library, "add"), call(&library, "add")), (4066, 5137));
    let other = library.clone();
    assert_eq!(std::thread::spawn(move || call(&other, "add")).join().unwrap(), 4066);
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
        let catches = unsafe { one.get::<unsafe extern "C-unwind" fn(usize) -> c_long>("catches") };
        // SAFETY: as above.
        assert_eq!(unsafe { catches.unwrap()(thrower as usize) }, 10);
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

    extern "C" fn offered() -> c_long {
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
    let mut compiler = Command::new(of_this_machine("gcc"));
    compiler.args(["-c", "-O1", "-o"]).arg(&object).arg(folder.path().join("object.c"));
    assert!(compiler.status().unwrap().success());
    let object = std::fs::read(object).unwrap();
    use exec_host::symbols::Symbols as _;
    let module = Loader::new().load([object], upper.clone().or(Process::new())).unwrap();
    drop(upper); // kept by the module
    // SAFETY: the type of the source.
    let twice = unsafe { module.get::<unsafe extern "C" fn() -> c_long>("twice") }.unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { twice() }, 2 * 3842);
}

/// What a library needs comes from the caller, by name: bytes, which need more, or what is loaded already.
#[test]
fn needed_libraries_of_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, source: &str, needed: &[&Path]| {
        let soname = format!("-Wl,-soname,lib{name}.so.1");
        let mut arguments = vec![soname.as_str(), "-Wl,--no-as-needed"];
        arguments.extend(needed.iter().map(|path| path.to_str().unwrap()));
        compile(folder.path(), &format!("{name}.c"), source, &arguments)
    };
    let lowest = build("lowest", "long lowest(void) { static long calls; return ++calls; }", &[]);
    let middle = "extern long lowest(void); long middle(void) { return 10 * lowest(); }";
    let middle = build("middle", middle, &[&lowest]);
    let top =
        "extern long middle(void), lowest(void); long top(void) { return middle() + lowest(); }";
    let top = build("top", top, &[&middle, &lowest]);
    let read = |path: &Path| std::fs::read(path).unwrap();
    let mut asked: Vec<String> = Vec::new();
    let loader = LibraryLoader::new().needed(|name| {
        asked.push(name.to_string());
        match name.to_str()? {
            "libmiddle.so.1" => Some(NeededLibrary::bytes(read(&middle))),
            "liblowest.so.1" => Some(NeededLibrary::bytes(read(&lowest))),
            _ => None,
        }
    });
    // SAFETY: no constructors that matter.
    let library = unsafe { loader.open(read(&top)) }.unwrap();
    assert_eq!(call(&library, "top"), 12, "one lowest, of both");
    assert_eq!(asked, ["libmiddle.so.1", "liblowest.so.1", "libc.so.6"]);
    // another load shares what is there
    let shared = open(&lowest).unwrap();
    let loader = LibraryLoader::new()
        .library(&shared)
        .needed(|name| (name == "libmiddle.so.1").then(|| NeededLibrary::bytes(read(&middle))));
    // SAFETY: as above.
    let other = unsafe { loader.open(read(&top)) }.unwrap();
    assert_eq!((call(&other, "top"), call(&shared, "lowest")), (12, 3));
    let loader = LibraryLoader::new()
        .needed(|name| (name == "liblowest.so.1").then(|| shared.clone().into()));
    // SAFETY: as above.
    let other = unsafe { loader.open(read(&middle)) }.unwrap();
    assert_eq!(call(&other, "middle"), 40);
    // one that cannot be loaded is told with its name
    let loader = LibraryLoader::new()
        .needed(|name| (name == "liblowest.so.1").then(|| NeededLibrary::bytes(&b"no"[..])));
    // SAFETY: as above.
    let refused = unsafe { loader.open(read(&middle)) }.unwrap_err().to_string();
    assert_eq!(refused, "needs liblowest.so.1: not an ELF file");
    // libraries that need each other
    let lower =
        build("lowest", "extern long middle(void); long lowest(void) { return 1; }", &[&middle]);
    let loader = LibraryLoader::new().needed(|name| match name.to_str()? {
        "libmiddle.so.1" => Some(NeededLibrary::bytes(read(&middle))),
        "liblowest.so.1" => Some(NeededLibrary::bytes(read(&lower))),
        _ => None,
    });
    // SAFETY: as above.
    let circle = unsafe { loader.open(read(&top)) }.unwrap();
    assert_eq!(call(&circle, "top"), 11);
}

/// What the process has of this name is taken, as by ld.so, and not another file of that name where the library says to look.
#[test]
fn what_is_there_by_name_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    std::fs::create_dir_all(&one).unwrap();
    std::fs::create_dir_all(&two).unwrap();
    let soname = "-Wl,-soname,libhoist-there.so.7";
    for (folder, result) in [(&one, 1), (&two, 2)] {
        let source = format!("long which(void) {{ return {result}; }}");
        let path = compile(folder, "there.c", &source, &[soname]);
        std::fs::copy(path, folder.join("libhoist-there.so.7")).unwrap();
    }
    let there = one.join("libhoist-there.so.7");
    let source = "extern long which(void); long ask(void) { return which(); }";
    let rpath = format!("-Wl,-rpath,{}", two.display());
    let asks = compile(folder.path(), "asks.c", source, &[there.to_str().unwrap(), &rpath]);
    assert_eq!(call(&open(&asks).unwrap(), "ask"), 2, "where it says to look");
    let name = std::ffi::CString::new(there.to_str().unwrap()).unwrap();
    // SAFETY: the library has no constructors that matter, and stays.
    assert!(!unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) }.is_null());
    assert_eq!(call(&open(&asks).unwrap(), "ask"), 1, "what is there");
}

/// Names of functions at addresses, for backtraces: local ones, and in a stripped file those that it shows.
#[test]
fn symbols_at_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let source = "static __attribute__((noinline)) long hidden(long n) { return n * 3 + 1; }
        long (*pointer(void))(long) { return hidden; } long shown(long n) { return hidden(n) + 2; }";
    for (flags, name) in [(&["-O0"][..], Some("hidden")), (&["-O0", "-s"], None)] {
        let library = open(&compile(folder.path(), "names.c", source, flags)).unwrap();
        // pointers to Thumb code have one bit more than its place, as return addresses have
        let place = |pointer: u64| if cfg!(target_arch = "arm") { pointer & !1 } else { pointer };
        let shown = library.function("shown").unwrap();
        let hidden = call(&library, "pointer") as u64;
        for offset in [0, 1, 2, 3] {
            for shown in [shown, place(shown)] {
                let found = library.symbol_at(shown + offset);
                let behind = place(shown + offset) - place(shown);
                assert_eq!(found, Some(("shown".into(), behind)), "{flags:?}");
            }
            let found = library.symbol_at(place(hidden) + offset);
            assert_eq!(found, name.map(|name| (name.into(), place(offset))), "{flags:?}");
        }
        assert_eq!(library.symbol_at(0), None);
    }
}

/// A list of constructors that is not in the library is no empty list.
#[test]
fn constructors_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = "static void first(void) {} __attribute__((section(\".init_array\"))) void (*list)(void) = first;";
    let path = compile(folder.path(), "list.c", source, &[]);
    let bytes = std::fs::read(path).unwrap();
    let refused = |tag: u64, value: u64| {
        let mut bytes = bytes.clone();
        let file = elf_core::File::parse(&bytes).unwrap();
        let dynamic = file.segments().iter().find(|it| it.r#type == 2).unwrap();
        let start = dynamic.offset as usize;
        const WORD: usize = size_of::<usize>();
        let [tag, value] = [tag, value].map(|word| (word as usize).to_le_bytes());
        let mut rows = (start..).step_by(2 * WORD);
        let at = rows.find(|at| bytes[*at..at + WORD] == tag).unwrap();
        bytes[at + WORD..at + 2 * WORD].copy_from_slice(&value);
        // SAFETY: it is refused.
        unsafe { LibraryLoader::new().open(bytes) }.unwrap_err().to_string()
    };
    // DT_INIT_ARRAYSZ, DT_INIT_ARRAY
    for (tag, value) in [(27, 0x100_0000), (25, 0x7000_0000)] {
        let words = refused(tag, value);
        assert!(words.ends_with("is outside the library's code"), "{words}");
    }
}

/// What is to answer for an indirect function is code of the library: by its symbol, and by the record of one that others do not see.
#[test]
fn resolvers_must_be_code() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(compile(folder.path(), "indirect.c", INDIRECT, &[])).unwrap();
    let file = elf_core::File::parse(&bytes).unwrap();
    let dynamic = file.dynamic_by_segment().unwrap().unwrap();
    const WORD: usize = size_of::<usize>();
    let mut places = Vec::new();
    let at = |tag: u64| Some(file.offset_of(dynamic.value(tag)?)? as usize);
    // DT_SYMTAB; `st_value`
    let (symbols, row, value) = if WORD == 8 { (6, 24, 8) } else { (6, 16, 4) };
    let table = dynamic.symbol_table().unwrap().unwrap();
    let indirect = table.symbols().iter().enumerate().filter(|(_, it)| it.r#type() == 10);
    places.extend(indirect.map(|(index, _)| at(symbols).unwrap() + row * index + value));
    // DT_RELA, DT_JMPREL; `R_*_IRELATIVE`
    for tag in [7, 23] {
        if let Ok(Some(elf_core::Relocations::Rela(rows))) = dynamic.relocations(tag) {
            let rows = rows.iter().enumerate();
            let indirect = rows.filter(|(_, it)| [37, 42, 58, 160, 1032].contains(&it.r#type));
            places
                .extend(indirect.map(|(index, _)| at(tag).unwrap() + 3 * WORD * index + 2 * WORD));
        }
    }
    assert!(places.len() > usize::from(WORD == 8), "{places:x?}");
    // PT_DYNAMIC: code may stand in one segment with the headers, never with this
    let data = file.segments().iter().find(|segment| segment.r#type == 2).unwrap().address;
    for place in places {
        let mut bytes = bytes.clone();
        bytes[place..place + WORD].copy_from_slice(&(data as usize).to_le_bytes());
        // SAFETY: it is refused.
        let words = unsafe { LibraryLoader::new().open(bytes) }.unwrap_err().to_string();
        assert!(words.ends_with("is outside the library's code"), "{words}");
    }
}

/// A constructor by name may be another library's, as of two copies of GCC's.
#[test]
fn constructors_of_others() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn offered() {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "extern void offered(void);
        __attribute__((section(\".init_array\"), used)) static void (*list)(void) = offered;";
    let path = compile(folder.path(), "others.c", source, &[]);
    let ours = from_fn(|name| {
        (name == "offered").then(|| External::function(offered as *const () as u64))
    });
    // SAFETY: the constructor is the function above.
    let library = unsafe { LibraryLoader::new().symbols(ours).open(std::fs::read(path).unwrap()) };
    drop(library.unwrap());
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
}

/// A word of 4 bytes that an indirect function is in leaves what is behind it alone.
#[test]
#[cfg(target_arch = "x86_64")]
fn short_words_of_indirect_functions() {
    let folder = tempfile::tempdir().unwrap();
    let source = "static long one(void) { return 1; } static void *find(void) { return (void *)one; }
        long chosen(void) __attribute__((ifunc(\"find\")));
        __asm__(\".data; .p2align 3; .globl words; words: .quad chosen, 0x1122334455667788; .text\");
        extern unsigned long words[]; unsigned long behind(void) { return words[1]; }
        unsigned long before(void) { return words[0]; }";
    let path = compile(folder.path(), "short.c", source, &[]);
    let mut bytes = std::fs::read(path).unwrap();
    let place = {
        let file = elf_core::File::parse(&bytes).unwrap();
        let image = elf_image::Image::parse(file, elf_image::AddressKind::Virtual).unwrap();
        let mut records = image.relocations().filter_map(Result::ok).flatten();
        records.find(|record| record.r#type == 1).unwrap().offset
    };
    // R_X86_64_64 to R_X86_64_PC32, at the second half of the word: what is behind is another's
    let row = [place.to_le_bytes(), [1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let at = (0..bytes.len() - 24)
        .find(|at| bytes[*at..at + 8] == row[..8] && bytes[at + 8..at + 12] == row[8..12]);
    let at = at.unwrap();
    bytes[at..at + 8].copy_from_slice(&(place + 4).to_le_bytes());
    bytes[at + 8] = 2;
    // SAFETY: no constructors that matter.
    let library = unsafe { LibraryLoader::new().open(bytes) }.unwrap();
    assert_eq!(call(&library, "behind"), 0x1122_3344_5566_7788);
    let distance = (call(&library, "before") as u64 >> 32) as i32;
    let one = (library.address("words").unwrap() + 4).wrapping_add_signed(distance.into());
    assert_eq!(library.symbol_at(one), Some(("one".into(), 0)));
}

#[test]
fn what_is_refused() {
    let refused = |bytes: Vec<u8>| {
        // SAFETY: it is refused.
        unsafe { LibraryLoader::new().open(bytes) }.unwrap_err().to_string()
    };
    if let Some(libc) = of_the_system("libc.so.6") {
        let words = "libc.so.6 is a part of the dynamic loader, which alone can load it";
        assert_eq!(refused(libc), words);
    }
    assert_eq!(refused(vec![1, 2, 3]), "not an ELF file");
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(refused(program), "an executable, not a library");
    let object = fixture(&format!("{ARCH}/shared.o"));
    assert_eq!(refused(object), "a file of type 1, neither an executable nor a shared object");
    let imports = fixture(&format!("{ARCH}/libshared.so"));
    assert_eq!(refused(imports), "symbol imported is undefined");
    let folder = tempfile::tempdir().unwrap();
    let never = compile(folder.path(), "never.c", "int one;", &["-Wl,-z,nodlopen"]);
    let words = "the library says that it is not to be opened so (DF_1_NOOPEN)";
    assert_eq!(refused(std::fs::read(never).unwrap()), words);
    let stack = compile(folder.path(), "stack.c", "int one;", &["-Wl,-z,execstack"]);
    let words = "a library that wants to execute the stack";
    assert_eq!(refused(std::fs::read(stack).unwrap()), words);
    // zeros of 32 GiB are more than anybody needs, those of 8 GiB more than this one gives; others have no room for so many
    let sizes = [
        ("endless.c", "1ul << 35", LibraryLoader::new()),
        ("large.c", "1ul << 33", LibraryLoader::new().limit(1 << 30)),
    ];
    for (name, size, loader) in sizes.into_iter().filter(|_| cfg!(target_pointer_width = "64")) {
        let source = format!("char zeros[{size}]; char *get(void) {{ return zeros; }}");
        let large = std::fs::read(compile(folder.path(), name, &source, &[])).unwrap();
        // SAFETY: it is refused.
        let error = unsafe { loader.open(large) }.unwrap_err().to_string();
        assert!(error.contains("bytes is larger than the limit of 0x4"), "{error}");
    }
    let machine = |bytes: &[u8]| u16::from_le_bytes([bytes[18], bytes[19]]);
    let [own, other] = [ARCH, OTHER].map(|arch| fixture(&format!("{arch}/libshared.so")));
    let words = format!("a file for machine {}, not {}", machine(&other), machine(&own));
    assert_eq!(refused(other), words);
}

/// Any change of a library leaves a reason, or a library: nothing of it is called. And so does each of its truncations.
#[test]
fn changes_of_tables() {
    let name = if cfg!(target_arch = "x86_64") { "libshared-relr.so" } else { "libshared.so" };
    let bytes = fixture(&format!("{ARCH}/{name}"));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let is_loaded = |changed: Vec<u8>| {
        let ours = from_fn(|_| Some(External::function(0x1000)));
        // SAFETY: the library has no constructors; one that a change makes up is refused, or is its code.
        let library = unsafe { LibraryLoader::new().symbols(ours).open(changed) };
        library.inspect_err(|error| assert!(!error.to_string().is_empty())).is_ok()
    };
    let changes = if is_emulated() { 1000 } else { 10_000 };
    let changed = (0..changes).map(|_| {
        let mut changed = bytes.clone();
        let at = next() as usize % changed.len();
        changed[at] = next() as u8;
        changed
    });
    let loaded = changed.filter(|changed| is_loaded(changed.clone())).count();
    let few = changes / 50;
    assert!(loaded > few && changes - loaded > few, "{loaded} of {changes} loaded");
    // what is behind the segments that are loaded is nothing to a loader
    let segments = elf_core::File::parse(&bytes).unwrap().segments();
    let loaded = segments.iter().filter(|segment| segment.r#type == elf_core::names::PT_LOAD);
    let end = loaded.map(|segment| (segment.offset + segment.file_size) as usize).max();
    for length in 0..bytes.len() {
        assert_eq!(is_loaded(bytes[..length].to_vec()), length >= end.unwrap(), "{length} bytes");
    }
}
