//! `python`: builds the package of `python/` as a wheel in the development profile, installs it into an environment under the target
//! directory, and runs its tests and examples there.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::task::Run;
use crate::test;
use crate::tool::{Tool, need, output, run};
use crate::workspace::Workspace;

/// Arguments of `python`.
#[derive(clap::Args)]
pub(crate) struct Python {
    /// Skip it, by name, if this machine has no Python, no pip, or no package index
    #[arg(long)]
    skip_missing: bool,
    /// Fails if a test is skipped for no reason that this machine gives
    #[arg(long)]
    strict: bool,
    /// Builds with optimisation, as for measuring
    #[arg(long)]
    release: bool,
    /// Arguments for pytest, in place of all tests
    #[arg(last = true)]
    pytest: Vec<String>,
}

/// What the package is built and tested with.
const PACKAGES: &[&str] = &["maturin>=1.9,<2", "pytest>=8,<10", "numpy>=1.26,<3", "cffi>=1.16,<3"];

/// What some tests are with, by its name as they say that they need it; where there is no wheel for this Python, they are skipped.
const NEIGHBOURS: &[(&str, &str)] = &[("llvmlite", "llvmlite>=0.45,<1"), ("mypy", "mypy>=2,<3")];

/// Versions of tinygrad that tests run with: those of the last year.
const TINYGRAD: &[&str] = &["0.12.0", "0.13.0", "0.14.0"];

/// What tests may lack, as they say it, and a command of the shell that succeeds where the machine has it.
const MAY_LACK: &[(&str, &str)] = &[
    ("an NVIDIA GPU", "test -e /dev/nvidiactl"),
    ("clang", "command -v clang || command -v clang-19 || command -v clang-14"),
    ("a C compiler", "command -v cc"),
    ("ar", "command -v ar"),
    ("x86-64", "test $(uname -m) = x86_64"),
];

/// What tests lack where the package index has it not.
const WHEELS: &str = "tinygrad's wheels of the package index";

/// The environment: a folder with an interpreter and packages.
struct Environment {
    folder: PathBuf,
    python: PathBuf,
}

impl Environment {
    /// Makes it if it is not there, with what tests need.
    fn make(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.kept("python")?;
        let python = folder.join("venv/bin/python");
        let environment = Self { python, folder };
        if !environment.python.exists() {
            // where there is no ensurepip, pip of outside installs into it
            let venv = environment.folder.join("venv");
            output(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv))?;
        }
        let stamp = environment.folder.join("packages");
        let wanted = PACKAGES.join("\n");
        if std::fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
            output(environment.pip("install").arg("--only-binary=:all:").args(PACKAGES))?;
            std::fs::write(&stamp, wanted).context("cannot note what was installed")?;
        }
        Ok(environment)
    }

    /// Installs the neighbours: the names of those that cannot be had.
    fn neighbours(&self) -> Result<Vec<&'static str>> {
        let mut absent = Vec::new();
        for (name, wanted) in NEIGHBOURS {
            let stamp = self.folder.join(name);
            if std::fs::read_to_string(&stamp).ok().as_deref() == Some(wanted) {
                continue;
            }
            match output(self.pip("install").arg("--only-binary=:all:").arg(wanted)) {
                Ok(_) => {
                    std::fs::write(&stamp, wanted).context("cannot note what was installed")?
                }
                Err(_) => absent.push(*name),
            }
        }
        Ok(absent)
    }

    /// `pip` for this environment.
    fn pip(&self, what: &str) -> Command {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--disable-pip-version-check", "--python"]).arg(&self.python);
        pip.args([what, "--quiet"]);
        pip
    }

    /// A program of the environment.
    fn program(&self, name: &str) -> Command {
        let folder = self.folder.join("venv/bin");
        let mut command = Command::new(folder.join(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
        command
    }

    /// Builds the wheel and installs it.
    fn install(&self, workspace: &Workspace, release: bool) -> Result<()> {
        let wheels = workspace.scratch("python-wheel")?;
        let mut build = self.program("maturin");
        build.current_dir(workspace.root()).args([
            "build",
            "--locked",
            "--quiet",
            "--compatibility",
            "linux",
        ]);
        build.args(["--manifest-path", "python/Cargo.toml", "--interpreter"]).arg(&self.python);
        build
            .args(["--profile", if release { "release" } else { "dev" }])
            .arg("--out")
            .arg(&wheels);
        run(build.env("CARGO_TARGET_DIR", workspace.target()))?;
        let wheel = std::fs::read_dir(&wheels)?.next().context("maturin made no wheel")??.path();
        output(self.pip("install").args(["--force-reinstall", "--no-deps"]).arg(wheel))?;
        Ok(())
    }

    /// A folder with wheels of tinygrad, as many as the index has; and whether those are all.
    fn tinygrad(&self) -> (PathBuf, bool) {
        let folder = self.folder.join("tinygrad");
        let one = |version: &&str| {
            let has = |entry: std::io::Result<std::fs::DirEntry>| {
                entry.is_ok_and(|entry| {
                    entry.file_name().to_string_lossy().starts_with(&format!("tinygrad-{version}-"))
                })
            };
            if std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.any(has)) {
                return true;
            }
            let mut pip = Command::new("python3");
            pip.args([
                "-m",
                "pip",
                "--disable-pip-version-check",
                "download",
                "--quiet",
                "--no-deps",
            ]);
            pip.args(["--only-binary=:all:", "--dest"])
                .arg(&folder)
                .arg(format!("tinygrad=={version}"));
            output(&mut pip).is_ok()
        };
        let got = TINYGRAD.iter().filter(|version| one(version)).count();
        (folder, got == TINYGRAD.len())
    }
}

impl Run for Python {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let environment = match need([Tool::new("python3", "python3 python3-pip python3-venv")])
            .and_then(|()| Environment::make(workspace))
        {
            Err(error) if self.skip_missing => {
                test::skip("python", &format!("needs Python, pip and a package index: {error:#}"));
                return Ok(());
            }
            environment => environment?,
        };
        environment.install(workspace, self.release)?;
        let (wheels, has_all) = environment.tinygrad();
        let absent = environment.neighbours()?;
        let mut pytest = environment.program("python");
        pytest.current_dir(workspace.root()).args([
            "-m",
            "pytest",
            "-q",
            "-c",
            "python/pyproject.toml",
        ]);
        pytest.args(["--rootdir", "python", "-p", "no:cacheprovider"]);
        if self.pytest.is_empty() {
            pytest.arg("python/tests");
        }
        pytest.args(&self.pytest).env("HOIST_TINYGRAD_WHEELS", &wheels);
        pytest.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
        let done = pytest.output().context("cannot run pytest")?;
        let text = String::from_utf8_lossy(&done.stdout);
        print!("{text}");
        eprint!("{}", String::from_utf8_lossy(&done.stderr));
        let mut faults = Vec::new();
        for (name, needs) in skipped(&text) {
            let may_lack = match &*needs {
                WHEELS => !has_all,
                needs => absent.contains(&needs) || lacks(needs),
            };
            if self.strict && !may_lack {
                faults.push(format!("{name}: skipped for want of {needs}, which this machine has"));
            }
            test::skip(&format!("python/{name}"), &format!("needs {needs}"));
        }
        if !done.status.success() {
            bail!("pytest: {}", done.status);
        }
        if !faults.is_empty() {
            bail!("{}", faults.join("\n"));
        }
        Ok(())
    }
}

/// The tests that pytest says were skipped, and what each needs.
fn skipped(text: &str) -> BTreeSet<(String, String)> {
    let one = |line: &str| {
        let rest = line.strip_prefix("SKIPPED ")?;
        match rest.split_once("skipped: ").and_then(|(_, rest)| rest.split_once(": needs ")) {
            Some((name, needs)) => Some((name.to_owned(), needs.trim().to_owned())),
            None => Some((rest.to_owned(), String::from("nothing that it says"))),
        }
    };
    text.lines().filter_map(one).collect()
}

/// Whether a test may say that this machine lacks that.
fn lacks(needs: &str) -> bool {
    let known = MAY_LACK.iter().find(|(what, _)| needs.split(':').next() == Some(what));
    known.is_some_and(|(_, met)| {
        let asked = Command::new("sh").args(["-c", met]).output();
        !asked.is_ok_and(|asked| asked.status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_read_from_what_pytest_prints() {
        let text = "12 passed\nSKIPPED [1] python/tests/test_files.py:9: skipped: test_a_gpu_adds: needs an NVIDIA GPU\n\
                    SKIPPED [2] python/tests/test_x.py: no reason\n";
        let found: Vec<_> = skipped(text).into_iter().collect();
        assert_eq!(found.len(), 2);
        assert!(found.contains(&(String::from("test_a_gpu_adds"), String::from("an NVIDIA GPU"))));
        assert!(!lacks("nothing that it says"));
    }
}
