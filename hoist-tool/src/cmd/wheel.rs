//! `hoist wheel`: wheels of Python, one file per subcommand.

use std::io::Write;

use anyhow::Result;

use crate::progress::during;

pub mod record;
pub mod slim;
pub mod zip;

/// Changes wheels of Python.
#[derive(Debug, clap::Subcommand)]
pub enum Wheel {
    /// Makes the device code in a wheel smaller; all else is as it was, byte for byte.
    Slim(slim::Slim),
}

impl Wheel {
    /// Does what the subcommand says and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn run(self, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::Slim(command) => during("making the wheel smaller", || command.run(out)),
        }
    }
}
