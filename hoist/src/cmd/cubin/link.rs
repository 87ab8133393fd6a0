//! `hoist cubin link A.cubin B.cubin -o OUTPUT`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;

/// Links relocatable cubins into one that can be loaded.
#[derive(Debug, clap::Args)]
pub(super) struct Link {
    /// Relocatable cubins of one architecture, in the order of linking.
    #[arg(required = true, value_name = "CUBIN")]
    files: Vec<PathBuf>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// x
#[derive(Debug, Serialize)]
pub struct Linked;

/// x
pub fn link() {}

impl Link {
    pub(super) fn run(&self, _out: &mut dyn Write) -> Result<()> {
        bail!("not yet: {:?} {:?}", self.files, self.output)
    }
}
