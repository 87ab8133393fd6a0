//! `hoist fatbin ptx PATH...`: PTX, wherever it is: what is in it, its text, lines of it.

use std::collections::HashMap;
use std::io::Write;

use anyhow::{Error, Result, anyhow};
use fatbin::{EntryKind, Search, Sm};
use regex::Regex;
use serde::Serialize;

use super::cubins::{Image, ImagePlace, images};
use super::filter::Where;
use crate::faults::{Faults, in_words};
use crate::json::JsonArguments;
use crate::kernel_filter::{KernelFilter, KernelOrder};
use crate::kernel_name::{KernelName, Text};
use crate::paint;
use crate::pattern::Pattern;
use crate::ptx::{is_ptx, ptx_module};
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::{Table, line};

/// Shows PTX: its kernels, its text, or lines of it.
#[derive(Debug, clap::Args)]
pub struct Ptx {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: KernelFilter,
    /// Architectures, with their suffix: `sm_90`, `90a`.
    #[arg(long, value_delimiter = ',', value_name = "ARCH")]
    arch: Vec<Sm>,
    #[command(flatten)]
    place: Where,
    /// Prints the text: of the kernels that are meant, or of all.
    #[arg(long, conflicts_with = "search")]
    print: bool,
    /// Prints the lines that this regular expression matches.
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
        let mut left = self.filter.limit.unwrap_or(usize::MAX);
        for row in &mut rows {
            match self.filter.sort {
                Some(KernelOrder::Size) => {
                    row.kernels.sort_by_key(|one| std::cmp::Reverse(one.size))
                }
                Some(KernelOrder::Name) => {
                    row.kernels.sort_by(|one, other| one.name.cmp(&other.name))
                }
                Some(KernelOrder::Registers) | None => {}
            }
            row.kernels.truncate(left);
            left = left.saturating_sub(row.kernels.len());
        }
        rows.retain(|row| !row.kernels.is_empty() || self.filter.limit.is_none());
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

    fn of_source(&self, source: &Source) -> (Vec<PtxRow>, Vec<Error>) {
        let (mut shown, mut errors) = (Vec::new(), Vec::new());
        if is_ptx(source.file.bytes()) {
            shown.extend(self.row(source, None, source.file.bytes()));
            return (shown, errors);
        }
        for found in sources_of(source, self.place.search(), &self.arch, |image, bytes| {
            self.row(source, Some(image), bytes)
        }) {
            match found {
                Ok(row) => shown.extend(row),
                Err(error) => errors.push(error.context(source.label.clone())),
            }
        }
        (shown, errors)
    }

    /// What is shown of a source; nothing if it has no kernel that is meant.
    fn row(&self, source: &Source, image: Option<&Image>, bytes: &[u8]) -> Option<PtxRow> {
        let text = String::from_utf8_lossy(without_zeros(bytes)).into_owned();
        let module = ptx_module(&text);
        let (mut kernels, mut line, mut at) = (Vec::new(), 1, 0);
        for one in module.functions.iter().filter(|one| one.is_kernel) {
            line += newlines(&text, at..one.place.start);
            at = one.place.start;
            let body = text.get(one.place.clone()).unwrap_or_default();
            if !Pattern::any(&self.filter.kernel, one.name) {
                continue;
            }
            let matches = self.search.iter().flat_map(|wanted| {
                let lines = body.lines().zip(line..).filter(|(text, _)| wanted.is_match(text));
                lines.map(|(text, line)| PtxLine { line, text: text.trim().to_owned() })
            });
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
        let is_meant =
            !kernels.is_empty() || self.filter.kernel.is_empty() && self.search.is_none();
        is_meant.then(|| PtxRow {
            file: source.label.clone(),
            member: image.and_then(|image| image.member.clone()),
            place: image.map(|image| image.place.clone()),
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
                if row.kernels.is_empty() {
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
    arch: &[Sm],
    each: impl Fn(&Image, &[u8]) -> T + Sync,
) -> Vec<Result<T>> {
    let wants = |image: &Image| {
        matches!(image.kind, EntryKind::Ptx | EntryKind::RelocatablePtx)
            && (arch.is_empty() || arch.contains(&image.sm))
    };
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
        for one in sources_of(source, Search::Always, &[], cut) {
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
