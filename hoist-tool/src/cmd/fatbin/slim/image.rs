//! `hoist fatbin slim IMAGE.tar -o OUT.tar`: an image of a container, as `docker save`, `podman save` and OCI layouts have it in a tar file.
//! Layers with libraries that become smaller are others, and with them the configurations and manifests that name them by their digests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;

use super::digest;
use super::host::{Slimming, Tally};
use super::journal::{Journal, Line};
use crate::budget::{Budget, FLOOR};
use crate::cmd::fatbin::unpacking::Unpacking;
use crate::mapped::Mapped;
use crate::output::{self, Dates};
use crate::printable::Printable;
use layer::{Layer, Row, Work};
use members::Member;
use references::{Successor, Successors, updated};

pub mod layer;
pub mod members;
pub mod references;

/// How many times a layer may be larger than the file: deflate gives no more.
const MOST: u64 = 1032;

/// Media types of manifests, their indexes and configurations: text that names others by their digests.
const TEXTS: [&str; 6] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.container.image.v1+json",
];

/// How media types of layers begin; what follows says how they are compressed, which they show themselves.
const LAYERS: [&str; 4] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
];

/// Annotations of layers that say where files are in them: they would not be true any more.
const PLACES: [&str; 3] = [
    "containerd.io/snapshot/stargz/toc.digest",
    "io.github.containers.zstd-chunked.manifest-checksum",
    "io.containers.zstd-chunked.manifest-checksum",
];

/// Files by which images are found.
const ROOTS: [&str; 3] = ["index.json", "manifest.json", "repositories"];

/// What was done.
#[derive(Debug, Serialize)]
pub struct Report {
    file: String,
    /// The image that was written.
    pub output: String,
    /// The name under which the image is kept that was replaced.
    backup: Option<PathBuf>,
    /// Bytes before.
    pub size_before: u64,
    /// Bytes after.
    pub size_after: u64,
    /// Files that changed.
    pub files: Vec<Row>,
    /// Files with device code that stay as they are: they have nothing of what is kept, or are files of Windows.
    left: Vec<String>,
    /// What is to be known.
    pub notes: BTreeSet<String>,
}

/// What an image consists of, by the numbers of members.
#[derive(Default)]
struct Parts {
    texts: BTreeSet<usize>,
    /// Texts that were found and not read yet.
    unread: Vec<usize>,
    /// Layers, and why they cannot change.
    layers: BTreeMap<usize, Option<String>>,
    /// Media types of what is none of these.
    others: BTreeSet<String>,
}

/// An image.
struct Image<'b> {
    bytes: &'b [u8],
    members: Vec<Member>,
    names: BTreeMap<String, usize>,
}

/// Writes an image with smaller libraries.
///
/// # Errors
/// If it is none, is damaged, or a layer cannot change: then nothing is written.
pub fn slim(
    how: &Slimming,
    path: &Path,
    output: &Path,
    (dates, backup): (Dates, Option<&Path>),
) -> Result<Report> {
    let mut journal = backup.map(Journal::make).transpose()?;
    let label = path.display().to_string();
    let file = Mapped::open(path)?;
    let before = file.bytes().len() as u64;
    let image = Image::parse(file.bytes()).with_context(|| label.clone())?;
    let parts = image.parts().with_context(|| label.clone())?;
    let mut work = Work {
        how,
        budget: Budget::new(how.limit, FLOOR, MOST, before),
        unpacking: Unpacking::default(),
        tally: Tally::default(),
        rows: Vec::new(),
        notes: BTreeSet::new(),
    };
    let new = image.changed(&parts, &mut work, &file).with_context(|| label.clone())?;
    let mut after = 0;
    let keep = |old: &Path, new: &File| {
        journal.as_mut().map(|journal| keep(journal, old, new)).transpose()
    };
    let done = output::change(output, path, dates, keep, |to| {
        let renamed = |head: &[u8]| references::renamed(head, &new.successors);
        members::write(image.bytes, &image.members, &new.contents, renamed, to)?;
        after = to.metadata()?.len();
        Ok(())
    })?;
    let mut notes = work.notes;
    notes.extend(done.note.map(String::from));
    notes.extend(backup.map(|folder| {
        let folder = folder.display();
        match &done.backup {
            Some(_) => {
                format!("what was replaced is kept in {folder}: --undo {folder} brings it back")
            }
            None => format!("nothing was replaced: {folder} keeps nothing"),
        }
    }));
    notes.extend(work.tally.notes(&how.keep));
    notes.extend(work.unpacking.note().into_iter().chain(work.unpacking.left()));
    if new.contents.is_empty() {
        notes.insert(String::from("nothing of the image changes"));
    } else {
        let kept = |other: &String| {
            format!("what is of the type {other} is kept: it may be about the image as it was")
        };
        notes.extend(parts.others.iter().map(kept));
    }
    let output = output.display().to_string();
    let (files, left) = (work.rows, work.tally.left);
    Ok(Report {
        file: label,
        output,
        backup: done.backup,
        size_before: before,
        size_after: after,
        files,
        left,
        notes,
    })
}

/// Keeps an image that will be replaced, with a line that says by what: its name in the folder of originals.
fn keep(journal: &mut Journal, old: &Path, new: &File) -> Result<PathBuf> {
    let (before, after) = (Mapped::open(old)?, Mapped::map(new)?);
    let original = journal.keep(old, &before)?;
    let kept = journal.folder.join(&original);
    journal.add(&Line {
        path: old.to_owned(),
        original,
        slimmed: digest::of(&after),
        size_before: before.bytes().len() as u64,
        size_after: after.bytes().len() as u64,
        modified: std::fs::metadata(old)?.modified().ok(),
        listed: Vec::new(),
    })?;
    Ok(kept)
}

/// What an image becomes: new contents of members, and what names of others are now.
struct New {
    contents: BTreeMap<usize, Mapped>,
    successors: Successors,
}

impl<'b> Image<'b> {
    fn parse(bytes: &'b [u8]) -> Result<Self> {
        if bytes.starts_with(b"\x1f\x8b") || bytes.starts_with(b"\x28\xb5\x2f\xfd") {
            bail!("is compressed as a whole: unpack it first");
        }
        let members = members::members(bytes).context("is no image: a tar file is expected")?;
        let end = members.last().map_or(0, Member::end);
        let end = usize::try_from(end).ok().and_then(|end| bytes.get(end..)?.first_chunk::<1024>());
        ensure!(end.is_some_and(|end| *end == [0; 1024]), "has no end: it is cut");
        // of two of a name the last counts
        let names = members.iter().enumerate().map(|(index, member)| (plain(&member.name), index));
        let names = names.collect();
        Ok(Self { bytes, members, names })
    }

    /// The file of a name, whatever links lead there.
    fn find(&self, name: &str) -> Option<usize> {
        let mut name = plain(name);
        for _ in 0..8 {
            let index = *self.names.get(&name)?;
            let member = self.members.get(index)?;
            let Some(link) = &member.link else { return member.is_file.then_some(index) };
            let folder = Path::new(&name).parent().unwrap_or(Path::new(""));
            name = plain(&folder.join(link).to_string_lossy());
        }
        None
    }

    fn blob(&self, digest: &str) -> Option<usize> {
        self.find(&format!("blobs/{}", digest.replacen(':', "/", 1)))
    }

    fn content(&self, index: usize) -> Result<(&str, &'b [u8])> {
        let member = self.members.get(index).context("no such member")?;
        Ok((&member.name, member.content(self.bytes)?))
    }

    fn json(&self, index: usize) -> Result<Value> {
        let (name, content) = self.content(index)?;
        serde_json::from_slice(content).with_context(|| Printable::from(name).to_string())
    }

    fn parts(&self) -> Result<Parts> {
        let mut parts = Parts::default();
        let roots = ROOTS.iter().filter_map(|name| self.find(name));
        for root in roots {
            parts.texts.insert(root);
            parts.unread.push(root);
        }
        while let Some(text) = parts.unread.pop() {
            self.descriptors(&self.json(text)?, &mut parts)?;
        }
        if let Some(manifest) = self.find("manifest.json") {
            for image in self.json(manifest)?.as_array().into_iter().flatten() {
                let file = |name: &Value| self.find(name.as_str().unwrap_or_default());
                parts.texts.extend(image.get("Config").and_then(file));
                for layer in image.get("Layers").and_then(Value::as_array).into_iter().flatten() {
                    let index = file(layer).with_context(|| format!("{layer}: is not there"))?;
                    parts.layers.entry(index).or_default();
                }
            }
        }
        ensure!(!parts.layers.is_empty(), "is no image: no manifest names layers that are there");
        Ok(parts)
    }

    /// Adds what the descriptors in a manifest or an index lead to.
    fn descriptors(&self, value: &Value, parts: &mut Parts) -> Result<()> {
        let inside: Vec<&Value> = match value {
            Value::Array(list) => list.iter().collect(),
            Value::Object(object) => object.values().collect(),
            _ => return Ok(()),
        };
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        if let (Some(kind), Some(digest)) = (text("mediaType"), text("digest"))
            // of an image for several architectures some may not be there
            && let Some(index) = self.blob(digest)
        {
            if LAYERS.iter().any(|layer| kind.starts_with(layer)) {
                let has = |name: &&&str| {
                    value.get("annotations").is_some_and(|all| all.get(name).is_some())
                };
                let why = PLACES.iter().find(has).map(|name| (*name).to_owned());
                let known = parts.layers.entry(index).or_default();
                *known = why.or(known.take());
            } else if !TEXTS.contains(&kind) {
                parts.others.insert(kind.to_owned());
            } else if parts.texts.insert(index) {
                parts.unread.push(index);
            }
        }
        inside.into_iter().try_for_each(|value| self.descriptors(value, parts))
    }

    /// Whether a digest stands in a text.
    fn is_named(&self, digest: &str, parts: &Parts) -> Result<bool> {
        for &index in &parts.texts {
            let (_, content) = self.content(index)?;
            if content.windows(digest.len()).any(|window| window == digest.as_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Layers that change, and then the texts that name them.
    fn changed(&self, parts: &Parts, work: &mut Work<'_>, file: &Mapped) -> Result<New> {
        let mut new = New { contents: BTreeMap::new(), successors: Successors::new() };
        for (&index, why) in &parts.layers {
            let (name, content) = self.content(index)?;
            let shown = || Printable::from(name).to_string();
            let data = |image: &Self| {
                let member = image.members.get(index);
                member.map(|member| member.data.clone()).unwrap_or_default()
            };
            let layer = Layer::open(content, &work.budget).with_context(shown)?;
            let (rows, notes) = (work.rows.len(), work.notes.clone());
            let unpacking = core::mem::take(&mut work.unpacking);
            let changed = layer.changed(name, work).with_context(shown)?;
            if let Some(tar) = changed {
                if let Some(why) = why {
                    bail!(
                        "{}: says where files are in it ({why}), which is not written anew",
                        shown()
                    );
                }
                let (old, before) = (digest::of_slice(content), digest::of_slice(layer.tar()));
                check(name, &old)?;
                let is_named = self.is_named(&before, parts)?;
                ensure!(is_named, "{}: no configuration names it by its digest {before}", shown());
                let after = digest::of(&tar);
                let unpacked_size = tar.bytes().len() as u64;
                let packed = layer.pack(tar).with_context(shown)?;
                let (digest, size) = (digest::of(&packed), packed.bytes().len() as u64);
                if size >= content.len() as u64 && work.how.is_for_size() {
                    work.rows.truncate(rows);
                    work.notes = notes;
                    work.notes.insert(format!(
                        "{} would have {size} bytes instead of {}: it stays as it is",
                        shown(),
                        content.len()
                    ));
                    work.unpacking = unpacking;
                    file.done_with(data(self));
                    continue;
                }
                new.successors.insert(before, Successor { digest: after, size: unpacked_size });
                new.successors.insert(old, Successor { digest, size });
                new.contents.insert(index, packed);
            }
            work.unpacking.extend(&unpacking);
            file.done_with(data(self));
        }
        work.tally.check()?;
        // a text may change because one that it names does
        for _ in 0..=parts.texts.len() {
            let mut is_last = true;
            for &index in &parts.texts {
                let (name, content) = self.content(index)?;
                let old = std::str::from_utf8(content)
                    .with_context(|| Printable::from(name).to_string())?;
                let text = updated(old, &new.successors);
                if text == old
                    || new.contents.get(&index).is_some_and(|new| new.bytes() == text.as_bytes())
                {
                    continue;
                }
                is_last = false;
                let text = Mapped::of(text.into_bytes());
                let (digest, size) = (digest::of(&text), text.bytes().len() as u64);
                let old = digest::of_slice(content);
                check(name, &old)?;
                new.successors.insert(old, Successor { digest, size });
                new.contents.insert(index, text);
            }
            if is_last {
                return Ok(new);
            }
        }
        bail!("has texts that name one another in a circle")
    }
}

/// Whether a file that is called by a digest has it.
fn check(name: &str, digest: &str) -> Result<()> {
    let own = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let is_digest = own.len() == 64 && own.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(!is_digest || own == digest, "{}: has the digest {digest}", Printable::from(name));
    Ok(())
}

/// A name without `.` and `..`.
fn plain(name: &str) -> String {
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts.join("/")
}
