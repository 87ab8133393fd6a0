//! `wheels`: the Python package for other machines and older C libraries.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::asked;
use super::emulated;
use super::environment::{Build, Environment};
use crate::task::Run;
use crate::test;
use crate::tool::{Missing, output, unzip};
use crate::workspace::Workspace;

/// Arguments of `wheels`.
#[derive(clap::Args)]
pub(crate) struct Wheels {
    /// Cargo's profile
    #[arg(long, default_value = "wheel")]
    profile: String,
    /// Which targets, of those that there are; all without any
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(TARGETS.iter().map(|(target, _)| *target)))]
    targets: Vec<String>,
}

/// Targets, and which machines of these the wheels are for. maturin looks at what the library asks of the C library, and refuses more.
const TARGETS: &[(&str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "manylinux_2_17"),
    ("aarch64-unknown-linux-gnu", "manylinux_2_17"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    ("aarch64-unknown-linux-musl", "musllinux_1_2"),
];

/// The linker and C libraries of these.
const ZIG: &str = "ziglang>=0.13,<1";

impl Run for Wheels {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let Some(environment) = Environment::find(workspace, "wheels", None, false)? else {
            return Ok(());
        };
        environment.packages(&[ZIG])?;
        let mut rustc = Command::new("rustc");
        let library = output(rustc.args(["--print", "sysroot"]))?.stdout;
        let library = Path::new(String::from_utf8_lossy(&library).trim()).join("lib/rustlib");
        let mut made = 0;
        for (target, compatibility) in TARGETS {
            if !self.targets.is_empty() && !self.targets.iter().any(|wanted| wanted == target) {
                continue;
            }
            if !library.join(target).exists() {
                test::skip(&format!("wheels/{target}"), &format!("rustup target add {target}"));
                continue;
            }
            let wanted = Build { profile: &self.profile, compatibility, target: Some(target) };
            let wheel = environment.wheel(workspace, &wanted)?;
            // musl's symbols have no versions, and this Python is one of glibc
            if target.ends_with("-gnu") {
                let files = workspace.scratch("wheel-files")?;
                unzip(&wheel, &files)?;
                asked::check(&files.join("hoist"))?;
                if target.starts_with(std::env::consts::ARCH) {
                    environment.alone(workspace, &wheel, None)?;
                } else {
                    match emulated::alone(workspace, &wheel, target) {
                        Ok(Some(python)) => println!("alone in {python}"),
                        Ok(None) => {}
                        Err(error) if error.is::<Missing>() => {
                            test::skip(&format!("wheels/{target}"), &format!("{error}"));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            println!("{}", wheel.display());
            made += 1;
        }
        if made == 0 {
            bail!("no wheel was made");
        }
        Ok(())
    }
}
