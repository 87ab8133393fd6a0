//! `ld-so`: every shared library of the machine, or of another one in its emulator, as the dynamic loader and as hoist relocate it, byte
//! for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};
use elf_core::names::{EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64, ET_DYN};
use elf_core::{File, names};

use crate::targets::{HOST, Kind, TARGETS, Target};
use crate::task::{Reported, Run};
use crate::tool::{self, cargo};
use crate::workspace::Workspace;

/// Arguments of `ld-so`.
#[derive(clap::Args)]
pub(crate) struct LdSo {
    /// Files, and folders with libraries; those of this machine, or of the C library that emulated programs have
    paths: Vec<PathBuf>,
    /// The machine that the libraries are for, one of the matrix's: programs are run by its emulator
    #[arg(long, default_value = HOST)]
    target: String,
    /// The folder that is / for emulated programs: packages of that machine with their C library, unpacked by dpkg-deb
    #[arg(long, value_name = "FOLDER", requires = "target")]
    root: Option<PathBuf>,
}

/// What libraries of a target have in their headers.
const MACHINES: [(&str, u16); 5] = [
    ("x86_64", EM_X86_64),
    ("i686", EM_386),
    ("aarch64", EM_AARCH64),
    ("riscv64gc", EM_RISCV),
    ("armv7", EM_ARM),
];

/// Folders with libraries, of a machine.
const FOLDERS: [&str; 3] = ["lib", "usr/lib", "usr/local/lib"];

impl Run for LdSo {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let target = TARGETS.iter().find(|target| target.name == self.target);
        let target = target.with_context(|| format!("{}: no target of the matrix", self.target))?;
        let arch = target.name.split('-').next().unwrap_or_default();
        let machine = MACHINES.iter().find(|(name, _)| *name == arch).map(|(_, machine)| *machine);
        let machine = machine.with_context(|| format!("{arch} has no libraries that load"))?;
        if let Some(tool) = target.missing().first() {
            return Err(tool::Missing(format!("{} is in {}", tool.program, tool.package)).into());
        }
        let program = build(workspace, target)?;
        let by = By { program, runner: runner(target, self.root.as_deref())? };
        let root = by.root().unwrap_or(Path::new("/"));
        let usual = FOLDERS.map(|folder| root.join(folder)).into_iter();
        let usual = usual.filter(|folder| folder.is_dir() && !folder.is_symlink());
        let paths = if self.paths.is_empty() { usual.collect() } else { self.paths };
        let mut files = Vec::new();
        for path in &paths {
            collect(path, machine, &mut files);
        }
        files.sort();
        files.dedup();
        if files.is_empty() {
            bail!("no shared library for {}", names::machine(machine).unwrap_or("that machine"));
        }
        let totals = by.all(&files);
        totals.print();
        if totals.different + totals.crashed == 0 { Ok(()) } else { Err(Reported.into()) }
    }
}

/// Builds the program that compares a library.
fn build(workspace: &Workspace, target: &Target) -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(workspace.root()).args(["build", "--quiet", "--package", "exec-host"]);
    command.args(["--example", "ld_so"]);
    let mut folder = workspace.target();
    if target.name != HOST {
        target.configure(&mut command).args(["--target", target.name]);
        folder.push(target.name);
    }
    tool::run(&mut command)?;
    Ok(folder.join("debug/examples/ld_so"))
}

/// Words that run a program of the target: its emulator, with `root` as the folder that is /.
fn runner(target: &Target, root: Option<&Path>) -> Result<Vec<PathBuf>> {
    let Kind::Tests { runner: Some(runner), .. } = &target.kind else {
        if root.is_some() {
            bail!("--root is for emulators");
        }
        return Ok(Vec::new());
    };
    let mut words: Vec<PathBuf> = runner.words.iter().map(PathBuf::from).collect();
    if let (Some(root), Some(last)) = (root, words.last_mut()) {
        *last = root.to_owned();
    }
    Ok(words)
}

/// What compares.
struct By {
    program: PathBuf,
    /// The emulator with `-L` and the folder that is / for it.
    runner: Vec<PathBuf>,
}

impl By {
    /// The folder that is / for the program.
    fn root(&self) -> Option<&Path> {
        self.runner.last().map(PathBuf::as_path)
    }

    /// Compares a library in a process of its own.
    fn one(&self, path: &Path) -> Result<Outcome> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let libraries = format!("LD_LIBRARY_PATH={}", folder.display());
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", "300"]);
        match self.runner.split_first() {
            // the emulator has libraries of its own
            Some((emulator, words)) => {
                command.arg(emulator).args(["-E", &libraries]).args(words);
            }
            None => {
                command.args(["env", &libraries]);
            }
        }
        let output = command.arg(&self.program).arg(path).output().context("timeout")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut found = Outcome::Crashed(output.status.to_string());
        for line in text.lines() {
            if let Some(numbers) = line.strip_prefix("SAME ") {
                let numbers = numbers.split(' ').map(str::parse).collect::<Result<Vec<_>, _>>()?;
                let numbers = numbers.try_into().ok().context("other numbers than expected")?;
                found = Outcome::Compared(numbers, Vec::new());
            } else if let Some(why) = line.strip_prefix("REFUSED ") {
                found = Outcome::Refused(why.to_owned());
            } else if let (Outcome::Compared(_, lines), true) =
                (&mut found, line.starts_with("DIFFERENT "))
            {
                lines.push(line.to_owned());
            }
        }
        Ok(found)
    }

    /// Compares all, on two processors.
    fn all(&self, files: &[PathBuf]) -> Totals {
        let (next, totals) = (AtomicUsize::new(0), Mutex::new(Totals::default()));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = self.one(path);
                        let outcome =
                            outcome.unwrap_or_else(|error| Outcome::Crashed(error.to_string()));
                        let mut totals =
                            totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        totals.add(path, outcome);
                    }
                });
            }
        });
        totals.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What became of a library.
enum Outcome {
    /// Bytes, words, those of threads, those of functions of hoist's own, bytes that others have written, differences; some differences.
    Compared([usize; 6], Vec<String>),
    /// By whom, and why.
    Refused(String),
    Crashed(String),
}

/// What became of all.
#[derive(Default)]
struct Totals {
    files: usize,
    compared: usize,
    bytes: usize,
    words: usize,
    thread_local: usize,
    stood_for: usize,
    written: usize,
    different: usize,
    refused_by_loader: usize,
    refused: usize,
    crashed: usize,
}

impl Totals {
    fn add(&mut self, path: &Path, outcome: Outcome) {
        let path = path.display();
        self.files += 1;
        match outcome {
            Outcome::Compared(numbers, lines) => {
                let [bytes, words, thread_local, stood_for, written, different] = numbers;
                self.compared += 1;
                self.bytes += bytes;
                self.words += words;
                self.thread_local += thread_local;
                self.stood_for += stood_for;
                self.written += written;
                self.different += different;
                lines.iter().for_each(|line| println!("{path}: {line}"));
            }
            Outcome::Refused(why) => {
                let is_loaders = why.starts_with("ld.so");
                self.refused_by_loader += usize::from(is_loaders);
                self.refused += usize::from(!is_loaders);
                println!("{path}: {why}");
            }
            Outcome::Crashed(how) => {
                self.crashed += 1;
                println!("{path}: {how}");
            }
        }
    }

    fn print(&self) {
        let Self { files, compared, bytes, words, thread_local, stood_for, .. } = self;
        let Self { written, different, refused_by_loader, refused, crashed, .. } = self;
        println!(
            "{files} files, {compared} compared: {bytes} bytes, {words} relocated words, of which {thread_local} of thread-local variables \
             and {stood_for} of functions that hoist has its own of; {written} bytes of variables that constructors of what is needed have \
             written in ld.so's copy; {different} differences; refused: {refused_by_loader} by ld.so, \
             {refused} by hoist, {crashed} crashed"
        );
    }
}

/// The shared libraries of a machine in a folder and below.
fn collect(path: &Path, machine: u16, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        files.push(path.to_owned());
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, machine, files),
            Ok(kind) if kind.is_file() && name.to_string_lossy().contains(".so") => {
                files.extend(Some(path).filter(|path| is_library(path, machine)));
            }
            _ => {}
        }
    }
}

fn is_library(path: &Path, machine: u16) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let is_wide = !matches!(machine, EM_386 | EM_ARM);
    File::parse_segments(&bytes).is_ok_and(|file| {
        let header = file.header();
        let is_same = header.r#type == ET_DYN && header.machine == machine;
        is_same && file.encoding().is_64() == is_wide
    })
}
