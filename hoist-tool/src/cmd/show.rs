//! `hoist show FILE`: what ELF files and archives contain, for people or, with `--json`, for programs.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::budget::{Budget, Limits, Metered};
use crate::input::{self, Part};
use crate::json::JsonArguments;
use crate::objects::parse;
use crate::output;
use crate::picture;

mod dump;
mod dynamic;
mod json;
mod notes;
mod rows;
mod sections;
mod selection;
mod svg;
mod text;
mod versions;

pub use dump::{Dump, RelocationSection, Symbols};
pub use dynamic::DynamicRow;
pub use notes::{Hex, Note, NoteList, Property};
pub use rows::{Header, Relocation, Section, Segment, SymbolRow};
pub use selection::Selection;
pub use versions::Version;

/// Shows what ELF files and archives contain.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// ELF files of any kind, and archives of them; of folders, wheels, zip and tar files all that are inside.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    json: JsonArguments,
    /// Draws files and the memory of their segments to scale, as an SVG file.
    #[arg(long, conflicts_with_all = ["json", "json_lines", "Selection"])]
    svg: bool,
    /// The file to draw to; otherwise standard output.
    #[arg(short, long, value_name = "FILE", requires = "svg")]
    output: Option<PathBuf>,
}

impl Show {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or printed, or is damaged; what was printed before stays.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        if self.svg {
            return self.draw(out);
        }
        if self.json.is_on() {
            write!(out, "{{\"files\":[")?;
        }
        let mut first = true;
        for path in &self.files {
            input::each(path, self.limits, |input| {
                for part in input.parts()? {
                    if !core::mem::take(&mut first) {
                        out.write_all(if self.json.is_on() { b"," } else { b"\n" })?;
                    }
                    // a word of packed relocations is 63 rows of them
                    let size = part.bytes.len() as u64;
                    let budget = Budget::new(self.limits.limit, 1 << 28, 1 << 10, size);
                    let out = &mut Metered::new(&budget, out);
                    show(&part, &input.label(), self.selection, self.json.is_on(), out)?;
                }
                Ok(())
            })?;
        }
        if self.json.is_on() {
            writeln!(out, "]}}")?;
        }
        Ok(())
    }

    /// One picture of all files and members.
    fn draw(&self, out: &mut dyn Write) -> Result<()> {
        let mut strips = Vec::new();
        for path in &self.files {
            input::each(path, self.limits, |input| {
                for part in input.parts()? {
                    let Some(dump) = opened(&part)? else { continue };
                    let size = part.bytes.len() as u64;
                    strips.extend(
                        svg::strips(&part.label, size, &dump)
                            .with_context(|| part.label.clone())?,
                    );
                }
                Ok(())
            })?;
        }
        output::text(self.output.as_deref(), out, |out| picture::write("files", &strips, out))
    }
}

/// What a file or member of an archive holds; nothing if it is a member that is no ELF file.
fn opened<'a>(part: &Part<'a>) -> Result<Option<Dump<'a>>> {
    match (parse(part.bytes), &part.member) {
        (Ok(file), _) => Ok(Some(Dump::new(file))),
        // archives hold other files as well
        (Err(_), Some(_)) if !part.bytes.starts_with(&elf_core::names::ELFMAG) => Ok(None),
        (Err(error), _) => Err(error).with_context(|| part.label.clone()),
    }
}

/// Prints one file or member of an archive: text, or a JSON object.
///
/// # Errors
/// If it is damaged, or cannot be printed.
pub fn show(
    part: &Part<'_>,
    path: &str,
    selection: Selection,
    json: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let context = || part.label.clone();
    let dump = opened(part)?;
    let selection = selection.resolved();
    if json {
        return json::write(part, path, dump, selection, out).with_context(context);
    }
    text::write(part, dump, selection, out).with_context(context)
}
