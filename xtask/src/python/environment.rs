//! The environment of the tasks for the Python package: a folder with an interpreter and packages, under the target directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::test;
use crate::tool::{Tool, need, output, run};
use crate::workspace::Workspace;

/// What the package is built and tested with.
const PACKAGES: &[&str] = &["maturin>=1.9,<2", "pytest>=8,<10", "numpy>=1.26,<3", "cffi>=1.16,<3"];

/// What some tests are with, by its name as they say that they need it; where there is no wheel for this Python, they are skipped.
/// Numba wants a certain llvmlite, and so comes first.
const NEIGHBOURS: &[(&str, &str)] = &[
    ("numba", "numba>=0.62,<1"),
    ("llvmlite", "llvmlite>=0.45,<1"),
    ("mypy", "mypy>=2,<3"),
    ("pandas", "pandas>=2,<4"),
    ("tvm", "apache-tvm>=0.25,<1"),
];

/// Versions of tinygrad that tests run with: those of the last year.
pub(super) const TINYGRAD: &[&str] = &["0.12.0", "0.13.0", "0.14.0"];

/// What a machine with nothing but Python must be able to do: the objects that it gets are that of tinygrad's first test, and
/// one that throws, where there is a C++ library.
pub(super) const ALONE: &str = "\
import ctypes, hoist, os, platform, sys
assert '.so' in hoist._hoist.__file__
assert hoist.load(sys.argv[1]).fn('foo', args=[hoist.i32], ret=hoist.f32)(321) == 12345999.0
try:
    ctypes.CDLL('libstdc++.so.6')
except OSError:
    pass
else:
    if os.path.exists(sys.argv[2]):
        module = hoist.load(sys.argv[2], libs=['libstdc++.so.6'])
        careful = module.fn('careful', args=[hoist.i32], ret=hoist.i32)
        assert (careful(3), careful(5)) == (3, -5)
assert hoist.show(sys.argv[1])
";

/// What it is given; `MACHINE` stands for the machine's name.
pub(super) const OBJECTS: [&str; 2] = ["MACHINE/elftest.o", "MACHINE/exceptions-gcc12.o"];

/// One interpreter of each version that the package is for: those that `PATH` has, and those of pyenv.
fn interpreters() -> BTreeMap<String, PathBuf> {
    const VERSION: &str = "import sys; print('%d.%d' % sys.version_info[:2])";
    let pyenv = Command::new("pyenv").arg("root").output();
    let root = pyenv.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let versions = root.map(|root| Path::new(&root).join("versions"));
    let versions = versions.and_then(std::fs::read_dir).into_iter().flatten().flatten();
    let named = std::iter::once(String::from("python3"))
        .chain((OLDEST..OLDEST + 10).map(|minor| format!("python3.{minor}")))
        .map(PathBuf::from);
    let mut found = BTreeMap::new();
    for interpreter in named.chain(versions.map(|entry| entry.path().join("bin/python3"))) {
        let Ok(told) = Command::new(&interpreter).args(["-c", VERSION]).output() else { continue };
        let version = String::from_utf8_lossy(&told.stdout).trim().to_owned();
        let minor = version.strip_prefix("3.").and_then(|minor| minor.parse().ok());
        if told.status.success() && minor.is_some_and(|minor: u32| minor >= OLDEST) {
            found.entry(version).or_insert(interpreter);
        }
    }
    found
}

/// The oldest version of Python 3 that the package is for, as `pyproject.toml` says.
const OLDEST: u32 = 9;

/// How a wheel is built.
pub(super) struct Build<'a> {
    /// Cargo's profile.
    pub(super) profile: &'a str,
    /// Which machines it is for (PEP 600, PEP 656), or `linux`: this one.
    pub(super) compatibility: &'a str,
    /// For another target, with the linker and the C library of zig.
    pub(super) target: Option<&'a str>,
}

impl Build<'_> {
    /// For this machine.
    pub(super) const fn here(is_release: bool) -> Self {
        let profile = if is_release { "release" } else { "dev" };
        Self { profile, compatibility: "linux", target: None }
    }
}

/// The environment: a folder with an interpreter and packages.
pub(super) struct Environment {
    folder: PathBuf,
    python: PathBuf,
    /// Of the machine: its pip installs here.
    outside: PathBuf,
}

impl Environment {
    /// The environment; `None` if this machine lacks what it is made with, and `task` may be skipped.
    pub(super) fn find(
        workspace: &Workspace,
        task: &str,
        interpreter: Option<&Path>,
        may_skip: bool,
    ) -> Result<Option<Self>> {
        let made = need([Tool::new("python3", "python3 python3-pip python3-venv")])
            .and_then(|()| Self::make(workspace, interpreter));
        match made {
            Err(error) if may_skip => {
                test::skip(task, &format!("needs Python, pip and a package index: {error:#}"));
                Ok(None)
            }
            made => made.map(Some),
        }
    }

    /// Makes it if it is not there, with what tests need: of `python3`, or of another interpreter, which has one of its own.
    fn make(workspace: &Workspace, interpreter: Option<&Path>) -> Result<Self> {
        let name = interpreter.and_then(Path::file_name).unwrap_or("python".as_ref());
        let folder = workspace.kept(&name.to_string_lossy())?;
        let interpreter = interpreter.unwrap_or("python3".as_ref());
        let python = folder.join("venv/bin/python");
        let environment = Self { python, folder, outside: interpreter.to_owned() };
        if !environment.python.exists() {
            // where there is no ensurepip, pip of outside installs into it
            let venv = environment.folder.join("venv");
            output(Command::new(interpreter).args(["-m", "venv", "--without-pip"]).arg(&venv))?;
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
    pub(super) fn neighbours(&self) -> Result<Vec<&'static str>> {
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
        let mut pip = Command::new(&self.outside);
        pip.args(["-m", "pip", "--disable-pip-version-check", "--python"]).arg(&self.python);
        pip.args([what, "--quiet"]);
        pip
    }

    /// A program of the environment.
    pub(super) fn program(&self, name: &str) -> Command {
        let folder = self.folder.join("venv/bin");
        let mut command = Command::new(folder.join(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
        command
    }

    /// Builds a wheel: its path.
    pub(super) fn wheel(&self, workspace: &Workspace, wanted: &Build<'_>) -> Result<PathBuf> {
        let folder = match wanted.target {
            None => workspace.scratch("python-wheel")?,
            Some(target) => workspace.scratch(&format!("wheels/{target}"))?,
        };
        let mut build = self.program("maturin");
        build.current_dir(workspace.root()).args(["build", "--locked", "--quiet"]);
        build.args(["--compatibility", wanted.compatibility]);
        if let Some(target) = wanted.target {
            build.args(["--zig", "--target", target]);
        } else {
            build.arg("--interpreter").arg(&self.python);
        }
        build.args(["--manifest-path", "python/Cargo.toml", "--profile", wanted.profile]);
        build.arg("--out").arg(&folder);
        run(build.env("CARGO_TARGET_DIR", workspace.target()))?;
        Ok(std::fs::read_dir(&folder)?.next().context("maturin made no wheel")??.path())
    }

    /// Installs a wheel.
    pub(super) fn install(&self, wheel: &Path) -> Result<()> {
        output(self.pip("install").args(["--force-reinstall", "--no-deps"]).arg(wheel))?;
        Ok(())
    }

    /// Installs packages from the index.
    pub(super) fn packages(&self, wanted: &[&str]) -> Result<()> {
        output(self.pip("install").arg("--only-binary=:all:").args(wanted))?;
        Ok(())
    }

    /// Installs a wheel where there is nothing but Python, without an index, and has it load an object there, without `PATH`: in every
    /// version of Python that the machine has, or in the one that it was built for. The versions.
    pub(super) fn alone(
        &self,
        workspace: &Workspace,
        wheel: &Path,
        interpreter: Option<&Path>,
    ) -> Result<Vec<String>> {
        let all = match interpreter {
            Some(one) => BTreeMap::from([(one.display().to_string(), one.to_owned())]),
            None => interpreters(),
        };
        all.into_iter()
            .map(|(version, interpreter)| {
                let tried = self.alone_with(workspace, wheel, &interpreter);
                tried.with_context(|| format!("in Python {version}")).map(|()| version)
            })
            .collect()
    }

    fn alone_with(&self, workspace: &Workspace, wheel: &Path, interpreter: &Path) -> Result<()> {
        let venv = workspace.scratch("python-alone")?;
        let python = venv.join("bin/python");
        output(Command::new(interpreter).args(["-m", "venv", "--without-pip"]).arg(&venv))?;
        let outside = self.outside.clone();
        let alone = Self { folder: venv.clone(), python: python.clone(), outside };
        output(alone.pip("install").arg("--no-index").arg(wheel))?;
        let machine = std::env::consts::ARCH;
        let objects =
            OBJECTS.map(|object| workspace.fixtures().join(object.replace("MACHINE", machine)));
        let mut program = Command::new(python);
        output(program.env_clear().args(["-I", "-c", ALONE]).args(objects))?;
        let told = output(Command::new(venv.join("bin/hoist")).env_clear().arg("--version"))?;
        ensure!(told.stdout.starts_with(b"hoist "), "the command of the wheel says no version");
        Ok(())
    }

    /// A folder with wheels of tinygrad, as many as the index has; and whether those are all.
    pub(super) fn tinygrad(&self) -> (PathBuf, bool) {
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
