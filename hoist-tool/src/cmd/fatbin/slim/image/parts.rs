//! What an image consists of: texts, which name others by their digests, and layers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::members::{self, Member};
use crate::form::Form;
use crate::mapped::Mapped;
use crate::printable::Printable;

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

/// The folder of what is called by a digest.
pub const BLOBS: &str = "blobs";

/// Files by which images are found.
pub const ROOTS: [&str; 3] = ["index.json", "manifest.json", "repositories"];

/// What an image consists of, by the numbers of its files.
#[derive(Default)]
pub struct Parts {
    /// Texts.
    pub texts: BTreeSet<usize>,
    /// Texts that were found and not read yet.
    unread: Vec<usize>,
    /// Layers, and why they cannot change.
    pub layers: BTreeMap<usize, Option<String>>,
    /// Media types of what is none of these.
    pub others: BTreeSet<String>,
}

/// A file of an image.
struct Part<'b> {
    name: String,
    /// What a link leads to.
    link: Option<String>,
    is_file: bool,
    /// Where its contents are.
    file: &'b Mapped,
    data: Range<u64>,
}

/// An image.
pub struct Image<'b> {
    all: Vec<Part<'b>>,
    names: BTreeMap<String, usize>,
}

impl<'b> Image<'b> {
    /// That of a tar file, with its members; a file of the image has the number of its member.
    ///
    /// # Errors
    /// If the tar file is damaged.
    pub fn of_tar(file: &'b Mapped) -> Result<(Self, Vec<Member>)> {
        let bytes = file.bytes();
        let members = match (Form::of(bytes), members::members(bytes)) {
            (Form::Gzip | Form::Zstd | Form::Bzip2, _) => {
                bail!("is compressed as a whole: unpack it first");
            }
            (_, Ok(members)) => members,
            (Form::Tar, Err(error)) => return Err(error).context("is no image"),
            // what is wrong with another file as a tar file says nothing of it
            _ => bail!("is no image: a tar file is expected"),
        };
        let end = members.last().map_or(0, Member::end);
        let end = usize::try_from(end).ok().and_then(|end| bytes.get(end..)?.first_chunk::<1024>());
        ensure!(end.is_some_and(|end| *end == [0; 1024]), "has no end: it is cut");
        let part = |member: &Member| Part {
            name: member.name.clone(),
            link: member.link.clone(),
            is_file: member.is_file,
            file,
            data: member.data.clone(),
        };
        Ok((Self::of(members.iter().map(part).collect()), members))
    }

    /// That of files, by their names in it; a file of the image has the number that it has here.
    #[must_use]
    pub fn of_files(files: &'b [(String, Mapped)]) -> Self {
        let part = |(name, file): &'b (String, Mapped)| Part {
            name: name.clone(),
            link: None,
            is_file: true,
            file,
            data: 0..file.bytes().len() as u64,
        };
        Self::of(files.iter().map(part).collect())
    }

    fn of(all: Vec<Part<'b>>) -> Self {
        // of two of a name the last counts
        let names = all.iter().enumerate().map(|(index, part)| (plain(&part.name), index));
        let names = names.collect();
        Self { all, names }
    }

    /// The file of a name, whatever links lead there.
    fn find(&self, name: &str) -> Option<usize> {
        let mut name = plain(name);
        for _ in 0..8 {
            let index = *self.names.get(&name)?;
            let part = self.all.get(index)?;
            let Some(link) = &part.link else { return part.is_file.then_some(index) };
            let folder = Path::new(&name).parent().unwrap_or(Path::new(""));
            name = plain(&folder.join(link).to_string_lossy());
        }
        None
    }

    fn blob(&self, digest: &str) -> Option<usize> {
        self.find(&format!("{BLOBS}/{}", digest.replacen(':', "/", 1)))
    }

    /// A file: its name, and its contents.
    ///
    /// # Errors
    /// If there is none of this number.
    pub fn content(&self, index: usize) -> Result<(&str, &'b [u8])> {
        let Part { name, file, data, .. } = self.all.get(index).context("no such file")?;
        let place = usize::try_from(data.start).ok().zip(usize::try_from(data.end).ok());
        let content = place.and_then(|(start, end)| file.bytes().get(start..end));
        Ok((name, content.with_context(|| Printable::from(&**name).to_string())?))
    }

    /// Lets go of the pages of a file.
    pub fn done_with(&self, index: usize) {
        if let Some(part) = self.all.get(index) {
            part.file.done_with(part.data.clone());
        }
    }

    fn json(&self, index: usize) -> Result<Value> {
        let (name, content) = self.content(index)?;
        serde_json::from_slice(content).with_context(|| Printable::from(name).to_string())
    }

    /// What it consists of.
    ///
    /// # Errors
    /// If a text cannot be read, or no layer is there.
    pub fn parts(&self) -> Result<Parts> {
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
    ///
    /// # Errors
    /// If there is no such text.
    pub fn is_named(&self, digest: &str, parts: &Parts) -> Result<bool> {
        for &index in &parts.texts {
            let (_, content) = self.content(index)?;
            if content.windows(digest.len()).any(|window| window == digest.as_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A name without `.` and `..`.
#[must_use]
pub fn plain(name: &str) -> String {
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
