//! `hoist cuobjdump ...` and `hoist nvprune ...`: the options of NVIDIA's tools that scripts use, and output that their patterns match.
//! What is not taken is told.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use elf_core::File;
use fatbin::{
    Container, EntryFlags, EntryKind, EntryOptions, FoundContainer, RegionEntry, Search, Sm, Suffix,
};

use super::fatbin::cubins::metered;
use super::fatbin::extract::in_order;
use super::fatbin::found::containers;
use super::fatbin::names::Names;
use crate::budget::{Budget, FLOOR, TIMES};
use crate::faults::{Faults, Status};
use crate::output;
use crate::scratch::Scratch;
use crate::shown::{self, Shown};
use crate::sources::{Order, Roots, STANDARD_INPUT, Source, Sources};

mod elf;
mod listing;
mod options;
mod prune;
mod reports;

pub use prune::Nvprune;

use options::{Dump, Request};

/// Answers as cuobjdump 13.5 does: `-lelf -lptx -xelf -xptx -elf -sass -ptx -res-usage -symbols -fun -arch -all -sort`. Other options are
/// refused by name. `-elf` has neither unwind tables nor debug information, of which cuobjdump prints addresses of its own memory.
#[derive(Debug, clap::Args)]
pub struct Cuobjdump {
    /// Options and files of cuobjdump.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    words: Vec<String>,
}

/// What cuobjdump's status says of a file without device code.
const WITHOUT_CODE: Status = Status(255);

/// What stands before the code of an entry, and the code.
struct Piece<'b> {
    /// Lines that tell what it is; none for a cubin that is a file.
    head: String,
    kind: EntryKind,
    sm: Sm,
    name: String,
    bytes: &'b [u8],
}

impl Cuobjdump {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If an option is not taken, or a file cannot be read, is damaged, or has no device code; the others are shown.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(text) = Request::told(&self.words) {
            return Ok(out.write_all(text.as_bytes())?);
        }
        let request = Request::parse(&self.words)?;
        out.flush()?;
        let sources = Sources::of(request.files.clone());
        let printed = Mutex::new((Tabs(Vec::new()), Names::default()));
        let look = |source: Source| {
            let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
            let (out, names) = &mut *printed;
            let shown = file(&source, &request, names, out);
            shown.with_context(|| source.label.clone())
        };
        let (mut faults, mut roots) = (Faults::default(), Roots::default());
        sources.each(Order::OneByOne, look, |root, found| {
            match found.and_then(|found| found) {
                Ok(has_code) => roots.has(root, has_code),
                Err(error) => {
                    roots.failed(root);
                    faults.push(error);
                }
            }
            Ok(())
        })?;
        let mut lacks = false;
        for path in roots.without(&sources.paths) {
            println(&format!("File '{}' does not contain device code", path.display()));
            lacks = true;
        }
        let (mut out, _) = printed.into_inner().unwrap_or_else(PoisonError::into_inner);
        out.flush()?;
        faults.result()?;
        if lacks { Err(WITHOUT_CODE.into()) } else { Ok(()) }
    }
}

/// Text for standard output that is escaped as all text is, but for its tabs: scripts look for them.
struct Tabs(Vec<u8>);

impl Write for Tabs {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        const ENOUGH: usize = 1 << 16;
        for (index, piece) in text.split(|byte| *byte == b'\t').enumerate() {
            self.0.extend((index > 0).then_some(b'\t'));
            Shown::new(&mut self.0).write_all(piece)?;
        }
        if self.0.len() > ENOUGH {
            self.flush()?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        shown::bytes(&std::mem::take(&mut self.0))
    }
}

/// Shows a file: whether it has device code.
fn file(
    source: &Source,
    request: &Request,
    names: &mut Names,
    out: &mut dyn Write,
) -> Result<bool> {
    let Source { label, name, file } = source;
    let mut found = Vec::new();
    for container in containers(file, Search::Never, |found| found) {
        found.push((found.len(), container?));
    }
    in_order(&mut found);
    if found.is_empty() {
        return Ok(false);
    }
    // without -all: what is linked, or in a file or member that has none what is to be linked
    let is_linked = |found: &FoundContainer<'_>| {
        found.place.section.is_none_or(|(_, name)| name != "__nv_relfatbin" && name != "__nv_rel")
    };
    let member = |found: &FoundContainer<'_>| found.place.member.map(|name| name.to_string());
    let linked = found.iter().filter(|(_, found)| is_linked(found));
    let linked: BTreeSet<_> = linked.map(|(_, found)| member(found)).collect();
    found.retain(|(_, found)| request.all || is_linked(found) || !linked.contains(&member(found)));
    let path = Path::new(label);
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_inside = !request.files.iter().any(|file| file.as_path() == path);
    if is_inside && label != STANDARD_INPUT {
        writeln!(out, "\nmember {}:", whole.display())?;
    }
    let mut seen = Seen {
        names: names.of_next(name),
        counts: [0; 2],
        functions: BTreeSet::new(),
        budget: Budget::new(None, FLOOR, TIMES, file.bytes().len() as u64),
    };
    let mut last = None;
    let mut scratch = Scratch::default();
    for (_, found) in found {
        if let Some(member) = found.place.member.filter(|_| found.place.member != last) {
            writeln!(out, "\nmember {}:{member}:", whole.display())?;
        }
        last = found.place.member;
        match found.container {
            Container::Region(region) => {
                for entry in region.entries() {
                    self::entry(&entry?, request, (&mut seen, &mut scratch), out)?;
                }
            }
            Container::Cubin(span) => {
                let cubin = fatbin::CubinHeader::parse(span.bytes())?;
                // a cubin that is a file is meant whatever it is for, unless that is one architecture alone
                let is_for_all = cubin.sm.suffix != Suffix::Specific;
                if found.place.section.is_none() && is_for_all || request.wants(cubin.sm) {
                    let numbered = seen.names.next(EntryKind::Elf, cubin.sm, "");
                    let name = match found.place.section {
                        Some(_) => numbered,
                        None => numbered.replacen(".1.sm_", ".sm_", 1),
                    };
                    let (head, bytes) = (String::new(), span.bytes());
                    let piece = Piece { head, kind: EntryKind::Elf, sm: cubin.sm, name, bytes };
                    piece.show(request, &mut seen, out)?;
                }
            }
            _ => {}
        }
    }
    for function in &request.functions {
        if !seen.functions.contains(function) && request.dumps_functions() {
            eprintln!("cuobjdump warning : Function listed in --function '{function}' not found");
        }
    }
    for (what, count, is_asked) in [
        ("ELF", seen.counts[0], request.list_elf || !request.extract_elf.is_empty()),
        ("PTX", seen.counts[1], request.list_ptx || !request.extract_ptx.is_empty()),
    ] {
        if is_asked && count == 0 {
            let path = path.display();
            println(&format!(
                "No {what} file found to extract from '{path}'. You may try with -all option."
            ));
        }
    }
    *names = seen.names;
    Ok(true)
}

/// What cuobjdump says beside its output.
fn println(text: &str) {
    eprintln!("cuobjdump info    : {text}");
}

/// What was met so far.
struct Seen {
    names: Names,
    /// Cubins, PTX.
    counts: [usize; 2],
    functions: BTreeSet<String>,
    budget: Budget,
}

fn entry(
    entry: &RegionEntry<'_>,
    request: &Request,
    (seen, scratch): (&mut Seen, &mut Scratch),
    out: &mut dyn Write,
) -> Result<()> {
    let identifier = entry.identifier().to_string();
    let parts = entry.parts()?;
    if parts.is_empty() {
        if !request.wants(entry.sm()) {
            return Ok(());
        }
        let name = seen.names.next(entry.kind(), entry.sm(), &identifier);
        let head = head(entry, &identifier);
        let (kind, sm) = (entry.kind(), entry.sm());
        if !matches!(kind, EntryKind::Elf | EntryKind::Cubin | EntryKind::Ptx) {
            if kind == EntryKind::Nvvm && !request.is_list() && !request.is_extraction() {
                out.write_all(head.as_bytes())?;
            }
            return Ok(());
        }
        let bytes =
            if request.needs_bytes(kind) { metered(entry, scratch, &seen.budget)? } else { &[] };
        return Piece { head, kind, sm, name, bytes }.show(request, seen, out);
    }
    let whole = if request.needs_bytes(EntryKind::Elf) {
        metered(entry, scratch, &seen.budget)?
    } else {
        &[]
    };
    let mut before = concatenated(entry, &identifier);
    for part in parts.iter().filter(|part| request.wants(part.sm)) {
        let name = seen.names.next(part.kind, part.sm, &identifier);
        let bytes = part.of(whole).unwrap_or_default();
        let (major, minor) = part.code_version;
        let head = format!(
            "{before}\n\tFatbin elf code:\n\t================\n\tarch = sm_{}\n\tcode version = [{major},{minor}]\n\
             {}",
            part.sm,
            host_lines(part.flags, "\t")
        );
        before.clear();
        Piece { head, kind: part.kind, sm: part.sm, name, bytes }.show(request, seen, out)?;
    }
    Ok(())
}

/// The lines before an entry.
fn head(entry: &RegionEntry<'_>, identifier: &str) -> String {
    let kind = match entry.kind() {
        EntryKind::Ptx => "ptx",
        EntryKind::Nvvm => "nvvm",
        _ => "elf",
    };
    let (major, minor) = entry.code_version();
    let line = "=".repeat("Fatbin  code:".len() + kind.len());
    let mut text = format!(
        "\nFatbin {kind} code:\n{line}\narch = sm_{}\ncode version = [{major},{minor}]\n",
        entry.sm()
    );
    text.push_str(&host_lines(entry.flags(), ""));
    if entry.compression().is_some() {
        text.push_str("compressed\n");
    }
    if !identifier.is_empty() {
        text.push_str(&format!("identifier = {identifier}\n"));
    }
    let options_of = match entry.kind() {
        EntryKind::Ptx => "ptxas",
        EntryKind::Nvvm => "nvvm",
        _ => "",
    };
    if let (false, EntryOptions::Compiler(options)) = (options_of.is_empty(), entry.options()) {
        let options = String::from_utf8_lossy(options);
        text.push_str(&format!("{options_of}Options = {}\n", options.trim_end_matches('\0')));
    }
    text
}

fn concatenated(entry: &RegionEntry<'_>, identifier: &str) -> String {
    let (major, minor) = entry.code_version();
    let mut text = format!(
        "\nFatbin concatenated entry code:\n===============================\ncode version = [{major},{minor}]\n"
    );
    text.push_str(&host_lines(entry.flags(), ""));
    if entry.compression().is_some() {
        text.push_str("compressed\n");
    }
    if !identifier.is_empty() {
        text.push_str(&format!("identifier = {identifier}\n"));
    }
    text
}

fn host_lines(flags: EntryFlags, indent: &str) -> String {
    let hosts =
        [(EntryFlags::LINUX, "linux"), (EntryFlags::MAC, "mac"), (EntryFlags::WINDOWS, "windows")];
    let host = hosts.into_iter().find(|(host, _)| flags.contains(*host));
    let host = host.map_or("<unknown>", |(_, name)| name);
    let size = if flags.contains(EntryFlags::ADDRESS_64) { "64bit" } else { "32bit" };
    let debug = if flags.contains(EntryFlags::DEBUG) {
        format!("{indent}has debug info\n")
    } else {
        String::new()
    };
    format!("{indent}host = {host}\n{indent}compile_size = {size}\n{debug}")
}

impl Piece<'_> {
    fn show(&self, request: &Request, seen: &mut Seen, out: &mut dyn Write) -> Result<()> {
        let is_ptx = self.kind == EntryKind::Ptx;
        let [elfs, ptxs] = &mut seen.counts;
        let (count, lists, extracts, what) = if is_ptx {
            (ptxs, request.list_ptx, &request.extract_ptx, "PTX")
        } else {
            (elfs, request.list_elf, &request.extract_elf, "ELF")
        };
        *count += 1;
        if request.is_list() {
            if lists {
                writeln!(out, "{what} file {count:>4}: {}", self.name)?;
            }
            return Ok(());
        }
        if request.is_extraction() {
            let is_meant = extracts.iter().any(|part| part == "all" || self.name.contains(part));
            if is_meant {
                let (words, end) = match is_ptx {
                    true => (" and ptxas options", format!(" -arch=sm_{} ", self.sm)),
                    false => ("", String::new()),
                };
                writeln!(out, "Extracting {what} file{words} {count:>4}: {}{end}", self.name)?;
                let bytes = if is_ptx { fatbin::text(self.bytes) } else { self.bytes };
                output::write_inside(Path::new("."), &self.name, |file| file.write_all(bytes))
                    .with_context(|| self.name.clone())?;
            }
            return Ok(());
        }
        out.write_all(self.head.as_bytes())?;
        if is_ptx {
            if request.dumps.contains(&Dump::Ptx) {
                out.write_all(fatbin::text(self.bytes))?;
                writeln!(out)?;
            }
            return Ok(());
        }
        for dump in &request.dumps {
            match dump {
                Dump::Ptx => {}
                Dump::Elf => elf::elf(self.bytes, self.sm, out)?,
                Dump::Symbols => reports::symbols(File::parse(self.bytes)?, out)?,
                Dump::Resources => {
                    reports::resources(self.bytes, request, &mut seen.functions, out)?
                }
                Dump::Sass => {
                    listing::sass(self.bytes, self.sm, request, &mut seen.functions, out)?
                }
            }
        }
        Ok(())
    }
}
