//! `test-matrix`: every target, crate and feature set in one table.
//!
//! A cell that cannot be tried because something is missing is a failure that says what to install, or with `--skip-missing`
//! skipped by name: never in silence. Without `--full`, what only repeats is left out: features on machines beside this one, tests of feature sets,
//! proofs on all bare targets.

use std::fmt;
use std::panic::resume_unwind;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::bare::Toolchain;
use crate::bare_metal;
use crate::boot_loader;
use crate::packages::{self, Package};
use crate::targets::{self, HOST, Kind, MUSL, TARGETS, Target};
use crate::task::{Reported, Run};
use crate::tasks::TASKS;
use crate::test::{self, Skips, Total};
use crate::tool::{Missing, output};
use crate::workspace::Workspace;
use crate::{no_panic, task};

/// Arguments of `test-matrix`.
#[derive(clap::Args)]
pub(crate) struct TestMatrix {
    /// Install what is missing: packages of Debian, and libraries
    #[arg(long)]
    install: bool,
    /// Skip, by name, what this machine lacks the tools for, in place of failing
    #[arg(long)]
    skip_missing: bool,
    /// Only this target; `features`, `lowest`, `no-panic`, `bare-metal` and `size` name the other rows
    #[arg(long)]
    only: Vec<String>,
    /// Everything, also what takes long and finds little
    #[arg(long)]
    full: bool,
}

/// Features that need an operating system, or a C compiler for the target.
const HOSTED: &[(&str, &str)] = &[("fatbin", "liblz4"), ("fatbin", "libzstd")];
/// Crates that are no libraries to be used by others.
const TOOLS: &[&str] = &["xtask", "benches"];
/// The executors.
const EXECUTORS: [&str; 2] = ["exec-host", "exec-nv"];
/// The feature of the executor for hosts with which it is tested on other machines: what a crash leaves behind and what forks do, in
/// programs that start themselves again, are of interest there, too.
const GUARDED: &str = "device";
/// Tests of the executor for hosts that need nothing of the C library by name, nor a dynamic loader.
const ALONE: &[&str] = &[
    "--lib",
    "--test=dual",
    "--test=hostile",
    "--test=library_files",
    "--test=pair",
    "--test=refused",
    "--test=replace",
    "--test=sources",
];
/// Targets of which only the executor for hosts is tested without `--full`: the lower crates pass on another machine of the same
/// widths and byte order.
const EXECUTOR_ALONE: &[&str] =
    &["aarch64-unknown-linux-gnu", "riscv64gc-unknown-linux-gnu", "armv7-unknown-linux-gnueabihf"];
/// Targets that are tried by name and with `--full` alone: the task `test` runs on this machine, RISC-V's process is as AArch64's, PowerPC has
/// both the byte order of s390x and the width of i386, and others only boot firmware, or compile what others do.
const BY_NAME: &[&str] = &[
    HOST,
    "i686-unknown-linux-gnu",
    "riscv64gc-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    "thumbv8m.main-none-eabi",
    "x86_64-pc-windows-gnu",
];
/// What the command has where it runs nothing.
const OF_FILES: &str = "device-code,disasm";
/// Bare targets for which all lower crates are checked without `--full`: 64 bits, and 32 without atomic exchanges. Programs for the others
/// are made in other rows, and by the tasks `size` and `web`.
const CHECKED: &[&str] = &["x86_64-unknown-none", "thumbv6m-none-eabi"];
/// Targets for which freedom from panics is proved without `--full`: 64 and 32 bits.
const PROVED: &[&str] = &["x86_64-unknown-none", "thumbv7em-none-eabihf"];

/// What came of one try.
enum Outcome {
    /// What was done.
    Good(String),
    /// What went wrong.
    Bad(String),
    /// What is missing.
    Skipped(String),
}

/// What is done beside other things.
type Lane<'a> = &'a (dyn Fn(&mut Matrix<'_>) + Sync);

/// A cell of the table.
struct Cell {
    row: String,
    crates: Vec<String>,
    features: String,
    outcome: Outcome,
    time: Duration,
}

impl Run for TestMatrix {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let named = ["features", "lowest", "no-panic", "bare-metal", "size"];
        for name in &self.only {
            if !named.contains(&name.as_str()) && !TARGETS.iter().any(|target| target.name == name)
            {
                bail!("no row {name}; there are {}, {}", names(), named.join(", "));
            }
        }
        let chosen: Vec<&Target> =
            TARGETS.iter().filter(|target| self.wants(target.name)).collect();
        if self.install {
            targets::install(workspace, &chosen)?;
        }
        let (skips, packages, lower) =
            (Skips::read(workspace)?, packages::packages(workspace)?, no_panic::crates(workspace)?);
        let matrix = |folder| Matrix {
            workspace,
            folder,
            full: self.full,
            skip_missing: self.skip_missing,
            packages: &packages,
            lower: &lower,
            skips: &skips,
            cells: Vec::new(),
        };
        let by_name = |name| BY_NAME.contains(&name) && self.only.is_empty() && !self.full;
        let (executors, others): (Vec<&Target>, Vec<&Target>) = chosen
            .into_iter()
            .filter(|target| !by_name(target.name))
            .partition(|target| matches!(target.kind, Kind::Tests { executor: true, .. }));
        // what waits, for emulators or for one compiler, leaves processors to the rest
        let lanes: [(&str, Lane<'_>); 3] = [
            ("matrix-beside", &|matrix| self.others(matrix, &others)),
            ("matrix", &|matrix| executors.iter().for_each(|target| matrix.test(target))),
            ("matrix-tasks", &|matrix| self.tasks(matrix)),
        ];
        let cells: Vec<Cell> = std::thread::scope(|scope| {
            let lanes = lanes.map(|(folder, work)| {
                let matrix = matrix(folder);
                scope.spawn(move || matrix.of(work))
            });
            let done = lanes.map(|lane| lane.join().unwrap_or_else(|panic| resume_unwind(panic)));
            done.into_iter().flatten().collect()
        });
        println!("\n{}", Table(&cells));
        let bad = cells.iter().filter(|cell| matches!(cell.outcome, Outcome::Bad(_))).count();
        let skipped =
            cells.iter().filter(|cell| matches!(cell.outcome, Outcome::Skipped(_))).count();
        println!("{} cells, {bad} bad, {skipped} skipped", cells.len());
        if bad > 0 { Err(Reported.into()) } else { Ok(()) }
    }
}

impl TestMatrix {
    fn wants(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == row)
    }

    /// All that cargo compiles but for what tests the executors.
    fn others(&self, matrix: &mut Matrix<'_>, targets: &[&Target]) {
        for target in targets {
            match target.kind {
                Kind::Tests { .. } => matrix.test(target),
                Kind::Files { .. } => matrix.build_command(target),
                Kind::Bare if self.full => matrix.build(target),
                Kind::Bare if CHECKED.contains(&target.name) || !self.only.is_empty() => {
                    matrix.check(target);
                }
                Kind::Bare => {}
            }
        }
        if self.wants("features") {
            matrix.features();
        }
        if self.wants("lowest") {
            matrix.lowest(self.full || !self.only.is_empty());
        }
    }

    /// Other tasks, which have folders of their own.
    fn tasks(&self, matrix: &mut Matrix<'_>) {
        for target in TARGETS.iter().filter(|target| matches!(target.kind, Kind::Bare)) {
            let always = PROVED.contains(&target.name) && self.wants("no-panic");
            let linked = target.name.ends_with("-none") || target.name.contains("-none-");
            if always
                || (self.full && linked && (self.wants("no-panic") || self.wants(target.name)))
            {
                matrix.task("no-panic", &["no-panic", "--target", target.name]);
            }
        }
        for machine in bare_metal::MACHINES {
            if self.wants("bare-metal") || self.only.iter().any(|name| name == machine.target) {
                matrix.task("bare-metal", &["bare-metal", machine.target]);
            }
        }
        for machine in &boot_loader::MACHINES {
            if self.wants("bare-metal") || self.only.iter().any(|name| name == machine.target) {
                matrix.task("boot-loader", &["boot-loader", machine.target]);
            }
        }
        if self.wants("size") {
            let all: &[&str] = if self.full { &["size"] } else { &["size", "--budget"] };
            matrix.task("size", all);
        }
    }
}

fn names() -> String {
    TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ")
}

/// The table while it grows.
struct Matrix<'a> {
    workspace: &'a Workspace,
    /// The name of cargo's folder: in one of them, cargo builds one thing at a time.
    folder: &'static str,
    full: bool,
    skip_missing: bool,
    packages: &'a [Package],
    lower: &'a [String],
    skips: &'a Skips,
    cells: Vec<Cell>,
}

impl Matrix<'_> {
    /// The cells that `make` makes.
    fn of(mut self, make: impl FnOnce(&mut Self)) -> Vec<Cell> {
        make(&mut self);
        self.cells
    }

    /// Tries something and notes what came of it.
    fn try_cell(
        &mut self,
        row: &str,
        name: &str,
        features: &str,
        attempt: impl FnOnce() -> Result<String>,
    ) {
        eprintln!("==> {row}: {name}, {features}");
        let start = Instant::now();
        let outcome = match attempt() {
            Ok(what) => Outcome::Good(what),
            Err(error) if self.skip_missing && error.is::<Missing>() => {
                let reason = format!("{error:#}");
                test::skip(&format!("test-matrix/{row}/{name}"), &reason);
                Outcome::Skipped(reason)
            }
            Err(error) => {
                let text = format!("{error:#}");
                eprintln!("{text}");
                // The table has room for one line: the compiler's or the test's, if it can be told.
                let telling =
                    |line: &&str| line.starts_with("error") || line.contains("panicked at");
                let line = text.lines().find(telling).or_else(|| text.lines().next());
                Outcome::Bad(line.unwrap_or_default().to_owned())
            }
        };
        let cell = Cell {
            row: row.to_owned(),
            crates: vec![name.to_owned()],
            features: features.to_owned(),
            outcome,
            time: start.elapsed(),
        };
        self.cells.push(cell);
    }

    /// `cargo` of the toolchain that has the libraries of `target`, its output apart from that of other tasks.
    fn cargo(&self, toolchain: &Toolchain, target: &Target) -> Result<Command> {
        let mut cargo = toolchain.cargo();
        cargo
            .current_dir(self.workspace.root())
            .env("CARGO_TARGET_DIR", self.workspace.kept(self.folder)?);
        target.configure(&mut cargo);
        // Emulated tests take longer than their optimisation; checks of overflow and assertions stay.
        cargo.env("CARGO_INCREMENTAL", "0");
        if matches!(&target.kind, Kind::Tests { runner: Some(_), .. }) {
            cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        }
        Ok(cargo)
    }

    /// Checks the lower crates together for a bare target, without features and with those of who asks for none. That each of them
    /// does alone is found out [on this machine](Self::features), that they link where programs of them are made.
    fn check(&mut self, target: &Target) {
        let lower = self.lower;
        for (set, without) in [("", Some("--no-default-features")), ("default", None)] {
            let cargo = ready(target).and_then(|toolchain| self.cargo(&toolchain, target));
            self.try_cell(target.name, &lower.join(" "), show(set), || {
                let packages = lower.iter().flat_map(|name| ["--package", name]);
                let arguments = ["check", "--quiet", "--target", target.name];
                output(cargo?.args(arguments).args(without).args(packages))?;
                Ok("checked".to_owned())
            });
        }
    }

    /// Builds every lower crate alone for a bare target, with every set of features.
    fn build(&mut self, target: &Target) {
        for name in self.lower {
            let sets = self.feature_sets(name).into_iter().filter(|set| !is_hosted(name, set));
            for set in [String::new()].into_iter().chain(sets).collect::<Vec<_>>() {
                let cargo = ready(target).and_then(|toolchain| self.cargo(&toolchain, target));
                self.try_cell(target.name, name, show(&set), || {
                    let arguments =
                        ["build", "--quiet", "--package", name, "--target", target.name];
                    output(cargo?.args(arguments).args([
                        "--no-default-features",
                        "--features",
                        &set,
                    ]))?;
                    Ok("built".to_owned())
                });
            }
        }
    }

    /// Builds the command for a system where it only looks into files.
    fn build_command(&mut self, target: &Target) {
        let cargo = ready(target).and_then(|toolchain| self.cargo(&toolchain, target));
        self.try_cell(target.name, "hoist-tool", OF_FILES, || {
            let mut cargo = cargo?;
            cargo.args(["build", "--quiet", "--package", "hoist-tool", "--target", target.name]);
            output(cargo.args(["--no-default-features", "--features", OF_FILES]))?;
            Ok("built".to_owned())
        });
    }

    /// Runs the tests of the lower crates, and of the executors where they can work.
    fn test(&mut self, target: &Target) {
        let Kind::Tests { runner, executor, .. } = &target.kind else { return };
        let how = runner.as_ref().map_or("this machine", |runner| runner.name);
        if target.name == MUSL {
            let ([name, _], skips) = (EXECUTORS, self.skips);
            let cargo = ready(target).and_then(|toolchain| self.cargo(&toolchain, target));
            self.try_cell(target.name, name, show(""), || {
                tests(cargo?, skips, (name, ALONE), target.name, "", how)
            });
            return;
        }
        let mut crates = self.lower.to_vec();
        if EXECUTOR_ALONE.contains(&target.name) && !self.full {
            crates = vec![EXECUTORS[0].to_owned()];
        } else if *executor {
            crates.extend(EXECUTORS.iter().map(|name| (*name).to_owned()));
        }
        for name in &crates {
            let cargo = ready(target).and_then(|toolchain| self.cargo(&toolchain, target));
            let is_guarded = runner.is_some() && name == EXECUTORS[0];
            let (set, skips) = (if is_guarded { GUARDED } else { self.usual(name) }, self.skips);
            self.try_cell(target.name, name, show(set), || {
                tests(cargo?, skips, (name, &[]), target.name, set, how)
            });
        }
    }

    /// Every crate alone: without features, with each, with all if that is asked for.
    fn features(&mut self) {
        let Some(target) = TARGETS.iter().find(|target| target.name == HOST) else { return };
        let names: Vec<String> = self.packages.iter().map(|package| package.name.clone()).collect();
        for name in names.iter().filter(|name| !TOOLS.contains(&name.as_str())) {
            let sets = [String::new()].into_iter().chain(self.feature_sets(name));
            for set in sets.collect::<Vec<_>>() {
                let cargo = self.cargo(&Toolchain::Own, target);
                let (full, skips) = (self.full, self.skips);
                self.try_cell("features", name, show(&set), || {
                    if full {
                        return tests(cargo?, skips, (name, &[]), HOST, &set, "this machine");
                    }
                    let arguments =
                        ["check", "--quiet", "--package", name, "--no-default-features"];
                    output(cargo?.args(arguments).args(["--features", &set]))?;
                    Ok("checked".to_owned())
                });
            }
        }
    }

    /// The lowest version of Rust that the manifest promises. If it is this one, the task `lint` compiles all with it, and nothing is done here
    /// but for who asks for it.
    fn lowest(&mut self, is_asked: bool) {
        let workspace = self.workspace;
        self.try_cell("lowest Rust", "all", "all", || {
            let manifest = std::fs::read_to_string(workspace.root().join("Cargo.toml"))?;
            let manifest: toml::Value = toml::from_str(&manifest)?;
            let version = manifest.get("workspace").and_then(|table| table.get("package"));
            let version =
                version.and_then(|table| table.get("rust-version")).and_then(toml::Value::as_str);
            let version = version.context("Cargo.toml: no rust-version")?;
            let own = Toolchain::Own.version()?;
            let mut cargo =
                if own.strip_prefix("rustc ").is_some_and(|own| own.starts_with(version)) {
                    if !is_asked {
                        return Ok(format!("{version} is this one, with which lint compiles all"));
                    }
                    Toolchain::Own.cargo()
                } else {
                    let full =
                        [version, &"0".repeat(usize::from(version.matches('.').count() == 1))]
                            .into_iter()
                            .filter(|part| !part.is_empty())
                            .collect::<Vec<_>>()
                            .join(".");
                    let mut rustup = Command::new("rustup");
                    rustup.args(["run", &full, "cargo"]);
                    let asked = output(Command::new("rustup").args(["run", &full, "rustc", "-V"]));
                    asked.map_err(|_| {
                        Missing(format!("Rust {full} is missing: rustup toolchain install {full}"))
                    })?;
                    rustup.env_remove("RUSTC").env_remove("RUSTDOC");
                    rustup
                };
            cargo
                .current_dir(workspace.root())
                .env("CARGO_TARGET_DIR", workspace.kept(self.folder)?);
            output(cargo.args([
                "check",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--all-features",
            ]))?;
            Ok(format!("checked with {version}"))
        });
    }

    /// Another task as a cell.
    fn task(&mut self, row: &str, words: &[&str]) {
        let workspace = self.workspace;
        let of =
            words.iter().skip(1).find(|word| !word.starts_with("--")).copied().unwrap_or("all");
        self.try_cell(row, of, show(""), || {
            let task = task::find(TASKS, words.first().copied().unwrap_or_default())?;
            task.run(&task.command().try_get_matches_from(words)?, workspace)?;
            Ok("passed".to_owned())
        });
    }

    /// The feature set of who asks for none: `default`, if the crate has one.
    fn usual(&self, name: &str) -> &'static str {
        let package = self.packages.iter().find(|package| package.name == name);
        if package.is_some_and(|package| package.features.contains_key("default")) {
            "default"
        } else {
            ""
        }
    }

    /// Every feature alone, and all together if there are several. Without `--full` not those that other steps of a whole run compile: what is
    /// had by default, and all.
    fn feature_sets(&self, name: &str) -> Vec<String> {
        let Some(package) = self.packages.iter().find(|package| package.name == name) else {
            return Vec::new();
        };
        let is_other = |feature: &&String| self.full || *feature != "default";
        let single: Vec<String> = package.features.keys().filter(is_other).cloned().collect();
        let all = single.join(",");
        let together = (self.full && single.len() > 1).then_some(all);
        single.into_iter().chain(together).collect()
    }
}

/// A feature set in the table.
fn show(set: &str) -> &str {
    if set.is_empty() { "none" } else { set }
}

fn is_hosted(name: &str, set: &str) -> bool {
    set.split(',').any(|feature| HOSTED.contains(&(name, feature)))
}

/// The toolchain for `target`, if all that it needs is there.
fn ready(target: &Target) -> Result<Toolchain> {
    let missing = target.missing();
    if !missing.is_empty() {
        let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
        packages.dedup();
        let packages = packages.join(" ");
        let how = format!("apt-get install {packages}, or cargo xtask test-matrix --install");
        return Err(Missing(how).into());
    }
    Toolchain::of(target.name)
}

/// Runs the tests of one crate, or some of its programs, and counts them.
fn tests(
    mut cargo: Command,
    skips: &Skips,
    (name, programs): (&str, &[&str]),
    target: &str,
    set: &str,
    how: &str,
) -> Result<String> {
    cargo.args(["test", "--package", name, "--target", target, "--no-fail-fast"]);
    cargo.args(["--no-default-features", "--features", set]).args(programs);
    let (mut text, mut total) = (Vec::new(), Total::of_package(name));
    let status = test::count(cargo, &mut text, &mut total)?;
    if !status.success() {
        bail!("{total}: {status}\n{}", String::from_utf8_lossy(&text));
    }
    // what the list says of needs, it says of this machine
    let unlisted = skips.unlisted(&total);
    if !unlisted.is_empty() {
        bail!("{total}: error: skipped: {}", unlisted.join("\n"));
    }
    Ok(format!("{total} on {how}"))
}

/// The cells as a table: those of one row that only differ in the crate share a line.
struct Table<'a>(&'a [Cell]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<(&str, Vec<&str>, &str, String, Duration)> = Vec::new();
        for cell in self.0 {
            let outcome = match &cell.outcome {
                Outcome::Good(what) => what.clone(),
                Outcome::Bad(what) => format!("FAILED: {what}"),
                Outcome::Skipped(what) => format!("skipped: {what}"),
            };
            let crates = cell.crates.iter().map(String::as_str);
            let same = lines
                .iter_mut()
                .find(|line| line.0 == cell.row && line.2 == cell.features && line.3 == outcome);
            match same {
                Some(line) => {
                    line.1.extend(crates);
                    line.4 += cell.time;
                }
                None => {
                    lines.push((&cell.row, crates.collect(), &cell.features, outcome, cell.time))
                }
            }
        }
        writeln!(f, "| target | crate | features | result | seconds |\n|---|---|---|---|---:|")?;
        for (row, crates, features, outcome, time) in lines {
            let seconds = time.as_secs_f64();
            writeln!(
                f,
                "| {row} | {} | {features} | {outcome} | {seconds:.1} |",
                crates.join(" ")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(row: &str, name: &str, outcome: Outcome) -> Cell {
        let time = Duration::from_millis(500);
        Cell {
            row: row.to_owned(),
            crates: vec![name.to_owned()],
            features: "none".to_owned(),
            outcome,
            time,
        }
    }

    #[test]
    fn what_differs_has_a_line_of_its_own() {
        let good = || Outcome::Good("built".to_owned());
        let cells = [
            cell("one", "a", good()),
            cell("one", "b", good()),
            cell("one", "c", Outcome::Bad("broken".to_owned())),
            cell("two", "a", good()),
        ];
        let table = Table(&cells).to_string();
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| one | a b | none | built | 1.0 |",
                "| one | c | none | FAILED: broken | 0.5 |",
                "| two | a | none | built | 0.5 |",
            ]
        );
    }

    #[test]
    fn sets_that_need_a_host() {
        assert!(is_hosted("fatbin", "alloc,libzstd"));
        assert!(!is_hosted("fatbin", "alloc,zstd"));
        assert!(!is_hosted("elf-layout", "alloc"));
    }
}
