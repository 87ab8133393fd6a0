//! `python`: builds the package of `python/` as a wheel in the development profile, installs it into an environment under the target
//! directory, and runs its tests and examples there.

mod asked;
mod emulated;
mod environment;
mod suite;
mod wheels;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::task::Run;
use crate::test;
use crate::workspace::Workspace;
use environment::{Build, Environment};

pub(crate) use suite::Tinygrad;
pub(crate) use wheels::Wheels;

/// Arguments of `python`.
#[derive(clap::Args)]
pub(crate) struct Python {
    /// Skip it, by name, if this machine has no Python, no pip, or no package index
    #[arg(long)]
    skip_missing: bool,
    /// Fails if a test is skipped for no reason that this machine gives
    #[arg(long)]
    strict: bool,
    /// The Python to build for and to test with, in place of `python3`
    #[arg(long, value_name = "PROGRAM")]
    interpreter: Option<PathBuf>,
    /// Builds with optimisation, as for measuring
    #[arg(long)]
    release: bool,
    /// Arguments for pytest, in place of all tests
    #[arg(last = true)]
    pytest: Vec<String>,
}

/// What tests may lack, as they say it, and a command of the shell that succeeds where the machine has it.
const MAY_LACK: &[(&str, &str)] = &[
    ("an NVIDIA GPU", "test -e /dev/nvidiactl"),
    ("clang", "command -v clang || command -v clang-19 || command -v clang-14"),
    ("a C compiler", "command -v cc"),
    ("the library of LLVM 19", "ls /usr/lib/*/libLLVM*.so*19*"),
    ("ar", "command -v ar"),
    ("libstdc++", "ldconfig -p | grep -q libstdc++.so.6"),
    (
        "Python's headers",
        "test -e \"$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"include\"))')/Python.h\"",
    ),
    ("x86-64", "test $(uname -m) = x86_64"),
];

/// What tests lack where the package index has it not.
const WHEELS: &str = "tinygrad's wheels of the package index";

impl Run for Python {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let interpreter = self.interpreter.as_deref();
        let found = Environment::find(workspace, "python", interpreter, self.skip_missing)?;
        let Some(environment) = found else { return Ok(()) };
        let wheel = environment.wheel(workspace, &Build::here(self.release))?;
        environment.install(&wheel)?;
        println!(
            "alone in Python {}",
            environment.alone(workspace, &wheel, interpreter)?.join(", ")
        );
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
            let skip = if may_lack { test::skip_excused } else { test::skip };
            skip(&format!("python/{name}"), &format!("needs {needs}"));
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
