//! What `readelf -hSlsrdW` prints, as lines.

use std::path::Path;
use std::process::Command;

use crate::lines::{Lines, Topic};

/// Whether this machine has `readelf`, and which: its first line.
pub(crate) fn version() -> Option<String> {
    let output = Command::new("readelf").arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// What readelf says of a file, or of every member of an archive.
pub(crate) fn read(path: &Path) -> Vec<Lines> {
    let output = Command::new("readelf")
        .arg("-hSlsrdW")
        .arg(path)
        .env("LC_ALL", "C")
        .output()
        .expect("readelf");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut files = Vec::new();
    let mut block = None;
    for line in text.lines() {
        if line.starts_with("ELF Header:") {
            files.push(Lines::default());
        }
        if let Some(lines) = files.last_mut() {
            read_line(line, &mut block, lines);
        }
    }
    files
}

fn read_line(line: &str, block: &mut Option<Topic>, lines: &mut Lines) {
    if let Some(topic) = heading(line) {
        *block = topic;
        return;
    }
    let (Some(topic), Some(first)) = (*block, line.trim_start().chars().next()) else { return };
    let is_row = match topic {
        Topic::Header => is_compared(line),
        Topic::Section => line.starts_with("  [") && !line.starts_with("  [Nr]"),
        Topic::Segment => line.starts_with("  ") && first != '[' && !line.starts_with("  Type"),
        Topic::Dynamic => line.starts_with(" 0x"),
        Topic::Symbol => first.is_ascii_digit(),
        Topic::Relocation => {
            line.starts_with(|first: char| first.is_ascii_hexdigit())
                || line.trim_start().starts_with("Type2:")
                || line.trim_start().starts_with("Type3:")
        }
        Topic::PackedRelocation => {
            line.len() >= 8 && line.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
    };
    if !is_row {
        return;
    }
    match topic {
        Topic::Header => lines.add(topic, &without_stand_in(header_value(line))),
        Topic::Symbol | Topic::Relocation => lines.add(topic, without_version_index(line)),
        _ => lines.add(topic, line),
    }
}

/// What the lines after this one speak of, if it is a heading.
fn heading(line: &str) -> Option<Option<Topic>> {
    let is = |start: &str| line.starts_with(start);
    Some(match line {
        _ if is("ELF Header:") => Some(Topic::Header),
        _ if is("Section Headers:") => Some(Topic::Section),
        _ if is("Program Headers:") => Some(Topic::Segment),
        _ if is("Dynamic section at") => Some(Topic::Dynamic),
        _ if is("Symbol table '") => Some(Topic::Symbol),
        _ if is("Relocation section '.relr") => Some(Topic::PackedRelocation),
        _ if is("Relocation section '") => Some(Topic::Relocation),
        _ if is("Key to Flags")
            || is(" Section to Segment")
            || is("File:")
            || is("There ")
            || is("Elf file type") =>
        {
            None
        }
        _ if is("No version information")
            || is("Histogram")
            || is("Version ")
            || is("The decoding of") =>
        {
            None
        }
        _ => return None,
    })
}

/// Lines of the header that say a number.
fn is_compared(line: &str) -> bool {
    let name = line.trim_start();
    let compared = [
        "Class:",
        "Data:",
        "ABI Version:",
        "Type:",
        "Flags:",
        "Entry point",
        "Start of",
        "Size of",
        "Number of",
        "Section header",
    ];
    compared.iter().any(|start| name.starts_with(start))
}

/// Drops the index of a version behind its name: `puts@GLIBC_2.2.5 (3)`.
fn without_version_index(line: &str) -> &str {
    let line = line.trim_end();
    let (before, index) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some(split) => split,
        None => return line,
    };
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    if is_index && before.contains('@') { before } else { line }
}

/// The part of a line of the header that is a number or a name of the specification.
fn header_value(line: &str) -> &str {
    let end = match line.trim_start() {
        text if text.starts_with("Type:") => line.find(" ("),
        text if text.starts_with("Flags:") => line.find(','),
        _ => None,
    };
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

/// Extended numbering: readelf shows what stands in the field as well, `0 (70000)`, `65535 (69999)`.
fn without_stand_in(line: &str) -> String {
    let extended = line.strip_suffix(')').and_then(|line| line.rsplit_once(" ("));
    match extended.and_then(|(before, number)| Some((before.rsplit_once(' ')?.0, number))) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{name} {number}")
        }
        _ => line.to_owned(),
    }
}
