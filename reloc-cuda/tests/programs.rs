//! Programs of two objects that are linked as nvlink 13.5 does.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;
mod objects;

use elf_core::{File, SectionHeader, SegmentFlags};
use linked::differences;
use objects::{bytes_of, halves, header, number, put32, read, section_row, sections};
use reloc_cuda::link::{LinkedMercury, link};

/// Programs, and what they show.
const PROGRAMS: [(&str, &str); 9] = [
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
    // arrays of the launch that kernels have in common one by one, several tables of branches in the Mercury form
    ("chain", "13.5-sm_100"),
    // zeroed variables before an array whose size the launch gives
    ("zeros", "13.5-sm_90"),
    // weak functions that give way in another order
    ("weak", "13.5-sm_90"),
    // a weak function that gives way to one of fewer registers, bytes of an address, two names of what kernels call
    ("fewer", "13.5-sm_90"),
];

/// Sections of Mercury that have the bytes of the program's, of which the file has one copy.
fn shares(object: &[u8]) -> Vec<String> {
    let all = sections(object).into_iter().filter(|name| name.starts_with(".nv.merc."));
    let shared = all.filter(|name| {
        let own = &name[".nv.merc".len()..];
        let own = sections(object).contains(&own.to_owned()).then(|| header(object, own));
        own.is_some_and(|own| own.size > 0 && own.offset == header(object, name).offset)
    });
    shared.collect()
}

/// Code in Mercury begins with the number of the machine code's section.
#[test]
fn code_in_mercury_names_its_section() {
    for program in ["calls", "chain", "mixed", "pool"] {
        let [a, b] = halves(program, "13.5-sm_100");
        let linked = link(&[&a, &b]).unwrap().bytes;
        let names = sections(&linked).into_iter().filter(|one| one.starts_with(".nv.capmerc."));
        let mut found = 0;
        for name in names {
            let start = bytes_of(&linked, &name).start;
            let code = number(&linked, &name[".nv.capmerc".len()..]) as u32;
            assert_eq!(linked[start..start + 4], code.to_le_bytes(), "{program}: {name}");
            found += 1;
        }
        assert!(found > 2, "{program}");
    }
}

/// Banks of kernels that reach literals have a list of records, of which there are none, as the objects' have, whatever
/// other sections have relocations.
#[test]
fn banks_of_literals_have_lists() {
    let [mut a, b] = halves("chain", "13.5-sm_100");
    let row = section_row(&a, ".rela.text.two");
    // of another section than the code
    let other = number(&a, ".nv.info.two") as u32;
    put32(&mut a, row + 44, other);
    let linked = sections(&link(&[&a, &b]).unwrap().bytes);
    for list in [".rela.nv.constant2.one", ".rela.nv.constant2.two"] {
        assert!(linked.iter().any(|one| one == list), "{list}");
    }
}

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
        // of the symbols in Mercury, too, and of the linker's note
        let tables = |bytes: &[u8]| -> Vec<_> {
            let file = File::parse(bytes).unwrap();
            let name = |one: &SectionHeader| file.section_name(one).unwrap().to_string();
            let found = file
                .sections()
                .iter()
                .filter(|one| name(one).ends_with("symtab") || name(one) == ".note.nv.tkinfo");
            let link = |one: &SectionHeader| name(&file.section(one.link).unwrap());
            found.map(|one| (one.flags, one.info, one.entry_size, link(&one))).collect()
        };
        assert_eq!(tables(&linked.bytes), tables(&expected), "{name}");
        assert_eq!(shares(&linked.bytes), shares(&expected), "{name}");
        let is_newer = version.ends_with("sm_100");
        let mercury = if is_newer { LinkedMercury::Merged } else { LinkedMercury::None };
        assert_eq!(linked.mercury, mercury, "{name}");
    }
}
