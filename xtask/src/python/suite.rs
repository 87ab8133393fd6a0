//! `tinygrad`: tinygrad's own tests with its loader and with ours, and whether the same ones pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::environment::{Build, Environment, TINYGRAD};
use crate::task::Run;
use crate::test;
use crate::tool::output;
use crate::workspace::Workspace;

/// Arguments of `tinygrad`.
#[derive(clap::Args)]
pub(crate) struct Tinygrad {
    /// Builds the package with optimisation, as for measuring
    #[arg(long)]
    release: bool,
    /// Only this version
    #[arg(long)]
    version: Option<String>,
    /// Arguments for pytest, in place of all tests that the version's source archive has
    #[arg(last = true)]
    pytest: Vec<String>,
}

/// What tinygrad's tests import that the tests of the package do not.
const PACKAGES: &[&str] = &["hypothesis>=6,<7", "tqdm>=4,<5"];

/// A checkout with all tests; source archives of the package index have some.
const CHECKOUT: &str = "HOIST_TINYGRAD";

/// Compilers that tinygrad can use.
const COMPILERS: [&str; 3] = ["clang", "clang-19", "clang-14"];

/// What one run came to.
struct Outcomes {
    /// By the name of the test: `passed`, `failed`, `skipped`, `error`.
    tests: BTreeMap<String, String>,
    /// Objects that the loader was given.
    loads: u64,
    took: Duration,
}

impl Outcomes {
    fn count(&self, outcome: &str) -> usize {
        self.tests.values().filter(|one| *one == outcome).count()
    }
}

impl Run for Tinygrad {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let Some(environment) = Environment::find(workspace, "tinygrad", None, false)? else {
            return Ok(());
        };
        environment.packages(PACKAGES)?;
        let wheel = environment.wheel(workspace, &Build::here(self.release))?;
        environment.install(&wheel)?;
        let has = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
        let compiler = COMPILERS.iter().find(has).context("tinygrad needs clang")?;
        let (mut differences, mut compared) = (Vec::new(), 0);
        println!(
            "| tests of | passed | failed | skipped | not to be had | objects | with its loader | with ours | differ |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
        for (name, folder) in self.sources(workspace)? {
            let one = |how: &str| -> Result<Outcomes> {
                let log = workspace.scratch(&format!("tinygrad-{how}"))?.join("outcomes");
                let mut pytest = environment.program("python");
                pytest.current_dir(&folder).args(["-m", "pytest", "-q", "--tb=no"]);
                pytest.args(["-p", "no:cacheprovider", "-p", "tinygrad_suite"]);
                pytest.args(["--continue-on-collection-errors", "--hypothesis-seed=0"]);
                if self.pytest.is_empty() {
                    pytest.arg("test");
                }
                let own = workspace.root().join("python/tests");
                let path = std::env::join_paths([folder.clone(), own])?;
                pytest.args(&self.pytest).env("PYTHONPATH", path).env("CC", compiler);
                for (name, value) in [("DEV", "CPU"), ("CPU", "1"), ("CACHELEVEL", "0")] {
                    pytest.env(name, value);
                }
                pytest.env("HOIST_SUITE", how).env("HOIST_SUITE_LOG", &log);
                let start = Instant::now();
                let done = pytest.output().context("cannot run pytest")?;
                let took = start.elapsed();
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                let words = || String::from_utf8_lossy(&done.stdout).into_owned();
                read(&text, took).with_context(words)
            };
            let (theirs, ours) = (one("without")?, one("with")?);
            if theirs.count("passed") == 0 && ours.count("passed") == 0 {
                let needs = format!("needs what its tests import: {} cannot", ours.count("error"));
                test::skip(&format!("tinygrad/{name}"), &needs);
                continue;
            }
            compared += 1;
            let before = differences.len();
            let names = theirs.tests.keys().chain(ours.tests.keys());
            for test in names.collect::<std::collections::BTreeSet<_>>() {
                let (their, our) = (theirs.tests.get(test), ours.tests.get(test));
                if their != our {
                    differences.push(format!("{name}: {test}: {their:?} without, {our:?} with"));
                }
            }
            println!(
                "| {name} | {} | {} | {} | {} | {} | {:.0} s | {:.0} s | {} |",
                ours.count("passed"),
                ours.count("failed"),
                ours.count("skipped"),
                ours.count("error"),
                ours.loads,
                theirs.took.as_secs_f64(),
                ours.took.as_secs_f64(),
                differences.len() - before
            );
            ensure!(ours.loads > 0, "{name}: the loader was never asked");
        }
        ensure!(compared > 0, "nothing was tested");
        if !differences.is_empty() {
            bail!("{}", differences.join("\n"));
        }
        Ok(())
    }
}

impl Tinygrad {
    /// What is tested: versions of which the package index has the source, and a checkout.
    fn sources(&self, workspace: &Workspace) -> Result<Vec<(String, PathBuf)>> {
        let folder = workspace.kept("tinygrad")?;
        let mut all = Vec::new();
        for version in TINYGRAD {
            if self.version.as_ref().is_some_and(|wanted| wanted != version) {
                continue;
            }
            match source(&folder, version) {
                Ok(path) => all.push((format!("{version}, source archive"), path)),
                Err(error) => test::skip(
                    &format!("tinygrad/{version}"),
                    &format!("needs its source archive of the package index: {error:#}"),
                ),
            }
        }
        match std::env::var_os(CHECKOUT) {
            Some(checkout) => all.push((String::from("checkout"), PathBuf::from(checkout))),
            None => test::skip(
                "tinygrad/checkout",
                &format!("needs a checkout of tinygrad/tinygrad in {CHECKOUT}"),
            ),
        }
        ensure!(!all.is_empty(), "there is nothing to test");
        Ok(all)
    }
}

/// The unpacked source archive of a version.
fn source(folder: &Path, version: &str) -> Result<PathBuf> {
    let name = format!("tinygrad-{version}");
    if !folder.join(&name).exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]);
        pip.args(["--no-binary=tinygrad", "--dest"]).arg(folder);
        output(pip.arg(format!("tinygrad=={version}")))?;
        let mut tar = Command::new("tar");
        output(tar.arg("-xzf").arg(folder.join(format!("{name}.tar.gz"))).arg("-C").arg(folder))?;
    }
    Ok(folder.join(name))
}

/// What the plug-in has written: a line for each test, and at the end how often the loader was asked.
fn read(text: &str, took: Duration) -> Result<Outcomes> {
    let mut tests = BTreeMap::new();
    let mut loads = None;
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').context("a line of one word")?;
        if word == "loads" {
            loads = Some(rest.parse()?);
        } else {
            tests.insert(rest.to_owned(), word.to_owned());
        }
    }
    Ok(Outcomes { tests, loads: loads.context("the run did not come to its end")?, took })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read() -> Result<()> {
        let text = "passed test/a.py::one\nfailed test/a.py::two[x y]\nloads 7\n";
        let found = read(text, Duration::ZERO)?;
        assert_eq!((found.loads, found.count("passed"), found.count("failed")), (7, 1, 1));
        assert!(found.tests.contains_key("test/a.py::two[x y]"));
        assert!(read("passed test/a.py::one\n", Duration::ZERO).is_err(), "no end");
        Ok(())
    }
}
