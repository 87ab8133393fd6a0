//! What a program has in its file beside what is loaded of it: archives and images that it looks for in `/proc/self/exe`, where the system finds the
//! file of this command instead, unless it can be told otherwise.

use std::fmt;

use elf_core::names::SHT_PROGBITS;
use elf_core::{File, SectionFlags};

/// Bytes that are not loaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Payload {
    size: u64,
    /// The section that they are in; none if they stand behind all of them.
    section: Option<String>,
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.size)?;
        match &self.section {
            Some(name) => write!(f, " of the section {name}")?,
            None => f.write_str(" behind the end of the program")?,
        }
        f.write_str(
            " are not loaded: in /proc/self/exe, where a program may look for them, is hoist (only a process with \
             CAP_CHECKPOINT_RESTORE may change that)",
        )
    }
}

/// What sections begin with that linkers, debuggers and profilers have.
const OF_TOOLS: [&[u8]; 9] = [
    b".debug",
    b".zdebug",
    b".comment",
    b".gnu",
    b".stab",
    b".gdb_index",
    b".annobin",
    b".GCC",
    b".rustc",
];

/// What is smaller is nobody's payload.
const LEAST: u64 = 64;

/// The payload of a program, if it has one: a section of its own that is not loaded, or what was appended to the file.
pub(super) fn of(bytes: &[u8]) -> Option<Payload> {
    let file = File::parse(bytes).ok()?;
    let is_of_tools = |name: &[u8]| OF_TOOLS.iter().any(|start| name.starts_with(start));
    let header = file.header();
    let table =
        u64::from(header.section_header_count).checked_mul(header.section_header_size.into())?;
    let mut end = header.section_headers.saturating_add(table);
    let mut largest: Option<Payload> = None;
    for section in file.sections() {
        let size = section.file_size();
        end = end.max(section.offset.saturating_add(size));
        let is_own = section.r#type == SHT_PROGBITS && !section.flags.contains(SectionFlags::ALLOC);
        let name = file.section_name(&section).ok().filter(|_| is_own && size >= LEAST);
        if let Some(name) = name.filter(|name| !is_of_tools(name.as_bytes()))
            && largest.as_ref().is_none_or(|largest| largest.size < size)
        {
            largest = Some(Payload { size, section: Some(name.to_string()) });
        }
    }
    for segment in file.segments() {
        end = end.max(segment.offset.saturating_add(segment.file_size));
    }
    let appended = (bytes.len() as u64).saturating_sub(end);
    let appended = (appended >= LEAST).then_some(Payload { size: appended, section: None });
    appended.filter(|it| largest.as_ref().is_none_or(|largest| largest.size < it.size)).or(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(of(&program), None);
        let larger = [&program[..], &[1; 100]].concat();
        assert_eq!(of(&larger), Some(Payload { size: 100, section: None }));
        assert_eq!(of(b"text"), None);
    }
}
