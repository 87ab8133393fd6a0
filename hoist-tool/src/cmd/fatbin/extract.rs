//! `hoist fatbin extract PATH...`: entries as files of their own, unpacked on all cores.

use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind::{QuotaExceeded, StorageFull};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail};
use fatbin::{Container, EntryKind, FoundContainer, Part, RegionEntry, Span};
use rayon::prelude::*;
use serde::Serialize;

use super::cubins::unpacked;
use super::filter::{Filter, Where};
use super::found::containers;
use super::holding::Holding;
use super::names::Names;
use crate::budget::{Budget, FLOOR, TIMES};
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::mapped::Mapped;
use crate::number::number;
use crate::output;
use crate::paint;
use crate::printable::Printable;
use crate::scratch::Scratch;
use crate::shown;
use crate::sources::{Order, Roots, Source, Sources};

/// Writes entries to files, unpacked, named as cuobjdump names them.
#[derive(Debug, clap::Args)]
pub struct Extract {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    holding: Holding,
    #[command(flatten)]
    place: Where,
    /// The folder to write to; `-` is standard output, for a single entry.
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
    /// The most bytes that the entries of a file may unpack to, together: otherwise 256 MiB and 64 times the size of the file.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
    #[command(flatten)]
    json: JsonArguments,
    /// Prints nothing but errors.
    #[arg(short, long, conflicts_with_all = ["json", "json_lines"])]
    quiet: bool,
    /// Takes it for an error that an entry is encrypted (compressed NVVM) and cannot be unpacked.
    #[arg(long)]
    encrypted_is_error: bool,
}

/// What is made of the files so far.
#[derive(Default)]
struct Done {
    faults: Faults,
    names: Names,
    rows: Vec<Written>,
    encrypted: Vec<Encrypted>,
    /// To standard output: how many entries there are, and the file of the first.
    printed: usize,
}

/// An entry that nobody can unpack who has not the key.
#[derive(Debug, Serialize)]
struct Encrypted {
    file: String,
    region: usize,
    entry: usize,
}

/// What is to be extracted: an image, or several in a concatenated entry.
struct Job<'a> {
    payload: Payload<'a>,
    kind: EntryKind,
    region: usize,
    entry: usize,
    /// Names, with the part for each but the payload as a whole.
    names: Vec<(String, Option<Part>)>,
}

#[derive(Clone, Copy)]
enum Payload<'a> {
    Entry(RegionEntry<'a>),
    Cubin(Span<'a>),
}

/// A file that was written.
#[derive(Debug, Serialize)]
struct Written {
    file: String,
    region: usize,
    entry: usize,
    size: usize,
    name: String,
}

impl Extract {
    /// Writes files and prints their names to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or written, an entry is damaged, or nothing is to be extracted. What could be extracted stays.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let to_stdout = self.output.as_os_str() == "-";
        if !to_stdout {
            fs::create_dir_all(&self.output).with_context(|| self.output.display().to_string())?;
        }
        let done = Mutex::new(Done::default());
        let mut roots = Roots::default();
        let look = |source: Source| {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            if to_stdout { self.print(&source, &mut done) } else { self.files(&source, &mut done) }
        };
        let mut errors = Vec::new();
        self.sources.each(Order::OneByOne, look, |root, found| {
            match found.and_then(|found| found) {
                Ok(count) => roots.has(root, count > 0),
                Err(error) => {
                    roots.failed(root);
                    errors.push(error);
                }
            }
            Ok(())
        })?;
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        errors.into_iter().for_each(|error| done.faults.push(error));
        const NOTHING: &str =
            "nothing to extract; images of LLVM's containers: hoist fatbin offload extract";
        roots.without_containers(&self.sources.paths, NOTHING, &mut done.faults);
        let Done { mut faults, rows, encrypted, .. } = done;
        if self.json.is_on() {
            let found = serde_json::json!({ "files": rows, "encrypted": encrypted });
            crate::json::write(out, &found)?;
            writeln!(out)?;
        } else if !self.quiet && !to_stdout {
            for row in &rows {
                writeln!(out, "{}", Printable::from(&*row.name))?;
            }
        }
        if let (Some(first), count) = (encrypted.first(), encrypted.len()) {
            let Encrypted { file, region, entry } = first;
            let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
            let what =
                format!("{file}: region {region} entry {entry}{more}: encrypted NVVM, left out");
            if self.encrypted_is_error {
                faults.push(anyhow!(what));
            } else if !self.quiet {
                paint::warning(&what);
            }
        }
        faults.result()
    }

    /// Writes what is to be extracted of a file: how many entries that are.
    fn files(&self, source: &Source, done: &mut Done) -> Result<usize> {
        let label = || source.label.clone();
        let jobs = self.jobs(source, done);
        let results = self.write_all(&jobs, &source.file, &self.budget(source));
        let mut count = 0;
        for (job, result) in jobs.into_iter().zip(results) {
            count += job.names.len();
            let Job { region, entry, .. } = job;
            match result {
                Ok(sizes) => {
                    done.rows.extend(job.names.into_iter().zip(sizes).map(|((name, _), size)| {
                        Written { file: label(), region, entry, size, name }
                    }));
                }
                Err(error) if is_encrypted(&error) => {
                    done.encrypted.push(Encrypted { file: label(), region, entry });
                }
                Err(error) => done.faults.push(error.context(label())),
            }
        }
        Ok(count)
    }

    /// What the entries of a file may unpack to.
    fn budget(&self, source: &Source) -> Budget {
        Budget::new(self.limit, FLOOR, TIMES, source.file.bytes().len() as u64)
    }

    /// Prints what is to be extracted of a file: one entry in all.
    fn print(&self, source: &Source, done: &mut Done) -> Result<usize> {
        let label = || source.label.clone();
        let jobs = self.jobs(source, done);
        let count: usize = jobs.iter().map(|job| job.names.len()).sum();
        done.printed += count;
        if done.printed > 1 {
            bail!(
                "{}: {} entries, but standard output takes one: say --arch, --kind, --region, --entry",
                label(),
                done.printed
            );
        }
        let budget = self.budget(source);
        for job in jobs {
            let mut buffer = Scratch::default();
            let bytes = job.unpack(&mut buffer, &budget).with_context(label)?;
            for (_, part) in &job.names {
                shown::bytes(job.image(bytes, *part).with_context(label)?)?;
            }
        }
        Ok(count)
    }

    /// What is to be extracted from a file: only headers are read.
    fn jobs<'a>(&self, source: &'a Source, done: &mut Done) -> Vec<Job<'a>> {
        let Done { faults, names, .. } = done;
        let context = |error| anyhow::Error::new(error).context(source.label.clone());
        *names = names.of_next(&source.name);
        let mut jobs = Vec::new();
        let mut found = Vec::new();
        for item in containers(&source.file, self.place.search(), |found| found) {
            match item {
                Ok(item) => found.push((found.len(), item)),
                Err(error) => faults.push(context(error)),
            }
        }
        in_order(&mut found);
        let mut errors = Vec::new();
        for (region, found) in found {
            match found.container {
                Container::Region(entries) => {
                    for (index, entry) in entries.entries().enumerate() {
                        match entry.and_then(|entry| self.job(entry, region, index, names)) {
                            Ok(job) => jobs.push(job),
                            Err(error) => errors.push(error),
                        }
                    }
                }
                Container::Cubin(span) => match fatbin::CubinHeader::parse(span.bytes()) {
                    Ok(cubin) => {
                        let name = names.next(EntryKind::Elf, cubin.sm, "");
                        let wanted = self.filter.wants(EntryKind::Elf, cubin.sm)
                            && self.filter.wants_place(region, 0);
                        let names = wanted.then_some((name, None)).into_iter().collect();
                        jobs.push(Job {
                            payload: Payload::Cubin(span),
                            kind: EntryKind::Elf,
                            region,
                            entry: 0,
                            names,
                        });
                    }
                    Err(error) => errors.push(error),
                },
                _ => {} // `offload extract`
            }
        }
        errors.into_iter().for_each(|error| faults.push(context(error)));
        jobs.retain(|job| !job.names.is_empty());
        let code = self.filter.code();
        // what is damaged is told where it is unpacked
        if let Some((places, _)) = self.holding.entries(source, self.place.search(), code) {
            jobs.retain(|job| places.contains(&(job.region, job.entry)));
        }
        jobs
    }

    /// What is to be extracted from an entry: names are counted whether they are wanted or not.
    fn job<'a>(
        &self,
        entry: RegionEntry<'a>,
        region: usize,
        index: usize,
        names: &mut Names,
    ) -> Result<Job<'a>, fatbin::Error> {
        let identifier = String::from_utf8_lossy(entry.identifier().as_bytes());
        let place = self.filter.wants_place(region, index);
        let mut job = Job {
            payload: Payload::Entry(entry),
            kind: entry.kind(),
            region,
            entry: index,
            names: Vec::new(),
        };
        let parts = entry.parts()?;
        if parts.is_empty() {
            let name = names.next(entry.kind(), entry.sm(), &identifier);
            if place && self.filter.wants(entry.kind(), entry.sm()) {
                job.names.push((name, None));
            }
        }
        for part in parts.iter() {
            let name = names.next(part.kind, part.sm, &identifier);
            if place && self.filter.wants(part.kind, part.sm) {
                job.names.push((name, Some(part)));
            }
        }
        Ok(job)
    }

    /// Writes the files of all jobs, on all cores; the sizes of each one's files, in the order of `jobs`.
    fn write_all(
        &self,
        jobs: &[Job<'_>],
        file: &Mapped,
        budget: &Budget,
    ) -> Vec<Result<Vec<usize>>> {
        // one word about a full disk is enough
        let full = &AtomicBool::new(false);
        // The largest first, and each goes to who is free: the cores end together.
        let mut order: Vec<_> = jobs.iter().enumerate().collect();
        order.sort_by_key(|(_, job)| Reverse(job.unpacked_size()));
        let mut results: Vec<_> = order
            .into_iter()
            .par_bridge()
            .map_init(Scratch::default, |buffer, (index, job)| {
                let is_over = full.load(Ordering::Relaxed);
                let done = (!is_over).then(|| self.write(job, (file, budget), full, buffer));
                (index, done)
            })
            .collect();
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().filter_map(|(_, result)| result).collect()
    }

    /// Writes the files of a job; the sizes of them.
    fn write(
        &self,
        job: &Job<'_>,
        (file, budget): (&Mapped, &Budget),
        full: &AtomicBool,
        buffer: &mut Scratch,
    ) -> Result<Vec<usize>> {
        let stored = job.stored();
        let range = stored.at()..stored.at().saturating_add(stored.size());
        file.reads(range.clone());
        let bytes = job.unpack(buffer, budget)?;
        let write = |(name, part): &(String, Option<Part>)| {
            let image = job.image(bytes, *part)?;
            let path = self.output.join(name);
            let done = output::write_inside(&self.output, name, |file| file.write_all(image));
            if let Err(error) = &done
                && matches!(error.kind(), StorageFull | QuotaExceeded)
            {
                full.store(true, Ordering::Relaxed);
            }
            done.with_context(|| path.display().to_string())?;
            Ok(image.len())
        };
        let sizes = job.names.iter().map(write).collect();
        file.done_with(range);
        sizes
    }
}

/// Whether an entry cannot be unpacked since it is encrypted.
fn is_encrypted(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<fatbin::Error>().map(|error| error.kind);
    matches!(kind, Some(fatbin::ErrorKind::Obfuscated { .. }))
}

/// Puts regions in the order of cuobjdump, which counts by it: in each member of an archive first `.nv_fatbin`, then
/// `__nv_relfatbin`, then what it does not find.
pub fn in_order(found: &mut [(usize, FoundContainer<'_>)]) {
    let rank = |found: &FoundContainer<'_>| match found.place.section {
        Some((_, name)) if name == ".nv_fatbin" || name == ".nv_fatb" => 0,
        Some((_, name)) if name == "__nv_relfatbin" || name == "__nv_rel" => 1,
        _ => 2,
    };
    let members = found.chunk_by_mut(|(_, one), (_, other)| one.place.member == other.place.member);
    members.for_each(|member| member.sort_by_key(|(_, found)| rank(found)));
}

impl<'a> Job<'a> {
    fn unpacked_size(&self) -> u64 {
        match self.payload {
            Payload::Entry(entry) => entry.unpacked_size(),
            Payload::Cubin(span) => span.size(),
        }
    }

    /// Where in the file the payload is stored.
    fn stored(&self) -> Span<'a> {
        match self.payload {
            Payload::Cubin(span) => span,
            Payload::Entry(entry) => entry.stored(),
        }
    }

    /// The payload without compression.
    fn unpack<'b>(&self, buffer: &'b mut Scratch, budget: &Budget) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        let entry = match self.payload {
            Payload::Cubin(span) => {
                budget.take("a cubin", span.size())?;
                return Ok(span.bytes());
            }
            Payload::Entry(entry) => entry,
        };
        let size = entry.unpack_size(usize::MAX)?;
        let (region, index) = (self.region, self.entry);
        budget.take(format_args!("region {region} entry {index}"), size as u64)?;
        unpacked(entry, size, buffer)
    }

    /// What goes into a file: PTX without the NULs behind it, as cuobjdump writes it.
    fn image<'b>(&self, unpacked: &'b [u8], part: Option<Part>) -> Result<&'b [u8]> {
        match part {
            Some(part) => part.of(unpacked).with_context(|| {
                format!("{:#x} bytes at {:#x} of a concatenated entry", part.size, part.offset)
            }),
            None if self.kind == EntryKind::Ptx => Ok(fatbin::text(unpacked)),
            None => Ok(unpacked),
        }
    }
}
