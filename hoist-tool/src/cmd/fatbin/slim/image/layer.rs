//! A layer of an image: a tar file, as it is or compressed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::members::{self, Member};
use crate::budget::Budget;
use crate::cmd::fatbin::slim::digest;
use crate::cmd::fatbin::slim::host::{self, HEADS, Slimming, Tally};
use crate::cmd::fatbin::slim::installed::joined;
use crate::cmd::fatbin::slim::lists::Kind;
use crate::cmd::fatbin::unpacking::Unpacking;
use crate::cmd::wheel::zip;
use crate::mapped::Mapped;
use crate::printable::Printable;

/// A file of a layer that changed.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The layer, by its name in the image.
    pub layer: String,
    /// The file.
    pub file: String,
    /// Bytes before.
    pub size_before: u64,
    /// Bytes after.
    pub size_after: u64,
}

/// What is found in layers.
#[derive(Default)]
pub struct Found {
    /// How long unpacking takes.
    pub unpacking: Unpacking,
    /// Which files have what is kept.
    pub tally: Tally,
    /// Files that changed.
    pub rows: Vec<Row>,
    /// What is to be known.
    pub notes: BTreeSet<String>,
}

impl Found {
    /// Adds what was found in another layer.
    pub fn extend(&mut self, other: Self) {
        self.unpacking.extend(&other.unpacking);
        self.tally.extend(other.tally);
        self.rows.extend(other.rows);
        self.notes.extend(other.notes);
    }
}

/// What became of a file.
#[derive(Clone)]
struct Changed {
    /// Digest and size before.
    old: (String, u64),
    /// Digest and size now.
    new: (String, u64),
    /// Whether it is one that a symbolic link leads to.
    is_behind: bool,
}

/// How a layer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Gzip,
    Zstd,
}

/// A layer, unpacked.
pub struct Layer<'b> {
    form: Form,
    packed: &'b [u8],
    unpacked: Option<Mapped>,
}

impl<'b> Layer<'b> {
    /// Unpacks a layer.
    ///
    /// # Errors
    /// If it is damaged, or larger than the budget allows.
    pub fn open(packed: &'b [u8], budget: &Budget) -> Result<Self> {
        let form = match packed {
            [0x1f, 0x8b, ..] => Form::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Form::Zstd,
            _ => return Ok(Self { form: Form::Plain, packed, unpacked: None }),
        };
        let reader: Box<dyn Read> = match form {
            Form::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Form::Zstd | Form::Plain => Box::new(zstd::Decoder::with_buffer(packed)?),
        };
        let mut file = tempfile::tempfile()?;
        let size = std::io::copy(&mut reader.take(budget.left().saturating_add(1)), &mut file)?;
        budget.take("what it unpacks to", size)?;
        Ok(Self { form, packed, unpacked: Some(Mapped::map(&file)?) })
    }

    /// What it unpacks to.
    pub fn tar(&self) -> &[u8] {
        self.unpacked.as_ref().map_or(self.packed, Mapped::bytes)
    }

    /// The same with smaller libraries, if any becomes smaller, and with lists of packages that say so.
    ///
    /// # Errors
    /// If it is no tar file, or a library cannot become smaller.
    pub fn changed(&self, name: &str, how: &Slimming, found: &mut Found) -> Result<Option<Mapped>> {
        let tar = self.tar();
        let members = members::members(tar)?;
        let (mut new, mut said) = (BTreeMap::new(), HashMap::new());
        for (index, member) in members.iter().enumerate().filter(|(_, member)| member.is_file) {
            let shown = || Printable::from(&*member.name).to_string();
            let content = member.content(tar)?;
            if HEADS.iter().any(|head| content.starts_with(head)) {
                let changed = library(content, (name, member), how, found).with_context(shown)?;
                let Some(changed) = changed else { continue };
                let old = (digest::of_slice(content), content.len() as u64);
                let now = (digest::of(&changed), changed.bytes().len() as u64);
                let name = joined(Path::new("/"), &member.name);
                said.insert(name, Changed { old, new: now, is_behind: false });
                new.insert(index, changed);
            }
        }
        if new.is_empty() {
            return Ok(None);
        }
        add_links(&members, &mut said);
        for (index, member) in members.iter().enumerate().filter(|(_, member)| member.is_file) {
            if let Some(list) = list(tar, member, &said)? {
                new.insert(index, Mapped::of(list.into_bytes()));
            }
        }
        let mut file = tempfile::tempfile()?;
        members::write(tar, &members, &new, |_| None, &mut file)?;
        Ok(Some(Mapped::map(&file)?))
    }

    /// A layer that takes its place, compressed as it is.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn pack(&self, tar: Mapped) -> Result<Mapped> {
        let mut file = tempfile::tempfile()?;
        match self.form {
            Form::Plain => return Ok(tar),
            Form::Gzip => {
                // the header as it was, if it is one of ten bytes
                let head = match self.packed.first_chunk::<10>() {
                    Some(head) if head.get(3) == Some(&0) => *head,
                    _ => [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
                };
                file.write_all(&head)?;
                let (crc, size) = zip::deflate(&tar, flate2::Compression::default(), &mut file)?;
                file.write_all(&crc.to_le_bytes())?;
                file.write_all(&u32::try_from(size & u64::from(u32::MAX))?.to_le_bytes())?;
            }
            Form::Zstd => {
                let mut encoder = zstd::Encoder::new(&mut file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                encoder.write_all(tar.bytes())?;
                encoder.finish()?;
            }
        }
        file.rewind()?;
        Mapped::map(&file)
    }
}

/// A library that becomes smaller.
fn library(
    content: &[u8],
    (layer, member): (&str, &Member),
    how: &Slimming,
    found: &mut Found,
) -> Result<Option<Mapped>> {
    let mut file = tempfile::tempfile()?;
    file.write_all(content)?;
    let old = Mapped::map(&file)?;
    let own = Unpacking::default();
    let outcome = how.plan(&old, &own)?;
    found.notes.extend(own.left_of(&Printable::from(&*member.name).to_string()));
    let Some(slimmed) = found.tally.count(&member.name, outcome) else { return Ok(None) };
    let (size_before, size_after) = slimmed.sizes;
    if size_after >= size_before && how.keep.is_empty() {
        found.notes.insert(host::no_smaller(&member.name));
        return Ok(None);
    }
    found.unpacking.extend(&own);
    let mut file = tempfile::tempfile()?;
    slimmed.write(&old, &mut file)?;
    found.notes.extend(slimmed.notes.iter().cloned());
    let (layer, file_name) = (layer.to_owned(), member.name.clone());
    found.rows.push(Row { layer, file: file_name, size_before, size_after });
    Ok(Some(Mapped::map(&file)?))
}

/// Adds the other names of files that changed.
fn add_links(members: &[Member], said: &mut HashMap<PathBuf, Changed>) {
    let root = Path::new("/");
    // a link may lead to one that comes later
    for _ in 0..8 {
        let before = said.len();
        for member in members {
            let (Some(link), name) = (&member.link, joined(root, &member.name)) else { continue };
            let folder = name.parent().filter(|_| !member.is_hard_link).unwrap_or(root);
            let Some(changed) = said.get(&joined(folder, link)) else { continue };
            let is_behind = changed.is_behind || !member.is_hard_link;
            let changed = Changed { is_behind, ..changed.clone() };
            said.entry(name).or_insert(changed);
        }
        if said.len() == before {
            return;
        }
    }
}

/// A list of a package that says something of files that changed, by digests and sizes: what it says now.
fn list(tar: &[u8], member: &Member, said: &HashMap<PathBuf, Changed>) -> Result<Option<String>> {
    let path = joined(Path::new("/"), &member.name);
    let Some((kind, folder)) = Kind::of(&path) else { return Ok(None) };
    let shown = || path.display().to_string();
    let text = std::str::from_utf8(member.content(tar)?).with_context(shown)?;
    let new = |name: &str, before: &str| {
        let Changed { old, new, is_behind } = said.get(&joined(&folder, name))?;
        let fields = |(digest, size): &(String, u64)| kind.fields(before, digest, *size);
        // of a symbolic link a list may say what it is, not where it leads
        (!is_behind || before == fields(old)).then(|| fields(new))
    };
    let changed = kind.changed(text, new).with_context(shown)?;
    ensure!(!changed.is_empty(), "{}: is empty", path.display());
    Ok((changed != text).then_some(changed))
}
