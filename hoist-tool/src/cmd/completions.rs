//! `hoist completions SHELL`: made of the same source as `--help`.

use std::io::Write;

use anyhow::Result;
use clap::Command;
use clap_complete::Generator as _;

/// Prints what a shell needs to complete commands and options.
///
/// For bash: `hoist completions bash > ~/.local/share/bash-completion/completions/hoist`.
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl Completions {
    /// Prints the script for `command` to `out`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn run(&self, mut command: Command, out: &mut dyn Write) -> Result<()> {
        command.set_bin_name("hoist");
        command.build();
        Ok(self.shell.try_generate(&command, out)?)
    }
}
