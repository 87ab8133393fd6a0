//! Where symbols come from, in the caller's order, and what stays because it is used.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use elf_core::Name;
use exec_host::symbols::{ArchiveSource, Found, Symbols, from_fn};
use exec_host::{External, Loader, Module, Process};
use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Weak};
use system::{ARCH, compile, extent, fixture};

/// Compiles, or tells that the test is skipped.
macro_rules! object {
    ($test:literal, $source:expr) => {
        match compile("cc", &["-O1", "-fPIC"], $source) {
            Some(compiled) => compiled.bytes,
            None => {
                println!("skipped: {}: needs cc", $test);
                return;
            }
        }
    };
}

/// Calls `int name(int)`.
fn call(module: &Module<Vec<u8>>, name: &str, argument: i32) -> i32 {
    // SAFETY: all functions that are called here have this type.
    unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>(name).unwrap()(argument) }
}

#[test]
fn the_order_is_the_callers() {
    let user = object!(
        "the_order_is_the_callers",
        "int answer(int); int ask(int x) { return answer(x); }"
    );
    let early = object!("", "int answer(int x) { return x + 1; }");
    let late = object!("", "int answer(int x) { return x + 2; }");
    let loader = Loader::new();
    let load = |bytes: &Vec<u8>| Arc::new(loader.load([bytes.clone()], ()).unwrap());
    let (early, late) = (load(&early), load(&late));
    extern "C" fn answer(x: i32) -> i32 {
        x + 3
    }
    let ours = || {
        from_fn(|name| (name == "answer").then(|| External::function(answer as *const () as u64)))
    };
    let ask = |symbols: &mut dyn Symbols| {
        let module = loader.load([user.clone()], symbols).unwrap();
        call(&module, "ask", 10)
    };
    assert_eq!(ask(&mut early.clone().or(late.clone()).or(ours())), 11);
    assert_eq!(ask(&mut late.clone().or(early.clone()).or(ours())), 12);
    assert_eq!(ask(&mut ours().or(early.clone()).or(late.clone())), 13);
    assert_eq!(ask(&mut vec![late.clone(), early.clone()]), 12);
    assert_eq!(ask(&mut Process::new().or(late)), 12, "the process has no such function");
    assert!(loader.load([user.clone()], Process::new()).is_err());
    assert!(loader.load([user], ()).is_err());
}

/// Fails if it lives on.
fn assert_gone(module: &Weak<Module<Vec<u8>>>) {
    assert!(module.upgrade().is_none());
}

#[test]
fn what_is_used_stays() {
    let first =
        object!("what_is_used_stays", "int shared = 5; int add(int x) { return shared += x; }");
    let second = object!("", "int add(int); int twice(int x) { return add(x) + add(x); }");
    let third = object!("", "extern int shared; int read_it(int x) { return shared + x; }");
    let other = object!("", "int unused(int x) { return x; }");
    let loader = Loader::new();
    let load = |bytes: &Vec<u8>, symbols: &mut dyn Symbols| {
        Arc::new(loader.load([bytes.clone()], symbols).unwrap())
    };
    let other = load(&other, &mut ());
    let first = load(&first, &mut ());
    let second = load(&second, &mut other.clone().or(first.clone()));
    let third = load(&third, &mut first.clone().or(second.clone()).or(other.clone()));
    let weak = [&first, &second, &third, &other].map(Arc::downgrade);
    drop(first);
    drop(other);
    assert_gone(&weak[3]);
    assert!(weak[0].upgrade().is_some(), "two use it");
    assert_eq!(call(&second, "twice", 1), 6 + 7);
    assert_eq!(call(&third, "read_it", 0), 7, "one variable for all");
    // one of many goes, others stay
    drop(second);
    assert_gone(&weak[1]);
    assert_eq!(call(&third, "read_it", 1), 8);
    drop(third);
    assert_gone(&weak[2]);
    assert_gone(&weak[0]);
}

#[test]
fn hidden_symbols_are_no_source() {
    let first = object!(
        "hidden_symbols_are_no_source",
        "__attribute__((visibility(\"hidden\"))) int hidden(int x) { return x; }\n\
         static int local(int x) { return x; } int (*pointer)(int) = local;\n\
         __attribute__((visibility(\"protected\"))) int seen(int x) { return hidden(x) + local(x); }"
    );
    let mut module = Arc::new(Loader::new().load([first], ()).unwrap());
    assert!(module.address("hidden").is_some());
    let mut has = |name: &str| module.find(Name::from(name)).is_some();
    assert_eq!(
        [has("hidden"), has("local"), has("seen"), has("pointer")],
        [false, false, true, true]
    );
}

/// An archive of objects, made by the system's `ar`.
fn archive(folder: &Path, options: &str, members: &[(&str, &str)]) -> Option<std::path::PathBuf> {
    let mut ar = Command::new("ar");
    ar.current_dir(folder).arg(options).arg("lib.a");
    for (name, source) in members {
        let object = compile("cc", &["-O1", "-fPIC"], source)?;
        std::fs::copy(&object.object, folder.join(name)).unwrap();
        ar.arg(name);
    }
    assert!(ar.output().ok()?.status.success());
    Some(folder.join("lib.a"))
}

const MEMBERS: [(&str, &str); 4] = [
    ("one.o", "int two(int); int one(int x) { return two(x) + 1; }"),
    // calls back into the object that asked for it
    ("two.o", "int base(int); int two(int x) { return base(x) * 2; }"),
    ("three.o", "int optional(int x) { return x + 1000; }"),
    ("again.o", "int one(int x) { return -1; }"),
];

#[test]
fn members_join_on_demand() {
    let user = object!(
        "members_join_on_demand",
        "int one(int); int base(int x) { return x + 5; }\n\
         __attribute__((weak)) int optional(int);\n\
         int run(int x) { return one(x) + (optional ? optional(x) : 0); }"
    );
    let folder = tempfile::tempdir().unwrap();
    for options in ["rc", "rcT"] {
        let _ = std::fs::remove_file(folder.path().join("lib.a"));
        let Some(path) = archive(folder.path(), options, &MEMBERS) else {
            println!("skipped: members_join_on_demand: needs ar");
            return;
        };
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            ArchiveSource::parse(&bytes).is_err(),
            options == "rcT",
            "thin ones need their folder"
        );
        let mut archive = ArchiveSource::open(&path).unwrap();
        assert_eq!(archive.members().count(), 4);
        let loader = Loader::new();
        let asked = RefCell::new(Vec::new());
        let listen = from_fn(|name| {
            asked.borrow_mut().push(name.to_string());
            None
        });
        let module = loader.load([user.clone()], listen.or(&mut archive)).unwrap();
        assert_eq!(call(&module, "run", 1), 13, "a weak reference takes no member out");
        assert!(module.address("two").is_some() && module.address("optional").is_none());
        assert!(asked.borrow().iter().any(|name| name == "two"));
        // a later source may have what is only asked for weakly
        extern "C" fn optional(x: i32) -> i32 {
            x + 100
        }
        let later = from_fn(|name| {
            (name == "optional").then(|| External::function(optional as *const () as u64))
        });
        let module = loader.load([user.clone()], (&mut archive).or(later)).unwrap();
        assert_eq!(call(&module, "run", 1), 13 + 101);
        // an earlier load that has it is shared
        let whole = archive.members().take(3).map(|member| member.to_vec());
        let base = compile("cc", &["-O1", "-fPIC"], "int base(int x) { return x; }").unwrap().bytes;
        let whole = Arc::new(loader.load(whole.chain([base]), ()).unwrap());
        let module = loader.load([user.clone()], whole.or(&mut archive)).unwrap();
        assert_eq!(call(&module, "run", 1), 3 + 1001);
    }
}

/// Bytes of which it is known where they are.
struct At(Arc<Vec<u8>>);

impl AsRef<[u8]> for At {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[test]
fn members_are_parts_of_their_archive() {
    let user = object!(
        "members_are_parts_of_their_archive",
        "int two(int); int base(int x) { return x + 5; } int run(int x) { return two(x); }"
    );
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = archive(folder.path(), "rc", &MEMBERS) else {
        println!("skipped: members_are_parts_of_their_archive: needs ar");
        return;
    };
    let bytes = Arc::new(std::fs::read(path).unwrap());
    let source = ArchiveSource::new(At(Arc::clone(&bytes))).unwrap();
    for member in source.members() {
        assert!(bytes.as_ptr_range().contains(&member.as_ptr()), "no copy");
        assert!(member.starts_with(b"\x7fELF"));
    }
    let module = Loader::new().load([user], source).unwrap();
    assert_eq!(call(&module, "run", 1), 12);
    assert_eq!(Arc::strong_count(&bytes), 2, "kept for the member");
    drop(module);
    assert_eq!(Arc::strong_count(&bytes), 1);
}

/// A source that gives objects which do not define what was asked for.
struct Liar(Vec<u8>);

impl Symbols for Liar {
    fn find(&mut self, _: Name<'_>) -> Option<Found> {
        Some(Found::Object(self.0.clone().into()))
    }
}

#[test]
fn objects_that_do_not_help() {
    let user = object!(
        "objects_that_do_not_help",
        "int absent(int); int ask(int x) { return absent(x); }"
    );
    let other = object!(
        "",
        "int more(int); __attribute__((used)) static int unrelated(int x) { return more(x); }"
    );
    let error = Loader::new().load([user.clone()], Liar(other)).map(|_| ()).unwrap_err();
    assert!(
        error.to_string().starts_with("object 0: section .text: ")
            && error.to_string().contains("symbol absent is undefined"),
        "{error}"
    );
    let error = Loader::new().load([user], Liar(b"no object".to_vec())).map(|_| ()).unwrap_err();
    assert!(matches!(error, exec_host::Error::Elf { object: 1, .. }), "{error}");
}

/// Code that reaches variables by 32-bit distances finds those of earlier loads, however much was mapped meanwhile.
#[cfg_attr(not(target_pointer_width = "64"), ignore = "needs addresses of 64 bits")]
#[test]
fn variables_are_within_reach() {
    let Some(owner) = compile("cc", &["-O1", "-fPIC"], "int shared = 6;") else {
        println!("skipped: variables_are_within_reach: needs cc");
        return;
    };
    let user = "extern int shared; int read_it(int x) { return shared + x; }";
    let user = compile("cc", &["-O1", "-fpie"], user).unwrap().bytes;
    let loader = Loader::new();
    let owner = Arc::new(loader.load([owner.bytes], ()).unwrap());
    // no gap that is left near what is mapped takes the next load
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let map = |size: usize| {
        // SAFETY: without a wish for an address no existing mapping is touched.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        (start, size)
    };
    let far =
        |start: *mut libc::c_void| (start.addr() as u64).abs_diff(extent(&owner).start) > 1 << 33;
    let mut all = vec![map(usize::try_from(1u64 << 34).unwrap())];
    while !far(all[all.len() - 1].0) || all.len() < 2 {
        all.push(map(1 << 16));
    }
    for is_dual in [false, true] {
        let user = loader.clone().dual_mapping(is_dual).load([user.clone()], Arc::clone(&owner));
        assert_eq!(call(&user.unwrap(), "read_it", 1), 7);
    }
    for (start, size) in all {
        // SAFETY: they are ours, and nobody uses them.
        unsafe { libc::munmap(start, size) };
    }
}

#[test]
fn libraries_stay_open() {
    let source = "#include <stddef.h>\nunsigned long crc32(unsigned long, const unsigned char *, unsigned);\n\
        int check(int x) { unsigned char c = x; return crc32(0, &c, 1) & 0xffff; }";
    let user = object!("libraries_stay_open", source);
    let mut process = Process::new();
    // SAFETY: zlib has no constructors.
    if unsafe { process.open("libz.so.1") }.is_err() {
        println!("skipped: libraries_stay_open: needs libz.so.1");
        return;
    }
    let module = Loader::new().load([user], process).unwrap();
    assert_eq!(call(&module, "check", 65), 0xd3d9_9e8b_u32 as i32 & 0xffff);
}

#[test]
fn bad_archives() {
    let error = ArchiveSource::parse(b"!<arch>\nrubbish").map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("archive: "), "{error}");
    assert!(ArchiveSource::parse(&fixture(&format!("{ARCH}/elftest.o"))).is_err());
    let error = ArchiveSource::open("/nonexistent.a").map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent.a: "), "{error}");
}

/// What compilers call for atomic operations on AArch64, which no library of the process has.
#[test]
fn atomic_operations() {
    const SOURCE: &str = "\
#define EACH(T) static T test_##T(volatile T *p) { \\
  T sum = __atomic_fetch_add(p, 5, __ATOMIC_ACQ_REL); \\
  sum = sum * 3 + __atomic_fetch_sub(p, 2, __ATOMIC_RELAXED); \\
  sum = sum * 3 + __atomic_fetch_and(p, 0x5e, __ATOMIC_ACQUIRE); \\
  sum = sum * 3 + __atomic_fetch_or(p, 0x21, __ATOMIC_RELEASE); \\
  sum = sum * 3 + __sync_fetch_and_xor(p, 0x11); \\
  sum = sum * 3 + __atomic_exchange_n(p, 77, __ATOMIC_SEQ_CST); \\
  sum = sum * 3 + __sync_val_compare_and_swap(p, 77, 78); \\
  T expected = 1; \\
  sum = sum * 3 + __atomic_compare_exchange_n(p, &expected, 9, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED); \\
  return sum * 3 + expected + *p; \\
}
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32; typedef unsigned long u64;
EACH(u8) EACH(u16) EACH(u32) EACH(u64)
static u8 a; static u16 b; static u32 c; static u64 d;
int all(int start) {
  a = b = c = d = start;
  return test_u8(&a) ^ test_u16(&b) << 3 ^ test_u32(&c) << 7 ^ (int)test_u64(&d) << 11;
}
";
    let outline: &[&str] = if ARCH == "aarch64" { &["-O2", "-moutline-atomics"] } else { &["-O2"] };
    let Some(object) = compile("cc", outline, SOURCE) else {
        println!("skipped: atomic_operations: needs cc");
        return;
    };
    let module = Loader::new().load([object.bytes], Process::new()).unwrap();
    assert_eq!(call(&module, "all", 31), 608_664_965, "as a linked program has it");
}
