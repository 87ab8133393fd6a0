//! `hoist link OBJECT... --base ADDR -o FILE`: the image of objects for an address, relocated, whatever machine it is for.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use elf_core::Name;
use elf_layout::{External, Options, Room};
use tempfile::NamedTempFile;

use crate::arguments::{ObjectArguments, definition, number};
use crate::map::Map;
use crate::objects::Objects;
use crate::with_arch;

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
}

/// An image and its map.
#[derive(Debug)]
pub struct Image<'a> {
    /// The bytes from the base address on.
    pub bytes: Vec<u8>,
    /// What is where.
    pub map: Map<'a>,
}

/// Links objects for `base`, which `options` must have.
///
/// # Errors
/// What the layout or a relocation met, in one line.
pub fn link<'a>(
    objects: &'a Objects<'a>,
    options: Options,
    base: u64,
    defined: &HashMap<Name<'_>, u64>,
) -> Result<Image<'a>> {
    let files = objects.files();
    let mut room = Room::new();
    let mut externals = |name: Name<'_>| Some(External::new(*defined.get(&name)?));
    with_arch!(objects.machine(), A => {
        let mut layout = room.plan::<A>(files, options, &mut externals).map_err(|error| objects.explain(error))?;
        layout.set_thread_area(layout.executable_area());
        let mut bytes = zeros(layout.size())?;
        layout.write_zeroed(&mut bytes, base).map_err(|error| objects.explain(error))?;
        Ok(Image { bytes, map: Map::of(&layout, objects, base) })
    })
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
        let image = link(&objects, self.objects.options(Some(self.base)), self.base, &defined)?;
        let bytes = Ready::new(&self.output, |out| Ok(out.write_all(&image.bytes)?))?;
        let map = self
            .map
            .as_ref()
            .map(|path| Ready::new(path, |out| write_map(&image.map, out)))
            .transpose()?;
        bytes.keep()?;
        map.map_or(Ok(()), Ready::keep)
    }
}

fn write_map(map: &Map<'_>, out: &mut File) -> Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, map)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// A file whose content is written, under another name until it is kept.
struct Ready {
    content: NamedTempFile,
    target: PathBuf,
    /// A terminal, a pipe, `/dev/null`: is not replaced but written to.
    is_special: bool,
}

impl Ready {
    fn new(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<Self> {
        let context = || path.display().to_string();
        // what a link leads to is replaced, not the link
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_special = fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file());
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let folder = if is_special { &std::env::temp_dir() } else { folder };
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask
        let mut content = builder.tempfile_in(folder).with_context(context)?;
        write(content.as_file_mut()).with_context(context)?;
        Ok(Self { content, target, is_special })
    }

    fn keep(self) -> Result<()> {
        let Self { mut content, target, is_special } = self;
        let copy = |content: &mut NamedTempFile| {
            content.rewind()?;
            io::copy(content, &mut File::options().write(true).open(&target)?).map(drop)
        };
        let done = if is_special {
            copy(&mut content)
        } else {
            content.persist(&target).map(drop).map_err(Into::into)
        };
        done.with_context(|| target.display().to_string())
    }
}
