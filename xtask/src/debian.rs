//! `packages`: static libraries of Debian packages, and languages, each with a program of a few lines that does real work; run by
//! hoist and by `llvm-jitlink`, and compared with the program that the system's linker makes of the same objects and archives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::manifest;
use crate::task::{Reported, Run};
use crate::tool;
use crate::verdicts::trial::{Ran, Verdict};
use crate::workspace::Workspace;

/// Arguments of `packages`.
#[derive(clap::Args)]
pub(crate) struct Packages {
    /// Only the programs of these names
    only: Vec<String>,
    /// Installs the packages that are missing
    #[arg(long)]
    install: bool,
    /// Put the table into COMPATIBILITY.md
    #[arg(long)]
    write: bool,
    /// A hoist, instead of building one
    #[arg(long, value_name = "PATH")]
    hoist: Option<PathBuf>,
}

/// `packages.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// A program and what it is linked with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) packages: Vec<String>,
    /// Static libraries, by what `-l` would call them.
    #[serde(default)]
    pub(crate) archives: Vec<String>,
    /// Shared libraries, by the names under which the dynamic loader finds them.
    #[serde(default)]
    libraries: Vec<String>,
    /// What makes the objects, as commands of a shell.
    #[serde(default = "compile")]
    build: Vec<String>,
    #[serde(default = "object")]
    objects: Vec<String>,
    #[serde(default = "source")]
    pub(crate) file: String,
    pub(crate) code: String,
    /// More sources by name.
    #[serde(default)]
    more: BTreeMap<String, String>,
}

fn compile() -> Vec<String> {
    vec!["cc -O1 -fPIC -w -I/usr/include/libxml2 -I/usr/include/freetype2 -c driver.c".to_owned()]
}

fn object() -> Vec<String> {
    vec!["driver.o".to_owned()]
}

fn source() -> String {
    "driver.c".to_owned()
}

/// What became of a program.
struct Row<'c> {
    case: &'c Case,
    hoist: Verdict,
    jitlink: Option<Verdict>,
}

const JITLINK: &str = "llvm-jitlink-19";
const FROM: &str = "<!-- cargo xtask packages --write: from here -->";
const TO: &str = "<!-- packages: to here -->";

/// The programs of these names, or all.
///
/// # Errors
/// If their list cannot be read.
pub(crate) fn cases(workspace: &Workspace, only: &[String]) -> Result<Vec<Case>> {
    let path = workspace.fixtures().join("packages").join("packages.toml");
    let mut cases = manifest::read::<Cases>(&path)?.case;
    cases.retain(|case| only.is_empty() || only.contains(&case.name));
    Ok(cases)
}

/// Installs the packages that programs need.
///
/// # Errors
/// If the package manager refuses.
pub(crate) fn install<'c>(cases: impl IntoIterator<Item = &'c Case>) -> Result<()> {
    let packages = cases.into_iter().flat_map(|case| &case.packages);
    let mut command = Command::new("apt-get");
    command.args(["install", "-y", "--no-install-recommends"]).args(packages);
    tool::run(&mut command)
}

impl Run for Packages {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let cases = cases(workspace, &self.only)?;
        if self.install {
            install(&cases)?;
        }
        let hoist = match &self.hoist {
            Some(hoist) => hoist.clone(),
            None => {
                let mut command = tool::cargo();
                command.current_dir(workspace.root()).args(["build", "--package", "hoist-tool"]);
                tool::run(&mut command)?;
                workspace.target().join("debug/hoist")
            }
        };
        let jitlink = Command::new(JITLINK).arg("--version").output().is_ok();
        let scratch = workspace.scratch("packages")?;
        let mut rows = Vec::new();
        for case in &cases {
            let folder = scratch.join(case.name.replace(' ', "-"));
            fs::create_dir(&folder)?;
            match case.attempt(&folder, &hoist, jitlink)? {
                Ok((hoist, jitlink)) => {
                    println!("{}: {hoist}", case.name);
                    rows.push(Row { case, hoist, jitlink });
                }
                Err(reason) => println!("skipped: {}: {reason}", case.name),
            }
        }
        if rows.is_empty() {
            bail!("no program can be made here");
        }
        let table = table(&rows);
        println!("{table}");
        if self.write {
            write(workspace, &table)?;
        }
        let bad = |row: &Row<'_>| matches!(row.hoist, Verdict::Wrong | Verdict::Crash(_));
        if rows.iter().any(bad) { Err(Reported.into()) } else { Ok(()) }
    }
}

impl Case {
    /// What hoist and `llvm-jitlink` make of it; or why there is nothing to compare with.
    fn attempt(
        &self,
        folder: &Path,
        hoist: &Path,
        jitlink: bool,
    ) -> Result<Result<(Verdict, Option<Verdict>), String>> {
        fs::write(folder.join(&self.file), &self.code)?;
        for (name, text) in &self.more {
            fs::write(folder.join(name), text)?;
        }
        for line in &self.build {
            let output =
                Command::new("sh").args(["-c", line]).current_dir(folder).output().context("sh")?;
            if !output.status.success() {
                return Ok(Err(first_error(&output.stderr, "the compiler refuses it")));
            }
        }
        let mut archives = Vec::new();
        for name in &self.archives {
            let output =
                Command::new("cc").arg(format!("-print-file-name=lib{name}.a")).output()?;
            let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
            if !path.is_absolute() {
                return Ok(Err(format!("needs lib{name}.a ({})", self.packages.join(", "))));
            }
            archives.push(path);
        }
        let mut command = Command::new("cc");
        command.current_dir(folder).args(["-o", "linked"]).args(&self.objects);
        command.arg("-Wl,--start-group").args(&archives).arg("-Wl,--end-group");
        command.args(self.libraries.iter().map(|library| format!("-l:{library}")));
        let linked = command.args(["-lpthread", "-lm"]).output()?;
        if !linked.status.success() {
            return Ok(Err(first_error(&linked.stderr, "the linker refuses it")));
        }
        let native = Ran::of(Command::new("./linked").current_dir(folder))?;
        if !native.is_good() {
            return Ok(Err("the linked program fails".to_owned()));
        }
        let mut command = Command::new(hoist);
        command.current_dir(folder).arg("run").args(&self.objects).args(&archives).arg("--group");
        for library in &self.libraries {
            command.args(["--lib", library]);
        }
        let ours = Ran::of(command.arg("main"))?.judge(&native.output, "hoist: ");
        if !jitlink {
            return Ok(Ok((ours, None)));
        }
        let mut command = Command::new(JITLINK);
        command.current_dir(folder).args(&self.objects);
        for (path, name) in archives.iter().zip(&self.archives) {
            if let Some(folder) = path.parent() {
                command.arg("-L").arg(folder).arg(format!("-hidden-l{name}"));
            }
        }
        let theirs = Ran::of(&mut command)?.judge(&native.output, "llvm-jitlink error: ");
        Ok(Ok((ours, Some(theirs))))
    }
}

/// The first line that says what is wrong.
pub(crate) fn first_error(text: &[u8], otherwise: &str) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().find(|line| line.contains("error") || line.contains("cannot")).map_or_else(
        || text.lines().next().unwrap_or(otherwise).to_owned(),
        |line| line.trim().to_owned(),
    )
}

/// The table in Markdown, and what is not right in words.
fn table(rows: &[Row<'_>]) -> String {
    let mut text = String::from("| | packages | hoist | llvm-jitlink |\n|---|---|---|---|\n");
    let word = |verdict: &Verdict| match verdict {
        Verdict::Right => "right",
        Verdict::Wrong => "wrong",
        Verdict::Refused(_) => "refused",
        Verdict::Crash(_) => "crashed",
    };
    for Row { case, hoist, jitlink } in rows {
        let theirs = jitlink.as_ref().map_or("", word);
        let packages = case.packages.join(", ");
        let _ = writeln!(text, "| {} | {packages} | {} | {theirs} |", case.name, word(hoist));
    }
    let count = |is_it: fn(&Verdict) -> bool, all: &mut dyn Iterator<Item = &Verdict>| {
        all.filter(|verdict| is_it(verdict)).count()
    };
    let right = |verdict: &Verdict| *verdict == Verdict::Right;
    let ours = count(right, &mut rows.iter().map(|row| &row.hoist));
    let theirs = count(right, &mut rows.iter().filter_map(|row| row.jitlink.as_ref()));
    let _ = writeln!(text, "\nRight of {}: hoist {ours}, llvm-jitlink {theirs}.\n", rows.len());
    for row in rows.iter().filter(|row| row.hoist != Verdict::Right) {
        let _ = writeln!(text, "- {}: {}", row.case.name, row.hoist);
    }
    text
}

/// Replaces the table in COMPATIBILITY.md.
fn write(workspace: &Workspace, table: &str) -> Result<()> {
    let path = workspace.root().join("COMPATIBILITY.md");
    let text = fs::read_to_string(&path).context("cannot read COMPATIBILITY.md")?;
    let place =
        text.split_once(FROM).and_then(|(before, rest)| Some((before, rest.split_once(TO)?.1)));
    let (before, after) =
        place.with_context(|| format!("COMPATIBILITY.md lacks the lines {FROM} and {TO}"))?;
    Ok(fs::write(&path, format!("{before}{FROM}\n\n{table}\n{TO}{after}"))?)
}
