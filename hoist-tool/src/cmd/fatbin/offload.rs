//! `hoist fatbin offload list|extract|pack`: LLVM's containers.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Error, Result, ensure};
use elf_core::File;
use fatbin::{Container, Search, host_entries};
use serde::Serialize;

use super::found::containers;
use crate::budget::{Budget, FLOOR, TIMES};
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::number::number;
use crate::output;
use crate::paint;
use crate::printable::Printable;
use crate::shown;
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::{Table, line};

mod images;
mod pack;

use images::{Image, Row, images};

/// Lists, extracts and packs LLVM's containers: OffloadBinaries and bundles.
#[derive(Debug, clap::Subcommand)]
pub enum Offload {
    /// Lists images, and what a host program registers.
    List(List),
    /// Writes images to files.
    Extract(Extract),
    /// Packs images into an OffloadBinary each, one after another.
    Pack(pack::Pack),
}

impl Offload {
    /// Does what the subcommand says and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn run(self, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::List(command) => command.run(out),
            Self::Extract(command) => command.run(out),
            Self::Pack(command) => command.run(out),
        }
    }
}

/// Which images; all if nothing is said.
#[derive(Debug, Default, clap::Args)]
struct Filter {
    /// Architectures: `sm_90`, `gfx90a`.
    #[arg(long, value_delimiter = ',', value_name = "ARCH")]
    arch: Vec<String>,
    /// Kinds, as `list` calls them: `o`, `bc`, `cubin`, `s`.
    #[arg(long, value_delimiter = ',', value_name = "KIND")]
    kind: Vec<String>,
}

impl Filter {
    const fn is_all(&self) -> bool {
        self.arch.is_empty() && self.kind.is_empty()
    }

    fn wants(&self, image: &Image<'_>) -> bool {
        (self.arch.is_empty() || self.arch.contains(&image.arch))
            && (self.kind.is_empty() || self.kind.contains(&image.kind))
    }
}

/// Lists the images of LLVM's containers, and what a host program registers.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    json: JsonArguments,
}

/// What a program registers.
#[derive(Debug, Serialize)]
struct HostRow {
    name: Option<String>,
    producer: Option<&'static str>,
    kernel: bool,
    size: u64,
    flags: u32,
    offset: u64,
}

impl List {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read, is damaged, or holds no such container.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut faults = Faults::default();
        let mut roots = Roots::default();
        let mut files = Vec::new();
        let look = |source: Source| {
            let budget = Budget::new(None, FLOOR, TIMES, source.file.bytes().len() as u64);
            let (mut images, mut errors) = (Vec::new(), Vec::new());
            let listed = each_image(&source, &budget, &mut errors, |image| {
                images.extend(self.filter.wants(image).then(|| image.row()));
                Ok(())
            });
            errors.extend(listed.err());
            let hosts = match self.filter.is_all() || !images.is_empty() {
                true => hosts(source.file.bytes()),
                false => Vec::new(),
            };
            (source.label.clone(), images, hosts, errors)
        };
        self.sources.each(Order::AtOnce, look, |root, found| {
            let (label, images, hosts, errors) = match found {
                Ok(found) => found,
                Err(error) => {
                    roots.failed(root);
                    faults.push(error);
                    return Ok(());
                }
            };
            let is_empty = images.is_empty() && hosts.is_empty();
            roots.has(root, !is_empty || !errors.is_empty());
            errors.into_iter().for_each(|error| faults.push(error));
            if !is_empty {
                files.push((label, images, hosts));
            }
            Ok(())
        })?;
        roots.empty(&self.sources.paths, "holds no container of LLVM's", &mut faults);
        if self.json.is_on() {
            let row = |(label, images, hosts): &(String, Vec<Row>, Vec<HostRow>)| serde_json::json!({ "file": label, "images": images, "host_entries": hosts });
            let rows: Vec<_> = files.iter().map(row).collect();
            crate::json::write(out, &serde_json::json!({ "files": rows }))?;
            writeln!(out)?;
            return faults.result();
        }
        for (index, (label, images, hosts)) in files.into_iter().enumerate() {
            out.write_all(if index == 0 { b"" } else { b"\n" })?;
            if self.sources.paths.len() > 1 || label != self.sources.root(0) {
                let label = Printable::from(&*label).to_string();
                paint::title(out, format_args!("{}", line(&label, ":")))?;
            }
            text(images, &hosts, out)?;
        }
        faults.result()
    }
}

fn text(images: Vec<Row>, hosts: &[HostRow], out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    table.heading([
        "image",
        "container",
        "kind",
        "producer",
        "arch",
        "triple",
        "offset",
        "size",
    ])?;
    for row in images {
        table.row([
            row.index.to_string(),
            row.container.to_owned(),
            row.kind,
            row.producer,
            row.arch,
            row.triple,
            row.offset.map(|offset| format!("{offset:#x}")).unwrap_or_default(),
            row.size.to_string(),
        ])?;
    }
    table.end()?;
    if hosts.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(out);
    table.heading(["host entry", "what", "producer", "size"])?;
    for host in hosts {
        table.row([
            &*Printable::from(host.name.as_deref().unwrap_or_default()).to_string(),
            if host.kernel { "kernel" } else { "variable" },
            host.producer.unwrap_or_default(),
            &host.size.to_string(),
        ])?;
    }
    table.end()
}

/// What a host program registers; nothing if it is none, or cannot be read.
fn hosts(bytes: &[u8]) -> Vec<HostRow> {
    let Ok(file) = File::parse(bytes) else { return Vec::new() };
    let row = |entry: fatbin::HostEntry<'_>| HostRow {
        name: entry.name.map(|name| name.to_string()),
        producer: entry.producer.name(),
        kernel: entry.is_kernel(),
        size: entry.size,
        flags: entry.flags,
        offset: entry.at,
    };
    host_entries(&file).filter_map(Result::ok).map(row).collect()
}

/// Calls `each` with the images of LLVM's containers in a file, one after another; what is wrong with these is added to `errors`.
///
/// # Errors
/// The first of `each`: nothing is unpacked behind it.
fn each_image(
    source: &Source,
    budget: &Budget,
    errors: &mut Vec<Error>,
    mut each: impl FnMut(&Image<'_>) -> Result<()>,
) -> Result<()> {
    let (mut index, mut is_over) = (0, false);
    for found in containers(&source.file, Search::Always, |found| found.container) {
        let mut numbered = |image: Image<'_>| {
            let result = each(&image.numbered(index));
            index += 1;
            is_over = result.is_err();
            result
        };
        let result = match found {
            Ok(Container::Region(_) | Container::Cubin(_)) => continue,
            Ok(container) => images(source.file.bytes(), container, budget, &mut numbered),
            Err(error) => Err(error.into()),
        };
        match result {
            Err(error) if is_over => return Err(error),
            result => errors.extend(result.err().map(|it| it.context(source.label.clone()))),
        }
    }
    Ok(())
}

/// Writes the images of LLVM's containers to files.
#[derive(Debug, clap::Args)]
pub struct Extract {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: Filter,
    /// The folder to write to; `-` is standard output, for a single image.
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
    /// The most bytes that the containers of a file may unpack to and have written, together: otherwise 256 MiB and 64 times the
    /// size of the file.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
    #[command(flatten)]
    json: JsonArguments,
}

impl Extract {
    /// Writes files and prints their names to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or written, is damaged, or has no such image. What could be extracted stays.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let done = Mutex::new(Done::default());
        let look = |source: Source| {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            self.of_source(&source, &mut done)
        };
        let mut roots = Roots::default();
        let mut errors = Vec::new();
        self.sources.each(Order::OneByOne, look, |root, found| {
            match found.and_then(|found| found) {
                Ok(has) => roots.has(root, has),
                Err(error) => {
                    roots.failed(root);
                    errors.push(error);
                }
            }
            Ok(())
        })?;
        let Done { mut faults, written, .. } =
            done.into_inner().unwrap_or_else(PoisonError::into_inner);
        errors.into_iter().for_each(|error| faults.push(error));
        roots.empty(&self.sources.paths, "nothing to extract", &mut faults);
        if self.json.is_on() {
            crate::json::write(out, &serde_json::json!({ "files": written }))?;
            writeln!(out)?;
        } else {
            for one in &written {
                writeln!(out, "{}", Printable::from(&*one.name))?;
            }
        }
        faults.result()
    }

    /// Writes the images of a file: whether there are any, or something is wrong.
    fn of_source(&self, source: &Source, done: &mut Done) -> Result<bool> {
        let label = &source.label;
        let budget = Budget::new(self.limit, FLOOR, TIMES, source.file.bytes().len() as u64);
        let is_stdout = self.output.as_os_str() == "-";
        let (mut count, mut first, mut errors) = (0usize, Vec::new(), Vec::new());
        let result = each_image(source, &budget, &mut errors, |image| {
            if !self.filter.wants(image) {
                return Ok(());
            }
            count += 1;
            match is_stdout {
                true if count == 1 => first.extend_from_slice(image.bytes),
                true => {}
                false => self.write(image, source, &budget, done)?,
            }
            Ok(())
        });
        let is_wrong = !errors.is_empty();
        errors.into_iter().for_each(|error| done.faults.push(error));
        result?;
        if is_stdout && count > 0 {
            done.printed += count;
            ensure!(
                done.printed == 1,
                "{label}: {} images, but standard output takes one",
                done.printed
            );
            shown::bytes(&first)?;
        }
        Ok(is_wrong || count > 0)
    }

    /// Writes an image to a file.
    fn write(
        &self,
        image: &Image<'_>,
        source: &Source,
        budget: &Budget,
        done: &mut Done,
    ) -> Result<()> {
        let label = &source.label;
        fs::create_dir_all(&self.output).with_context(|| self.output.display().to_string())?;
        let name = done.name(image.file_name(stem(Path::new(&source.name))));
        let target = self.output.join(&name);
        let size = image.bytes.len();
        budget.take(format_args!("{label}: {name}"), size as u64)?;
        output::write_inside(&self.output, &name, |file| file.write_all(image.bytes))
            .with_context(|| target.display().to_string())?;
        done.written.push(Written { file: label.clone(), image: image.index, size, name });
        Ok(())
    }
}

/// What is made of the files so far.
#[derive(Default)]
struct Done {
    faults: Faults,
    written: Vec<Written>,
    names: HashSet<String>,
    /// How many there were for standard output.
    printed: usize,
}

/// A file that was written.
#[derive(Debug, Serialize)]
struct Written {
    file: String,
    image: usize,
    size: usize,
    name: String,
}

impl Done {
    /// The name, with a number before it if a file of another one has it already.
    fn name(&mut self, name: String) -> String {
        let numbered = |number: usize| match number {
            1 => name.clone(),
            number => format!("{number}-{name}"),
        };
        let free = (1..).map(numbered).find(|name| !self.names.contains(name));
        let name = free.unwrap_or_default();
        self.names.insert(name.clone());
        name
    }
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("image")
}
