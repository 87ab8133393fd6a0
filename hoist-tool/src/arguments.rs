//! Arguments that several subcommands take.

use std::path::PathBuf;

use anyhow::Result;
use clap::ArgAction;
use elf_layout::{ImageMode, Options, ThreadLocal};

use crate::budget::Limits;
use crate::input::{Input, read_all};
use crate::number::{number, power_of_two};

/// Which objects, and how to lay them out.
#[derive(Debug, clap::Args)]
pub struct ObjectArguments {
    /// Relocatable objects, and archives of them: members that define what is missing where the archive stands are taken.
    #[arg(required = true, value_name = "OBJECT")]
    pub objects: Vec<PathBuf>,
    #[command(flatten)]
    archives: ArchiveArguments,
    #[command(flatten)]
    placing: Placing,
    /// How much may be taken.
    #[command(flatten)]
    pub limits: Limits,
}

/// Which members of archives are taken.
#[derive(Debug, clap::Args)]
pub struct ArchiveArguments {
    /// Takes the member of an archive that defines this symbol, even if nothing asks for it
    #[arg(short, long, value_name = "NAME")]
    undefined: Vec<String>,
    /// Takes every member of the archives, asked for or not
    #[arg(long)]
    whole_archive: bool,
    /// Searches the archives in turn until none has what is missing, so that their order does not matter
    #[arg(long)]
    group: bool,
    /// The same, as linkers write it
    #[arg(long, action = ArgAction::Count)]
    start_group: u8,
    /// Ends what --start-group begins; all archives are of the group
    #[arg(long, action = ArgAction::Count)]
    end_group: u8,
}

impl ArchiveArguments {
    /// Reads files.
    ///
    /// # Errors
    /// As [`Input::read`].
    pub fn read(&self, paths: &[PathBuf], limits: Limits) -> Result<Vec<Input>> {
        let is_group = self.group || self.start_group > 0 || self.end_group > 0;
        let how = |input: Input| input.whole(self.whole_archive).group(is_group);
        Ok(read_all(paths, limits)?.into_iter().map(how).collect())
    }

    /// Names that archives are asked for from the start.
    #[must_use]
    pub fn wanted(&self) -> Vec<&str> {
        self.undefined.iter().map(String::as_str).collect()
    }
}

/// How to lay out.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Placing {
    /// Size of a page in bytes: each permission has pages of its own.
    #[arg(long, value_name = "BYTES", value_parser = power_of_two, default_value = "4096")]
    page_size: u64,
    /// Packs all sections into one segment, in file order, each at least at this alignment.
    #[arg(long, value_name = "BYTES", value_parser = power_of_two, conflicts_with = "page_size")]
    packed: Option<u64>,
    /// Leaves instructions that use the global offset table as they are, even where they could do without, and thread-local variables
    /// to the functions that code was compiled to ask.
    #[arg(long)]
    no_relax: bool,
    /// Lets RISC-V code count from `__global_pointer$`, which an object or --define says: what starts the image has set `gp` to it.
    #[arg(long, conflicts_with = "no_relax")]
    relax_gp: bool,
}

impl ObjectArguments {
    /// Options for an image at `base`, if that is known.
    #[must_use]
    pub fn options(&self, base: Option<u64>) -> Options {
        let mode = match self.placing {
            Placing { packed: Some(section_alignment), .. } => {
                ImageMode::Packed { section_alignment }
            }
            Placing { page_size, .. } => ImageMode::Segments { page_size },
        };
        let thread_local =
            if self.placing.no_relax { ThreadLocal::AsCompiled } else { ThreadLocal::LocalExec };
        let relax = !self.placing.no_relax;
        Options {
            mode,
            base,
            relax,
            thread_local,
            global_pointer: self.placing.relax_gp,
            executable: true,
            hidden_externals: true,
            ..Options::default()
        }
    }

    /// The files.
    ///
    /// # Errors
    /// As [`Input::read`].
    pub fn read(&self) -> Result<Vec<Input>> {
        self.archives.read(&self.objects, self.limits)
    }

    /// Names that archives are asked for from the start.
    #[must_use]
    pub fn wanted(&self) -> Vec<&str> {
        self.archives.wanted()
    }
}

/// A name and its address: `NAME=ADDRESS`.
///
/// # Errors
/// If it is not that.
pub fn definition(text: &str) -> Result<(String, u64), String> {
    let (name, address) = text.rsplit_once('=').ok_or("not NAME=ADDRESS")?;
    Ok((name.to_owned(), number(address)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions() {
        assert_eq!(definition("operator==0x10"), Ok((String::from("operator="), 16)));
        assert!(definition("puts").is_err());
    }
}
