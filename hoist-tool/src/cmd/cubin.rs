//! `hoist cubin ...`: what CUDA cubins hold, changes in place, and device linking.

use std::io::Write;

use anyhow::Result;
use fatbin::Sm;

use crate::progress::during;

mod attributes;
mod changes;
mod disasm;
mod images;
mod index;
mod kernel;
mod link;
mod look;
mod module;
mod objects;
mod params;
mod patch;
mod payload;
mod relocs;
pub(crate) mod show;
mod shown;
mod svg;
mod symbols;
mod text;
mod toolkit;

pub use super::fatbin::cubins::ImagePlace;
pub use attributes::{AttributeRow, AttributeSection, attributes};
pub use changes::{Change, Changes, ValueChange};
pub use kernel::{Bank, Kernel, Occupancy, Subroutine};
pub use link::{CallRow, LinkTo, Linked, link_files};
pub use module::{Module, Tool, Variable};
pub use params::ParameterRow;
pub use patch::{Patched, Suspect, patch};
pub use payload::{
    BranchValue, LoadValue, MbarrierValue, PayloadValue, RegisterValue, ResumeValue,
};
pub use relocs::{CudaRelocation, CudaRelocations, relocations};
pub use shown::{Shown, report};

/// Shows, changes and links CUDA cubins.
#[derive(Debug, clap::Args)]
pub struct Cubin {
    #[command(subcommand)]
    command: Command,
    /// Of the cubins in fatbins and host files, those for these architectures; for `link`, the one to link for.
    #[arg(long, value_name = "ARCH", global = true, value_delimiter = ',')]
    arch: Vec<Sm>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Shows kernels and what they need, then the module.
    Show(show::Show),
    /// Shows every attribute of `.nv.info` and `.nv.compat`.
    Attributes(attributes::Attributes),
    /// Shows relocations: who resolves them, and which bits they fill.
    Relocs(relocs::Relocs),
    /// Shows the parameters of a kernel.
    Params(params::Params),
    /// Changes numbers and code in place, and says what no longer fits the code.
    Patch(patch::Patch),
    /// Shows machine code through nvdisasm.
    Disasm(disasm::Disasm),
    /// Links relocatable cubins into one that can be loaded.
    Link(link::Link),
}

impl Cubin {
    /// Does what the subcommand says and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        match &self.command {
            Command::Show(command) => command.run(&self.arch, out),
            Command::Attributes(command) => command.run(&self.arch, out),
            Command::Relocs(command) => command.run(&self.arch, out),
            Command::Params(command) => command.run(&self.arch, out),
            Command::Patch(command) => command.run(out),
            Command::Disasm(command) => command.run(&self.arch, out),
            Command::Link(command) => during("linking", || command.run(&self.arch, out)),
        }
    }
}
