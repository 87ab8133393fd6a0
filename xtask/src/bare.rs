//! Compilers for machines without an operating system, and wrapper crates that are linked into one image.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::tool::{self, Missing, Tool, cargo, output};
use crate::workspace::Workspace;

/// Links images; its arguments are those of every `ld`.
pub(crate) const LLD: Tool<'_> = Tool::new("ld.lld-19", "lld-19");

/// Where Debian's packages `rustc-web` and `cargo-web` put the compiler whose library source Debian has as well.
const DEBIAN: &str = "/usr/bin";

/// Variables by which one toolchain would disturb another.
const DISTURBING: &[&str] = &[
    "RUSTUP_TOOLCHAIN",
    "RUSTC",
    "RUSTDOC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
];

/// A compiler that has the libraries of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// The one that runs this program.
    Own,
    /// The one that Debian packages beside it.
    Debian,
}

impl Toolchain {
    /// The first toolchain that has the libraries of `target`.
    ///
    /// # Errors
    /// [`Missing`] if none has: how to get them.
    pub(crate) fn of(target: &str) -> Result<Self> {
        let found = [Self::Own, Self::Debian].into_iter().find(|toolchain| toolchain.has(target));
        found.ok_or_else(|| {
            let how = format!(
                "no compiler here has the libraries of {target}; `rustup target add {target}`, or on Debian: \
                 apt-get install rustc-web cargo-web rust-web-src, then \
                 `cargo xtask test-matrix --install --only {target}` builds them"
            );
            Missing(how).into()
        })
    }

    /// Whether this toolchain is here and has the libraries of `target`.
    pub(crate) fn has(&self, target: &str) -> bool {
        let mut rustc = self.rustc();
        let libraries = output(rustc.args(["--print", "target-libdir", "--target", target]));
        let Ok(libraries) = libraries else { return false };
        let folder = PathBuf::from(String::from_utf8_lossy(&libraries.stdout).trim());
        let Ok(files) = fs::read_dir(folder) else { return false };
        files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
    }

    /// The compiler.
    pub(crate) fn rustc(&self) -> Command {
        match self {
            Self::Own => Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())),
            Self::Debian => without(Command::new(Path::new(DEBIAN).join("rustc"))),
        }
    }

    /// Its `cargo`.
    pub(crate) fn cargo(&self) -> Command {
        match self {
            Self::Own => cargo(),
            Self::Debian => {
                let home = Path::new(DEBIAN);
                let mut command = without(Command::new(home.join("cargo")));
                command.env("RUSTC", home.join("rustc")).env("RUSTDOC", home.join("rustdoc"));
                command
            }
        }
    }

    /// What to call it: the compiler's version.
    ///
    /// # Errors
    /// If it cannot be run.
    pub(crate) fn version(&self) -> Result<String> {
        let version = String::from_utf8(output(self.rustc().arg("-V"))?.stdout)?;
        Ok(version.split(" (").next().unwrap_or_default().trim().to_owned())
    }
}

fn without(mut command: Command) -> Command {
    for variable in DISTURBING {
        command.env_remove(variable);
    }
    command
}

/// A crate that this program writes: it uses crates of the workspace and becomes a static library.
pub(crate) struct Wrapper<'a> {
    /// Its name, also that of its folder.
    pub(crate) name: &'a str,
    /// The crates of the workspace that it uses.
    pub(crate) crates: &'a [&'a str],
    /// Features of `elf-core` when it is to have these alone; else every crate has its default features.
    pub(crate) features: Option<&'a [&'a str]>,
    /// Files of `src/` beside what they hold; one is `lib.rs`.
    pub(crate) sources: &'a [(&'a str, String)],
    /// The lines of `[profile.release]` beside those for one object without unwinding.
    pub(crate) profile: &'a str,
    /// Further flags of the compiler.
    pub(crate) flags: &'a str,
}

impl Wrapper<'_> {
    /// Compiles it for `target` and returns the library.
    ///
    /// # Errors
    /// If a file cannot be written or it does not compile.
    pub(crate) fn build(
        &self,
        workspace: &Workspace,
        toolchain: &Toolchain,
        target: &str,
    ) -> Result<PathBuf> {
        let home = workspace.kept("bare")?.join(self.name);
        write_if_new(&home.join("Cargo.toml"), &self.manifest(workspace))?;
        for (file, text) in self.sources {
            write_if_new(&home.join("src").join(file), text)?;
        }
        // The versions of the workspace, not newer ones.
        fs::copy(workspace.root().join("Cargo.lock"), home.join("Cargo.lock"))?;
        let targets = workspace.kept("bare")?.join("target");
        output(
            toolchain
                .cargo()
                .current_dir(&home)
                .args(["rustc", "--quiet", "--release", "--lib", "--target", target])
                .args(["--", "--crate-type", "staticlib"])
                .args(self.flags.split_whitespace())
                .env("CARGO_TARGET_DIR", &targets)
                // The flags of a measurement are those of this program and no others.
                .env_remove("RUSTFLAGS")
                .env("RUSTC_BOOTSTRAP", "1"),
        )
        .with_context(|| format!("cannot build {} for {target}", self.name))?;
        let library = format!("lib{}.a", self.name.replace('-', "_"));
        Ok(targets.join(target).join("release").join(library))
    }

    fn manifest(&self, workspace: &Workspace) -> String {
        let mut manifest = format!(
            "[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"staticlib\"]\n\n\
             [workspace]\n\n[profile.release]\ncodegen-units = 1\nlto = \"fat\"\npanic = \"abort\"\n{}\n\n[dependencies]\n",
            self.name, self.profile
        );
        for &name in self.crates {
            let path = workspace.root().join(name);
            manifest += &match self.features {
                None => format!("{name} = {{ path = {path:?} }}\n"),
                Some(features) => {
                    let features = if name == "elf-core" { features } else { &[] };
                    format!(
                        "{name} = {{ path = {path:?}, default-features = false, features = {features:?} }}\n"
                    )
                }
            };
        }
        manifest + "bitflags = \"2\"\nzerocopy = \"0.8\"\n"
    }
}

/// Writes `text` unless the file holds it already: what has not changed is not compiled again.
fn write_if_new(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Links `library` to the image `to`: only what `roots` reach is in it, and nothing may be undefined but `defined`.
///
/// # Errors
/// If the linker is missing or refuses; what it said is in the error.
pub(crate) fn link(
    library: &Path,
    roots: &[String],
    defined: &BTreeMap<&str, u64>,
    to: &Path,
) -> Result<()> {
    tool::need([LLD])?;
    let Some(entry) = roots.first() else { bail!("nothing to link") };
    let mut arguments = format!("--gc-sections\n--emit-relocs\n-z\nnorelro\n-e\n{entry}\n");
    for root in roots {
        arguments += &format!("-u\n{root}\n");
    }
    for (name, value) in defined {
        arguments += &format!("--defsym\n{name}={value}\n");
    }
    let file = to.with_extension("arguments");
    fs::write(&file, arguments)?;
    let mut response = std::ffi::OsString::from("@");
    response.push(&file);
    output(Command::new(LLD.program).arg(response).arg(library).arg("-o").arg(to))?;
    Ok(())
}
