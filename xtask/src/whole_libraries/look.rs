//! What is seen of a library: by who loads it, by hoist, by cuobjdump, and by tools that check files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::numbers::without_numbers;
use super::symbols::{Symbols, symbols};
use crate::tool::output;

/// With what a library is looked at.
pub(super) struct Look<'a> {
    pub(super) hoist: &'a Path,
    /// Where libraries are that it needs.
    pub(super) search: &'a OsString,
}

/// A library, as it is seen.
pub(super) struct Seen {
    /// Digests of the regions that its wrappers lead to, in memory.
    pub(super) loaded: Vec<String>,
    /// Regions in the file: the section's name, and all bytes.
    pub(super) regions: Vec<(String, Vec<u8>)>,
    /// What cuobjdump lists, if it is there.
    pub(super) listed: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    regions: Vec<Region>,
}

#[derive(Deserialize)]
struct Region {
    container: String,
    offset: usize,
    size: usize,
    section: Option<String>,
}

impl Look<'_> {
    /// Loads a library and looks at what is in it.
    ///
    /// # Errors
    /// If it cannot be loaded or listed.
    pub(super) fn at(&self, path: &Path) -> Result<Seen> {
        Ok(Seen { loaded: self.loaded(path)?, regions: self.regions(path)?, listed: listed(path)? })
    }

    fn loaded(&self, path: &Path) -> Result<Vec<String>> {
        let mut python = Command::new("python3");
        let script = path.with_extension("py");
        fs::write(&script, include_str!("load.py"))?;
        python.arg(script).arg(path);
        let done = output(python.env("LD_LIBRARY_PATH", self.search))?;
        // constructors may have said something
        let text = String::from_utf8_lossy(&done.stdout);
        let line = text.lines().rfind(|line| line.starts_with('[')).context("nothing was said")?;
        Ok(serde_json::from_str(line)?)
    }

    fn regions(&self, path: &Path) -> Result<Vec<(String, Vec<u8>)>> {
        let mut list = Command::new(self.hoist);
        let done = output(list.args(["fatbin", "list", "--no-search", "--json"]).arg(path))?;
        let listed: Listed = serde_json::from_slice(&done.stdout)?;
        let bytes = fs::read(path)?;
        let regions = listed.files.into_iter().flat_map(|file| file.regions);
        let regions = regions.filter(|region| region.container == "fatbin");
        let regions = regions.map(|region| {
            let end = region.offset.checked_add(region.size);
            let content = end.and_then(|end| bytes.get(region.offset..end));
            let content = content.context("a region outside of the file")?;
            Ok((region.section.unwrap_or_default(), content.to_vec()))
        });
        regions.collect()
    }
}

fn has_cuobjdump() -> bool {
    Command::new("cuobjdump").arg("--version").output().is_ok()
}

/// What cuobjdump lists, or why it does not, without the name of the file.
fn listed(path: &Path) -> Result<Option<String>> {
    if !has_cuobjdump() {
        return Ok(None);
    }
    let done = Command::new("cuobjdump").args(["-lelf", "-lptx"]).arg(path).output()?;
    if !done.status.success() {
        return Ok(Some(String::from_utf8_lossy(&done.stderr).into_owned()));
    }
    let stem = path.file_stem().context("no name")?.to_string_lossy();
    let text = String::from_utf8_lossy(&done.stdout).replace(&format!(": {stem}."), ": ");
    Ok(Some(text))
}

/// Images that cuobjdump takes out of a file: the ends of names, and contents.
type Taken = Vec<(String, Vec<u8>)>;

/// What cuobjdump takes out of a file, if it is there and does not refuse the file, as it does where code is for an architecture that it
/// knows no more: those that `keeps` is true for.
pub(super) fn taken(
    path: &Path,
    folder: &Path,
    keeps: impl Fn(&str) -> bool,
) -> Result<Option<Taken>> {
    if !has_cuobjdump() {
        return Ok(None);
    }
    fs::create_dir(folder)?;
    let mut command = Command::new("cuobjdump");
    command.args(["-xelf", "all", "-xptx", "all"]).arg(path).current_dir(folder);
    if !command.output()?.status.success() {
        fs::remove_dir_all(folder)?;
        return Ok(None);
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let (_, name) = name.split_once(".sm_").context("no architecture in a name")?;
        if keeps(name) {
            all.push((name.to_owned(), fs::read(entry.path())?));
        }
    }
    fs::remove_dir_all(folder)?;
    all.sort();
    Ok(Some(all))
}

/// Where the symbols of a file are.
pub(super) fn symbols_of(path: &Path) -> Result<Symbols> {
    symbols(&fs::read(path)?).context("symbols")
}

/// What readelf and eu-elflint complain of, without numbers of sections and addresses, which are others after a change.
pub(super) fn complaints(path: &Path) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    let folder = path.parent().context("no folder")?;
    let name = path.file_name().context("no name")?;
    for words in [&["readelf", "-aW"][..], &["eu-elflint", "--gnu-ld"]] {
        let (program, words) = words.split_first().context("no tool")?;
        let mut command = Command::new(program);
        let done = command.args(words).arg(name).current_dir(folder).output().context(*program)?;
        let text = if *program == "readelf" { done.stderr } else { done.stdout };
        let text = String::from_utf8_lossy(&text).into_owned();
        all.extend(text.lines().filter(|line| *line != "No errors").map(without_numbers));
    }
    Ok(all)
}
