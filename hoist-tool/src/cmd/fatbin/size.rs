//! `hoist fatbin size PATH...`: what device code is made of, in bytes: files, architectures, kinds, sections, templates.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Error, Result, anyhow};
use elf_core::names::SHF_CUDA_MERCURY;
use fatbin::{CompressionMethod, EntryKind};
use nvinfo::Cubin;
use serde::Serialize;

use super::cubins::{Image, images};
use super::filter::{Filter, Where};
use super::keep::{Keep, keep};
use super::kernels::{Wanted, of_cubin, of_ptx};
use super::rows::arch;
use crate::demangle::family;
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::kernel_filter::{KernelFilter, KernelOrder};
use crate::kernel_name::Text;
use crate::number::size;
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::{Table, tail};

/// Bytes of images that are compressed anew to tell what a method would save.
const SAMPLE: u64 = 8 << 20;
/// Whether there is what compresses: in a browser nobody asks for it.
const CAN_PACK: bool = cfg!(not(target_family = "wasm"));
/// Templates shown, unless the command line says how many.
const SHOWN: usize = 20;

/// Shows what device code is made of, in bytes: files, architectures, kinds, sections, kernels (all of a template together).
///
/// With `--kernel` of cubins and PTX that have such a kernel.
#[derive(Debug, clap::Args)]
pub struct Size {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    kernels: KernelFilter,
    #[command(flatten)]
    place: Where,
    /// Estimates what each method of compression would make of it, from a sample. That takes time, and is not shown without it.
    #[arg(long)]
    compression: bool,
    /// Tells what `prune --keep` and `wheel slim --keep` would leave and save: `sm_90`, `compute_90`, `elf`, `ptx`.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = keep)]
    keep: Vec<Keep>,
    #[command(flatten)]
    json: JsonArguments,
}

/// Bytes, as they are stored and unpacked.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Bytes {
    images: u64,
    stored: u64,
    unpacked: u64,
}

impl Bytes {
    const fn add(&mut self, other: Self) {
        self.images = self.images.saturating_add(other.images);
        self.stored = self.stored.saturating_add(other.stored);
        self.unpacked = self.unpacked.saturating_add(other.unpacked);
    }
}

/// Kernels of one template.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Kernels {
    kernels: u64,
    code: u64,
    /// The most that one of them has.
    registers: u32,
}

/// All sums.
#[derive(Debug, Default)]
struct Sums {
    files: BTreeMap<String, Bytes>,
    /// By kind and architecture.
    archs: BTreeMap<(String, String), Bytes>,
    /// Of cubins.
    sections: BTreeMap<&'static str, u64>,
    families: BTreeMap<String, Kernels>,
    /// What `--keep` keeps.
    kept: Bytes,
    /// Bytes of the sample, and what each method makes of them.
    sample: u64,
    packed: BTreeMap<&'static str, u64>,
}

impl Sums {
    fn merge(&mut self, other: Self) {
        for (key, value) in other.files {
            self.files.entry(key).or_default().add(value);
        }
        for (key, value) in other.archs {
            self.archs.entry(key).or_default().add(value);
        }
        for (key, value) in other.sections {
            let sum = self.sections.entry(key).or_default();
            *sum = sum.saturating_add(value);
        }
        for (key, value) in other.families {
            let sum = self.families.entry(key).or_default();
            sum.kernels = sum.kernels.saturating_add(value.kernels);
            sum.code = sum.code.saturating_add(value.code);
            sum.registers = sum.registers.max(value.registers);
        }
        self.kept.add(other.kept);
        self.sample = self.sample.saturating_add(other.sample);
        for (key, value) in other.packed {
            let sum = self.packed.entry(key).or_default();
            *sum = sum.saturating_add(value);
        }
    }

    /// Adds the size of an image.
    fn count(&mut self, source: &Source, image: &Image, unpacked: u64, keep: &[Keep]) {
        let size = Bytes { images: 1, stored: image.stored_size, unpacked };
        if keep.iter().any(|one| one.keeps(image.kind, image.sm)) {
            self.kept.add(size);
        }
        self.files.entry(source.label.clone()).or_default().add(size);
        let kind = match image.kind {
            EntryKind::Cubin => EntryKind::Elf.to_string(),
            kind => kind.to_string(),
        };
        let arch = arch(image.kind, image.sm).unwrap_or_default();
        self.archs.entry((kind, arch)).or_default().add(size);
    }

    fn all(&self) -> Bytes {
        let mut all = Bytes::default();
        self.files.values().for_each(|bytes| all.add(*bytes));
        all
    }
}

impl Size {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, or holds no device code.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut faults = Faults::default();
        let mut roots = Roots::default();
        let mut sums = Sums::default();
        self.sources.each(
            Order::AtOnce,
            |source| self.look(&source),
            |root, found| {
                match found {
                    Ok((found, errors)) => {
                        roots.has(root, !found.files.is_empty() || !errors.is_empty());
                        sums.merge(found);
                        errors.into_iter().for_each(|error| faults.push(error));
                    }
                    Err(error) => {
                        roots.failed(root);
                        faults.push(error);
                    }
                }
                Ok(())
            },
        )?;
        match self.filter.is_all() && self.kernels.kernel.is_empty() {
            true => roots.without_containers(
                &self.sources.paths,
                "holds no device code of NVIDIA's",
                &mut faults,
            ),
            false if roots.is_nothing() => {
                faults.push(anyhow!("no such device code in these files"))
            }
            false => {}
        }
        if self.json.is_on() {
            self.json(&sums, out)?;
        } else if !sums.files.is_empty() {
            self.text(&sums, out)?;
        }
        faults.result()
    }

    /// The sums of one file.
    fn look(&self, source: &Source) -> (Sums, Vec<Error>) {
        // what is encrypted is counted as it is stored
        let encrypted = RefCell::new(Sums::default());
        let wants = |image: &Image| {
            let wanted = self.filter.wants_place(image.place.region, image.place.entry)
                && self.filter.wants(image.kind, image.sm);
            if wanted && image.is_encrypted && self.kernels.kernel.is_empty() {
                encrypted.borrow_mut().count(source, image, 0, &self.keep);
            }
            wanted && !image.is_encrypted
        };
        let label = Text::from(&*source.label);
        let all = images(&source.file, self.place.search(), wants, |image, bytes| {
            self.image(source, &label, image, bytes)
        });
        let (mut sums, mut errors) = (Sums::default(), Vec::new());
        for one in all {
            match one.and_then(|sums| sums) {
                Ok(found) => sums.merge(found),
                Err(error) => errors.push(error.context(source.label.clone())),
            }
        }
        sums.merge(encrypted.into_inner());
        (sums, errors)
    }

    fn image(&self, source: &Source, label: &Text, image: &Image, bytes: &[u8]) -> Result<Sums> {
        let mut sums = Sums::default();
        let wanted = Wanted::needs(&self.kernels.kernel);
        let of = (label, image);
        let rows = match image.kind {
            EntryKind::Elf | EntryKind::Cubin => of_cubin(of, bytes, wanted)?,
            EntryKind::Ptx | EntryKind::RelocatablePtx if !wanted.names.is_empty() => {
                of_ptx(of, bytes, wanted)
            }
            _ => Vec::new(),
        };
        if !wanted.names.is_empty() && rows.is_empty() {
            return Ok(sums);
        }
        sums.count(source, image, bytes.len() as u64, &self.keep);
        if matches!(image.kind, EntryKind::Elf | EntryKind::Cubin) {
            sections(bytes, &mut sums.sections)?;
            for row in rows {
                let name = if self.kernels.raw {
                    row.name.to_string()
                } else {
                    family(&row.readable(false))
                };
                let family = sums.families.entry(name).or_default();
                family.kernels += 1;
                family.code = family.code.saturating_add(row.code_size);
                family.registers = family.registers.max(row.registers.unwrap_or(0));
            }
        }
        // every image whose offset in the order of files falls into the sample
        let is_sampled = CAN_PACK
            && self.compression
            && image
                .place
                .region
                .wrapping_mul(31)
                .wrapping_add(image.place.entry)
                .is_multiple_of(16)
            && bytes.len() as u64 <= SAMPLE;
        if is_sampled && image.kind != EntryKind::Nvvm {
            sums.sample = bytes.len() as u64;
            for method in CompressionMethod::ALL {
                sums.packed.insert(method.name(), method.pack(bytes)?.len() as u64);
            }
        }
        Ok(sums)
    }

    fn text(&self, sums: &Sums, out: &mut dyn Write) -> Result<()> {
        let limit = self.kernels.limit.unwrap_or(SHOWN);
        let all = sums.all();
        let files = self.files(sums);
        let mut table = Table::new(out);
        table.heading(["images", "stored", "unpacked", "%", "file"])?;
        for (file, bytes) in files.iter().take(limit) {
            let Bytes { images, stored, unpacked } = bytes;
            let share = percent(*stored, all.stored);
            table.row([images.to_string(), size(*stored), size(*unpacked), share, tail(file)])?;
        }
        let whole = percent(all.stored, all.stored);
        let label = format!("all {} files", files.len());
        table.row([all.images.to_string(), size(all.stored), size(all.unpacked), whole, label])?;
        table.end()?;
        writeln!(out)?;
        let mut archs: Vec<_> = sums.archs.iter().collect();
        archs.sort_by_key(|(_, bytes)| Reverse(bytes.stored));
        let mut table = Table::new(out);
        table.heading([
            "kind",
            "arch",
            "images",
            "stored",
            "unpacked",
            "%",
            "prune --keep it saves",
        ])?;
        for ((kind, arch), bytes) in archs {
            table.row([
                kind.clone(),
                arch.clone(),
                bytes.images.to_string(),
                size(bytes.stored),
                size(bytes.unpacked),
                percent(bytes.stored, all.stored),
                size(all.stored.saturating_sub(bytes.stored)),
            ])?;
        }
        table.end()?;
        if !self.keep.is_empty() {
            let words: Vec<_> = self.keep.iter().map(ToString::to_string).collect();
            let (stored, whole) = (sums.kept.stored, all.stored);
            let saved = whole.saturating_sub(stored);
            writeln!(
                out,
                "\n--keep {}: {} images with {} stay, {} ({} %) go",
                words.join(","),
                sums.kept.images,
                size(stored),
                size(saved),
                percent(saved, whole)
            )?;
        }
        if !sums.sections.is_empty() {
            writeln!(out)?;
            let cubins: u64 = sums.sections.values().sum();
            let mut sections: Vec<_> = sums.sections.iter().collect();
            sections.sort_by_key(|(_, bytes)| Reverse(**bytes));
            let mut table = Table::new(out);
            table.heading(["in cubins", "unpacked", "%"])?;
            for (name, bytes) in sections {
                table.row([(*name).to_owned(), size(*bytes), percent(*bytes, cubins)])?;
            }
            table.end()?;
        }
        if !sums.families.is_empty() {
            writeln!(out)?;
            families(&self.families(sums), limit, out)?;
        }
        if sums.sample > 0 {
            writeln!(out)?;
            let sampled = size(sums.sample);
            let mut table = Table::new(out);
            table.heading([
                "compression",
                "would be stored as",
                "of unpacked",
                "by a sample of",
            ])?;
            for (method, packed) in &sums.packed {
                let whole = all.unpacked as f64 * *packed as f64 / sums.sample as f64;
                let share = percent(*packed, sums.sample);
                table.row([*method, &size(whole as u64), &share, &sampled])?;
            }
            table.end()?;
        }
        Ok(())
    }

    /// Files in the order that is asked for: the largest first, or by name.
    fn files<'s>(&self, sums: &'s Sums) -> Vec<(&'s String, &'s Bytes)> {
        let mut files: Vec<_> = sums.files.iter().collect();
        if self.kernels.sort != Some(KernelOrder::Name) {
            files.sort_by_key(|(_, bytes)| Reverse(bytes.stored));
        }
        files
    }

    /// Kernels in the order that is asked for: those of the most code first, of the most registers, or by name.
    fn families<'s>(&self, sums: &'s Sums) -> Vec<(&'s String, &'s Kernels)> {
        let mut rows: Vec<_> = sums.families.iter().collect();
        match self.kernels.sort {
            None | Some(KernelOrder::Size) => rows.sort_by_key(|(_, one)| Reverse(one.code)),
            Some(KernelOrder::Registers) => rows.sort_by_key(|(_, one)| Reverse(one.registers)),
            Some(KernelOrder::Name) => {}
        }
        rows
    }

    fn json(&self, sums: &Sums, out: &mut dyn Write) -> Result<()> {
        let limit = self.kernels.limit.unwrap_or(usize::MAX);
        let files = self.files(sums).into_iter().take(limit);
        let files = files.map(|(file, bytes)| serde_json::json!({ "file": file, "bytes": bytes }));
        let archs = sums.archs.iter().map(|((kind, arch), bytes)| {
            serde_json::json!({ "kind": kind, "arch": arch, "bytes": bytes })
        });
        let families = self.families(sums).into_iter().take(limit).map(|(name, sum)| {
            let Kernels { kernels, code, registers } = sum;
            serde_json::json!({
                "family": name, "kernels": kernels, "code": code, "registers": registers,
            })
        });
        let [files, archs, families]: [Vec<_>; 3] =
            [files.collect(), archs.collect(), families.collect()];
        let found = serde_json::json!({
            "all": sums.all(),
            "kept": (!self.keep.is_empty()).then_some(sums.kept),
            "files": files,
            "archs": archs,
            "sections": sums.sections,
            "families": families,
            "sample": { "unpacked": sums.sample, "packed": sums.packed },
        });
        crate::json::write(out, &found)?;
        Ok(writeln!(out)?)
    }
}

fn families(rows: &[(&String, &Kernels)], limit: usize, out: &mut dyn Write) -> Result<()> {
    let code: u64 = rows.iter().map(|(_, one)| one.code).sum();
    let mut table = Table::new(out);
    table.heading(["kernels", "registers", "code", "%", "kernel, all of a template"])?;
    for (name, one) in rows.iter().take(limit) {
        let Kernels { kernels, code: bytes, registers } = one;
        let (share, bytes) = (percent(*bytes, code), size(*bytes));
        table.row([kernels.to_string(), registers.to_string(), bytes, share, (*name).clone()])?;
    }
    if let Some(rest) = rows.get(limit..).filter(|rest| !rest.is_empty()) {
        let kernels: u64 = rest.iter().map(|(_, one)| one.kernels).sum();
        let bytes: u64 = rest.iter().map(|(_, one)| one.code).sum();
        let label = format!("{} others: --limit shows more", rest.len());
        let most = rest.iter().map(|(_, one)| one.registers).max().unwrap_or(0).to_string();
        table.row([kernels.to_string(), most, size(bytes), percent(bytes, code), label])?;
    }
    table.end()
}

/// Adds what the sections of a cubin take in the file, by what they are for.
fn sections(bytes: &[u8], sums: &mut BTreeMap<&'static str, u64>) -> Result<()> {
    const KINDS: [(&str, &str); 13] = [
        (".text", "code"),
        (".nv.constant", "constants"),
        (".nv.global", "variables"),
        (".debug", "debug information"),
        (".nv_debug", "debug information"),
        (".nv.info", "attributes"),
        (".nv.compat", "attributes"),
        (".note", "attributes"),
        (".nv.callgraph", "attributes"),
        (".nv.prototype", "attributes"),
        (".rel", "relocations"),
        (".nv.rel", "relocations"),
        (".s", "symbols and names"), // .symtab, .strtab, .shstrtab
    ];
    let cubin = Cubin::parse(bytes)?;
    let file = cubin.file();
    let mut seen = 0u64;
    for section in file.sections() {
        if section.r#type == elf_core::names::SHT_NOBITS || section.r#type == 0 {
            continue;
        }
        let name = file.section_name(&section).map(|name| name.to_string()).unwrap_or_default();
        let kind = if section.flags.bits() & SHF_CUDA_MERCURY != 0 {
            "Mercury form"
        } else {
            let found = KINDS.iter().find(|(start, _)| name.starts_with(start));
            found.map_or("other", |(_, kind)| kind)
        };
        let sum = sums.entry(kind).or_default();
        *sum = sum.saturating_add(section.size);
        seen = seen.saturating_add(section.size);
    }
    let sum = sums.entry("headers and gaps").or_default();
    *sum = sum.saturating_add((bytes.len() as u64).saturating_sub(seen));
    Ok(())
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}", part as f64 * 100.0 / whole as f64) }
}
