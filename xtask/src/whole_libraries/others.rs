//! What other tools do to a library, two after one another: the library as it was linked beside those that were changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::look::{Look, Seen, complaints, symbols_of};
use super::symbols::Symbols;
use crate::tool::output;

/// Words of a command line before the name of the file.
pub(super) const TOOLS: [&[&str]; 8] = [
    &["strip"],
    &["strip", "--strip-debug"],
    &["objcopy", "--add-section", ".more=more"],
    &["objcopy", "--remove-section", ".comment"],
    &["objcopy", "--compress-debug-sections=zlib"],
    &["patchelf", "--set-rpath", "/a/folder/that/is/not/there:/another/one/with/a/long/name"],
    &["patchelf", "--set-soname", "libanother-and-longer-name.so.1"],
    &["patchelf", "--replace-needed", "libc.so.6", "libc.so.6", "--add-needed", "libm.so.6"],
];

/// What became of the library as it was linked.
#[derive(Default)]
struct Original {
    is_whole: bool,
    complaints: BTreeSet<String>,
    symbols: Symbols,
    /// Whether its symbols are in the sections that they were in: `strip` leaves the numbers of sections in `.dynsym` as they are, and gives
    /// sections others after `patchelf`.
    has_symbols: bool,
}

/// A library as it was linked, and what becomes of it.
pub(super) struct Others<'a> {
    pub(super) look: &'a Look<'a>,
    /// A folder of its own.
    pub(super) at: PathBuf,
    originals: BTreeMap<Vec<usize>, Original>,
}

/// Counts of what was tried.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Sequences of one tool, or two.
    pub(super) tried: usize,
    /// Those that break the library as it was linked, too.
    pub(super) broken: usize,
    pub(super) differences: usize,
}

impl<'a> Others<'a> {
    /// For `at/original.so`.
    pub(super) fn new(look: &'a Look<'a>, at: PathBuf) -> Result<Self> {
        fs::write(at.join("more"), "more")?;
        Ok(Self { look, at, originals: BTreeMap::new() })
    }

    /// All sequences of one tool, and of two unless `alone`, on `changed.so`; `told` is called with differences.
    pub(super) fn try_out(
        &mut self,
        seen: &Seen,
        alone: bool,
        mut told: impl FnMut(String),
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        for first in 0..TOOLS.len() {
            let mut one = |others: &mut Self, tools: &[usize], from: &str| -> Result<bool> {
                counts.tried += 1;
                let difference = others.difference(tools, from, seen)?;
                let Some(what) = difference else { return Ok(true) };
                if others.original(tools)?.is_whole || what.starts_with("complaints") {
                    counts.differences += 1;
                    let names: Vec<_> = tools
                        .iter()
                        .filter_map(|tool| TOOLS.get(*tool))
                        .map(|words| words.join(" "))
                        .collect();
                    told(format!("{}: {what}", names.join(", then ")));
                } else {
                    counts.broken += 1;
                }
                Ok(false)
            };
            let is_whole = one(self, &[first], "changed.so")?;
            if !is_whole || alone {
                continue;
            }
            fs::rename(self.at.join("after/x.so"), self.at.join("one.so"))?;
            for second in (0..TOOLS.len()).filter(|second| *second != first) {
                one(self, &[first, second], "one.so")?;
            }
        }
        Ok(counts)
    }

    /// What is other than it should be after the last of `tools` was used on `from`; the result is `after/x.so`.
    fn difference(&mut self, tools: &[usize], from: &str, seen: &Seen) -> Result<Option<String>> {
        let to = match self.used(from, tools.last().into_iter()) {
            Ok(to) => to,
            Err(error) => return Ok(Some(format!("{error:#}"))),
        };
        let found = match self.look.at(&to) {
            Ok(found) => found,
            Err(error) => return Ok(Some(format!("{error:#}"))),
        };
        if found.loaded != seen.loaded {
            return Ok(Some(String::from("other regions in memory")));
        }
        if found.regions != seen.regions {
            return Ok(Some(String::from("other regions in the file")));
        }
        if found.listed != seen.listed {
            return Ok(Some(String::from("another list of cuobjdump")));
        }
        let mut ldconfig = Command::new("/sbin/ldconfig");
        let done = output(ldconfig.args(["-N", "-n"]).arg(self.at.join("after")))?;
        if !done.stderr.is_empty() {
            return Ok(Some(String::from_utf8_lossy(&done.stderr).into_owned()));
        }
        let (new, symbols) = (complaints(&to)?, symbols_of(&to)?);
        let old = self.original(tools)?;
        let mut more: Vec<_> = new.difference(&old.complaints).collect();
        if old.has_symbols {
            more.extend(symbols.astray.difference(&old.symbols.astray));
            more.extend(symbols.sections.symmetric_difference(&old.symbols.sections));
        }
        let more: Vec<_> = more.into_iter().take(4).map(String::as_str).collect();
        Ok((!more.is_empty()).then(|| format!("complaints: {}", more.join("; "))))
    }

    /// Uses tools on a copy of a file.
    fn used<'t>(&self, from: &str, tools: impl Iterator<Item = &'t usize>) -> Result<PathBuf> {
        let folder = self.at.join("after");
        fs::create_dir_all(&folder)?;
        let to = folder.join("x.so");
        fs::copy(self.at.join(from), &to)?;
        for tool in tools {
            use_tool(TOOLS.get(*tool).context("no tool")?, &self.at, &to)?;
        }
        Ok(to)
    }

    /// What tools make of the library as it was linked.
    fn original(&mut self, tools: &[usize]) -> Result<&Original> {
        if !self.originals.contains_key(tools) {
            let kept = self.at.join("after/kept.so");
            let is_there = self.at.join("after/x.so").exists();
            if is_there {
                fs::rename(self.at.join("after/x.so"), &kept)?;
            }
            let found = match self.used("original.so", tools.iter()) {
                Ok(to) => {
                    let (before, symbols) =
                        (symbols_of(&self.at.join("original.so"))?, symbols_of(&to)?);
                    Original {
                        is_whole: self.look.at(&to).is_ok(),
                        complaints: complaints(&to)?,
                        has_symbols: symbols.sections.is_subset(&before.sections),
                        symbols,
                    }
                }
                Err(_) => Original::default(),
            };
            if is_there {
                fs::rename(&kept, self.at.join("after/x.so"))?;
            }
            self.originals.insert(tools.to_vec(), found);
        }
        self.originals.get(tools).context("it was put there")
    }
}

fn use_tool(words: &[&str], at: &Path, file: &Path) -> Result<()> {
    let (program, words) = words.split_first().context("no tool")?;
    output(Command::new(program).args(words).arg(file).current_dir(at)).map(drop)
}
