//! Other programs: running them, and saying which package brings one that is missing.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// A program and the Debian package that brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tool<'a> {
    /// What it is called by.
    pub(crate) program: &'a str,
    /// What to install where it is missing.
    pub(crate) package: &'a str,
}

impl<'a> Tool<'a> {
    /// `program`, which `package` brings.
    pub(crate) const fn new(program: &'a str, package: &'a str) -> Self {
        Self { program, package }
    }

    /// Whether this machine has it, asked by `--version`: the first line of the answer.
    ///
    /// # Errors
    /// If it is there and cannot be run.
    pub(crate) fn version(self) -> Result<Option<String>> {
        match Command::new(self.program).arg("--version").stdin(Stdio::null()).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot run {}", self.program)),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                Ok(Some(text.lines().next().unwrap_or_default().trim().to_owned()))
            }
        }
    }
}

/// Something is not on this machine: what, and how to get it.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// Fails with the packages to install unless every one of `tools` is on this machine.
///
/// # Errors
/// [`Missing`] if one is; if one cannot be run.
pub(crate) fn need<'a>(tools: impl IntoIterator<Item = Tool<'a>>) -> Result<()> {
    let mut missing = Vec::new();
    for tool in tools {
        if !missing.contains(&tool) && tool.version()?.is_none() {
            missing.push(tool);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let (programs, packages) = (programs.join(", "), packages.join(" "));
    Err(Missing(format!("{programs} not found; on Debian: apt-get install {packages}")).into())
}

/// The `cargo` that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Shows `command`, then runs it to its end, its output going where ours goes.
///
/// # Errors
/// If it cannot be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", words(command));
    let status = command.status().with_context(|| format!("cannot run {}", words(command)))?;
    if !status.success() {
        bail!("{}: {status}", words(command));
    }
    Ok(())
}

/// Runs `command` to its end in silence and returns what it wrote.
///
/// # Errors
/// If it cannot be started or does not succeed; what it wrote to standard error is part of the message.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", words(command)))?;
    if !output.status.success() {
        bail!(
            "{}: {}\n{}",
            words(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(output)
}

/// The files of a wheel, or another zip, in a folder.
///
/// # Errors
/// As [`output`].
pub(crate) fn unzip(wheel: &Path, folder: &Path) -> Result<()> {
    output(Command::new("python3").args(["-m", "zipfile", "-e"]).args([wheel, folder])).map(drop)
}

/// `command` as a person would type it: the program by its file name.
fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_names_its_package() {
        let error = need([Tool::new("no-such-program-of-hoist", "the-package")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program-of-hoist not found; on Debian: apt-get install the-package"
        );
    }

    #[test]
    fn commands_are_shown_without_their_folder() {
        let mut command = Command::new("/some/where/cargo");
        command.args(["test", "--workspace"]);
        assert_eq!(words(&command), "cargo test --workspace");
    }
}
