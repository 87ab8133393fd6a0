//! COMPATIBILITY.md: what came out, in one table an architecture, and each cell that is not right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};

use super::trial::Verdict;
use crate::workspace::Workspace;

/// One build of one program, and what was made of it.
pub(crate) struct Cell {
    pub(crate) arch: &'static str,
    pub(crate) program: String,
    pub(crate) compiler: &'static str,
    pub(crate) model: &'static str,
    pub(crate) level: &'static str,
    pub(crate) hoist: Verdict,
    pub(crate) peer: Option<Peer>,
}

/// Another loader or linker, and what it made of the same.
pub(crate) type Peer = (&'static str, Verdict);

const FROM: &str = "<!-- cargo xtask verdicts --write: from here -->";
const TO: &str = "<!-- to here -->";

/// The tables in Markdown.
pub(crate) fn tables(cells: &[Cell]) -> String {
    let mut text = String::new();
    let archs: BTreeSet<&str> = cells.iter().map(|cell| cell.arch).collect();
    for arch in archs.into_iter().rev() {
        let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.arch == arch).collect();
        table(arch, &cells, &mut text);
    }
    text
}

fn table(arch: &str, cells: &[&Cell], text: &mut String) {
    let compilers: BTreeSet<&str> = cells.iter().map(|cell| cell.compiler).collect();
    let programs: BTreeSet<&str> = cells.iter().map(|cell| cell.program.as_str()).collect();
    let _ = write!(text, "### {arch}\n\n| program |");
    for compiler in &compilers {
        let _ = write!(text, " {compiler} |");
    }
    let _ = write!(text, "\n|---|{}", "---|".repeat(compilers.len()));
    for program in programs {
        let _ = write!(text, "\n| {program} |");
        for compiler in &compilers {
            let here = cells.iter().filter(|cell| cell.program == program);
            let here: Vec<&&Cell> = here.filter(|cell| cell.compiler == *compiler).collect();
            let hoist = counted(here.iter().map(|cell| &cell.hoist));
            let peer = counted(here.iter().filter_map(|cell| Some(&cell.peer.as_ref()?.1)));
            let _ = match peer.is_empty() {
                true => write!(text, " {hoist} |"),
                false => write!(text, " {hoist} / {peer} |"),
            };
        }
    }
    let total = counted(cells.iter().map(|cell| &cell.hoist));
    let _ = write!(text, "\n\nhoist: {total} of {} builds", cells.len());
    let peers = || cells.iter().filter_map(|cell| cell.peer.as_ref());
    if let Some((name, _)) = peers().next() {
        let _ = write!(text, "; {name}: {}", counted(peers().map(|(_, verdict)| verdict)));
    }
    text.push_str(".\n\n");
    exceptions(cells, text);
}

/// What hoist did not get right, with equal verdicts in one line.
fn exceptions(cells: &[&Cell], text: &mut String) {
    let mut lines: BTreeMap<(&str, &str, &Verdict), Vec<String>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.hoist != Verdict::Right) {
        let key = (cell.program.as_str(), cell.compiler, &cell.hoist);
        lines.entry(key).or_default().push(format!("{} {}", cell.model, cell.level));
    }
    for ((program, compiler, verdict), builds) in &lines {
        let _ = writeln!(text, "- {program}, {compiler}, {}: {verdict}", builds.join(", "));
    }
    if !lines.is_empty() {
        text.push('\n');
    }
}

/// How many of each verdict: `12`, or `10, 1 wrong, 1 refused`.
fn counted<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> String {
    let mut counts = [0usize; 4];
    for verdict in verdicts {
        let index = match verdict {
            Verdict::Right => 0,
            Verdict::Wrong => 1,
            Verdict::Refused(_) => 2,
            Verdict::Crash(_) => 3,
        };
        if let Some(count) = counts.get_mut(index) {
            *count += 1;
        }
    }
    let words = ["right", "wrong", "refused", "crashed"];
    let parts = counts.iter().zip(words).filter(|(count, _)| **count > 0);
    parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Replaces the tables in COMPATIBILITY.md; those of architectures that were not tried stay.
///
/// # Errors
/// If the file cannot be read or written, or has no place for them.
pub(crate) fn write(workspace: &Workspace, tables: &str) -> Result<()> {
    let path = workspace.root().join("COMPATIBILITY.md");
    let text = fs::read_to_string(&path).context("cannot read COMPATIBILITY.md")?;
    let place =
        text.split_once(FROM).and_then(|(before, rest)| Some((before, rest.split_once(TO)?)));
    let (before, (old, after)) =
        place.with_context(|| format!("COMPATIBILITY.md lacks the lines {FROM} and {TO}"))?;
    let tables = merged(old, tables);
    fs::write(&path, format!("{before}{FROM}\n\n{tables}{TO}{after}"))?;
    Ok(())
}

/// The new tables, and the old ones of other architectures, in the order of [`tables`].
fn merged(old: &str, new: &str) -> String {
    let by_name = |text: &str| -> BTreeMap<String, String> {
        let tables = text.split("### ").skip(1);
        let name = |table: &str| table.lines().next().unwrap_or_default().to_owned();
        tables.map(|table| (name(table), format!("### {}\n\n", table.trim_end()))).collect()
    };
    let mut tables = by_name(old);
    tables.extend(by_name(new));
    tables.into_values().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_were_not_made_again_stay() {
        let old = "\n\n### x86_64\n\n| a |\n\n### aarch64\n\n| b |\n\n- c\n\n";
        let new = "### riscv64\n\n| d |\n\n### aarch64\n\n| e |\n\n";
        let all = "### x86_64\n\n| a |\n\n### riscv64\n\n| d |\n\n### aarch64\n\n| e |\n\n";
        assert_eq!(merged(old, new), all);
    }
}
