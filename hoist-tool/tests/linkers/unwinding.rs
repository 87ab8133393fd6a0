//! The index of Arm's unwinding tables: what `hoist link` makes where something asks for it, against GNU ld byte for byte, and against
//! lld by what is found for each address. Linkers may leave out entries that say no more than the one before, and are told not to.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use archs::with_arch;
use elf_core::names::SHT_ARM_EXIDX;
use elf_core::{File, SectionFlags};
use elf_layout::{HeapStorage, Options};
use hoist_tool::budget::Limits;
use hoist_tool::cmd::link;
use hoist_tool::input;
use hoist_tool::objects::Objects;

use crate::fixtures;
use crate::linker::{Linker, content};

const BASE: u64 = 0x40_0000;

/// Objects of which one asks where the index is: alone, with code without tables before it, and behind it.
const OBJECTS: &[&[&str]] =
    &[&["arm/unwinding.o"], &["arm/call.o", "arm/unwinding.o"], &["arm/unwinding.o", "arm/call.o"]];

/// Compares all of them with a linker.
pub(crate) fn compare_all(test: &str, programs: &[&str]) {
    let Some(linker) = Linker::find(programs) else {
        println!("skipped: {test}: none of {programs:?} is installed");
        return;
    };
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut entries, mut places) = (0, 0);
    for names in OBJECTS {
        let paths: Vec<PathBuf> = names.iter().map(|it| fixtures::folder().join(it)).collect();
        let inputs = input::read_all(&paths, Limits::default()).expect("fixtures");
        let objects = Objects::gather(&inputs, &[]).expect("objects");
        let (index, code, script) = ours(&objects);
        let linked = linked(&linker, &objects, &script, scratch.path());
        let linked = File::parse(&linked).expect("what a linker made");
        let (address, theirs) = content(&linked, ".ARM.exidx").expect("an index");
        assert_eq!(address, index.address, "{names:?}");
        entries += index.bytes.len() / 8;
        if !linker.is_lld() {
            assert_eq!(index.bytes, theirs, "{names:?}");
        }
        let theirs = Index { address, bytes: theirs.to_vec() };
        for place in code {
            places += 1;
            assert_eq!(index.of(place), theirs.of(place), "{names:?} {place:#x}");
        }
    }
    println!("{test}: {}: {entries} entries, {places} places of code", linker.version);
    assert!(entries >= 18 && places > 100, "{entries} entries, {places} places");
}

/// A table, and where it is.
struct Index {
    address: u64,
    bytes: Vec<u8>,
}

/// What is said of a place.
#[derive(Debug, PartialEq, Eq)]
enum Unwinding {
    /// It cannot be unwound.
    Not,
    /// By these instructions.
    Instructions(u32),
    /// As it says at this address.
    At(u64),
}

impl Index {
    fn of(&self, place: u64) -> Unwinding {
        let word =
            |at: usize| u32::from_le_bytes(*self.bytes[at..].first_chunk().expect("whole entries"));
        let to = |at: usize| {
            let distance = (word(at) << 1).cast_signed() >> 1;
            (self.address + at as u64).wrapping_add_signed(distance.into())
        };
        let starts: Vec<u64> = (0..self.bytes.len()).step_by(8).map(to).collect();
        assert!(starts.is_sorted(), "{starts:x?}");
        let Some(entry) = starts.iter().rposition(|start| *start <= place) else {
            return Unwinding::Not;
        };
        match word(entry * 8 + 4) {
            1 => Unwinding::Not,
            word if word >> 31 != 0 => Unwinding::Instructions(word),
            _ => Unwinding::At(to(entry * 8 + 4)),
        }
    }
}

/// The index that hoist makes, all places of code, and the script by which a linker has all the same places.
fn ours(objects: &Objects<'_>) -> (Index, BTreeSet<u64>, String) {
    let options =
        Options { base: Some(BASE), relax: false, executable: true, ..Options::default() };
    let image = link::link(objects, options, BASE, &HashMap::new(), None).expect("an image");
    with_arch!(objects.machine(), A => {
        let mut room = HeapStorage::new();
        let layout = room.plan::<A>(objects.files(), options, &mut |_| None).expect("a layout");
        let (mut sections, mut code, mut first) = (Vec::new(), BTreeSet::new(), None::<u64>);
        for (number, file) in objects.files().iter().enumerate() {
            for (index, header) in (0u32..).zip(file.sections()) {
                let Some(offset) = layout.section(number, index) else { continue };
                if header.r#type == SHT_ARM_EXIDX {
                    first = Some(first.map_or(offset, |first| first.min(offset)));
                } else if header.size > 0 {
                    let name = file.section_name(&header).expect("a name").to_string();
                    sections.push((BASE + offset, format!("*object-{number}.o({name})")));
                }
                if header.flags.contains(SectionFlags::EXECINSTR) {
                    code.extend((offset..offset + header.size).step_by(2).map(|at| BASE + at));
                }
            }
        }
        let first = first.expect("an index");
        let marks = "__exidx_start = .; *(.ARM.exidx*) __exidx_end = .;";
        sections.push((BASE + first, String::from(marks)));
        sections.sort();
        let mut script = String::from("SECTIONS {\n");
        for (at, what) in &sections {
            let name = if what == marks { String::from(".ARM.exidx") } else { format!(".at{at:x}") };
            let _ = writeln!(script, "  {name} {at:#x} : {{ {what} }}");
        }
        script.push_str("}\n");
        let mut ends = objects.files().iter().enumerate().filter_map(|(number, _)| {
            let table = objects.symbols(number)?;
            let mut symbols = (0u32..).zip(table.symbols());
            let end = symbols.find(|(_, it)| table.name_of(it).is_ok_and(|it| it == "__exidx_end"));
            Some(layout.symbol(number, end?.0).expect("an address").at(0))
        });
        let end = ends.next().expect("an object that asks");
        let bytes = image.bytes[first as usize..end as usize].to_vec();
        (Index { address: BASE + first, bytes }, code, script)
    })
}

/// What a linker makes of the objects as they are.
fn linked(linker: &Linker, objects: &Objects<'_>, script: &str, folder: &Path) -> Vec<u8> {
    let (script_path, output_path) = (folder.join("script"), folder.join("linked"));
    fs::write(&script_path, script).expect("a script");
    let mut command = linker.command();
    command.args(["-m", "armelf_linux_eabi", "-static", "-nostdlib", "-e", "0"]);
    command.args(["--no-merge-exidx-entries", "-T"]);
    command.arg(&script_path).arg("-o").arg(&output_path);
    for (number, file) in objects.files().iter().enumerate() {
        let path = folder.join(format!("object-{number}.o"));
        fs::write(&path, file.bytes()).expect("an object");
        command.arg(path);
    }
    let output = command.env("LC_ALL", "C").output().expect("a linker");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
    fs::read(&output_path).expect("what a linker made")
}
