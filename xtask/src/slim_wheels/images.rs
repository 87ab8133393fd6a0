//! The images in a wheel, by what they unpack to.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::tool::output;

/// An image: kind, architecture, SHA-256 of what it unpacks to, or of what is stored if that is not known.
type Image = (String, String, String);

/// Images of each file in a wheel, in order.
pub(crate) struct Images(BTreeMap<String, Vec<Image>>);

/// What was kept.
pub(crate) struct Keep(Vec<String>);

#[derive(Deserialize)]
struct Listed {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    file: String,
    regions: Vec<Region>,
    errors: Vec<String>,
}

#[derive(Deserialize)]
struct Region {
    container: String,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    kind: String,
    arch: Option<String>,
    sha256: Option<String>,
    #[serde(default)]
    parts: Vec<Entry>,
}

impl Keep {
    /// What words of the command line keep, if they say so.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let at = words.iter().position(|word| *word == "--keep")?;
        let what = words.get(at.checked_add(1)?)?.split(',').map(str::to_owned);
        Some(Self(what.collect()))
    }

    fn keeps(&self, (kind, arch, _): &Image) -> bool {
        self.0.iter().any(|what| what == kind || (kind == "elf" && what == arch))
    }
}

impl Images {
    /// Those of a wheel.
    pub(crate) fn of(hoist: &Path, wheel: &Path) -> Result<Self> {
        Self::listed(hoist, wheel, |file| {
            Ok(file.rsplit_once(".whl:").context("not in a wheel")?.1.to_owned())
        })
    }

    /// Those of a library, under a name.
    pub(crate) fn of_library(hoist: &Path, path: &Path, name: &str) -> Result<Self> {
        Self::listed(hoist, path, |_| Ok(name.to_owned()))
    }

    /// Those of each file that has some, by its name.
    pub(crate) fn by_file(self) -> impl Iterator<Item = (String, Self)> {
        let files = self.0.into_iter().filter(|(_, images)| !images.is_empty());
        files.map(|(name, images)| (name.clone(), Self([(name, images)].into())))
    }

    fn listed(hoist: &Path, path: &Path, name_of: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let mut list = Command::new(hoist);
        list.args(["fatbin", "list", "--json", "--digest"]).arg(path);
        let done = output(&mut list)?;
        let listed: Listed = serde_json::from_slice(&done.stdout)?;
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for file in listed.files {
            ensure!(file.errors.is_empty(), "{}: {}", file.file, file.errors.join("; "));
            let images: &mut Vec<_> = all.entry(name_of(&file.file)?).or_default();
            let regions = file.regions.into_iter().filter(|region| region.container == "fatbin");
            for entry in regions.flat_map(|region| region.entries) {
                let parts = if entry.parts.is_empty() { vec![entry] } else { entry.parts };
                images.extend(parts.into_iter().map(|one| {
                    (one.kind, one.arch.unwrap_or_default(), one.sha256.unwrap_or_default())
                }));
            }
            images.sort();
        }
        Ok(Self(all))
    }

    /// Whether those of the new wheel are the same, or all of them that are kept, and all of files that were left as they were: how many.
    pub(crate) fn compare(
        &self,
        new: &Self,
        keep: Option<&Keep>,
        left: &[String],
    ) -> Result<usize> {
        let mut count = 0;
        for (name, old) in &self.0 {
            let keep = keep.filter(|_| !left.contains(name));
            let kept = old.iter().filter(|image| keep.is_none_or(|keep| keep.keeps(image)));
            let kept: Vec<_> = kept.collect();
            let found: Vec<_> = new.0.get(name).into_iter().flatten().collect();
            ensure!(
                kept == found,
                "{name}: {} images, {} of them to be kept, and {} found",
                old.len(),
                kept.len(),
                found.len()
            );
            count += found.len();
        }
        ensure!(new.0.keys().all(|name| self.0.contains_key(name)), "other files have images");
        Ok(count)
    }
}
