//! `hoist man [FOLDER]`: manual pages, made of the same source as `--help`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Command;

/// Prints the manual page, or writes those of all commands into a folder.
#[derive(Debug, clap::Args)]
pub struct Man {
    /// The folder: hoist.1, hoist-run.1 and so on. It is made if it is not there.
    folder: Option<PathBuf>,
}

impl Man {
    /// Prints the page of `command` to `out`, or writes all pages.
    ///
    /// # Errors
    /// If a page cannot be written.
    pub fn run(&self, command: Command, out: &mut dyn Write) -> Result<()> {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        match &self.folder {
            None => Ok(clap_mangen::Man::new(command).render(out)?),
            Some(folder) => {
                fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
                write(command, folder)
            }
        }
    }
}

/// Writes the page of a command, and those of its subcommands.
fn write(command: Command, folder: &Path) -> Result<()> {
    for subcommand in command.get_subcommands() {
        write(subcommand.clone(), folder)?;
    }
    let page = clap_mangen::Man::new(command);
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(&path, text).with_context(|| path.display().to_string())
}
