//! `whole-archives`: every static library of the machine with `--whole-archive`, by hoist and by GNU ld: as an image of its machine, and,
//! of this machine's, loaded with a `main` beside the linked program. Each is right, or stops at what the linker stops at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use anyhow::{Context as _, Result, bail};
use elf_core::File;
use elf_core::archive::Archive;
use elf_core::names::{EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64};

use crate::task::{Reported, Run};
use crate::tool;
use crate::workspace::Workspace;

/// Arguments of `whole-archives`.
#[derive(clap::Args)]
pub(crate) struct WholeArchives {
    /// Archives, and folders with them; without any, those of the system and of Rust
    paths: Vec<PathBuf>,
    /// A hoist, instead of building one
    #[arg(long, value_name = "PATH")]
    hoist: Option<PathBuf>,
    /// Archives tried at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// Where archives are.
const FOLDERS: [&str; 6] = [
    "/usr/lib",
    "/usr/local/lib",
    "/usr/i686-linux-gnu/lib",
    "/usr/aarch64-linux-gnu/lib",
    "/usr/arm-linux-gnueabihf/lib",
    "/usr/riscv64-linux-gnu/lib",
];

/// Machines: number, bits, the linker and its emulation.
const LINKERS: [(u16, bool, &str, &str); 5] = [
    (EM_X86_64, true, "ld", "elf_x86_64"),
    (EM_386, false, "ld", "elf_i386"),
    (EM_AARCH64, true, "aarch64-linux-gnu-ld", "aarch64linux"),
    (EM_ARM, false, "arm-linux-gnueabihf-ld", "armelf_linux_eabi"),
    (EM_RISCV, true, "riscv64-linux-gnu-ld", "elf64lriscv"),
];

/// Where hoist and the linker differ and may: what hoist says, and why.
const KNOWN: [(&str, &str); 4] = [
    (
        "indirect function",
        "an image at an address has nobody to run resolvers of indirect functions",
    ),
    ("symbol _DYNAMIC is undefined", "a load has no dynamic section of its own"),
    (
        "symbol __sfp_handle_exceptions is undefined",
        "it is in the compiler's own library, which hoist is not given",
    ),
    ("is not thread-local", "0 is no thread-local variable: --allow-undefined has none"),
];

/// An archive to try.
struct Case {
    path: PathBuf,
    members: usize,
    linker: (&'static str, &'static str),
    is_native: bool,
}

/// How a tool ended.
#[derive(Debug)]
struct Ended {
    /// `None` if by a signal, or not at all.
    status: Option<i32>,
    errors: String,
}

/// What became of an archive in one way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Both make it, and a program that is run does the same.
    Same,
    /// Both stop, at the same.
    Stops(&'static str),
    /// hoist stops, and may.
    Known(&'static str),
    /// The linker stops, and hoist does not.
    LinkerStops(String),
    /// They differ.
    Differs(String),
}

impl Run for WholeArchives {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let hoist = match &self.hoist {
            Some(hoist) => hoist.canonicalize()?,
            None => {
                let mut command = tool::cargo();
                command.current_dir(workspace.root()).args(["build", "--package", "hoist-tool"]);
                tool::run(&mut command)?;
                workspace.target().join("debug/hoist")
            }
        };
        let paths = if self.paths.is_empty() { default_paths()? } else { self.paths };
        let mut files = BTreeSet::new();
        paths.iter().for_each(|path| collect(path, &mut files));
        let (mut cases, mut others) = (Vec::new(), 0);
        for path in files {
            match Case::of(path) {
                Some(case) => cases.push(case),
                None => others += 1,
            }
        }
        if cases.is_empty() {
            bail!("no archive of a machine that has a linker here");
        }
        let scratch = workspace.scratch("whole-archives")?;
        fs::write(scratch.join("main.c"), "int main(void) { return 0; }\n")?;
        tool::run(Command::new("cc").args(["-fPIC", "-c", "main.c"]).current_dir(&scratch))?;
        let next = AtomicUsize::new(0);
        let rows = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for job in 0..self.jobs.max(1) {
                let (next, rows, cases, hoist, scratch) = (&next, &rows, &cases, &hoist, &scratch);
                scope.spawn(move || {
                    let folder = scratch.join(job.to_string());
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let tried = case.attempt(hoist, scratch, &folder);
                        let tried = tried.unwrap_or_else(|error| {
                            [Some(Outcome::Differs(format!("{error:#}"))), None, None]
                        });
                        case.report(&tried);
                        if let Ok(mut rows) = rows.lock() {
                            rows.insert(&case.path, (case, tried));
                        }
                    }
                });
            }
        });
        let rows = rows.into_inner().ok().context("a thread has panicked")?;
        let members: usize = cases.iter().map(|case| case.members).sum();
        println!(
            "{} archives with {members} members; {others} files are none of objects that hoist takes",
            cases.len()
        );
        let mut bad = false;
        for (way, what) in
            ["linked", "loaded", "loaded with stubs for what is undefined"].iter().enumerate()
        {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for (_, tried) in rows.values() {
                let Some(outcome) = tried.get(way).and_then(Option::as_ref) else { continue };
                bad |= matches!(outcome, Outcome::Differs(_));
                *counts.entry(outcome.class()).or_default() += 1;
            }
            let mut text = String::new();
            counts.iter().for_each(|(word, count)| _ = write!(text, "; {count} {word}"));
            println!("{what}{text}");
        }
        if bad { Err(Reported.into()) } else { Ok(()) }
    }
}

/// The folders of the system, and that of Rust's libraries.
fn default_paths() -> Result<Vec<PathBuf>> {
    let output = tool::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let mut paths: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    paths.push(sysroot.join("lib/rustlib"));
    Ok(paths)
}

/// The archives in a folder and below, by their real paths.
fn collect(path: &Path, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        files.extend(path.canonicalize());
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "a" || ending == "rlib") {
            files.extend(path.canonicalize());
        }
    }
}

impl Case {
    /// The archive at a path, if it has objects for a machine whose linker is here.
    fn of(path: PathBuf) -> Option<Self> {
        let bytes = fs::read(&path).ok()?;
        let archive = Archive::parse(&bytes).ok()?;
        let members: Vec<_> = archive.members().filter_map(Result::ok).collect();
        let files: Vec<_> =
            members.iter().filter_map(|member| File::parse(member.data?).ok()).collect();
        let first = files.first()?;
        let (machine, is_64) = (first.header().machine, first.encoding().is_64());
        let known = LINKERS.iter().find(|row| (row.0, row.1) == (machine, is_64))?;
        let linker = (known.2, known.3);
        Command::new(linker.0).arg("--version").output().ok()?;
        let native = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };
        Some(Self { path, members: files.len(), linker, is_native: machine == native && is_64 })
    }

    /// As an image; loaded; loaded with stubs.
    fn attempt(&self, hoist: &Path, scratch: &Path, folder: &Path) -> Result<[Option<Outcome>; 3]> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir(folder)?;
        let linked = Some(self.link(hoist, folder)?);
        if !self.is_native {
            return Ok([linked, None, None]);
        }
        let main = scratch.join("main.o");
        let (loaded, undefined) = self.load(hoist, folder, &[&main])?;
        if undefined.is_empty() {
            return Ok([linked, Some(loaded), None]);
        }
        let mut text = String::from(" .text\n");
        for name in &undefined {
            let _ = write!(text, " .globl \"{name}\"\n .type \"{name}\",%function\n \"{name}\":\n");
            text += if cfg!(target_arch = "x86_64") {
                " xor %eax,%eax\n ret\n"
            } else {
                " mov x0, #0\n ret\n"
            };
        }
        text += " .skip 4096\n .section .note.GNU-stack,\"\",%progbits\n";
        fs::write(folder.join("stubs.s"), text)?;
        tool::output(Command::new("cc").args(["-c", "stubs.s"]).current_dir(folder))?;
        let (with_stubs, _) = self.load(hoist, folder, &[&main, &folder.join("stubs.o")])?;
        Ok([linked, Some(loaded), Some(with_stubs)])
    }

    /// As an image at an address, what is undefined being 0.
    fn link(&self, hoist: &Path, folder: &Path) -> Result<Outcome> {
        let ld = |defined: &BTreeSet<String>| {
            let mut command = Command::new(self.linker.0);
            command.args(["-m", self.linker.1, "-static", "-e", "0", "-o", "linked"]);
            command.args(defined.iter().map(|name| format!("--defsym={name}=0")));
            command.args(["--unresolved-symbols=ignore-all", "--whole-archive"]).arg(&self.path);
            Ended::of(&mut command, folder)
        };
        let mut theirs = ld(&BTreeSet::new())?;
        // hidden names are not ignored: start files of a program have them
        let hidden = theirs.undefined();
        if !hidden.is_empty() {
            theirs = ld(&hidden)?;
        }
        let mut command = Command::new(hoist);
        command.arg("link").arg(&self.path).args(["--whole-archive", "--allow-undefined"]);
        let ours = Ended::of(command.args(["--base", "0x400000", "-o", "image"]), folder)?;
        Ok(compare(&theirs, &ours))
    }

    /// With these objects, one of which has `main`; and what is undefined.
    fn load(
        &self,
        hoist: &Path,
        folder: &Path,
        objects: &[&Path],
    ) -> Result<(Outcome, BTreeSet<String>)> {
        let cc = |kind: &str, names: &str| {
            let mut command = Command::new("cc");
            command.args([kind, names, "-o", "linked"]).args(objects).arg("-Wl,--whole-archive");
            command.arg(&self.path).args(["-Wl,--no-whole-archive", "-lm"]);
            Ended::of(&mut command, folder)
        };
        let mut theirs = cc("-pie", "-Wl,--demangle")?;
        let mut undefined = BTreeSet::new();
        if theirs.status != Some(0) {
            let is_fixed = theirs.undefined().is_empty();
            let kind = if is_fixed { "-no-pie" } else { "-pie" };
            let raw = cc(kind, "-Wl,--no-demangle")?;
            undefined = raw.undefined();
            if is_fixed {
                theirs = cc(kind, "-Wl,--demangle")?;
            }
        }
        let mut command = Command::new(hoist);
        command.arg("run").args(objects).arg(&self.path).args(["--whole-archive", "main"]);
        let ours = Ended::of(&mut command, folder)?;
        // what the compiler's own library has, which the linker is given
        let plain =
            ours.undefined().into_iter().filter(|name| !name.contains([':', '(', '{', ' ']));
        undefined.extend(plain);
        if theirs.status != Some(0) || ours.is_refusal() {
            return Ok((compare(&theirs, &ours), undefined));
        }
        let native = Ended::of(&mut Command::new("./linked"), folder)?;
        if ours.status == native.status {
            return Ok((Outcome::Same, undefined));
        }
        Ok((Outcome::Differs(format!("linked {native}, hoist {ours}")), undefined))
    }

    fn report(&self, tried: &[Option<Outcome>; 3]) {
        let words = tried.iter().flatten().map(Outcome::word).collect::<Vec<_>>().join(" | ");
        println!("{}: {words}", self.path.display());
    }
}

/// What the compiler's own library defines, which it gives the linker, and nobody gives hoist.
fn of_compiler() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let output = tool::output(Command::new("cc").arg("-print-libgcc-file-name"));
        let path = output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
        let bytes = path.and_then(|path| Ok(fs::read(path)?)).unwrap_or_default();
        let Ok(archive) = Archive::parse(&bytes) else { return BTreeSet::new() };
        let members = archive.members().filter_map(Result::ok).filter_map(|member| member.data);
        let names = members.filter_map(|data| {
            let table = File::parse(data).ok()?.symbol_table().ok()??;
            let own = table.symbols().iter().filter(|symbol| !symbol.is_undefined());
            Some(
                own.filter_map(|it| Some(table.name_of(&it).ok()?.to_string())).collect::<Vec<_>>(),
            )
        });
        names.flatten().collect()
    })
}

/// What linker and hoist made of the same.
fn compare(theirs: &Ended, ours: &Ended) -> Outcome {
    let known = KNOWN.iter().find(|(words, _)| ours.errors.contains(words));
    if let (Some((_, reason)), Some(1)) = (known, ours.status) {
        return Outcome::Known(reason);
    }
    match (theirs.status, ours.status) {
        (Some(0), Some(0)) => Outcome::Same,
        (_, Some(0)) => Outcome::LinkerStops(theirs.first_line().to_owned()),
        (Some(0), _) => Outcome::Differs(format!("hoist {ours}")),
        (_, Some(_)) => {
            // tools demangle in words of their own
            let (undefined, mut own) = (theirs.undefined(), ours.undefined());
            own.retain(|name| !of_compiler().contains(name));
            let mut plain = own.iter().filter(|name| !name.contains([':', '(', '{', ' ']));
            if plain.all(|name| undefined.contains(name)) && !undefined.is_disjoint(&own) {
                return Outcome::Stops("undefined");
            }
            let duplicate = theirs.duplicates();
            if ours.duplicates().iter().any(|name| duplicate.contains(name)) {
                return Outcome::Stops("defined twice");
            }
            if theirs.errors.contains("soft-float") && ours.errors.contains("float ABI") {
                return Outcome::Stops("float ABI");
            }
            // Go's packages have descriptions among their objects, which hoist passes over, and want its runtime
            if theirs.errors.contains("in archive is not an object") && !own.is_empty() {
                return Outcome::Stops(
                    "the linker at a member that is no object, hoist at undefined",
                );
            }
            Outcome::Differs(format!("linker {theirs}, hoist {ours}"))
        }
        _ => Outcome::Differs(format!("linker {theirs}, hoist {ours}")),
    }
}

impl Outcome {
    /// What it counts as.
    fn class(&self) -> String {
        match self {
            Self::LinkerStops(_) => "the linker stops, hoist does not".to_owned(),
            Self::Differs(_) => "different".to_owned(),
            same => same.word(),
        }
    }

    fn word(&self) -> String {
        match self {
            Self::Same => "the same".to_owned(),
            Self::Stops(at) => format!("both stop: {at}"),
            Self::Known(reason) => format!("known: {reason}"),
            Self::LinkerStops(why) => format!("the linker stops: {why}"),
            Self::Differs(how) => format!("DIFFERS: {how}"),
        }
    }
}

impl Ended {
    fn of(command: &mut Command, folder: &Path) -> Result<Self> {
        let mut all = Command::new("timeout");
        all.args(["--signal=KILL", "120"]).arg(command.get_program()).args(command.get_args());
        let output = all.current_dir(folder).output().context("timeout")?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Self { status: output.status.code(), errors })
    }

    /// The first line that says what is wrong.
    fn first_line(&self) -> &str {
        let is_it = |line: &&str| !line.contains("warning") && !line.contains("in function");
        self.errors.lines().find(is_it).unwrap_or_default()
    }

    /// Whether hoist has said what is wrong.
    fn is_refusal(&self) -> bool {
        self.errors.starts_with("hoist: ")
    }

    /// The names that nobody defines.
    fn undefined(&self) -> BTreeSet<String> {
        let theirs = |line: &str| {
            Some(line.split_once("undefined reference to `")?.1.strip_suffix('\'')?.to_owned())
        };
        let hidden = |line: &str| {
            Some(line.split_once("hidden symbol `")?.1.split_once("' isn't defined")?.0.to_owned())
        };
        let ours = |line: &str| {
            Some(line.split_once("symbol ")?.1.strip_suffix(" is undefined")?.to_owned())
        };
        self.errors
            .lines()
            .filter_map(|line| theirs(line).or_else(|| hidden(line)).or_else(|| ours(line)))
            .collect()
    }

    /// The names that are defined twice.
    fn duplicates(&self) -> BTreeSet<String> {
        let theirs = |line: &str| {
            Some(line.split_once("multiple definition of `")?.1.split_once('\'')?.0.to_owned())
        };
        let ours = |line: &str| {
            Some(line.split_once("symbol ")?.1.split_once(" is defined in ")?.0.to_owned())
        };
        self.errors.lines().filter_map(|line| theirs(line).or_else(|| ours(line))).collect()
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => write!(f, "signal")?,
        }
        write!(f, " {}", self.first_line())
    }
}
