//! `kernel-modules`: every module of a Debian kernel package through `hoist link`, with what it asks of the kernel by `--define`, beside
//! what the kernel's own loader makes of it for x86-64: section by section, byte for byte.
//!
//! A module is what `ld -r` made of its objects. The rules are those of `apply_relocate_add` (`arch/x86/kernel/module.c`) and
//! `simplify_symbols` (`kernel/module/main.c`): sections that are loaded (`SHF_ALLOC`) are relocated, a symbol is its value and the
//! address of its section, what is undefined and weak is 0, common symbols are refused; six types of relocations.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};
use elf_core::names::{SHT_NOBITS, STB_WEAK};
use elf_core::{Definition, File, SectionFlags, SectionHeader, SymbolTable};
use serde::Deserialize;

use crate::task::{Reported, Run};
use crate::tool;
use crate::workspace::Workspace;

/// Arguments of `kernel-modules`.
#[derive(clap::Args)]
pub(crate) struct KernelModules {
    /// Folders with modules, instead of a package's
    folders: Vec<PathBuf>,
    /// The package, or one that depends on it: it is downloaded, not installed
    #[arg(long, default_value = "linux-image-amd64")]
    package: String,
    /// A hoist, instead of building one
    #[arg(long, value_name = "PATH")]
    hoist: Option<PathBuf>,
}

/// Where the kernel has modules.
const BASE: u64 = 0xffff_ffff_c000_0000;
/// Where its own symbols are, here one every 16 bytes.
const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// What is read of the map that `hoist link` writes.
#[derive(Deserialize)]
struct Map {
    sections: Vec<Placed>,
}

#[derive(Deserialize)]
struct Placed {
    name: String,
    address: u64,
}

/// What was compared.
#[derive(Default)]
struct Count {
    modules: usize,
    sections: usize,
    bytes: u64,
    relocations: usize,
    /// What is different, or refused.
    faults: Vec<String>,
}

impl Run for KernelModules {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let scratch = workspace.scratch("kernel-modules")?;
        let folders = if self.folders.is_empty() {
            vec![download(&self.package, &scratch)?]
        } else {
            self.folders
        };
        let mut modules = Vec::new();
        for folder in &folders {
            collect(folder, &mut modules)?;
        }
        modules.sort();
        if modules.is_empty() {
            bail!("no modules (*.ko)");
        }
        let hoist = match self.hoist {
            Some(hoist) => hoist,
            None => {
                let mut command = tool::cargo();
                command.current_dir(workspace.root()).args(["build", "--package", "hoist-tool"]);
                tool::run(&mut command)?;
                workspace.target().join("debug/hoist")
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let part = modules.len().div_ceil(threads);
        let counts = thread::scope(|scope| {
            let parts = (0..).zip(modules.chunks(part));
            let start = |(number, part): (usize, &[PathBuf])| {
                let (scratch, hoist) = (&scratch, &hoist);
                let part = part.to_vec();
                scope.spawn(move || {
                    let mut count = Count::default();
                    for path in part {
                        if let Err(error) =
                            count.add(&path, hoist, &scratch.join(number.to_string()))
                        {
                            count.faults.push(format!("{}: {error:#}", path.display()));
                        }
                    }
                    count
                })
            };
            let running: Vec<_> = parts.map(start).collect();
            running.into_iter().map(|part| part.join().ok()).collect::<Option<Vec<Count>>>()
        });
        let mut sum = Count::default();
        for count in counts.context("a thread has panicked")? {
            sum.modules += count.modules;
            sum.sections += count.sections;
            sum.bytes += count.bytes;
            sum.relocations += count.relocations;
            sum.faults.extend(count.faults);
        }
        sum.faults.iter().for_each(|fault| println!("{fault}"));
        println!(
            "{} of {} modules equal: {} sections, {} bytes, {} relocations",
            sum.modules,
            modules.len(),
            sum.sections,
            sum.bytes,
            sum.relocations
        );
        if sum.faults.is_empty() { Ok(()) } else { Err(Reported.into()) }
    }
}

/// Unpacks a package, and the one with the files if it is only the name of that.
fn download(package: &str, scratch: &Path) -> Result<PathBuf> {
    let output = Command::new("apt-cache")
        .args(["depends", "--important", package])
        .output()
        .context("apt-cache")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let depends = text.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    let package = depends.map_or_else(|| package.to_owned(), |name| format!("linux-image-{name}"));
    tool::run(Command::new("apt-get").args(["download", &package]).current_dir(scratch))?;
    let folder = scratch.join("package");
    let files = fs::read_dir(scratch)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_package = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "deb");
    let file = files.into_iter().find(is_package).context("no package was downloaded")?;
    tool::run(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(&folder))?;
    Ok(folder)
}

/// The modules in a folder and below.
fn collect(folder: &Path, modules: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, modules)?;
        } else if path.extension().is_some_and(|ending| ending == "ko") {
            modules.push(path);
        }
    }
    Ok(())
}

impl Count {
    /// Compares a module.
    fn add(&mut self, path: &Path, hoist: &Path, scratch: &Path) -> Result<()> {
        let bytes = fs::read(path)?;
        let file = File::parse(&bytes)?;
        let table = file.symbol_table()?.context("no symbols")?;
        let kernel = asked(&table)?;
        let (image, map) = (scratch.with_extension("image"), scratch.with_extension("json"));
        let mut command = Command::new(hoist);
        command.arg("link").arg(path).arg("--no-relax").arg("--base").arg(format!("{BASE:#x}"));
        command.arg("-o").arg(&image).arg("--map").arg(&map);
        for (name, address) in &kernel {
            command.arg("--define").arg(format!("{name}={address:#x}"));
        }
        let output = command.output().context("hoist")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let (image, map) = (fs::read(image)?, fs::read(map)?);
        let map: Map = serde_json::from_slice(&map)?;
        let addresses = addresses(&file, &map)?;
        let module = Module { file, table, kernel, addresses };
        for (index, section) in module.loaded() {
            let (theirs, relocations) = module.relocated(index, &section)?;
            let start = usize::try_from(module.address(index)?.wrapping_sub(BASE))?;
            let ours = image.get(start..).and_then(|rest| rest.get(..theirs.len()));
            let name = file.section_name(&section)?;
            let ours = ours.with_context(|| format!("{name} is outside of the image"))?;
            if let Some(at) = ours.iter().zip(&theirs).position(|(one, other)| one != other) {
                bail!("{name}: different from offset {at:#x} on");
            }
            self.sections += 1;
            self.bytes += section.size;
            self.relocations += relocations;
        }
        self.modules += 1;
        Ok(())
    }
}

/// An address for each name that a module asks the kernel for.
fn asked(table: &SymbolTable<'_>) -> Result<BTreeMap<String, u64>> {
    let mut names = BTreeMap::new();
    for symbol in table.symbols().iter().skip(1) {
        // what is weak is nobody's here, to see that it becomes 0
        if symbol.is_undefined() && symbol.binding() != STB_WEAK {
            let address = KERNEL + 16 * names.len() as u64;
            names.insert(table.name_of(&symbol)?.to_string(), address);
        }
    }
    Ok(names)
}

/// The addresses of sections by their indices: the map has those that are loaded, in the order of the file.
fn addresses(file: &File<'_>, map: &Map) -> Result<BTreeMap<u32, u64>> {
    let mut placed = map.sections.iter();
    let mut addresses = BTreeMap::new();
    for (index, section) in (0u32..).zip(file.sections().iter()) {
        if section.flags.contains(SectionFlags::ALLOC) {
            let name = file.section_name(&section)?;
            let next = placed.next().with_context(|| format!("{name} is not in the map"))?;
            if name != *next.name.as_str() {
                bail!("{name} is not in the map, {} is", next.name);
            }
            addresses.insert(index, next.address);
        }
    }
    Ok(addresses)
}

/// A module where `hoist link` has placed its sections.
struct Module<'a> {
    file: File<'a>,
    table: SymbolTable<'a>,
    kernel: BTreeMap<String, u64>,
    addresses: BTreeMap<u32, u64>,
}

impl Module<'_> {
    /// The sections that are loaded.
    fn loaded(&self) -> impl Iterator<Item = (u32, SectionHeader)> {
        let sections = (0u32..).zip(self.file.sections().iter());
        sections.filter(|(index, _)| self.addresses.contains_key(index))
    }

    fn address(&self, section: u32) -> Result<u64> {
        self.addresses
            .get(&section)
            .copied()
            .with_context(|| format!("section {section} is not loaded"))
    }

    /// What a symbol is worth (`simplify_symbols`).
    fn value(&self, index: u32) -> Result<u64> {
        let symbol = self.table.get(index)?;
        Ok(match self.table.section_of(index, &symbol)? {
            _ if index == 0 => 0,
            Definition::Section(section) => self.address(section)?.wrapping_add(symbol.value),
            Definition::Absolute => symbol.value,
            Definition::Undefined => {
                let name = self.table.name_of(&symbol)?.to_string();
                match self.kernel.get(&name) {
                    Some(address) => *address,
                    None if symbol.binding() == STB_WEAK => 0,
                    None => bail!("unknown symbol {name}"),
                }
            }
            other => bail!("a symbol that the kernel refuses: {other:?}"),
        })
    }

    /// A section as the kernel has it (`apply_relocate_add`), and how many relocations it has.
    fn relocated(&self, index: u32, section: &SectionHeader) -> Result<(Vec<u8>, usize)> {
        if section.r#type == SHT_NOBITS {
            return Ok((vec![0; usize::try_from(section.size)?], 0));
        }
        let mut bytes = self.file.section_data(section)?.to_vec();
        let mut count = 0;
        for table in self.file.sections().iter().filter(|table| table.info == index) {
            let Some(records) = self.file.relocations(&table)? else { continue };
            for record in records {
                let address = self.address(index)?.wrapping_add(record.offset);
                let addend = record.addend.context("a relocation without addend")?;
                let value = self.value(record.symbol)?.wrapping_add_signed(addend);
                let distance = value.wrapping_sub(address);
                // R_X86_64_NONE, 64, PC32, PLT32, 32, 32S, PC64
                let (value, size, fits) = match record.r#type {
                    0 => continue,
                    1 => (value, 8, true),
                    2 | 4 => (distance, 4, true),
                    10 => (value, 4, u32::try_from(value).is_ok()),
                    11 => (value, 4, i32::try_from(value.cast_signed()).is_ok()),
                    24 => (distance, 8, true),
                    other => bail!("the kernel does not know relocation {other}"),
                };
                let place = usize::try_from(record.offset)?;
                let place = bytes.get_mut(place..).and_then(|rest| rest.get_mut(..size));
                let place = place.filter(|_| fits).context("a relocation that does not fit")?;
                place.copy_from_slice(value.to_le_bytes().get(..size).unwrap_or_default());
                count += 1;
            }
        }
        Ok((bytes, count))
    }
}
