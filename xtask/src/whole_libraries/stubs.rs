//! Libraries that one needs and that are not here: stubs, whose functions do nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::tool::output;

/// What the system has: no stub defines these.
const SYSTEM: [&str; 4] = ["@GLIBC", "@GCC", "@CXXABI", "Py"];

/// Where `ld.so` looks for what a library needs: folders of the wheel, and one of stubs for what is not there. The second is how many
/// stubs were made.
pub(super) fn search(library: &Path, site: &Path, stubs: &Path) -> Result<(OsString, usize)> {
    let mut folders = BTreeSet::new();
    collect(site, &mut folders)?;
    let folders: Vec<_> = folders.into_iter().chain([stubs.to_owned()]).collect();
    let search = std::env::join_paths(&folders)?;
    fs::create_dir_all(stubs)?;
    let missing = missing(library, &search)?;
    if missing.is_empty() {
        return Ok((search, 0));
    }
    let done = output(Command::new("nm").args(["-D", "--undefined-only"]).arg(library))?;
    let mut text = String::from(".text\n.section .note.GNU-stack,\"\",@progbits\n.text\n");
    let mut names = BTreeSet::new();
    let mut versions: BTreeMap<String, String> = BTreeMap::new();
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let Some(name) = line.trim().strip_prefix("U ") else { continue };
        let name = name.trim();
        let is_system =
            |what: &&str| name.contains(*what) && (*what != "Py" || name.starts_with("Py"));
        if !SYSTEM.iter().any(is_system) {
            let (name, version) = name.split_once('@').unwrap_or((name, ""));
            names.insert(name.to_owned());
            if !version.is_empty() {
                write!(versions.entry(version.to_owned()).or_default(), "\"{name}\"; ")?;
            }
        }
    }
    for name in names {
        writeln!(
            text,
            ".globl \"{name}\"\n.type \"{name}\",@function\n\"{name}\": xor %eax, %eax; ret"
        )?;
    }
    fs::write(stubs.join("stub.s"), text)?;
    // ld.so wants versions in libraries of which others want them
    let versions = versions.iter().map(|(name, what)| format!("{name} {{ global: {what}}};\n"));
    let versions: Vec<_> = versions.collect();
    let all = if versions.is_empty() { "{ global: *; };".to_owned() } else { versions.concat() };
    fs::write(stubs.join("versions"), all)?;
    for name in &missing {
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-nostdlib", "-Wl,--version-script=versions", "stub.s", "-o", name])
            .current_dir(stubs);
        output(cc.arg(format!("-Wl,-soname,{name}")))?;
    }
    Ok((search, missing.len()))
}

/// The folders with libraries in a folder and below.
fn collect(folder: &Path, folders: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, folders)?;
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so")) {
            folders.insert(folder.to_owned());
        }
    }
    Ok(())
}

/// What `ld.so` does not find.
fn missing(library: &Path, search: &OsStr) -> Result<BTreeSet<String>> {
    let mut ldd = Command::new("ldd");
    let done = ldd.arg(library).env("LD_LIBRARY_PATH", search).output().context("ldd")?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.trim().strip_suffix(" => not found"));
    Ok(lines.map(str::to_owned).collect())
}
