//! `hoist layout OBJECT...`: where each section goes, and why.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use archs::with_arch;
use elf_core::Name;
use elf_layout::{ExternalSymbol, HeapStorage, Options, is_linker_defined};

use crate::arguments::ObjectArguments;
use crate::json::JsonArguments;
use crate::objects::Objects;
use crate::output;
use crate::picture;
use crate::progress::during;

mod rows;
mod svg;
mod text;

pub use rows::{Entry, NotLoaded, Part, Placement, Reason, SegmentRow, What};

/// Shows where the sections of objects go, and why: permission, alignment, padding; what is added; what is left out.
///
/// Symbols that no object defines are taken to be somewhere else.
#[derive(Debug, clap::Args)]
pub struct Layout {
    #[command(flatten)]
    objects: ObjectArguments,
    #[command(flatten)]
    json: JsonArguments,
    /// Draws the image and its segments to scale, as an SVG file.
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    svg: bool,
    /// The file to draw to; otherwise standard output.
    #[arg(short, long, value_name = "FILE", requires = "svg")]
    output: Option<PathBuf>,
}

/// Lays out objects and says what went where.
///
/// # Errors
/// What the layout met, in one line.
pub fn layout<'a>(objects: &'a Objects<'a>, options: Options) -> Result<Placement<'a>> {
    let files = objects.files();
    let mut room = HeapStorage::new();
    let mut undefined = Vec::new();
    let mut externals = |name: Name<'_>| {
        if is_linker_defined(name) {
            return None;
        }
        undefined.push(name.to_string());
        Some(ExternalSymbol::new(0))
    };
    with_arch!(objects.machine(), A => {
        let layout = room.plan_numbered::<A>(files, objects.numbers(), options, &mut externals).map_err(|error| objects.explain(error))?;
        Ok(Placement::of(&layout, objects, undefined))
    })
}

impl Layout {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read, or the objects cannot be laid out.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let inputs = self.objects.read()?;
        let objects = Objects::gather(&inputs, &self.objects.wanted())?;
        let options = self.objects.options(None);
        let placement = during("laying out", || layout(&objects, options))?;
        if self.json.is_on() {
            crate::json::write(out, &placement)?;
            return Ok(writeln!(out)?);
        }
        if self.svg {
            let strips = svg::strips(&placement);
            return output::text(self.output.as_deref(), out, |out| {
                picture::write("layout", &strips, out)
            });
        }
        text::write(&placement, out)
    }
}
