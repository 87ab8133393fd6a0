//! Dynamic section, symbol versions and notes as GNU `readelf` shows them.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod common;

use common::{fixtures, machine};
use elf_core::File;
use elf_core::names::{DT_NULL, SHT_NOTE};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The words of readelf's lines that are compared, one fact a line.
fn theirs(path: &Path) -> Option<String> {
    let output =
        Command::new("readelf").args(["-dVnW"]).arg(path).env("LC_ALL", "C").output().ok()?;
    let mut facts = String::new();
    let mut part = "";
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        part = match line {
            _ if line.starts_with("Dynamic section") => "dynamic",
            _ if line.starts_with("Version symbols section") => "symbols",
            _ if line.starts_with("Version definition section") => "definitions",
            _ if line.starts_with("Version needs section") => "needs",
            _ if line.starts_with("Displaying notes") => "notes",
            _ => part,
        };
        match (part, &words[..]) {
            ("dynamic", [tag, ..]) if tag.starts_with("0x") => {
                let tag = u64::from_str_radix(&tag[2..], 16).ok()?;
                let text = words
                    .windows(2)
                    .find(|pair| pair[0].ends_with(':') && pair[1].starts_with('['));
                if tag != DT_NULL {
                    let text = text.map_or("", |pair| pair[1].trim_matches(['[', ']']));
                    writeln!(facts, "dynamic {tag:x} {text}").ok()?;
                }
            }
            (
                "definitions",
                [_, "Rev:", _, "Flags:", _, "Index:", index, "Cnt:", _, "Name:", name],
            ) => {
                writeln!(facts, "definition {index} {name}").ok()?;
            }
            (
                "definitions",
                [_, "Rev:", _, "Flags:", _, _, "Index:", index, "Cnt:", _, "Name:", name],
            ) => {
                writeln!(facts, "definition {index} {name}").ok()?;
            }
            ("needs", [_, "Version:", _, "File:", file, "Cnt:", count]) => {
                writeln!(facts, "need {file} {count}").ok()?;
            }
            ("needs", [_, "Name:", name, "Flags:", .., "Version:", index]) => {
                writeln!(facts, "needed {index} {name}").ok()?;
            }
            ("symbols", [number, rest @ ..]) if number.strip_suffix(':').is_some_and(is_hex) => {
                // Columns of an index, `h` if hidden, and the name in parentheses.
                for word in
                    rest.join(" ").replace(" (", "(").split(") ").filter(|word| !word.is_empty())
                {
                    let (index, name) = word.split_once('(')?;
                    let (index, hidden) = (index.trim_end_matches('h'), index.ends_with('h'));
                    let index = u16::from_str_radix(index, 16).ok()?;
                    let name = name.trim_end_matches(')');
                    writeln!(
                        facts,
                        "symbol {index} {hidden} {}",
                        if index < 2 { "" } else { name }
                    )
                    .ok()?;
                }
            }
            // An owner may be two words.
            ("notes", [owner, size, ..] | [owner, _, size, ..])
                if size.starts_with("0x") && line.starts_with("  ") && !line.starts_with("   ") =>
            {
                let size = u64::from_str_radix(size.strip_prefix("0x")?, 16).ok()?;
                if !is_build_attribute(owner) {
                    writeln!(facts, "note {owner} {size}").ok()?;
                }
            }
            _ => {}
        }
    }
    Some(facts)
}

/// Whether a note is a build attribute, the owner of which readelf shows as words of its own.
fn is_build_attribute(owner: &str) -> bool {
    owner.starts_with("GA")
}

fn is_hex(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The same facts, by elf-core; `None` if something is an error.
fn ours(bytes: &[u8]) -> Option<String> {
    let file = File::parse(bytes).ok()?;
    let mut facts = String::new();
    if let Some(dynamic) = file.dynamic().ok()? {
        for entry in dynamic.entries() {
            let mask = if file.encoding().is_64() { u64::MAX } else { u32::MAX.into() };
            let text = dynamic.text(&entry).ok()?.unwrap_or_default();
            writeln!(facts, "dynamic {:x} {text}", entry.tag.cast_unsigned() & mask).ok()?;
        }
    }
    if let Some(versions) = file.versions().ok()? {
        for (symbol, word) in (0u32..).zip(versions.indices()) {
            let name =
                versions.of(symbol).ok()?.map_or_else(Default::default, |version| version.name);
            writeln!(facts, "symbol {} {} {name}", word & 0x7fff, word & 0x8000 != 0).ok()?;
        }
        for definition in versions.definitions() {
            let definition = definition.ok()?;
            writeln!(facts, "definition {} {}", definition.index, definition.name().ok()?).ok()?;
        }
        for need in versions.needs() {
            let need = need.ok()?;
            writeln!(facts, "need {} {}", need.file, need.versions().count()).ok()?;
            for version in need.versions() {
                let version = version.ok()?;
                writeln!(facts, "needed {} {}", version.index, version.name).ok()?;
            }
        }
    }
    let mut notes = |notes: elf_core::Notes<'_>| -> Option<()> {
        for note in notes {
            let note = note.ok()?;
            let owner = note.owner.to_string();
            let owner = owner.split_whitespace().next().unwrap_or("");
            if !is_build_attribute(owner) {
                writeln!(facts, "note {owner} {}", note.data.len()).ok()?;
            }
        }
        Some(())
    };
    // readelf shows sections, and segments only where there are no sections of notes.
    let sections = file.sections().iter().filter(|section| section.r#type == SHT_NOTE);
    if sections.clone().count() == 0 {
        for segment in
            file.segments().iter().filter(|segment| segment.r#type == elf_core::names::PT_NOTE)
        {
            notes(file.segment_notes(&segment).ok()??)?;
        }
    }
    for section in sections {
        notes(file.section_notes(&section).ok()??)?;
    }
    Some(facts)
}

/// Compares files; whether there are as many as there must be, and nothing differs. Prints counts, and differences for a reader.
fn run(files: impl Iterator<Item = (PathBuf, Vec<u8>)>, least: usize) -> bool {
    let (mut count, mut facts, mut differences) = (0, 0, 0);
    for (path, bytes) in files {
        let (ours, theirs) =
            (ours(&bytes).unwrap_or_else(|| "error".into()), theirs(&path).unwrap_or_default());
        count += 1;
        facts += ours.lines().count();
        let sorted = |facts: &str| {
            let mut lines: Vec<String> = facts.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let (left, right) = (sorted(&ours), sorted(&theirs));
        if left != right {
            differences += 1;
            let only = |a: &[String], b: &[String]| {
                a.iter().filter(|it| !b.contains(it)).take(3).cloned().collect::<Vec<_>>()
            };
            println!(
                "{}: only elf-core {:?}, only readelf {:?}",
                path.display(),
                only(&left, &right),
                only(&right, &left)
            );
        }
    }
    println!("{count} files, {facts} facts, {differences} files differ");
    count >= least && differences == 0
}

/// Whether GNU readelf is there.
fn is_there() -> bool {
    let output = Command::new("readelf").arg("--version").output();
    output.is_ok_and(|output| output.stdout.starts_with(b"GNU readelf"))
}

#[test]
fn fixtures_are_read_as_readelf_reads_them() {
    if !is_there() {
        println!("skipped: fixtures_are_read_as_readelf_reads_them: needs GNU readelf (binutils)");
        return;
    }
    assert!(run(fixtures().into_iter(), 350));
}

#[test]
#[ignore = "runs GNU readelf on every ELF file of the machine: minutes"]
fn the_machine_is_read_as_readelf_reads_it() {
    assert!(is_there());
    assert!(run(machine(), 1000));
}
