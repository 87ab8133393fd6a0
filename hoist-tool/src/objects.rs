//! The objects that are linked: files, and those members of archives that somebody asks for.

mod archives;

use anyhow::{Context as _, Result, bail};
use archs::Architecture;
use elf_core::{File, Foreign, Name, SymbolTable};
use elf_layout::archives::{NameNumbers, Taken, UndefinedSymbols};
use exec_core::sync::Mutex;
use exec_core::threads::on_threads;

use crate::at_once::processors;
use crate::explain::name_in;
use crate::input::{Input, Part};
use crate::machine::architecture;
use crate::overlap;
use archives::{Archive, Archives};

/// Objects that are checked.
pub struct Objects<'a> {
    chosen: Chosen<'a>,
    tables: Vec<Option<SymbolTable<'a>>>,
}

/// Objects in the order of the command line, and what to call them.
pub struct Chosen<'a> {
    labels: Vec<String>,
    files: Vec<File<'a>>,
    /// Which of their names are one.
    numbers: NameNumbers,
    machine: Architecture,
}

impl<'a> Objects<'a> {
    /// Takes every file, and of each archive the members that define what is missing where the archive stands, and what those
    /// miss in turn: as a linker does. `wanted` names are missing from the start.
    ///
    /// Which members those are, and in which order they come, says [`elf_layout::archives`]. Members that are no ELF files are
    /// passed over. Of an archive that is [whole](Input::whole), every member is taken; those that are a [group](Input::group) are
    /// searched again, behind all others, until none has what is missing.
    ///
    /// # Errors
    /// If a file is no ELF file, an archive or a symbol table is damaged, there is no object, or no relocations for its machine.
    pub fn gather(inputs: &'a [Input], wanted: &[&str]) -> Result<Self> {
        Self::gather_beside(inputs, wanted, |_| ()).map(|(objects, ())| objects)
    }

    /// The same. This thread does something with the chosen objects, whatever is wrong with them, while other threads, if the inputs are
    /// large, check them. Gives what came of that as well.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gather_beside<T>(
        inputs: &'a [Input],
        wanted: &[&str],
        own: impl FnOnce(&Chosen<'a>) -> T,
    ) -> Result<(Self, T)> {
        let (chosen, archives) = Chosen::among(inputs, wanted)?;
        let (tables, done) =
            check_beside(&chosen.files, archives, threads(inputs), || own(&chosen));
        let tables = tables.into_iter().zip(&chosen.labels);
        let tables = tables
            .map(|(table, label)| table.with_context(|| label.clone()))
            .collect::<Result<_>>()?;
        Ok((Self { chosen, tables }, done))
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[File<'a>] {
        self.chosen.files()
    }

    /// Which names of the files are one.
    #[must_use]
    pub const fn numbers(&self) -> &NameNumbers {
        self.chosen.numbers()
    }

    /// The machine of the first object; a layout refuses objects of others.
    #[must_use]
    pub const fn machine(&self) -> Architecture {
        self.chosen.machine
    }

    /// What to call object `index`: `FILE` or `ARCHIVE(MEMBER)`.
    #[must_use]
    pub fn label(&self, index: usize) -> &str {
        self.chosen.label(index)
    }

    /// The symbols of object `index`, if it has any.
    #[must_use]
    pub fn symbols(&self, index: usize) -> Option<&SymbolTable<'a>> {
        self.tables.get(index)?.as_ref()
    }

    /// The name of symbol `symbol` of object `index`: that of its section, if it stands for one and has none itself.
    #[must_use]
    pub fn symbol_name(&self, index: usize, symbol: u32) -> Option<Name<'a>> {
        let (file, table) = (self.files().get(index)?, self.symbols(index)?);
        name_in(file, table, symbol, &table.get(symbol).ok()?).ok()
    }
}

impl<'a> Chosen<'a> {
    /// Chooses the objects; other threads, if the inputs are large, read archives that it will come to. Gives the archives as well.
    fn among(inputs: &'a [Input], wanted: &[&str]) -> Result<(Self, Archives<'a>)> {
        let archives = Archives::new(inputs);
        let gather = || {
            let gathered = Gathering::of(inputs, &archives, wanted);
            archives.stop();
            gathered
        };
        let read = |archive| {
            archives.read(archive);
            true
        };
        // this one, and one for each archive
        let count = threads(inputs).min(archives.len().saturating_add(1));
        let (gathered, _) = on_threads(count, archives.unread(), read, gather);
        let Gathering { labels, files, undefined } = gathered?;
        let Some((first, label)) = files.first().zip(labels.first()) else {
            match inputs.first() {
                None => bail!("no objects"),
                Some(input) => bail!("{}: no member is asked for", input.label()),
            }
        };
        let machine = architecture(first).with_context(|| label.clone())?;
        Ok((Self { labels, files, numbers: undefined.into_numbers(), machine }, archives))
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[File<'a>] {
        &self.files
    }

    /// Which names of the files are one.
    #[must_use]
    pub const fn numbers(&self) -> &NameNumbers {
        &self.numbers
    }

    /// What to call object `index`: `FILE` or `ARCHIVE(MEMBER)`.
    #[must_use]
    pub fn label(&self, index: usize) -> &str {
        self.labels.get(index).map_or("", String::as_str)
    }
}

/// The file, or what it is instead.
///
/// # Errors
/// If it is no ELF file, or its header or tables are damaged.
pub fn parse(bytes: &[u8]) -> Result<File<'_>, elf_core::Error> {
    File::parse(bytes).map_err(|error| Foreign::explain(bytes, error))
}

/// Checks an object that is to be linked, and finds its symbol table.
///
/// # Errors
/// If it has no machine code, overlaps itself, or its symbol table is damaged.
fn check<'a>(file: &File<'a>) -> Result<Option<SymbolTable<'a>>> {
    let mut slim = None;
    let overlap = overlap::check(file, |section| {
        slim = slim.or_else(|| Foreign::slim_lto(file, section));
    });
    slim.map_or(Ok(()), Err)?;
    overlap?;
    Ok(file.symbol_table()?)
}

/// How many threads are worth making for what the inputs hold, this one among them.
fn threads(inputs: &[Input]) -> usize {
    /// So many bytes of inputs are many objects.
    const MANY: usize = 16 << 20;
    let bytes = inputs.iter().fold(0usize, |sum, input| sum.saturating_add(input.size()));
    if bytes < MANY { 1 } else { processors() }
}

/// Has up to `count` threads, of which this one does its `own` first, check objects; archives are not needed any more, and are given back. What
/// [`check`] says of each, and what came of the `own`.
fn check_beside<'a, T>(
    files: &[File<'a>],
    archives: Archives<'_>,
    count: usize,
    own: impl FnOnce() -> T,
) -> (Vec<Result<Option<SymbolTable<'a>>>>, T) {
    enum Job<'f, 'a, 'i> {
        Forget(Archives<'i>),
        Check(usize, &'f File<'a>),
    }
    let checked = Mutex::new(Vec::with_capacity(files.len()));
    let each = |job: Job<'_, 'a, '_>| {
        match job {
            Job::Forget(archives) => drop(archives),
            Job::Check(number, file) => {
                let table = check(file);
                checked.lock().push((number, table));
            }
        }
        true
    };
    let checks = files.iter().enumerate().map(|(number, file)| Job::Check(number, file));
    let jobs = core::iter::once(Job::Forget(archives)).chain(checks);
    let (done, _) = on_threads(count, jobs, each, own);
    let mut checked = checked.into_inner();
    checked.sort_by_key(|(number, _)| *number);
    (checked.into_iter().map(|(_, table)| table).collect(), done)
}

/// What is known while objects are gathered.
struct Gathering<'a> {
    labels: Vec<String>,
    files: Vec<File<'a>>,
    undefined: UndefinedSymbols,
}

impl<'a> Gathering<'a> {
    /// Gathers the objects of a link.
    fn of(inputs: &'a [Input], archives: &Archives<'a>, wanted: &[&str]) -> Result<Self> {
        let (labels, files, undefined) = (Vec::new(), Vec::new(), UndefinedSymbols::new());
        let mut gathering = Self { labels, files, undefined };
        wanted.iter().for_each(|name| gathering.undefined.require(Name::from(*name)));
        let mut taken = vec![Taken::new(); archives.len()];
        for (input, archive) in inputs.iter().zip(archives.of_inputs()) {
            match archive.and_then(|number| Some((number, taken.get_mut(number)?))) {
                Some((number, taken)) => gathering.archive(archives.get(number)?, taken)?,
                None if input.is_archive() => gathering.whole(&input.parts()?)?,
                None => input.parts()?.iter().try_for_each(|part| gathering.part(part))?,
            }
        }
        let mut count = None;
        while count.replace(gathering.files.len()) != Some(gathering.files.len()) {
            let all = taken.iter_mut().enumerate();
            for (number, taken) in all.filter(|(number, _)| archives.is_of_group(*number)) {
                gathering.archive(archives.get(number)?, taken)?;
            }
        }
        Ok(gathering)
    }

    /// Takes an object that was asked for by itself.
    fn part(&mut self, part: &Part<'a>) -> Result<()> {
        let file = parse(part.bytes).with_context(|| part.label.clone())?;
        self.undefined.add(&file).with_context(|| part.label.clone())?;
        self.enter(file, part);
        Ok(())
    }

    /// Takes every member of an archive that is an ELF file.
    fn whole(&mut self, parts: &[Part<'a>]) -> Result<()> {
        let is_elf = |part: &&Part<'_>| File::parse(part.bytes).is_ok();
        parts.iter().filter(is_elf).try_for_each(|part| self.part(part))
    }

    /// Takes what is missing from an archive.
    fn archive(&mut self, archive: &Archive<'a>, taken: &mut Taken) -> Result<()> {
        let members = self.undefined.search_again(&archive.index, taken);
        let parts = members.into_iter().filter_map(|member| archive.parts.get(member));
        parts.into_iter().try_for_each(|part| {
            self.enter(File::parse(part.bytes).with_context(|| part.label.clone())?, part);
            Ok(())
        })
    }

    fn enter(&mut self, file: File<'a>, part: &Part<'a>) {
        self.labels.push(part.label.clone());
        self.files.push(file);
    }
}
