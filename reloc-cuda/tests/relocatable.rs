//! Objects put together first and linked afterwards are what the objects are, linked at once: here, and by nvlink.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;
mod objects;

use elf_core::names::{SHT_REL, STB_LOCAL};
use elf_core::{File, SectionHeader};
use linked::differences;
use objects::{bytes_of, halves, named, number, put32, read, section_row, weakened};
use reloc_cuda::cuda::{R_CUDA_32, R_CUDA_64, R_CUDA_G64};
use reloc_cuda::link::{LinkErrorKind, LinkedMercury, link, link_relocatable};
use std::path::Path;
use std::process::Command;

/// Halves of programs among the fixtures.
const PROGRAMS: [(&str, &str); 13] = [
    ("calls", "13.5-sm_80"),
    ("calls", "13.5-sm_90"),
    ("calls", "13.5-sm_100"),
    ("data", "13.5-sm_80"),
    ("data", "13.5-sm_90"),
    ("arrays", "13.5-sm_80"),
    ("arrays", "13.5-sm_90"),
    ("places", "13.5-sm_80"),
    ("places", "13.5-sm_100"),
    ("shapes", "12.9-sm_80"),
    ("shapes", "13.5-sm_90"),
    ("tensor", "13.5-sm_100a"),
    ("gpu", "13.0-sm_90"),
];

/// Where what is put together first is another file: program and how the difference starts.
const OTHERWISE: [(&str, &str); 2] = [
    // shared variables of one size are placed by the order of all symbols, of which local ones stand first in one file
    ("places", ".text.pooled: "),
    // objects of toolkit 12 become one of the newer form, of which nvlink keeps empty sections
    ("shapes 12.9", ".nv.shared.pictured: in one alone"),
];

/// What two linked files differ in.
fn differ(label: &str, expected: &[u8], found: &[u8]) -> Vec<String> {
    let mut all = differences(expected, found);
    all.retain(|line| {
        !OTHERWISE.iter().any(|(of, start)| label.starts_with(of) && line.starts_with(start))
    });
    all
}

#[test]
fn what_is_put_together_is_linked_as_its_parts() {
    for (name, version) in PROGRAMS {
        let label = format!("{name} {version}");
        let [a, b] = halves(name, version);
        let at_once = link(&[&a, &b]).unwrap();
        let joined = link_relocatable(&[&a, &b], None).unwrap();
        let later = link(&[&joined.bytes]).unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(differ(&label, &at_once.bytes, &later.bytes), [""; 0], "{label}");
        assert_eq!(at_once.unbounded, later.unbounded, "{label}");
        let mercury = matches!(joined.mercury, LinkedMercury::LeftOut { .. });
        assert_eq!(mercury, version.contains("sm_1"), "{label}");
        // one object, and one again, are as before; so is the first half, with the second behind it
        let alone = link_relocatable(&[&a], None).unwrap();
        let again = link_relocatable(&[&alone.bytes], None).unwrap();
        let later = link(&[&again.bytes, &b]).unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(differ(&label, &at_once.bytes, &later.bytes), [""; 0], "{label}, one after one");
    }
}

/// One object stays as it is, but for symbols of sections that describe it as a whole.
#[test]
fn one_object_is_as_it_was() {
    const OBJECTS: [&str; 8] = [
        "calls_a-13.5-sm_80",
        "names_b-13.5-sm_90",
        "only_b-13.5-sm_90",
        "places_a-13.5-sm_80",
        "shapes_a-13.5-sm_90",
        "templates_a-13.5-sm_90",
        "tensor_b-13.5-sm_100a",
        "weak_a-13.5-sm_90",
    ];
    const WITHOUT: [&str; 3] = ["no .note.nv.", "no .nv.callgraph ", "no .nv.prototype "];
    for name in OBJECTS {
        let mut object = read(name);
        // sections of entries
        let row = section_row(&object, ".debug_frame");
        put32(&mut object, row + 56, 1);
        let joined = link_relocatable(&[&object], None).unwrap().bytes;
        let mut found = differences(&object, &joined);
        found.retain(|line| !WITHOUT.iter().any(|start| line.starts_with(start)));
        assert_eq!(found, [""; 0], "{name}");
        let file = File::parse(&joined).unwrap();
        let table = file.section(number(&joined, ".symtab") as u32).unwrap();
        assert_eq!((table.entry_size, table.link), (24, number(&joined, ".strtab") as u32));
        let symbols = file.symbol_table().unwrap().unwrap();
        let locals = symbols.symbols().iter().take_while(|one| one.binding() == STB_LOCAL).count();
        assert_eq!(table.info as usize, locals, "{name}");
        assert!(symbols.symbols().iter().skip(locals).all(|one| one.binding() != STB_LOCAL));
    }
}

/// What the system has of shared memory is there once, as large as one object's.
#[test]
fn reserved_memory_is_there_once() {
    let [a, b] = halves("tensor", "13.5-sm_100a");
    let [one, both] =
        [&[&b[..]][..], &[&b, &a]].map(|all| link_relocatable(all, None).unwrap().bytes);
    let size = |object: &[u8]| objects::header(object, ".nv.shared.reserved.0").size;
    assert_eq!((size(&one), size(&both)), (0x20, 0x20));
}

const KERNELS: [&str; 4] = ["calls", "indirect", "recurses", "undefined"];

/// Unwind entries of weak functions that came first and gave way stay up to `sm_80`, from `sm_90` on if their code has
/// no relocations, as nvlink has them; put together or linked.
#[test]
fn entries_of_functions_that_gave_way() {
    for (sm, records, expected) in [
        ("sm_80", ".rel.debug_frame", [2, 2, 2, 2]),
        ("sm_90", ".rela.debug_frame", [1, 1, 1, 1]),
        ("sm_100", ".rela.debug_frame", [1, 1, 1, 1]),
    ] {
        let [a, b] = halves("calls", &format!("13.5-{sm}"));
        let weak = weakened(a.clone());
        let linked = link(&[&weak, &a, &b]).unwrap();
        let joined = link_relocatable(&[&weak, &a, &b], None).unwrap().bytes;
        assert_eq!(named(&linked.bytes, records, &KERNELS), expected, "{sm}");
        // from sm_90 on with the record of the size
        assert_eq!(named(&joined, records, &KERNELS), [2; 4], "{sm}");
        if sm == "sm_100" {
            assert_eq!(linked.mercury, LinkedMercury::Merged);
            let records = ".nv.merc.rela.debug_frame";
            assert_eq!(named(&linked.bytes, records, &KERNELS), expected, "{sm}");
        }
    }
    let [a, b] = halves("weak", "13.5-sm_90");
    let linked = link(&[&a, &b]).unwrap().bytes;
    assert_eq!(named(&linked, ".rela.debug_frame", &["first", "other"]), [2, 1]);
}

/// Calls of a function that gave way go with it, but for what was there before another object's replaced it.
#[test]
fn calls_of_functions_that_gave_way_go() {
    let [a, b] = halves("calls", "13.5-sm_90");
    let weak = weakened(a.clone());
    let mut other = weak.clone();
    // the first row of calls, which stands behind its head, with another callee
    let row = bytes_of(&other, ".nv.callgraph").start + 8;
    let last = File::parse(&other).unwrap().symbol_table().unwrap().unwrap().symbols().len() - 1;
    put32(&mut other, row + 4, last as u32);
    assert_ne!(weak, other);
    let calls = |objects: &[&[u8]]| {
        let joined = link_relocatable(objects, None).unwrap().bytes;
        joined[bytes_of(&joined, ".nv.callgraph")].to_vec()
    };
    assert_eq!(calls(&[&a, &weak, &b]), calls(&[&a, &other, &b]));
    assert_ne!(calls(&[&weak, &a, &b]), calls(&[&other, &a, &b]));
}

/// Words without an addend of their own count on where the section that they name begins, whichever their size.
#[test]
fn words_that_name_a_section() {
    let [a, b] = halves("data", "13.5-sm_80");
    let joined = |r#type| {
        let mut b = b.clone();
        let rows = bytes_of(&b, ".rel.debug_frame");
        let file = File::parse(&b).unwrap();
        let frame = SectionHeader { r#type: SHT_REL, ..objects::header(&b, ".rel.debug_frame") };
        let found = file.relocations(&frame).unwrap().unwrap();
        let at = found.iter().position(|row| row.offset == 0x44).unwrap();
        put32(&mut b, rows.start + 16 * at + 8, r#type);
        link_relocatable(&[&a, &b], None).map(|joined| joined.bytes)
    };
    let [wide, narrow] = [R_CUDA_64, R_CUDA_32].map(|r#type| joined(r#type).unwrap());
    let frame = |object: &[u8]| object[bytes_of(object, ".debug_frame")].to_vec();
    assert_eq!(frame(&wide), frame(&narrow));
    let at = frame(&read("data_a-13.5-sm_80")).len();
    assert_eq!(frame(&wide)[at + 0x44..][..8], (at as u64).to_le_bytes());
    assert!(joined(R_CUDA_G64).is_err());
}

#[test]
fn what_cannot_be_put_together_is_named() {
    let [a, b] = halves("calls", "13.5-sm_80");
    let errors = link_relocatable(&[&a, &b, &a], None).unwrap_err();
    let twice =
        |kind: &LinkErrorKind| matches!(kind, LinkErrorKind::Duplicate { first: 0 | 1, .. });
    assert!(errors.0.iter().any(|error| error.object == 2 && twice(&error.kind)), "{errors}");
    let linked = link(&[&a, &b]).unwrap().bytes;
    let errors = link_relocatable(&[&linked], None).unwrap_err();
    assert_eq!(errors.0[0].kind, LinkErrorKind::NotRelocatable);
    let errors = link_relocatable(&[], None).unwrap_err();
    assert_eq!(errors.0[0].kind, LinkErrorKind::Nothing);
    for end in (0..a.len()).step_by(97) {
        assert!(link_relocatable(&[&a[..end], &b], None).is_err(), "{end}");
    }
}

/// Runs nvlink; what it links.
fn nvlink(folder: &Path, arch: &str, name: &str, objects: &[&[u8]]) -> Vec<u8> {
    let paths: Vec<_> = (0..objects.len()).map(|at| folder.join(format!("{name}{at}"))).collect();
    for (path, bytes) in paths.iter().zip(objects) {
        std::fs::write(path.with_extension("cubin"), bytes).unwrap();
    }
    let output = folder.join(format!("{name}.linked"));
    let mut command = Command::new("nvlink");
    let inputs = paths.iter().map(|path| path.with_extension("cubin"));
    let said = command.args(["-arch", arch]).args(inputs).arg("-o").arg(&output).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{name}: {text}");
    std::fs::read(output).unwrap()
}

#[test]
fn nvlink_takes_what_is_put_together() {
    if !Command::new("nvlink").arg("--version").output().is_ok_and(|said| said.status.success()) {
        println!("skipped: nvlink_takes_what_is_put_together: needs nvlink");
        return;
    }
    let folder = std::env::temp_dir().join(format!("reloc-cuda-joined-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut compared = 0;
    // from sm_100 on nvlink wants a Mercury form
    for (name, version) in PROGRAMS.iter().filter(|(_, version)| !version.contains("sm_1")) {
        let (_, arch) = version.split_once('-').unwrap();
        let label = format!("{name} {version}");
        let [a, b] = halves(name, version);
        let joined = link_relocatable(&[&a, &b], None).unwrap().bytes;
        let at_once = nvlink(&folder, arch, &format!("{name}-{arch}-parts"), &[&a, &b]);
        let later = nvlink(&folder, arch, &format!("{name}-{arch}-joined"), &[&joined]);
        assert_eq!(differ(&label, &at_once, &later), [""; 0], "{label}");
        compared += 1;
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{compared} programs");
}
