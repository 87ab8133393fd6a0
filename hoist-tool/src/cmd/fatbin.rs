//! `hoist fatbin`: device code inside host files, one file per subcommand.

use std::io::Write;

use anyhow::Result;

use crate::progress::during;

pub mod blob;
pub mod change;
pub mod cubins;
pub mod diff;
pub mod disasm;
pub mod extract;
pub mod fatbinary;
pub mod filter;
pub mod find;
pub mod found;
pub mod holding;
pub mod keep;
pub mod kernels;
pub mod list;
pub mod names;
pub mod offload;
pub mod pack;
pub mod payload;
pub mod prune;
pub mod ptx;
pub mod recompress;
pub mod replace;
pub mod report;
pub mod room;
pub mod rows;
pub mod scan;
pub mod select;
pub mod size;
pub mod slim;
pub mod stored;
pub mod unpacking;

/// Lists, extracts, packs and changes device code inside host files.
#[derive(Debug, clap::Subcommand)]
pub enum Fatbin {
    /// Lists regions and their entries.
    List(list::List),
    /// Writes entries to files, unpacked, named as cuobjdump names them.
    Extract(extract::Extract),
    /// Shows which entry of each region a driver would take for a device.
    Select(select::Select),
    /// Packs cubins and PTX into a fatbin, or into an object with a wrapper.
    Pack(pack::Pack),
    /// LLVM's containers.
    #[command(subcommand)]
    Offload(offload::Offload),
    /// Shows which architectures the files of a tree cover.
    Scan(scan::Scan),
    /// Shows in which files, regions and architectures kernels are.
    Find(find::Find),
    /// Shows which kernels two files or trees do not have in common, or need more or less.
    Diff(diff::Diff),
    /// Shows machine code of kernels, through nvdisasm.
    Disasm(disasm::Disasm),
    /// Shows PTX: its kernels, its text, lines of it.
    Ptx(ptx::Ptx),
    /// Shows what device code is made of, in bytes.
    Size(size::Size),
    /// Writes a page: where the space goes, what kernels need, what changed.
    Report(report::Report),
    /// Puts other code in place of an entry.
    Replace(replace::Replace),
    /// Removes entries.
    Prune(prune::Prune),
    /// Compresses entries in another way.
    Recompress(recompress::Recompress),
    /// Makes installed libraries smaller, and back again.
    Slim(slim::Slim),
}

impl Fatbin {
    /// Does what the subcommand says and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn run(self, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::List(command) => command.run(out),
            Self::Extract(command) => command.run(out),
            Self::Select(command) => command.run(out),
            Self::Pack(command) => during("packing", || command.run(out)),
            Self::Offload(command) => command.run(out),
            Self::Scan(command) => command.run(out),
            Self::Find(command) => command.run(out),
            Self::Diff(command) => command.run(out),
            Self::Disasm(command) => command.run(out),
            Self::Ptx(command) => command.run(out),
            Self::Size(command) => command.run(out),
            Self::Report(command) => command.run(out),
            Self::Replace(command) => during("replacing", || command.run(out)),
            Self::Prune(command) => during("removing entries", || command.run(out)),
            Self::Recompress(command) => during("compressing", || command.run(out)),
            Self::Slim(command) => during("making files smaller", || command.run(out)),
        }
    }
}
