//! Programs of two objects that are linked as nvlink 13.5 does.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;
mod objects;

use elf_core::{File, SectionHeader, SegmentFlags};
use linked::differences;
use objects::{halves, read};
use reloc_cuda::link::{LinkedMercury, link};

/// Programs, and what they show.
const PROGRAMS: [(&str, &str); 7] = [
    // a second name of a function, undefined functions in the order of their lists
    ("names", "13.5-sm_90"),
    // undefined functions of an only kernel in the order of the code
    ("only", "13.5-sm_90"),
    // literals of two alignments, names of inlined functions, line numbers; with the Mercury form of them
    ("mixed", "13.5-sm_100"),
    // debug information of a function that two objects have
    ("templates", "13.5-sm_90"),
    // shared variables of one size; with the Mercury form of them
    ("pool", "13.5-sm_100"),
    // zeroed variables before an array whose size the launch gives
    ("zeros", "13.5-sm_90"),
    // weak functions that give way in another order
    ("weak", "13.5-sm_90"),
];

#[test]
fn programs_are_linked_as_nvlink_does() {
    for (name, version) in PROGRAMS {
        let [a, b] = halves(name, version);
        let linked = link(&[&a, &b]).unwrap();
        let expected = read(&format!("{name}-{version}"));
        assert_eq!(differences(&expected, &linked.bytes), [""; 0], "{name}");
        // the note's number is in it
        let flags = |bytes: &[u8]| File::parse(bytes).unwrap().header().flags;
        assert_eq!(flags(&linked.bytes), flags(&expected), "{name}");
        // variables, with those that are zero and in no file
        let variables = |bytes: &[u8]| -> Vec<u64> {
            let file = File::parse(bytes).unwrap();
            let variables =
                file.segments().iter().filter(|one| one.flags.contains(SegmentFlags::WRITE));
            variables.map(|one| one.memory_size).collect()
        };
        assert_eq!(variables(&linked.bytes), variables(&expected), "{name}");
        // of the symbols in Mercury, too
        let tables = |bytes: &[u8]| -> Vec<_> {
            let file = File::parse(bytes).unwrap();
            let name = |one: &SectionHeader| file.section_name(one).unwrap().to_string();
            let found = file.sections().iter().filter(|one| name(one).ends_with("symtab"));
            found
                .map(|one| (one.info, one.entry_size, name(&file.section(one.link).unwrap())))
                .collect()
        };
        assert_eq!(tables(&linked.bytes), tables(&expected), "{name}");
        let is_newer = version.ends_with("sm_100");
        let mercury = if is_newer { LinkedMercury::Merged } else { LinkedMercury::None };
        assert_eq!(linked.mercury, mercury, "{name}");
    }
}
