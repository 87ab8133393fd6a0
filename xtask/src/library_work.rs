//! `library-work`: shared libraries of Debian packages, each with a program of a few lines that does real work, once by `dlopen` and once
//! with all libraries out of bytes but those that are one with the dynamic loader: the same output, or not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};

use crate::debian::{self, Case, first_error};
use crate::task::{Reported, Run};
use crate::tool;
use crate::workspace::Workspace;

/// Arguments of `library-work`.
#[derive(clap::Args)]
pub(crate) struct LibraryWork {
    /// Only the programs of these names
    only: Vec<String>,
    /// Installs the packages that are missing
    #[arg(long)]
    install: bool,
}

/// What programs are called, by what compiles them.
const SOURCES: [(&str, &str); 2] = [("driver.c", "cc"), ("driver.cc", "c++")];
/// Folders of `/usr/include` that headers are in.
const INCLUDE: [&str; 3] = ["libxml2", "freetype2", "jsoncpp"];
/// What the program that loads says of every library out of bytes.
const LOADED: &str = "LOADED ";

impl Run for LibraryWork {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let mut cases = debian::cases(workspace, &self.only)?;
        // the others are languages
        cases.retain(|case| compiler(case).is_some() && !case.archives.is_empty());
        if self.install {
            debian::install(&cases)?;
        }
        let mut command = tool::cargo();
        command.current_dir(workspace.root());
        command.args(["build", "--quiet", "--package", "exec-host", "--example", "library_work"]);
        tool::run(&mut command)?;
        let loads = workspace.target().join("debug/examples/library_work");
        let scratch = workspace.scratch("library-work")?;
        let (mut same, mut bad, mut skipped) = (0, Vec::new(), 0);
        let mut libraries = BTreeSet::new();
        for case in &cases {
            let folder = scratch.join(case.name.replace(' ', "-"));
            fs::create_dir(&folder)?;
            let library = match build(case, &folder)? {
                Ok(library) => library,
                Err(reason) => {
                    println!("skipped: {}: {reason}", case.name);
                    skipped += 1;
                    continue;
                }
            };
            let work = |way: &str| -> Result<Output> {
                let mut command = Command::new("timeout");
                command.arg("60").arg(&loads).arg(way).arg(&library).current_dir(&folder);
                command.output().context("timeout")
            };
            let (theirs, ours) = (work("dlopen")?, work("bytes")?);
            if !theirs.status.success() || theirs.stdout.is_empty() {
                println!("skipped: {}: it fails by dlopen: {}", case.name, theirs.status);
                skipped += 1;
                continue;
            }
            let told = String::from_utf8_lossy(&ours.stderr).into_owned();
            let loaded = told.lines().filter_map(|line| line.strip_prefix(LOADED));
            libraries.extend(loaded.map(str::to_owned));
            if (ours.status, &ours.stdout) == (theirs.status, &theirs.stdout) {
                println!("{}: the same", case.name);
                same += 1;
            } else {
                let why = told.lines().find(|line| !line.starts_with(LOADED));
                let why = why.unwrap_or("another output");
                println!("{}: {}: {why}", case.name, ours.status);
                bad.push(case.name.as_str());
            }
        }
        println!(
            "{same} programs do the same with {} libraries out of bytes, {} do not; {skipped} skipped",
            libraries.len(),
            bad.len()
        );
        if same == 0 {
            bail!("no program can be made here (--install)");
        }
        if bad.is_empty() { Ok(()) } else { Err(Reported.into()) }
    }
}

/// What compiles and links the program, if it is one.
fn compiler(case: &Case) -> Option<&'static str> {
    SOURCES.iter().find(|(source, _)| *source == case.file).map(|(_, compiler)| *compiler)
}

/// Makes the program a library that needs those that it works with; or says why not.
fn build(case: &Case, folder: &Path) -> Result<Result<PathBuf, String>> {
    let compiler = compiler(case).unwrap_or("cc");
    fs::write(folder.join(&case.file), &case.code)?;
    let mut compile = Command::new(compiler);
    compile.args(["-O1", "-fPIC", "-w", "-c", &case.file]);
    compile.args(INCLUDE.map(|folder| format!("-I/usr/include/{folder}")));
    let mut link = Command::new(compiler);
    link.args(["-shared", "-Wl,-z,defs", "-o", "driver.so", "driver.o"]);
    // the shared one has the name without what tells them apart
    link.args(case.archives.iter().map(|name| format!("-l{}", name.trim_end_matches("_a"))));
    link.args(["-lm", "-lpthread"]);
    for command in [&mut compile, &mut link] {
        let output = command.current_dir(folder).output().context(compiler)?;
        if !output.status.success() {
            return Ok(Err(first_error(&output.stderr, "the compiler refuses it")));
        }
    }
    Ok(Ok(folder.join("driver.so")))
}
