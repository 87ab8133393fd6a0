//! `hoist link OBJECT... --base ADDR -o FILE`: the image of objects for an address, relocated, whatever machine it is for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use archs::with_arch;
use elf_core::{Arch, Name, SectionFlags};
use elf_layout::{
    CodeMark, ExternalSymbol, HeapStorage, Layout, Options, Target2, is_linker_defined,
};

use crate::arguments::{ObjectArguments, definition};
use crate::at_once::on_processors;
use crate::budget::Budget;
use crate::explain::section_name;
use crate::map::Map;
use crate::number::number;
use crate::objects::Objects;
use crate::output::Output;
use crate::printable::Printable;

/// Writes the image of objects for an address, relocated.
///
/// The image begins at the base address and holds the sections of all objects with their permissions apart, the global offset
/// table, the stubs, and zeros up to its end. Nothing is written unless everything succeeds.
#[derive(Debug, clap::Args)]
pub struct Link {
    #[command(flatten)]
    objects: ObjectArguments,
    /// The address of the image: decimal, or hexadecimal after 0x.
    #[arg(long, value_name = "ADDRESS", value_parser = number)]
    base: u64,
    /// The file to write the image to.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The file to write a map to, as JSON: what is at which address.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// The address of a symbol that no object defines.
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = definition)]
    define: Vec<(String, u64)>,
    /// Makes the code of big-endian objects for Arm little-endian (BE8), as processors since Armv7 want it.
    #[arg(long)]
    be8: bool,
    /// Takes symbols that nobody defines for 0, instead of refusing them.
    #[arg(long)]
    allow_undefined: bool,
    /// How unwinding tables of Arm name types (R_ARM_TARGET2): by their address, its distance, or that of a GOT entry. Otherwise as libgcc
    /// expects it: by the distance of the address on M-profile, else by a GOT entry, as on Linux.
    #[arg(long, value_name = "HOW")]
    target2: Option<TypeInformation>,
}

/// What `R_ARM_TARGET2` is, in the words of linkers.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TypeInformation {
    Abs,
    Rel,
    GotRel,
}

impl From<TypeInformation> for Target2 {
    fn from(how: TypeInformation) -> Self {
        match how {
            TypeInformation::Abs => Self::Absolute,
            TypeInformation::Rel => Self::Relative,
            TypeInformation::GotRel => Self::GotRelative,
        }
    }
}

/// An image and its map.
#[derive(Debug)]
pub struct Image<'a> {
    /// The bytes from the base address on.
    pub bytes: Vec<u8>,
    /// What is where.
    pub map: Map<'a>,
}

/// Links objects for `base`, which `options` must have. The image has at most `limit` bytes; without one, 1 GiB and 64 times the size
/// of the objects.
///
/// # Errors
/// What the layout or a relocation met, in one line; an image that is too large, with the section that asks for most.
pub fn link<'a>(
    objects: &'a Objects<'a>,
    options: Options,
    base: u64,
    defined: &HashMap<Name<'_>, u64>,
    limit: Option<u64>,
) -> Result<Image<'a>> {
    let answer = |name: Name<'_>| defined.get(&name).copied();
    Linking { base, be8: false, limit, wants_map: true }.link(objects, options, &answer)
}

/// The same with little-endian code beside big-endian data, of objects for Arm.
///
/// # Errors
/// As [`link`], and of other objects.
pub fn link_be8<'a>(
    objects: &'a Objects<'a>,
    options: Options,
    base: u64,
    defined: &HashMap<Name<'_>, u64>,
    limit: Option<u64>,
) -> Result<Image<'a>> {
    let answer = |name: Name<'_>| defined.get(&name).copied();
    Linking { base, be8: true, limit, wants_map: true }.link(objects, options, &answer)
}

/// What is said of the image beside [`Options`].
struct Linking {
    base: u64,
    be8: bool,
    limit: Option<u64>,
    /// Whether it is asked for what is where: of large objects that takes its time.
    wants_map: bool,
}

impl Linking {
    /// Links objects, with an answer for what none of them defines.
    fn link<'a>(
        &self,
        objects: &'a Objects<'a>,
        options: Options,
        answer: &dyn Fn(Name<'_>) -> Option<u64>,
    ) -> Result<Image<'a>> {
        let files = objects.files();
        let mut room = HeapStorage::new();
        let mut externals = |name: Name<'_>| answer(name).map(ExternalSymbol::new);
        with_arch!(objects.machine(), A => {
            let planned = room.plan_numbered::<A>(files, objects.numbers(), options, &mut externals);
            let is_known = |name: Name<'_>| answer(name).is_some();
            let mut layout = planned.map_err(|error| objects.explain_all(error, &is_known))?;
            layout.set_static_tls_block(layout.executable_tls_block());
            check_size(objects, layout.size(), self.limit)?;
            let mut bytes = zeros(layout.size())?;
            let written = if self.be8 {
                let most = files.iter().map(|file| file.sections().len()).max();
                let mut marks = vec![CodeMark::default(); most.unwrap_or(0)];
                layout.write_be8(&mut bytes, self.base, &mut marks)
            } else {
                write(&layout, files, &mut bytes, self.base)
            };
            written.map_err(|error| objects.explain(error))?;
            let map = match self.wants_map {
                true => Map::of(&layout, objects, self.base),
                false => Map::default(),
            };
            Ok(Image { bytes, map })
        })
    }
}

/// Writes an image into zeros, by all processors if much is read for it. The error is the first, however many there are.
fn write<A: Arch + Sync>(
    layout: &Layout<'_, '_, A>,
    files: &[elf_core::File<'_>],
    image: &mut [u8],
    base: u64,
) -> Result<(), elf_layout::Error> {
    /// From how many bytes of objects on: for less it may take longer to wait for another thread.
    const MANY: usize = 8 << 20;
    /// So that nobody waits for long when one part has more relocations than another.
    const PARTS: usize = 8;
    let read = files.iter().map(|file| file.bytes().len()).fold(0, usize::saturating_add);
    if read < MANY {
        return layout.write_zeroed(image, base);
    }
    let parts = layout.parts(image, base, PARTS)?;
    match on_processors(PARTS, parts, |part| layout.write_part(part).is_ok()) {
        true => Ok(()),
        // for the error that is the first where there is one thread
        false => layout.write_zeroed(image, base),
    }
}

/// Refuses an image of more than `limit` bytes, or of more than the objects explain.
fn check_size(objects: &Objects<'_>, size: u64, limit: Option<u64>) -> Result<()> {
    let input = objects.files().iter().map(|file| file.bytes().len() as u64).sum();
    let budget = Budget::new(limit, 1 << 30, 64, input);
    if size <= budget.limit() {
        return Ok(());
    }
    let files = objects.files().iter().enumerate();
    let sections = files.flat_map(|(object, file)| {
        let loaded = (0u32..).zip(file.sections());
        let loaded = loaded.filter(|(_, one)| one.flags.contains(SectionFlags::ALLOC));
        loaded.map(move |(section, header)| (header.size, object, section))
    });
    let (_, object, section) = sections.max_by_key(|row| row.0).unwrap_or_default();
    let name = objects.files().get(object).and_then(|file| section_name(file, section));
    let name = Printable::from(name.unwrap_or_default());
    budget.take(format_args!("{}: section {name}: the image", objects.label(object)), size)
}

/// Writes bytes without those blocks of them that are zero: where the file system has holes, they take no room.
fn write_sparse(bytes: &[u8], out: &mut File) -> Result<()> {
    const BLOCK: usize = 1 << 16;
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        if ZEROS.get(..block.len()) != Some(block) {
            out.seek(SeekFrom::Start(number as u64 * BLOCK as u64))?;
            out.write_all(block)?;
        }
    }
    Ok(out.set_len(bytes.len() as u64)?)
}

/// Zeros that take no memory before they are written to.
fn zeros(size: u64) -> Result<Vec<u8>> {
    let context = || format!("no memory for an image of {size:#x} bytes");
    let size = usize::try_from(size).with_context(context)?;
    // `vec!` would abort
    Vec::<u8>::new().try_reserve_exact(size).with_context(context)?;
    Ok(vec![0; size])
}

impl Link {
    /// Writes image and map; prints nothing.
    ///
    /// # Errors
    /// If a file cannot be read or written, or the objects cannot be linked for this address.
    pub fn run(&self, _out: &mut dyn Write) -> Result<()> {
        let inputs = self.objects.read()?;
        let mut wanted = self.objects.wanted();
        let defined: HashMap<_, _> =
            self.define.iter().map(|(name, at)| (Name::from(name.as_str()), *at)).collect();
        wanted.retain(|name| !defined.contains_key(&Name::from(*name)));
        let objects = Objects::gather(&inputs, &wanted)?;
        let answer = |name: Name<'_>| {
            let allows = self.allow_undefined && !is_linker_defined(name);
            defined.get(&name).copied().or_else(|| allows.then_some(0))
        };
        let limit = self.objects.limits.limit;
        let wants_map = self.map.is_some();
        let linking = Linking { base: self.base, be8: self.be8, limit, wants_map };
        let target2 = self.target2.map_or_else(Target2::default, Target2::from);
        let options = Options { target2, ..self.objects.options(Some(self.base)) };
        let image = linking.link(&objects, options, &answer)?;
        let bytes = Output::new(&self.output, |out| write_sparse(&image.bytes, out))?;
        let map = self
            .map
            .as_ref()
            .map(|path| Output::new(path, |out| write_map(&image.map, out)))
            .transpose()?;
        bytes.keep()?;
        map.map_or(Ok(()), Output::keep)
    }
}

fn write_map(map: &Map<'_>, out: &mut File) -> Result<()> {
    let mut out = BufWriter::new(out);
    crate::json::write_pretty(&mut out, map)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
