//! The objects that are linked: files, and those members of archives that somebody asks for.

use std::collections::{HashMap, HashSet};

use anyhow::{Context as _, Result, bail};
use elf_core::names::{SHN_COMMON, SHN_X86_64_LCOMMON, STB_LOCAL, STB_WEAK};
use elf_core::{File, Foreign, Name, Symbol, SymbolTable};

use crate::explain::name_in;
use crate::input::{Input, Part};
use crate::machine::Machine;
use crate::overlap;

/// Objects in the order of the command line, and what to call them.
pub struct Objects<'a> {
    labels: Vec<String>,
    files: Vec<File<'a>>,
    tables: Vec<Option<SymbolTable<'a>>>,
    machine: Machine,
}

impl<'a> Objects<'a> {
    /// Takes every file, and of each archive the members that define what is missing where the archive stands, and what those
    /// miss in turn: as a linker does. `wanted` names are missing from the start.
    ///
    /// A weak reference takes no member, a common symbol only one that defines it strongly. Members that are no ELF files are passed
    /// over. Of an archive that is [whole](Input::whole), every member is taken.
    ///
    /// # Errors
    /// If a file is no ELF file, an archive or a symbol table is damaged, there is no object, or no relocations for its machine.
    pub fn gather(inputs: &'a [Input], wanted: &[&'a str]) -> Result<Self> {
        let mut gathering = Gathering::default();
        gathering.missing.extend(wanted.iter().map(|name| Name::from(*name)));
        for input in inputs {
            let parts = input.parts()?;
            if input.is_archive() && input.is_whole() {
                gathering.whole(parts)?;
            } else if input.is_archive() {
                gathering.archive(parts)?;
            } else {
                parts.into_iter().try_for_each(|part| gathering.part(part))?;
            }
        }
        let Gathering { labels, files, .. } = gathering;
        let Some((first, label)) = files.first().zip(labels.first()) else {
            match inputs.first() {
                None => bail!("no objects"),
                Some(input) => bail!("{}: no member is asked for", input.label()),
            }
        };
        let machine = Machine::of(first).with_context(|| label.clone())?;
        let tables: Result<_> =
            files.iter().zip(&labels).map(|(file, label)| table_of(file, label)).collect();
        let tables = tables?;
        Ok(Self { labels, files, tables, machine })
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[File<'a>] {
        &self.files
    }

    /// The machine of the first object; a layout refuses objects of others.
    #[must_use]
    pub const fn machine(&self) -> Machine {
        self.machine
    }

    /// What to call object `index`: `FILE` or `ARCHIVE(MEMBER)`.
    #[must_use]
    pub fn label(&self, index: usize) -> &str {
        self.labels.get(index).map_or("", String::as_str)
    }

    /// The symbols of object `index`, if it has any.
    #[must_use]
    pub fn symbols(&self, index: usize) -> Option<&SymbolTable<'a>> {
        self.tables.get(index)?.as_ref()
    }

    /// The name of symbol `symbol` of object `index`: that of its section, if it stands for one and has none itself.
    #[must_use]
    pub fn symbol_name(&self, index: usize, symbol: u32) -> Option<Name<'a>> {
        let (file, table) = (self.files.get(index)?, self.symbols(index)?);
        name_in(file, table, symbol, &table.get(symbol).ok()?).ok()
    }
}

/// The file, or what it is instead.
///
/// # Errors
/// If it is no ELF file, or its header or tables are damaged.
pub fn parse(bytes: &[u8]) -> Result<File<'_>, elf_core::Error> {
    File::parse(bytes).map_err(|error| Foreign::explain(bytes, error))
}

/// Bytes that the names of a file's symbols may have in all. They share their ends: a hostile table makes many long ones of few
/// bytes; those of compilers have less than the file.
const fn names_limit(file: &File<'_>) -> u64 {
    (file.bytes().len() as u64).saturating_mul(16).saturating_add(1 << 20)
}

fn table_of<'a>(file: &File<'a>, label: &str) -> Result<Option<SymbolTable<'a>>> {
    file.symbol_table().with_context(|| label.to_owned())
}

/// What is known while objects are gathered.
#[derive(Default)]
struct Gathering<'a> {
    labels: Vec<String>,
    files: Vec<File<'a>>,
    defined: HashSet<Name<'a>>,
    /// What is only common so far.
    common: HashSet<Name<'a>>,
    /// In the order of their first reference. Names stay here when they are defined.
    missing: Vec<Name<'a>>,
}

impl<'a> Gathering<'a> {
    /// Takes an object.
    fn part(&mut self, part: Part<'a>) -> Result<()> {
        let file = parse(part.bytes).with_context(|| part.label.clone())?;
        Foreign::check_lto(&file).with_context(|| part.label.clone())?;
        overlap::check(&file).with_context(|| part.label.clone())?;
        globals(&file, |name, kind| match kind {
            Global::Defined => {
                self.common.remove(&name);
                self.defined.insert(name);
            }
            Global::Common if self.defined.insert(name) => {
                self.common.insert(name);
                self.missing.push(name);
            }
            Global::Common => {}
            Global::Weak => {
                self.defined.insert(name);
            }
            Global::Missing => self.missing.push(name),
        })
        .with_context(|| part.label.clone())?;
        self.labels.push(part.label);
        self.files.push(file);
        Ok(())
    }

    /// Takes every member of an archive that is an ELF file.
    fn whole(&mut self, parts: Vec<Part<'a>>) -> Result<()> {
        let is_elf = |part: &Part<'_>| File::parse(part.bytes).is_ok();
        parts.into_iter().filter(is_elf).try_for_each(|part| self.part(part))
    }

    /// Takes what is missing from an archive: the first member that defines it.
    fn archive(&mut self, parts: Vec<Part<'a>>) -> Result<()> {
        let mut definers: HashMap<Name<'a>, usize> = HashMap::new();
        let mut strong: HashMap<Name<'a>, usize> = HashMap::new();
        for (index, part) in parts.iter().enumerate() {
            let Ok(file) = File::parse(part.bytes) else { continue };
            globals(&file, |name, kind| {
                if kind == Global::Defined {
                    strong.entry(name).or_insert(index);
                }
                if kind != Global::Missing {
                    definers.entry(name).or_insert(index);
                }
            })
            .with_context(|| part.label.clone())?;
        }
        let first = self.labels.len();
        let mut taken = Vec::new();
        let mut parts: Vec<Option<Part<'a>>> = parts.into_iter().map(Some).collect();
        let mut next = 0;
        while let Some(&name) = self.missing.get(next) {
            next += 1;
            let definers = match (self.defined.contains(&name), self.common.contains(&name)) {
                (false, _) => &definers,
                (true, true) => &strong,
                (true, false) => continue,
            };
            let Some(&index) = definers.get(&name) else { continue };
            if let Some(part) = parts.get_mut(index).and_then(Option::take) {
                self.part(part)?;
                taken.push(index);
            }
        }
        // in the archive's order, whatever the order in which they were asked for
        let labels = self.labels.split_off(first);
        let files = self.files.split_off(first);
        let mut members: Vec<_> = taken.into_iter().zip(labels.into_iter().zip(files)).collect();
        members.sort_by_key(|(index, _)| *index);
        for (_, (label, file)) in members {
            self.labels.push(label);
            self.files.push(file);
        }
        let (defined, common) = (&self.defined, &self.common);
        self.missing.retain(|name| !defined.contains(name) || common.contains(name));
        Ok(())
    }
}

/// What a global symbol means to other objects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Global {
    Defined,
    /// Defined, unless another object does so in earnest.
    Common,
    /// Defined, unless another object does so.
    Weak,
    Missing,
}

const fn is_common(symbol: &Symbol) -> bool {
    matches!(symbol.shndx, SHN_COMMON | SHN_X86_64_LCOMMON)
}

/// Calls `tell` with every symbol that other objects see; weak references are left out.
fn globals<'a>(
    file: &File<'a>,
    mut tell: impl FnMut(Name<'a>, Global),
) -> Result<(), elf_core::Error> {
    let Some(table) = file.symbol_table()? else { return Ok(()) };
    table.check_names(names_limit(file))?;
    for symbol in table.symbols().iter().skip(1) {
        match (symbol.binding(), symbol.is_undefined()) {
            (STB_LOCAL, _) | (STB_WEAK, true) => {}
            (_, true) => tell(table.name_of(&symbol)?, Global::Missing),
            _ if is_common(&symbol) => tell(table.name_of(&symbol)?, Global::Common),
            (STB_WEAK, false) => tell(table.name_of(&symbol)?, Global::Weak),
            (_, false) => tell(table.name_of(&symbol)?, Global::Defined),
        }
    }
    Ok(())
}
