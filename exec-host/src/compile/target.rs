//! What `native` means: images for one processor may not run on another that shares the cache.

use std::fs;
use std::string::String;

/// What the kernel says of a processor that code may depend on.
const FIELDS: &[&str] = &[
    "vendor_id",
    "cpu family",
    "model",
    "flags",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "Features",
];

/// The architecture of this machine, its processor and what that can do.
pub(super) fn native() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    describe(std::env::consts::ARCH, &text)
}

fn describe(architecture: &str, text: &str) -> String {
    let mut description = String::from(architecture);
    // the first of the processors
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    for (key, value) in lines.filter_map(|line| line.split_once(':')) {
        if FIELDS.contains(&key.trim()) {
            description.push('\n');
            description.push_str(value.trim());
        }
    }
    description
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_counts() {
        let text = "processor\t: 0\nvendor_id\t: V\nmodel\t\t: 5\ncpu MHz\t: 2000\nflags\t\t: sse avx\n\nprocessor\t: 1\nflags\t: none\n";
        assert_eq!(describe("x", text), "x\nV\n5\nsse avx");
    }
}
