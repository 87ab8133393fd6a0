//! `hoist fatbin pack -o OUT IMAGE...`: a fatbin, or an object with a wrapper, from cubins and PTX.

use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use elf_core::names::{EM_AARCH64, EM_X86_64};
use fatbin::{
    CompressionMethod, EntryFlags, EntryKind, EntryOptions, Item, NewEntry, Part, Sm, Suffix,
    object_size, region, write_object,
};
use rayon::prelude::*;

use crate::alone;
use crate::form::NVVM;
use crate::output;

/// Packs cubins and PTX into a fatbin, or into an object with a wrapper to link with a host program.
#[derive(Debug, clap::Args)]
pub struct Pack {
    /// Cubins, PTX, NVVM: `FILE`, or `ARCH=FILE` where the file does not say for what it is (suffix f, NVVM).
    #[arg(required = true, value_name = "[ARCH=]FILE", value_parser = image)]
    images: Vec<(Option<Sm>, PathBuf)>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How to compress: `none`, `zlib`, `lz4`, `lz4-frame`, `zstd`.
    #[arg(long, value_name = "METHOD", value_parser = method, default_value = "none")]
    compress: Compression,
    /// Packs plain cubins into one entry (CUDA 13.5): compressed together, they become smaller.
    #[arg(long)]
    concat: bool,
    /// What to call the entries: mostly the name of the source file.
    #[arg(long, value_name = "NAME", default_value = "")]
    identifier: String,
    /// Options for the compiler of PTX.
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    options: String,
    /// Writes an object to link, with a wrapper of this name.
    #[arg(long, value_name = "SYMBOL")]
    wrapper: Option<String>,
    /// The machine of the object: `x86-64` or `aarch64`.
    #[arg(long, value_name = "MACHINE", value_parser = machine, default_value = "x86-64")]
    machine: u16,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

/// A method of compression, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression(pub Option<CompressionMethod>);

/// A method of compression by its name, or `none`.
///
/// # Errors
/// If there is none of this name.
pub fn method(text: &str) -> Result<Compression, String> {
    if text == "none" {
        return Ok(Compression(None));
    }
    let is = |method: &CompressionMethod| method.name().replace(' ', "-") == text;
    let found = CompressionMethod::ALL.into_iter().find(is).map(|method| Compression(Some(method)));
    found.ok_or_else(|| String::from("expected none, zlib, lz4, lz4-frame or zstd"))
}

fn machine(text: &str) -> Result<u16, String> {
    match text {
        "x86-64" | "x86_64" => Ok(EM_X86_64),
        "aarch64" => Ok(EM_AARCH64),
        _ => Err(String::from("expected x86-64 or aarch64")),
    }
}

fn image(text: &str) -> Result<(Option<Sm>, PathBuf), String> {
    let of = text.split_once('=').and_then(|(sm, path)| Some((sm.parse().ok()?, path)));
    Ok(of.map_or_else(|| (None, PathBuf::from(text)), |(sm, path)| (Some(sm), PathBuf::from(path))))
}

impl Pack {
    /// Writes the file; prints nothing but JSON, if that is wanted.
    ///
    /// # Errors
    /// If a file cannot be read or written, or is neither a cubin nor PTX.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let files: Vec<_> =
            self.images.iter().map(|(_, path)| alone::open(path)).collect::<Result<_>>()?;
        let texts: Vec<Cow<'_, [u8]>> = files.iter().map(|file| with_nul(file.bytes())).collect();
        let mut entries = Vec::new();
        for ((sm, path), bytes) in self.images.iter().zip(&texts) {
            let entry = entry(bytes, *sm).with_context(|| path.display().to_string())?;
            let options = match (entry.kind, self.options.as_bytes()) {
                (EntryKind::Ptx, options) => EntryOptions::Compiler(options),
                _ => entry.options,
            };
            entries.push(NewEntry { identifier: self.identifier.as_bytes(), options, ..entry });
        }
        let joined = Joined::of(if self.concat { &entries } else { &[] });
        if let Some(entry) = joined.entry() {
            entries.retain(|entry| !Joined::takes(entry));
            entries.insert(0, NewEntry { identifier: self.identifier.as_bytes(), ..entry });
        }
        let bytes = packed(&entries, self.compress)?;
        let bytes = match &self.wrapper {
            None => bytes,
            Some(symbol) => {
                let mut object = vec![0; object_size(bytes.len(), symbol)];
                write_object(&bytes, symbol, self.machine, &mut object)?;
                object
            }
        };
        output::write(&self.output, None, |file| {
            file.write_all(&bytes).with_context(|| self.output.display().to_string())
        })?;
        let out = &mut *output::beside(&self.output, out);
        if self.json {
            let (file, size) = (self.output.display().to_string(), bytes.len());
            let row = serde_json::json!({ "output": file, "size": size, "entries": entries.len() });
            crate::json::write(out, &row)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

/// PTX has a NUL behind it in a fatbin; other files are as they are.
#[must_use]
pub fn with_nul(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_text =
        !bytes.starts_with(b"\x7fELF") && !bytes.starts_with(&NVVM) && !bytes.ends_with(&[0]);
    if is_text { [bytes, &[0]].concat().into() } else { bytes.into() }
}

/// An entry for a file by what it begins with, not compressed. `sm` is what the user says of its architecture.
///
/// # Errors
/// If it is neither a cubin, nor PTX, nor NVVM, or is for another architecture.
pub fn entry(bytes: &[u8], sm: Option<Sm>) -> Result<NewEntry<'_>> {
    if bytes.starts_with(&NVVM) {
        let sm = sm.context("NVVM does not say for what it is: ARCH=FILE does")?;
        return Ok(NewEntry {
            kind: EntryKind::Nvvm,
            sm,
            code_version: (1, 67),
            flags: EntryFlags::ADDRESS_64 | EntryFlags::LINUX,
            identifier: &[],
            options: EntryOptions::Compiler(&[]),
            parts: &[],
            stored: bytes,
            compression: None,
        });
    }
    let is_elf = bytes.starts_with(b"\x7fELF");
    let entry = if is_elf { NewEntry::cubin(bytes)? } else { NewEntry::ptx(bytes)? };
    let Some(sm) = sm.or_else(|| family(bytes, entry.sm)) else { return Ok(entry) };
    // a cubin records all but suffix f
    let agrees = sm.number == entry.sm.number
        && (sm.suffix == entry.sm.suffix || (is_elf && sm.suffix == Suffix::Family));
    ensure!(agrees, "is for {}, not for {sm}", entry.sm);
    Ok(entry.with_sm(sm))
}

/// The architecture of a cubin for a family: the note of the tool that made it says so, and nothing else in it.
fn family(bytes: &[u8], sm: Sm) -> Option<Sm> {
    let target = *nvinfo::Cubin::parse(bytes).ok()?.target();
    let is_family = sm.suffix == Suffix::None && target.suffix == nvinfo::TargetSuffix::Family;
    is_family.then_some(Sm { suffix: Suffix::Family, ..sm })
}

/// A region of entries, each compressed, on all cores. NVVM stays as it is: compressed, it would have to be obfuscated.
///
/// # Errors
/// If an entry is too large.
pub fn packed(entries: &[NewEntry<'_>], Compression(method): Compression) -> Result<Vec<u8>> {
    let stored = |entry: &NewEntry<'_>| match method {
        Some(method) if entry.kind != EntryKind::Nvvm => {
            method.pack(entry.stored).map(|stored| Some((method, stored)))
        }
        _ => Ok(None),
    };
    let stored: Vec<_> = entries.par_iter().map(stored).collect::<Result<_, _>>()?;
    let items = entries.iter().zip(&stored).map(|(&entry, stored)| match stored {
        None => Item::New(entry),
        Some((method, stored)) => Item::New(NewEntry::compressed(entry, *method, stored)),
    });
    let items: Vec<_> = items.collect();
    Ok(region(&items)?)
}

/// Cubins one after another, and where each is.
#[derive(Debug, Default)]
struct Joined {
    parts: Vec<Part>,
    payload: Vec<u8>,
}

impl Joined {
    /// Joins those that can be.
    fn of(entries: &[NewEntry<'_>]) -> Self {
        let mut joined = Self::default();
        for entry in entries.iter().filter(|entry| Self::takes(entry)) {
            joined.parts.push(Part {
                kind: entry.kind,
                sm: entry.sm,
                flags: entry.flags,
                code_version: entry.code_version,
                offset: joined.payload.len() as u64,
                size: entry.stored.len() as u64,
            });
            joined.payload.extend(entry.stored);
        }
        joined
    }

    /// fatbinary joins plain cubins; what has a block of its own in the header stays apart.
    fn takes(entry: &NewEntry<'_>) -> bool {
        entry.kind == EntryKind::Elf && entry.options == EntryOptions::None
    }

    fn entry(&self) -> Option<NewEntry<'_>> {
        (!self.parts.is_empty()).then(|| NewEntry::concatenated(&self.parts, &self.payload))
    }
}
