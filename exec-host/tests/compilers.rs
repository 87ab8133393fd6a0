//! Compilers of this machine, and programs that only look like compilers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use exec_core::{Cache, CacheMode, CompileError, Compiler, DiskCache, NoCache, Origin};
use exec_host::compile::{ClangCompiler, CompilerDriver, Family, GccCompiler, RustcCompiler};
use exec_host::{Module, Process};
use tempfile::TempDir;

const C: &str = "long product(long a, long b) { return a * b; }";
const RUST: &str = "#![no_std]\n#[unsafe(no_mangle)] pub extern \"C\" fn product(a: i64, b: i64) -> i64 { a.wrapping_mul(b) }";

fn found<F: Family>(test: &str) -> Option<CompilerDriver<F>> {
    let driver = CompilerDriver::find(&NoCache);
    if driver.is_err() {
        println!("skipped: {test}: needs {}", F::NAME);
    }
    driver.ok()
}

/// Compiles, loads, calls.
fn compiles(compiler: &impl Compiler, source: &str) {
    let image = compiler.compile(source).unwrap();
    let mut process = Process::new();
    let module = Module::load([image], &mut |name| process.find(name)).unwrap();
    // SAFETY: both sources have such a function.
    let product =
        unsafe { module.get::<unsafe extern "C" fn(i64, i64) -> i64>("product") }.unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { product(-6, 7) }, -42);
    let broken = format!("{source} this is wrong");
    let Err(CompileError::Rejected { messages, .. }) = compiler.compile(&broken) else {
        panic!("compiled")
    };
    assert!(messages.contains("error") && messages.contains("this"), "{messages}");
}

#[test]
fn clang() {
    let Some(compiler) = found("clang") else { return };
    let compiler: ClangCompiler = compiler;
    assert!(compiler.identity().version.contains("clang version"));
    compiles(&compiler, C);
}

#[test]
fn gcc() {
    let Some(compiler) = found("gcc") else { return };
    let compiler: GccCompiler = compiler;
    assert!(compiler.identity().version.contains("gcc version"));
    compiles(&compiler, C);
}

#[test]
fn rustc() {
    let Some(compiler) = found("rustc") else { return };
    let compiler: RustcCompiler = compiler;
    assert!(compiler.identity().version.contains("commit-hash"));
    compiles(&compiler, RUST);
}

#[test]
fn the_version_is_asked_for_once() {
    let folder = TempDir::new().unwrap();
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, 1 << 20).unwrap();
    let (path, count) = (folder.path().join("my-gcc"), folder.path().join("count"));
    let write = |version: &str| {
        fs::write(&path, format!("#!/bin/sh\necho {version}; echo >> {}\n", count.display()))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let version =
        |cache: &dyn Cache| started(|| GccCompiler::at(&path, cache)).identity().version.to_owned();
    write("one");
    assert_eq!(version(&NoCache), "one\n");
    assert_eq!([version(&cache), version(&cache)], ["one\n", "one\n"]);
    assert_eq!(fs::read(&count).unwrap(), b"\n\n");
    // another size is another file
    write("another");
    assert_eq!([version(&cache), version(&cache)], ["another\n", "another\n"]);
    assert_eq!(fs::read(&count).unwrap(), b"\n\n\n");
}

#[test]
fn disassembly() {
    let Some(compiler) = found::<exec_host::compile::Gcc>("disassembly") else { return };
    let image = compiler.compile(C).unwrap();
    let text = compiler.disassemble(&image, Some("product")).unwrap();
    assert!(text.contains("<product>:") && text.contains("ret"), "{text}");
    assert!(compiler.disassemble(b"garbage", None).is_err());
}

#[test]
fn a_changed_header_is_a_changed_source() {
    let Some(compiler) = found::<exec_host::compile::Gcc>("a_changed_header_is_a_changed_source")
    else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let compiler = compiler.with_option(format!("-I{}", folder.path().display()));
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, 1 << 20).unwrap();
    let header = folder.path().join("number.h");
    let origin = |number: &str| {
        fs::write(&header, format!("#define NUMBER {number}\n")).unwrap();
        compiler
            .compile_cached("#include \"number.h\"\nint f(void) { return NUMBER; }", &cache)
            .unwrap()
            .origin
    };
    assert_eq!(origin("1"), Origin::Compiler);
    assert_eq!(origin("1"), Origin::Cache);
    assert_eq!(origin("2"), Origin::Compiler);
    assert_eq!(origin("1"), Origin::Cache);
}

#[test]
fn options_are_part_of_the_key() {
    let Some(compiler) = found::<exec_host::compile::Gcc>("options_are_part_of_the_key") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let cache = DiskCache::open(folder.path(), CacheMode::ReadWrite, 1 << 20).unwrap();
    let one = compiler.clone();
    let other = compiler.with_options(["-O0", "-fPIC"]);
    assert_eq!(one.compile_cached(C, &cache).unwrap().origin, Origin::Compiler);
    assert_eq!(other.compile_cached(C, &cache).unwrap().origin, Origin::Compiler);
    assert_eq!(one.compile_cached(C, &cache).unwrap().origin, Origin::Cache);
}

/// A compiler that does what a shell script says, after its version was asked for.
fn script(folder: &TempDir, body: &str) -> GccCompiler {
    let path: PathBuf = folder.path().join("fake");
    fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = -v ] && exit 0\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    started(|| GccCompiler::at(&path, &NoCache))
}

/// Tries again as long as another test's child, between its fork and exec, has the script open for writing.
fn started(start: impl Fn() -> Result<GccCompiler, CompileError>) -> GccCompiler {
    let first = Instant::now();
    loop {
        match start() {
            Err(CompileError::Start { .. }) if first.elapsed() < Duration::from_secs(5) => {}
            outcome => return outcome.unwrap(),
        }
    }
}

#[test]
fn a_compiler_that_hangs_is_stopped_with_all_it_started() {
    let folder = TempDir::new().unwrap();
    let mark = folder.path().join("mark");
    let body = format!("(sleep 2; touch {}) & sleep 100", mark.display());
    let compiler = script(&folder, &body).with_limit(Duration::from_millis(200));
    let start = Instant::now();
    let outcome = compiler.compile("x");
    assert!(
        matches!(outcome, Err(CompileError::TimedOut { limit, .. }) if limit.as_millis() == 200)
    );
    assert!(start.elapsed() < Duration::from_secs(2));
    std::thread::sleep(Duration::from_millis(2500));
    assert!(!mark.exists());
}

#[test]
fn a_compiler_that_never_reads_is_no_problem() {
    let folder = TempDir::new().unwrap();
    let source = "x".repeat(1 << 22);
    let outcome = script(&folder, "echo no >&2; exit 1").compile(&source);
    assert!(matches!(outcome, Err(CompileError::Rejected { messages, .. }) if messages == "no\n"));
}

#[test]
fn a_compiler_that_dies_or_lies_is_named() {
    let folder = TempDir::new().unwrap();
    let outcome = script(&folder, "echo last words >&2; kill -SEGV $$").compile("x");
    let Err(CompileError::Died { signal: 11, messages, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(messages, "last words\n");
    let outcome = script(&folder, "exit 0").compile("x");
    assert!(matches!(outcome, Err(CompileError::NoImage { size: 0, .. })));
    let outcome = script(&folder, "head -c 5000 /dev/urandom").compile("x");
    assert!(matches!(outcome, Err(CompileError::NoImage { size: 5000, .. })));
    let outcome = script(&folder, "cat /bin/sh").compile("x");
    let Err(error @ CompileError::NoImage { .. }) = outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("no object for this one"), "{error}");
    let outcome = script(&folder, "cat /dev/zero").compile("x");
    assert!(matches!(outcome, Err(CompileError::TooLarge { .. })), "{outcome:?}");
}

#[test]
fn a_compiler_that_is_not_there_is_named() {
    let folder = TempDir::new().unwrap();
    let outcome = GccCompiler::at(&folder.path().join("none"), &NoCache);
    let Err(CompileError::Start { name, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(name, "none");
}
