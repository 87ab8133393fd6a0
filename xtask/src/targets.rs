//! The targets of the matrix: what each needs, and how to get it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::bare::Toolchain;
use crate::boot_loader::{self, Machine};
use crate::tool::{Tool, output, run};
use crate::workspace::Workspace;

/// A machine that code is made for.
pub(crate) struct Target {
    /// Its triple.
    pub(crate) name: &'static str,
    /// What shows that the code works.
    pub(crate) kind: Kind,
}

/// What shows that the code works.
pub(crate) enum Kind {
    /// That it compiles: there is no standard library.
    Bare,
    /// That the command is built for it: it looks into files there, and runs nothing.
    Files {
        /// Compiler and C library.
        linker: Tool<'static>,
    },
    /// Its tests, which pass.
    Tests {
        /// Compiler and C library; none for this machine itself.
        linker: Option<Tool<'static>>,
        /// What runs programs.
        runner: Option<Runner>,
        /// Whether code can be loaded and called, so that the executor is tested too.
        executor: bool,
    },
}

/// What runs programs of another machine.
pub(crate) struct Runner {
    /// Words of the command, without its limits.
    pub(crate) words: &'static [&'static str],
    /// The program, and what brings it.
    pub(crate) tool: Tool<'static>,
    /// A file that must be there, and what brings it.
    pub(crate) library: Tool<'static>,
    /// How to call it in the table.
    pub(crate) name: &'static str,
}

/// Goes before every runner. A program that hangs is ended after five minutes, and so is what it has started: qemu passes SIGTERM on to
/// its guest, which may be what hangs. Children of a qemu with several threads may wait for ever for a lock of GLib's slices that
/// another thread held when it forked; the C library's allocator has no such lock.
const LIMITS: [&str; 5] = ["env", "G_SLICE=always-malloc", "timeout", "--kill-after=10", "300"];

/// This machine with musl: programs are linked statically, and have no dynamic loader. Only rustup brings its libraries.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";
/// This machine.
pub(crate) const HOST: &str = "x86_64-unknown-linux-gnu";

const fn bare(name: &'static str) -> Target {
    Target { name, kind: Kind::Bare }
}

const fn emulated(
    name: &'static str,
    linker: Tool<'static>,
    runner: Runner,
    executor: bool,
) -> Target {
    Target { name, kind: Kind::Tests { linker: Some(linker), runner: Some(runner), executor } }
}

/// Every target.
pub(crate) const TARGETS: &[Target] = &[
    bare("x86_64-unknown-none"),
    bare("aarch64-unknown-none"),
    bare("thumbv6m-none-eabi"),
    bare("thumbv7em-none-eabihf"),
    bare("thumbv8m.main-none-eabi"),
    bare("riscv32imac-unknown-none-elf"),
    bare("riscv64gc-unknown-none-elf"),
    bare("wasm32-unknown-unknown"),
    bare("x86_64-unknown-uefi"),
    Target { name: HOST, kind: Kind::Tests { linker: None, runner: None, executor: true } },
    Target { name: MUSL, kind: Kind::Tests { linker: None, runner: None, executor: true } },
    emulated(
        "aarch64-unknown-linux-gnu",
        Tool::new("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        Runner {
            words: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
            tool: Tool::new("qemu-aarch64", "qemu-user"),
            library: Tool::new("/usr/aarch64-linux-gnu/lib/libc.so.6", "libc6-dev-arm64-cross"),
            name: "qemu-aarch64",
        },
        true,
    ),
    emulated(
        "riscv64gc-unknown-linux-gnu",
        Tool::new("riscv64-linux-gnu-gcc-12", "gcc-12-riscv64-linux-gnu"),
        Runner {
            words: &["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"],
            tool: Tool::new("qemu-riscv64", "qemu-user"),
            library: Tool::new("/usr/riscv64-linux-gnu/lib/libc.so.6", "libc6-dev-riscv64-cross"),
            name: "qemu-riscv64",
        },
        true,
    ),
    emulated(
        "armv7-unknown-linux-gnueabihf",
        Tool::new("arm-linux-gnueabihf-gcc-12", "gcc-12-arm-linux-gnueabihf"),
        Runner {
            words: &["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"],
            tool: Tool::new("qemu-arm", "qemu-user"),
            library: Tool::new("/usr/arm-linux-gnueabihf/lib/libc.so.6", "libc6-dev-armhf-cross"),
            name: "qemu-arm",
        },
        true,
    ),
    Target {
        name: "x86_64-pc-windows-gnu",
        kind: Kind::Files {
            linker: Tool::new("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-win32"),
        },
    },
    // The processor here runs 32-bit code itself; qemu-i386 hangs in the test harness.
    emulated(
        "i686-unknown-linux-gnu",
        Tool::new("i686-linux-gnu-gcc", "gcc-i686-linux-gnu"),
        Runner {
            words: &[
                "/usr/i686-linux-gnu/lib/ld-linux.so.2",
                "--library-path",
                "/usr/i686-linux-gnu/lib",
            ],
            tool: Tool::new("timeout", "coreutils"),
            library: Tool::new("/usr/i686-linux-gnu/lib/ld-linux.so.2", "libc6-dev-i386-cross"),
            name: "this processor",
        },
        false,
    ),
    emulated(
        "s390x-unknown-linux-gnu",
        Tool::new("s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu"),
        Runner {
            words: &["qemu-s390x", "-L", "/usr/s390x-linux-gnu"],
            tool: Tool::new("qemu-s390x", "qemu-user"),
            library: Tool::new("/usr/s390x-linux-gnu/lib/libc.so.6", "libc6-dev-s390x-cross"),
            name: "qemu-s390x",
        },
        false,
    ),
    emulated(
        "powerpc-unknown-linux-gnu",
        Tool::new("powerpc-linux-gnu-gcc", "gcc-powerpc-linux-gnu"),
        Runner {
            words: &["qemu-ppc", "-L", "/usr/powerpc-linux-gnu"],
            tool: Tool::new("qemu-ppc", "qemu-user"),
            library: Tool::new("/usr/powerpc-linux-gnu/lib/libc.so.6", "libc6-dev-powerpc-cross"),
            name: "qemu-ppc",
        },
        false,
    ),
];

impl Target {
    /// What is missing on this machine to build for this target and to test it.
    pub(crate) fn missing(&self) -> Vec<Tool<'static>> {
        let (linker, runner) = self.tools();
        let mut missing: Vec<Tool<'static>> = Vec::new();
        let runner_tool = runner.map(|runner| runner.tool);
        let programs = linker.into_iter().chain(runner_tool);
        missing.extend(programs.filter(|tool| !matches!(tool.version(), Ok(Some(_)))));
        let library = runner.map(|runner| runner.library);
        missing.extend(library.filter(|library| !Path::new(library.program).exists()));
        missing
    }

    /// Sets what `cargo` must know to link and run programs of this target.
    pub(crate) fn configure<'a>(&self, cargo: &'a mut Command) -> &'a mut Command {
        let variable = |what: &str| {
            format!("CARGO_TARGET_{}_{what}", self.name.replace(['-', '.'], "_").to_uppercase())
        };
        let (linker, runner) = self.tools();
        if let Some(linker) = linker {
            cargo.env(variable("LINKER"), linker.program);
            // For build scripts that compile C.
            cargo.env(format!("CC_{}", self.name.replace('-', "_")), linker.program);
        }
        if let Some(runner) = runner {
            let words: Vec<&str> = LIMITS.iter().chain(runner.words).copied().collect();
            cargo.env(variable("RUNNER"), words.join(" "));
        }
        cargo
    }

    /// What links programs, and what runs them.
    const fn tools(&self) -> (Option<Tool<'static>>, Option<&Runner>) {
        match &self.kind {
            Kind::Bare => (None, None),
            Kind::Files { linker } => (Some(*linker), None),
            Kind::Tests { linker, runner, .. } => (*linker, runner.as_ref()),
        }
    }
}

/// What every part of the matrix needs beside what targets need.
const SHARED: &[&str] =
    &["rustc-web", "cargo-web", "rust-web-src", "libstd-rust-web-dev", "lld-19", "llvm-19"];

/// Gets what is missing for `targets`: packages of Debian, then libraries.
///
/// # Errors
/// If something cannot be had.
pub(crate) fn install(workspace: &Workspace, targets: &[&Target]) -> Result<()> {
    let foreign: Vec<&Target> =
        targets.iter().copied().filter(|target| target.name != HOST).collect();
    let mut packages: Vec<&str> =
        foreign.iter().flat_map(|target| target.missing()).map(|tool| tool.package).collect();
    let without: Vec<&Target> = foreign
        .into_iter()
        .filter(|target| Toolchain::of(target.name).is_err() && !rustup_has(target.name))
        .filter(|target| target.name != MUSL)
        .collect();
    let shared =
        SHARED.iter().copied().filter(|package| !without.is_empty() || package.starts_with('l'));
    packages.extend(shared.filter(|package| !is_installed(package)));
    let emulators = crate::bare_metal::MACHINES.iter();
    let emulators =
        emulators.filter(|machine| targets.iter().any(|target| target.name == machine.target));
    packages.extend(
        emulators.map(|machine| machine.emulator.package).filter(|package| !is_installed(package)),
    );
    let loaders = boot_loader::MACHINES.iter();
    let loaders =
        loaders.filter(|machine| targets.iter().any(|target| target.name == machine.target));
    packages.extend(loaders.flat_map(Machine::packages).filter(|package| !is_installed(package)));
    packages.sort_unstable();
    packages.dedup();
    if !packages.is_empty() {
        // Debian's qemu-system would remove an older qemu-utils that is not named.
        if packages.iter().any(|package| package.starts_with("qemu-system")) {
            packages.push("qemu-utils");
        }
        let options = ["-q", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"];
        run(as_root("apt-get").args(options).arg("update"))?;
        run(as_root("apt-get")
            .args(options)
            .args(["install", "-y", "--no-install-recommends"])
            .args(&packages)
            .env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    for target in without {
        build_libraries(workspace, target.name)?;
    }
    Ok(())
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f=${db:Status-Abbrev}", package]);
    output(&mut query).is_ok_and(|status| status.stdout.starts_with(b"ii"))
}

/// `program`, by way of `sudo` unless this is root.
fn as_root(program: &str) -> Command {
    let root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if root {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.arg(program);
    command
}

/// Whether rustup brings the libraries of this target, where its server can be reached.
fn rustup_has(target: &str) -> bool {
    let mut rustup = Command::new("timeout");
    output(rustup.args(["60", "rustup", "target", "add", target])).is_ok()
        && Toolchain::Own.has(target)
}

/// Builds the library of Debian's compiler for `target` from its source and makes it part of the compiler's own.
fn build_libraries(workspace: &Workspace, target: &str) -> Result<()> {
    let parts = if target.contains("-linux-") {
        "std,panic_unwind,panic_abort,proc_macro,test"
    } else {
        "core,alloc,panic_abort"
    };
    let seed = workspace.scratch("library-seed")?;
    fs::create_dir_all(seed.join("src"))?;
    fs::write(seed.join("src").join("lib.rs"), "#![no_std]\n")?;
    fs::write(
        seed.join("Cargo.toml"),
        "[package]\nname = \"seed\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n[profile.release]\nopt-level = 3\n",
    )?;
    run(Toolchain::Debian
        .cargo()
        .current_dir(&seed)
        .args(["build", "--quiet", "--release", "--target", target])
        .arg(format!("-Zbuild-std={parts}"))
        .env("CARGO_TARGET_DIR", seed.join("target"))
        // Without it the libraries cannot take part in whole-program optimisation.
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .env("RUSTC_BOOTSTRAP", "1"))?;
    let answer =
        output(Toolchain::Debian.rustc().args(["--print", "target-libdir", "--target", target]))?;
    let to = PathBuf::from(String::from_utf8(answer.stdout)?.trim());
    run(as_root("mkdir").arg("-p").arg(&to))?;
    let made = seed.join("target").join(target).join("release").join("deps");
    let mut copied = 0;
    for file in fs::read_dir(&made).with_context(|| format!("cannot read {}", made.display()))? {
        let path = file?.path();
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.ends_with(".rlib") && !name.starts_with("libseed-") {
            run(as_root("cp").arg(&path).arg(&to))?;
            copied += 1;
        }
    }
    if copied == 0 || !Toolchain::Debian.has(target) {
        bail!("the libraries of {target} were built, and the compiler does not find them");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_linker_and_runner() {
        let target = TARGETS.iter().find(|target| target.name.starts_with("s390x")).unwrap();
        let mut command = Command::new("cargo");
        target.configure(&mut command);
        let variables: Vec<_> =
            command.get_envs().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert!(variables.contains(&"CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER".to_owned()));
        assert!(variables.contains(&"CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER".to_owned()));
    }

    /// The build server installs packages before anything is compiled: its list holds what the matrix names.
    #[test]
    fn the_build_server_installs_every_package() {
        let path = Workspace::find().unwrap().root().join(".ci/run");
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        let targets = TARGETS.iter().filter_map(|target| match &target.kind {
            Kind::Tests { linker, runner, .. } => Some((linker, runner)),
            // nobody's programs are built for these but by name
            Kind::Bare | Kind::Files { .. } => None,
        });
        let mut packages: Vec<&str> = SHARED.to_vec();
        for (linker, runner) in targets {
            packages.extend(linker.map(|tool| tool.package));
            let tools = runner.iter().flat_map(|runner| [runner.tool, runner.library]);
            packages.extend(tools.map(|tool| tool.package));
        }
        packages.extend(crate::bare_metal::MACHINES.iter().map(|machine| machine.emulator.package));
        packages.extend(boot_loader::MACHINES.iter().flat_map(Machine::packages));
        packages.retain(|package| *package != "coreutils" && !words.contains(package));
        assert_eq!(packages, [] as [&str; 0]);
    }

    #[test]
    fn every_emulated_machine_is_a_target() {
        let firmware = crate::bare_metal::MACHINES.iter().map(|machine| machine.target);
        for name in firmware.chain(boot_loader::MACHINES.iter().map(|machine| machine.target)) {
            assert!(TARGETS.iter().any(|target| target.name == name), "{name}");
        }
    }
}
