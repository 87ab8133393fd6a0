//! `hoist fatbin offload list|extract|pack`: LLVM's containers.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use elf_core::File;
use fatbin::{Container, Search, host_entries};
use serde::Serialize;

use super::found::containers;
use crate::budget::{Budget, FLOOR, TIMES};
use crate::faults::Faults;
use crate::mapped::Mapped;
use crate::number::number;
use crate::output;
use crate::printable::Printable;
use crate::shown;
use crate::table::Table;

mod images;
mod pack;

use images::{Image, images};

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

/// Lists the images of LLVM's containers, and what a host program registers.
#[derive(Debug, clap::Args)]
pub struct List {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
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
        let mut rows = Vec::new();
        for (index, path) in self.files.iter().enumerate() {
            let label = path.display().to_string();
            let opened = Mapped::open(path);
            let file = match opened {
                Ok(file) => file,
                Err(error) => {
                    faults.push(error);
                    continue;
                }
            };
            let budget = Budget::new(None, FLOOR, TIMES, file.bytes().len() as u64);
            let images = gather(&label, &file, &budget, &mut faults);
            let hosts = hosts(file.bytes());
            if images.is_empty() && hosts.is_empty() {
                faults.push(anyhow!("{label}: holds no container of LLVM's"));
            }
            if self.json {
                let images: Vec<_> = images.iter().map(Image::row).collect();
                rows.push(
                    serde_json::json!({ "file": label, "images": images, "host_entries": hosts }),
                );
            } else {
                if index > 0 {
                    writeln!(out)?;
                }
                text(&images, &hosts, out)?;
            }
        }
        if self.json {
            crate::json::write(out, &serde_json::json!({ "files": rows }))?;
            writeln!(out)?;
        }
        faults.result()
    }
}

fn text(images: &[Image<'_>], hosts: &[HostRow], out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    table.row(["image", "container", "kind", "producer", "arch", "triple", "offset", "size"])?;
    for image in images {
        let row = image.row();
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
    table.row(["host entry", "what", "producer", "size"])?;
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

/// All images of LLVM's containers in a file.
fn gather<'a>(
    label: &str,
    file: &'a Mapped,
    budget: &Budget,
    faults: &mut Faults,
) -> Vec<Image<'a>> {
    let mut all = Vec::new();
    for found in containers(file, Search::Always, |found| found.container) {
        let result = match found {
            Ok(Container::Region(_) | Container::Cubin(_)) => continue,
            Ok(container) => images(container, budget, &mut all),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = result {
            faults.push(error.context(label.to_owned()));
        }
    }
    for (index, image) in all.iter_mut().enumerate() {
        image.index = index;
    }
    all
}

/// Writes the images of LLVM's containers to files.
#[derive(Debug, clap::Args)]
pub struct Extract {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Architectures: `sm_90`, `gfx90a`.
    #[arg(long, value_delimiter = ',', value_name = "ARCH")]
    arch: Vec<String>,
    /// The folder to write to; `-` is standard output, for a single image.
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
    /// The most bytes that the containers of a file may unpack to and have written, together: otherwise 256 MiB and 64 times the
    /// size of the file.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

impl Extract {
    /// Writes files and prints their names to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or written, is damaged, or has no such image. What could be extracted stays.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut faults = Faults::default();
        let mut rows = Vec::new();
        for path in &self.files {
            let label = path.display().to_string();
            let file = match Mapped::open(path) {
                Ok(file) => file,
                Err(error) => {
                    faults.push(error);
                    continue;
                }
            };
            let budget = Budget::new(self.limit, FLOOR, TIMES, file.bytes().len() as u64);
            let mut images = gather(&label, &file, &budget, &mut faults);
            images.retain(|image| self.arch.is_empty() || self.arch.contains(&image.arch));
            match &images[..] {
                [] => faults.push(anyhow!("{label}: nothing to extract")),
                [image] if self.output.as_os_str() == "-" => shown::bytes(&image.bytes)?,
                more if self.output.as_os_str() == "-" => {
                    faults.push(anyhow!(
                        "{label}: {} images, but standard output takes one",
                        more.len()
                    ));
                }
                images => {
                    fs::create_dir_all(&self.output)
                        .with_context(|| self.output.display().to_string())?;
                    for image in images {
                        let name = image.file_name(stem(path));
                        let target = self.output.join(&name);
                        budget.take(format_args!("{label}: {name}"), image.bytes.len() as u64)?;
                        output::write_inside(&self.output, &name, |file| {
                            file.write_all(&image.bytes)
                        })
                        .with_context(|| target.display().to_string())?;
                        if self.json {
                            let size = image.bytes.len();
                            rows.push(serde_json::json!({ "file": label, "image": image.index, "size": size, "name": name }));
                        } else {
                            writeln!(out, "{}", Printable::from(&*name))?;
                        }
                    }
                }
            }
        }
        if self.json {
            crate::json::write(out, &serde_json::json!({ "files": rows }))?;
            writeln!(out)?;
        }
        faults.result()
    }
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("image")
}
