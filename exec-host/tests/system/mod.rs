//! Fixtures of this machine, and what the system says of this process.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod libraries;

use exec_host::{Error, Module, Process};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

/// The folder of this machine's fixtures.
pub(crate) const ARCH: &str = std::env::consts::ARCH;
/// That of another machine.
pub(crate) const OTHER: &str = if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" };

/// A file of `fixtures/`.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All fixtures of this machine that are relocatable objects, by name.
pub(crate) fn objects() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(ARCH);
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".o"))
        .collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), fixture(&format!("{ARCH}/{name}")))).collect()
}

/// Loads objects against what this process has.
pub(crate) fn load(objects: &[&[u8]]) -> Result<Module<Vec<u8>>, Error> {
    let mut process = Process::new();
    Module::load(objects.iter().map(|bytes| bytes.to_vec()), &mut |name| process.find(name))
}

/// A line of `/proc/self/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    pub(crate) range: Range<u64>,
    /// `r`, `w`, `x` and `p`, or dashes.
    pub(crate) permissions: String,
    pub(crate) path: String,
}

/// Everything that is mapped, by rising address.
pub(crate) fn maps() -> Vec<Map> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(Map {
            range: number(start)?..number(end)?,
            permissions: words.next()?.to_owned(),
            path: words.nth(3).unwrap_or_default().to_owned(),
        })
    };
    text.lines().map(|text| line(text).unwrap()).collect()
}

/// What is mapped of these addresses: what two readings agree on, since lines are missed while other threads map and unmap.
pub(crate) fn mapped(range: &Range<u64>) -> Vec<Map> {
    let overlaps = |map: &Map| map.range.start < range.end && range.start < map.range.end;
    let read = || maps().into_iter().filter(overlaps).collect::<Vec<_>>();
    let mut last = read();
    loop {
        let again = read();
        if again == last {
            return again;
        }
        last = again;
    }
}

/// The addresses that a module occupies.
pub(crate) fn extent<B: AsRef<[u8]>>(module: &Module<B>) -> Range<u64> {
    let (start, size) = module.extent();
    start..start + size
}

/// Address space and memory of this process, in pages.
pub(crate) fn pages() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().unwrap());
    (words.next().unwrap(), words.next().unwrap())
}

/// Says that it is over when it goes, be it by a panic: threads that go on until then would never end, and nor would who waits for them.
pub(crate) struct Over<'a>(pub(crate) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// This program once more, to do something in a process of its own: by way of the emulator that runs it, if one does.
pub(crate) fn itself() -> Command {
    let program = std::env::current_exe().unwrap();
    // cargo's runner for the target
    let is_runner = |name: &str| {
        let target =
            name.strip_prefix("CARGO_TARGET_").and_then(|rest| rest.strip_suffix("_RUNNER"));
        target.is_some_and(|target| target.starts_with(&ARCH.to_uppercase()))
    };
    let runner = std::env::vars().find(|(name, _)| is_runner(name)).filter(|_| is_emulated());
    let Some((_, runner)) = runner else { return Command::new(program) };
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg(program);
    command
}

/// Whether a program was ended by a signal. qemu 7.2 may fail in place of the program whose fault it passes on, by an assertion of its
/// own (`cpu == current_cpu`), with exit status 127.
pub(crate) fn is_ended_by(signal: i32, status: ExitStatus) -> bool {
    status.signal() == Some(signal) || is_emulated() && status.code() == Some(127)
}

/// Whether this program runs in an emulator, whose own memory and system calls get into the way of some tests.
pub(crate) fn is_emulated() -> bool {
    // emulators know the names under which programs usually ask for themselves
    std::fs::read_link("/proc/thread-self/exe")
        .is_ok_and(|path| path.to_string_lossy().contains("qemu"))
}

/// What a compiler of this machine makes of a source, and where both lie; nothing if there is no such compiler.
pub(crate) fn compile(compiler: &str, options: &[&str], source: &str) -> Option<Compiled> {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join(if compiler.contains("++") { "source.cc" } else { "source.c" });
    let object = folder.path().join("source.o");
    std::fs::write(&input, source).unwrap();
    let mut command = Command::new(of_this_machine(compiler));
    if !cfg!(target_arch = "x86_64") && compiler.starts_with("clang") {
        let abi = if cfg!(target_arch = "arm") { "gnueabihf" } else { "gnu" };
        command.arg(format!("--target={ARCH}-linux-{abi}"));
    }
    // the folder does not enter the file's name, which debuggers are asked for
    command.current_dir(folder.path()).args(["-c", "-o", "source.o"]).args(options);
    let output = command.arg(input.file_name().unwrap()).output().ok()?;
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {options:?}: {messages}");
    Some(Compiled { bytes: std::fs::read(&object).unwrap(), object, folder })
}

/// The cross compiler where this program runs in an emulator, else the one of this name.
pub(crate) fn of_this_machine(compiler: &str) -> &str {
    let cross = match (ARCH, compiler) {
        ("aarch64", "cc" | "gcc") => "aarch64-linux-gnu-gcc",
        ("aarch64", "c++" | "g++") => "aarch64-linux-gnu-g++",
        ("riscv64", "cc" | "gcc") => "riscv64-linux-gnu-gcc-12",
        ("riscv64", "c++" | "g++") => "riscv64-linux-gnu-g++-12",
        ("arm", "cc" | "gcc") => "arm-linux-gnueabihf-gcc-12",
        ("arm", "c++" | "g++") => "arm-linux-gnueabihf-g++-12",
        ("aarch64", "ld.gold") => "aarch64-linux-gnu-ld.gold",
        ("riscv64", "ld.gold") => "riscv64-linux-gnu-ld.gold",
        ("arm", "ld.gold") => "arm-linux-gnueabihf-ld.gold",
        _ => return compiler,
    };
    let is_there = || Command::new(cross).arg("--version").output().is_ok();
    // an emulator has this machine's compilers at hand, which are for another
    if is_emulated() || is_there() { cross } else { compiler }
}

/// An object in a folder of its own.
pub(crate) struct Compiled {
    pub(crate) bytes: Vec<u8>,
    pub(crate) object: std::path::PathBuf,
    pub(crate) folder: tempfile::TempDir,
}
