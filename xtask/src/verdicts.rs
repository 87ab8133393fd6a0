//! `verdicts`: small programs by every compiler and code model, run by hoist and by `llvm-jitlink`, compared with the programs
//! that the system's linker makes of the same objects.

mod board;
mod builds;
mod table;
pub(crate) mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::manifest;
use crate::task::{Reported, Run};
use crate::tool::{self, Missing, Tool};
use crate::workspace::Workspace;
use board::Ready;
use builds::{ARCHS, Arch, Compiler, Model};
use table::{Cell, Peer};
use trial::{Ran, Verdict};

/// Arguments of `verdicts`.
#[derive(clap::Args)]
pub(crate) struct Verdicts {
    /// Only builds whose words (x86_64 streams gcc-12 nopic-large O2) hold all of these
    only: Vec<String>,
    /// Put the tables into COMPATIBILITY.md
    #[arg(long)]
    write: bool,
    /// A hoist for an architecture, instead of building one: aarch64=PATH
    #[arg(long, value_name = "ARCH=PATH")]
    hoist: Vec<String>,
    /// Builds tried at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// `programs.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    program: Vec<Program>,
}

/// A program: a folder of sources.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    /// Only for this architecture.
    arch: Option<String>,
    /// What compilers need to know.
    #[serde(default)]
    flags: Vec<String>,
}

const JITLINK: Tool<'_> = Tool::new("llvm-jitlink-19", "llvm-19");

/// Libraries whose symbols objects of C++ use.
const LIBRARIES: [&str; 2] = ["libstdc++.so.6", "libgcc_s.so.1"];

/// A build to try.
struct Build<'a> {
    place: &'a Place,
    program: &'a Program,
    compiler: &'static Compiler,
    model: &'static Model,
    level: &'static str,
}

/// What an architecture has here.
struct Place {
    arch: &'static Arch,
    hoist: PathBuf,
    archives: Vec<PathBuf>,
    jitlink: bool,
    board: Option<Ready>,
}

impl Run for Verdicts {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let home = workspace.fixtures().join("programs");
        let programs: Programs = manifest::read(&home.join("programs.toml"))?;
        let places: Result<Vec<Place>> = ARCHS
            .iter()
            .filter(|arch| self.only.iter().all(|word| !is_other_arch(word, arch)))
            .filter_map(|arch| self.place(arch, &home, workspace).transpose())
            .collect();
        let places = places?;
        let mut builds = Vec::new();
        for place in &places {
            for program in &programs.program {
                if program.arch.as_ref().is_none_or(|arch| arch == place.arch.name) {
                    builds.extend(all(place, program).filter(|build| self.wants(build)));
                }
            }
        }
        if builds.is_empty() {
            bail!("no build of these words");
        }
        let scratch = workspace.scratch("verdicts")?;
        let cells = try_all(&builds, &home, &scratch, self.jobs.max(1))?;
        left_out(&builds, &cells);
        let tables = table::tables(&cells);
        println!("{tables}");
        if self.write {
            table::write(workspace, &tables)?;
        }
        let bad = |cell: &&Cell| matches!(cell.hoist, Verdict::Wrong | Verdict::Crash(_));
        if cells.iter().any(|cell| bad(&cell)) { Err(Reported.into()) } else { Ok(()) }
    }
}

/// Says how many builds each compiler did not make: many languages and models it does not know, but a compiler that has lost its headers
/// makes none, either.
fn left_out(builds: &[Build<'_>], cells: &[Cell]) {
    let mut counts: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for build in builds {
        counts.entry((build.place.arch.name, build.compiler.name)).or_default().0 += 1;
    }
    for cell in cells {
        counts.entry((cell.arch, cell.compiler)).or_default().1 += 1;
    }
    for ((arch, compiler), (wanted, made)) in counts {
        if made < wanted {
            println!("{arch}: {compiler} made {made} of {wanted} builds that run");
        }
    }
}

/// Whether the word is the name of an architecture, and not of this one.
fn is_other_arch(word: &str, arch: &Arch) -> bool {
    word != arch.name && ARCHS.iter().any(|other| other.name == word)
}

/// Every build of a program.
fn all<'a>(place: &'a Place, program: &'a Program) -> impl Iterator<Item = Build<'a>> {
    let models = |compiler| place.arch.models.iter().map(move |model| (compiler, model));
    let compiled = place.arch.compilers.iter().flat_map(models);
    compiled.flat_map(move |(compiler, model)| {
        let levels = place.arch.levels().iter();
        levels.map(move |level| Build { place, program, compiler, model, level })
    })
}

impl Verdicts {
    fn wants(&self, build: &Build<'_>) -> bool {
        let words = build.words();
        self.only.iter().all(|word| words.contains(&word.as_str()))
    }

    /// Finds or builds what an architecture needs; `None` of a board for which tools are missing.
    fn place(
        &self,
        arch: &'static Arch,
        home: &Path,
        workspace: &Workspace,
    ) -> Result<Option<Place>> {
        match tool::need(arch.tools()) {
            Err(error) if arch.board.is_some() && error.is::<Missing>() => {
                println!("skipped: {}: {error}", arch.name);
                return Ok(None);
            }
            needed => needed?,
        }
        let given = self.hoist.iter().filter_map(|word| word.split_once('='));
        let given = given.rev().find(|(name, _)| *name == arch.name);
        let hoist = match (given, arch.target) {
            (Some((_, path)), _) => PathBuf::from(path),
            (None, target) => build_hoist(workspace, target, arch)?,
        };
        if let Some(board) = &arch.board {
            let board = Some(board.ready(home, workspace)?);
            return Ok(Some(Place { arch, hoist, archives: Vec::new(), jitlink: false, board }));
        }
        let jitlink = arch.jitlink && JITLINK.version()?.is_some();
        if !jitlink {
            println!("skipped: llvm-jitlink for {}", arch.name);
        }
        Ok(Some(Place { arch, hoist, archives: arch.archives()?, jitlink, board: None }))
    }
}

/// Builds the command for an architecture.
fn build_hoist(workspace: &Workspace, target: Option<&str>, arch: &Arch) -> Result<PathBuf> {
    let mut command = tool::cargo();
    command.current_dir(workspace.root()).args(["build", "--package", "hoist-tool"]);
    let mut folder = workspace.target();
    if let Some(features) = arch.features {
        command.args(["--no-default-features", "--features", features]);
    }
    if let Some(target) = target {
        let variable = target.to_uppercase().replace('-', "_");
        command.args(["--target", target]);
        command.env(format!("CARGO_TARGET_{variable}_LINKER"), arch.linker.program);
        // of libraries in C, which else ask for one without a version
        if let Some(program) = arch.c_compiler() {
            command.env(format!("CC_{}", target.replace('-', "_")), program);
        }
        folder.push(target);
    }
    tool::run(&mut command)?;
    Ok(folder.join("debug/hoist"))
}

/// Tries the builds, several at once; the cells come in their order.
fn try_all(builds: &[Build<'_>], home: &Path, scratch: &Path, jobs: usize) -> Result<Vec<Cell>> {
    let next = AtomicUsize::new(0);
    let cells = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(build) = builds.get(number) else { return Ok(()) };
            let folder = scratch.join(number.to_string());
            fs::create_dir(&folder)?;
            let cell = build.attempt(home, &folder);
            fs::remove_dir_all(&folder)?;
            let Some(cell) = cell.with_context(|| build.words().join(" "))? else { continue };
            if cell.hoist != Verdict::Right {
                println!("{}: {}", build.words().join(" "), cell.hoist);
            }
            cells.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, cell));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })?;
    let mut cells = cells.into_inner().unwrap_or_default();
    cells.sort_by_key(|(number, _)| *number);
    Ok(cells.into_iter().map(|(_, cell)| cell).collect())
}

impl Build<'_> {
    /// What a person calls it.
    fn words(&self) -> [&str; 5] {
        [self.place.arch.name, &self.program.name, self.compiler.name, self.model.name, self.level]
    }

    /// Compiles, links and runs, and loads with hoist and the other loader; `None` if the compiler or the linker cannot make it.
    fn attempt(&self, home: &Path, folder: &Path) -> Result<Option<Cell>> {
        let mut all = sources(&home.join(&self.program.name))?;
        all.extend(self.place.board.iter().flat_map(|board| board.sources.clone()));
        let mut objects = Vec::new();
        for source in all {
            let object = folder.join(source.file_name().context("a file")?).with_extension("o");
            let how = (self.model, self.level);
            if self.compiler.compile(how, &self.program.flags, &source, &object)?.is_none() {
                return Ok(None);
            }
            objects.push(object);
        }
        let linked = folder.join("linked");
        let Place { arch, board, .. } = self.place;
        let multilib: Vec<&str> = self.model.multilib().collect();
        let is_linked = match board {
            Some(board) => board.link(&multilib, &objects, &linked),
            None => arch.link(self.model, &objects, &linked),
        };
        if is_linked.is_err() {
            return Ok(None);
        }
        let native = match board {
            Some(board) => board.linked(&linked)?,
            None => Ran::of(&mut arch.command(&linked))?,
        };
        // what the compiler made is wrong (clang at -O0 with -mlong-calls reads the address of a function out of its code)
        if !native.is_good() {
            println!("left out: {}: the linked program fails", self.words().join(" "));
            return Ok(None);
        }
        let (hoist, peer) = match board {
            Some(board) => {
                let expected = &native.output;
                let hoist =
                    board.hoist(&self.place.hoist, &multilib, &objects, folder, expected)?;
                let peer = board.lld(&multilib, &objects, folder, expected)?;
                (hoist, Some((board::PEER.program, peer)))
            }
            None => self.in_process(&objects, &native.output)?,
        };
        Ok(Some(Cell {
            arch: arch.name,
            program: self.program.name.clone(),
            compiler: self.compiler.name,
            model: self.model.name,
            level: self.level,
            hoist: shortened(hoist, folder),
            peer,
        }))
    }

    /// What hoist and the other loader make of objects in a process.
    fn in_process(&self, objects: &[PathBuf], expected: &str) -> Result<(Verdict, Option<Peer>)> {
        let Place { arch, hoist, archives, jitlink, .. } = self.place;
        let mut command = arch.command(hoist);
        command.arg("run").args(objects).args(archives).arg("main");
        for library in LIBRARIES {
            command.args(["--lib", library]);
        }
        let hoist = Ran::of(&mut command)?.judge(expected, "hoist: ");
        // it takes archives only by name and folder
        let jitlink = (*jitlink && !self.compiler.makes_archives()).then(|| {
            let mut command = Command::new(JITLINK.program);
            let ran = Ran::of(command.args(objects))?;
            Ok::<_, anyhow::Error>(("llvm-jitlink", ran.judge(expected, "llvm-jitlink error: ")))
        });
        Ok((hoist, jitlink.transpose()?))
    }
}

/// A verdict without the folder of the day.
fn shortened(verdict: Verdict, folder: &Path) -> Verdict {
    match verdict {
        Verdict::Refused(reason) => {
            Verdict::Refused(reason.replace(&format!("{}/", folder.display()), ""))
        }
        verdict => verdict,
    }
}

/// The sources in a folder, by name.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    let mut sources = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "c" || end == "cpp" || end == "rs") {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}
