//! `hoist fatbin ptx PATH...`: PTX, wherever it is: what is in it, its text, lines of it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use anyhow::{Error, Result, anyhow, ensure};
use fatbin::{EntryKind, Search, Sm};
use regex::Regex;
use serde::Serialize;

use super::cubins::{Image, ImagePlace, images};
use super::filter::{Code, Where};
use super::kernels;
use crate::faults::{Faults, in_words};
use crate::json::JsonArguments;
use crate::kernel_filter::{KernelFilter, KernelOrder};
use crate::kernel_name::{KernelName, Text};
use crate::paint;
use crate::pattern::Pattern;
use crate::ptx::ptx_module;
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::{Table, line};

/// Shows PTX: its kernels, its text, or lines of it.
#[derive(Debug, clap::Args)]
pub struct Ptx {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    code: Code,
    #[command(flatten)]
    place: Where,
    /// Prints the text: of the kernels that are meant, or of all.
    #[arg(long, conflicts_with = "search")]
    print: bool,
    /// Prints the lines that this regular expression matches: of the kernels that are meant, or, if none is named, of all that a source has.
    #[arg(long, value_name = "REGEX")]
    search: Option<Regex>,
    #[command(flatten)]
    json: JsonArguments,
}

/// A PTX source somewhere.
#[derive(Debug, Serialize)]
struct PtxRow {
    file: String,
    member: Option<Text>,
    /// Nothing for a file that is PTX.
    #[serde(flatten)]
    place: Option<ImagePlace>,
    version: Option<String>,
    target: Option<String>,
    size: usize,
    kernels: Vec<PtxKernel>,
    /// Lines that were looked for, and are in no kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    matches: Vec<PtxLine>,
    #[serde(skip)]
    text: String,
}

/// A kernel in PTX.
#[derive(Debug, Serialize)]
struct PtxKernel {
    name: Text,
    demangled: Option<Text>,
    line: usize,
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    matches: Vec<PtxLine>,
}

/// A line that was looked for.
#[derive(Debug, Serialize)]
struct PtxLine {
    line: usize,
    text: String,
    /// The function that it is in, if that is no kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<KernelName>,
}

impl PtxKernel {
    fn readable(&self, raw: bool) -> &str {
        self.demangled.as_deref().filter(|_| !raw).unwrap_or(&self.name)
    }
}

impl Ptx {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, or none has such a kernel.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        ensure!(
            self.filter.sort != Some(KernelOrder::Registers),
            "PTX does not say how many registers a kernel gets: --sort size or --sort name"
        );
        ensure!(
            [EntryKind::Ptx, EntryKind::RelocatablePtx]
                .iter()
                .any(|kind| self.code.has_kind(*kind)),
            "PTX is of kind ptx; `hoist fatbin disasm` shows machine code"
        );
        let mut faults = Faults::default();
        let mut roots = Roots::default();
        let mut rows = Vec::new();
        let look = |source: Source| self.of_source(&source);
        self.sources.each(Order::AtOnce, look, |root, found: Result<_>| {
            match found {
                Ok((shown, errors)) => {
                    let (shown, errors): (Vec<PtxRow>, Vec<Error>) = (shown, errors);
                    roots.has(root, !shown.is_empty() || !errors.is_empty());
                    errors.into_iter().for_each(|error| faults.push(error));
                    rows.extend(shown);
                }
                Err(error) => {
                    roots.failed(root);
                    faults.push(error);
                }
            }
            Ok(())
        })?;
        self.choose(&mut rows);
        if self.json.is_on() {
            #[derive(Serialize)]
            struct All<'r> {
                ptx: &'r [PtxRow],
            }
            crate::json::write(out, &All { ptx: &rows })?;
            writeln!(out)?;
        } else {
            self.text(&rows, out)?;
        }
        if rows.is_empty() && faults.is_empty() {
            let what = match self.filter.kernel.first() {
                Some(pattern) => format!("no PTX with a kernel {pattern}"),
                None => "no PTX".to_owned(),
            };
            roots.empty(&self.sources.paths, &what, &mut faults);
        }
        faults.result()
    }

    /// Puts kernels in order, and leaves no more than are asked for of all sources together.
    fn choose(&self, rows: &mut Vec<PtxRow>) {
        let raw = self.filter.raw;
        let order = |one: &PtxKernel, other: &PtxKernel| match self.filter.sort {
            Some(KernelOrder::Size) => other.size.cmp(&one.size),
            Some(KernelOrder::Name) => one.readable(raw).cmp(other.readable(raw)),
            Some(KernelOrder::Registers) | None => Ordering::Equal,
        };
        rows.iter_mut().for_each(|row| row.kernels.sort_by(order));
        let Some(limit) = self.filter.limit else { return };
        let all =
            (0..).zip(&*rows).flat_map(|(at, row)| row.kernels.iter().map(move |one| (at, one)));
        let mut all: Vec<(usize, _)> = all.collect();
        all.sort_by(|(_, one), (_, other)| order(one, other));
        let mut counts = vec![0; rows.len()];
        for (at, _) in all.into_iter().take(limit) {
            counts.get_mut(at).into_iter().for_each(|count| *count += 1);
        }
        rows.iter_mut().zip(counts).for_each(|(row, count)| row.kernels.truncate(count));
        rows.retain(|row| !row.kernels.is_empty());
    }

    fn of_source(&self, source: &Source) -> (Vec<PtxRow>, Vec<Error>) {
        let (mut shown, mut errors) = (Vec::new(), Vec::new());
        for found in sources_of(source, self.place.search(), &self.code, |image, bytes| {
            self.row(source, image, bytes)
        }) {
            match found {
                Ok(row) => shown.extend(row),
                Err(error) => errors.push(error.context(source.label.clone())),
            }
        }
        (shown, errors)
    }

    /// What is shown of a source; nothing if it has no kernel that is meant.
    fn row(&self, source: &Source, image: &Image, bytes: &[u8]) -> Option<PtxRow> {
        let text = String::from_utf8_lossy(without_zeros(bytes)).into_owned();
        let module = ptx_module(&text);
        let (mut kernels, mut line, mut at) = (Vec::new(), 1, 0);
        let found = self.search.as_ref().map_or_else(Vec::new, |wanted| matches(&text, wanted));
        let is_in = |place: &Range<usize>, (range, ..): &(Range<usize>, usize, &str)| {
            range.start < place.end && place.start < range.end
        };
        let line_of = |(_, line, text): &(Range<usize>, usize, &str), function| PtxLine {
            line: *line,
            text: text.trim().to_owned(),
            function,
        };
        for one in module.functions.iter().filter(|one| one.is_kernel) {
            line += newlines(&text, at..one.place.start);
            at = one.place.start;
            let one_place = one.place.clone();
            let body = text.get(one_place.clone()).unwrap_or_default();
            if !Pattern::any(&self.filter.kernel, one.name) {
                continue;
            }
            let matches = found.iter().filter(|one| is_in(&one_place, one));
            let matches = matches.map(|one| line_of(one, None));
            let KernelName { name, demangled } = KernelName::known(one.name);
            let kernel = PtxKernel {
                name,
                demangled,
                line,
                size: body.len(),
                text: (self.print && self.json.is_on()).then(|| body.to_owned()),
                matches: matches.collect(),
            };
            if self.search.is_none() || !kernel.matches.is_empty() {
                kernels.push(kernel);
            }
        }
        let owner = |found: &(Range<usize>, usize, &str)| {
            module.functions.iter().find(|one| is_in(&one.place, found))
        };
        let mut others = Vec::new();
        for one in found.iter().filter(|_| self.filter.kernel.is_empty()) {
            match owner(one) {
                Some(function) if function.is_kernel => {}
                function => {
                    let name = function.map(|function| KernelName::known(function.name));
                    others.push(line_of(one, name));
                }
            }
        }
        let is_meant = !kernels.is_empty()
            || !others.is_empty()
            || self.filter.kernel.is_empty() && self.search.is_none();
        is_meant.then(|| PtxRow {
            file: source.label.clone(),
            member: image.member.clone(),
            place: (!image.is_alone).then(|| image.place.clone()),
            matches: others,
            version: module.version.map(str::to_owned),
            target: module.target.map(str::to_owned),
            size: text.len(),
            kernels,
            text: if self.print && !self.json.is_on() { text.clone() } else { String::new() },
        })
    }

    fn text(&self, rows: &[PtxRow], out: &mut dyn Write) -> Result<()> {
        let same =
            |one: &PtxRow, other: &PtxRow| one.file == other.file && one.member == other.member;
        for (index, file) in rows.chunk_by(same).enumerate() {
            let Some(first) = file.first() else { continue };
            out.write_all(if index == 0 || self.print { b"" } else { b"\n" })?;
            let member = first.member.as_ref().map_or_else(String::new, |name| format!("({name})"));
            let name = format!("{}{member}", first.file);
            if self.print {
                file.iter().try_for_each(|row| self.print(&name, row, out))?;
                continue;
            }
            paint::title(out, format_args!("{}", line(&name, "")))?;
            let mut table = Table::new(out);
            match self.search {
                None => {
                    table.heading(["  region", "version", "target", "bytes", "line", "kernel"])?
                }
                Some(_) => table.heading(["  region", "kernel", "line", "text"])?,
            }
            for row in file {
                let place = row.place.as_ref().map_or_else(
                    || "  -".to_owned(),
                    |place| format!("  {}.{}", place.region, place.entry),
                );
                let version = row.version.as_deref().unwrap_or("-");
                let target = row.target.as_deref().unwrap_or("-");
                for kernel in &row.kernels {
                    let name = kernel.readable(self.filter.raw);
                    if self.search.is_none() {
                        let (size, at) = (kernel.size.to_string(), kernel.line.to_string());
                        table.row([&*place, version, target, &size, &at, name])?;
                    }
                    for found in &kernel.matches {
                        table.row([&*place, name, &found.line.to_string(), &found.text])?;
                    }
                }
                for found in &row.matches {
                    let name =
                        found.function.as_ref().map_or("-", |one| one.readable(self.filter.raw));
                    table.row([&*place, name, &found.line.to_string(), &found.text])?;
                }
                if row.kernels.is_empty() && row.matches.is_empty() {
                    let size = row.size.to_string();
                    table.row([&*place, version, target, &size, "-", "(no kernel)"])?;
                }
            }
            table.end()?;
        }
        Ok(())
    }

    /// The text of a source, or of the kernels in it that are meant.
    fn print(&self, file: &str, row: &PtxRow, out: &mut dyn Write) -> Result<()> {
        let place = row.place.as_ref().map_or_else(String::new, |place| format!(": {place}"));
        writeln!(out, "// {file}{place}")?;
        if self.filter.kernel.is_empty() && self.filter.limit.is_none() {
            return Ok(writeln!(out, "{}\n", row.text)?);
        }
        for one in ptx_module(&row.text).functions.into_iter().filter(|one| one.is_kernel) {
            if row.kernels.iter().any(|kernel| *kernel.name == *one.name) {
                let text = row.text.get(one.place).unwrap_or_default();
                writeln!(out, "{text}\n")?;
            }
        }
        Ok(())
    }
}

/// The lines that match, with their places and numbers.
fn matches<'t>(text: &'t str, wanted: &Regex) -> Vec<(Range<usize>, usize, &'t str)> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').zip(1..).map(|(line, number)| {
        let start = at;
        at += line.len();
        (start..at, number, line.trim_end())
    });
    lines.filter(|(_, _, line)| wanted.is_match(line)).collect()
}

fn newlines(text: &str, range: std::ops::Range<usize>) -> usize {
    text.get(range).map_or(0, |part| part.bytes().filter(|byte| *byte == b'\n').count())
}

/// A source without the zeros that it ends with in containers.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}

/// What `each` makes of the PTX in a file.
fn sources_of<T: Send>(
    source: &Source,
    search: Search,
    code: &Code,
    each: impl Fn(&Image, &[u8]) -> T + Sync,
) -> Vec<Result<T>> {
    let wants = |image: &Image| kernels::is_ptx(image) && code.wants_image(image);
    images(&source.file, search, wants, each)
}

/// The PTX of every kernel of a file.
#[derive(Debug, Default)]
pub struct KernelSources {
    /// By name: the architecture that it is for, and the text.
    found: HashMap<String, Vec<(Sm, String)>>,
}

impl KernelSources {
    /// Of all PTX in a file.
    ///
    /// # Errors
    /// If a container is damaged.
    pub fn of(source: &Source) -> Result<Self> {
        let cut = |image: &Image, bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let kernels = ptx_module(&text).functions.into_iter().filter(|one| one.is_kernel);
            let kernels = kernels.map(|one| {
                let body = text.get(one.place).unwrap_or_default().to_owned();
                (one.name.to_owned(), image.sm, body)
            });
            kernels.collect::<Vec<_>>()
        };
        let mut found: HashMap<_, Vec<_>> = HashMap::new();
        for one in sources_of(source, Search::Always, &Code::default(), cut) {
            for (name, sm, body) in
                one.map_err(|error| anyhow!("{}: {}", source.label, in_words(&error)))?
            {
                found.entry(name).or_default().push((sm, body));
            }
        }
        Ok(Self { found })
    }

    /// The text of a kernel: the one for this architecture, or that of the next older one; of a newer one if there is no other.
    #[must_use]
    pub fn find(&self, kernel: &str, sm: Sm) -> Option<&str> {
        let all = self.found.get(kernel)?;
        let same = all.iter().find(|(of, _)| *of == sm);
        let older = || {
            let older = all.iter().filter(|(of, _)| of.number <= sm.number);
            older.max_by_key(|(of, _)| of.number)
        };
        same.or_else(older).or(all.first()).map(|(_, text)| text.as_str())
    }
}
