//! `hoist link` against GNU ld and lld, which place the same sections at the same addresses: every byte of every section.
//!
//! What may differ, and how it is compared all the same: the order of GOT entries is each linker's own. A field that leads to
//! a GOT entry is compared after it was led to the other linker's entry of the same content. Relaxed instructions that do the same
//! in other words are taken for equal, and counted.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]
#![allow(clippy::unwrap_used, reason = "a test")]

mod fixtures;
#[path = "linkers/linker.rs"]
mod linker;
#[path = "linkers/meaning.rs"]
mod meaning;
#[path = "linkers/renamed.rs"]
mod renamed;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use archs::with_arch;
use elf_core::names::{SHN_X86_64_LCOMMON, SHT_NOBITS};
use elf_core::{
    Arch, Definition, File, Name, Query, Record, Role, SectionFlags, SectionHeader, SectionMut,
    Slot, apply_kind, find,
};
use elf_layout::{External, HeapStorage, Layout, Options};
use hoist_tool::budget::Limits;
use hoist_tool::cmd::{layout, link};
use hoist_tool::input;
use hoist_tool::objects::Objects;
use linker::{Linker, Script, address_of, content};

/// What came out of one comparison.
enum Outcome {
    /// So many sections, bytes and fields that lead to the GOT are equal; so many instructions in other words.
    Equal { sections: usize, bytes: usize, got: usize, reworded: usize },
    /// These differ.
    Different(Vec<String>),
    /// Hoist refuses the objects, and why.
    Refused(String),
    /// The linker does, and why.
    LinkerRefused(String),
}

/// Links objects with hoist and with a linker.
fn compare(linker: &Linker, paths: &[PathBuf], base: u64, relax: bool, folder: &Path) -> Outcome {
    let inputs = input::read_all(paths, Limits::default()).expect("fixtures");
    let objects = match Objects::gather(&inputs, &[]) {
        Ok(objects) => objects,
        Err(error) => return Outcome::Refused(format!("{error:#}")),
    };
    let options = Options { base: Some(base), relax, executable: true, ..Options::default() };
    let placement = match layout::layout(&objects, options) {
        Ok(placement) => placement,
        Err(error) => return Outcome::Refused(format!("{error:#}")),
    };
    // near enough for every kind of branch
    let next = (base + placement.size).next_multiple_of(64);
    let undefined: Vec<(String, u64)> =
        placement.undefined.iter().cloned().zip((next..).step_by(64)).collect();
    let defined: HashMap<Name<'_>, u64> =
        undefined.iter().map(|(name, at)| (Name::from(name.as_str()), *at)).collect();
    let image = match link::link(&objects, options, base, &defined, None) {
        Ok(image) => image,
        Err(error) => return Outcome::Refused(format!("{error:#}")),
    };
    with_arch!(objects.machine(), A => {
        let mut room = HeapStorage::new();
        let mut externals = |name: Name<'_>| Some(External::new(*defined.get(&name)?));
        let layout = room.plan::<A>(objects.files(), options, &mut externals).expect("a layout, as before");
        let linked = match linker.link(&objects, &script(&layout, &objects, &undefined, base), relax, folder) {
            Ok(linked) => linked,
            Err(error) => return Outcome::LinkerRefused(error),
        };
        let linked = File::parse(&linked).expect("what a linker made");
        compare_sections(&layout, &objects, &image.bytes, &linked, base)
    })
}

/// Everything where the layout has it.
fn script<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    undefined: &[(String, u64)],
    base: u64,
) -> String {
    let mut script = Script::new();
    for (name, address) in undefined {
        script.define(name, *address);
    }
    // lld has one of its own
    if let Some(handle) = layout.dso_handle() {
        script.define("__dso_handle", base + handle);
    }
    let mut sections = Vec::new();
    for (number, file) in objects.files().iter().enumerate() {
        for (index, _) in (0u32..).zip(file.sections()) {
            if let Some(offset) = layout.section(number, index) {
                sections.push((base + offset, number, index));
            }
        }
        let Some(table) = objects.symbols(number) else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols()) {
            let definition = table.section_of(index, &symbol).expect("a section");
            let is_common =
                matches!(definition, Definition::Common | Definition::Reserved(SHN_X86_64_LCOMMON));
            if is_common && layout.definition(number, index) == Some((number, index)) {
                let address = layout.symbol(number, index).expect("an address").at(base);
                script.define(&table.name_of(&symbol).expect("a name").to_string(), address);
            }
        }
    }
    // lld wants them in the order of their addresses
    sections.sort_unstable();
    let got = base + layout.got().0;
    let behind_got = sections.partition_point(|(address, ..)| *address < got);
    for (number, (address, object, index)) in sections.iter().enumerate() {
        if number == behind_got {
            script.got(got, objects.machine());
        }
        let header = objects.files()[*object].section(*index).expect("a section");
        script.section(*object, *index, *address, header.flags.contains(SectionFlags::TLS));
    }
    if behind_got == sections.len() {
        script.got(got, objects.machine());
    }
    let last = undefined.last().map_or(base + layout.size(), |(_, address)| *address);
    script.other_got((last + 1).next_multiple_of(4096), objects.machine());
    script.end()
}

/// Every byte of every section.
fn compare_sections<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    image: &[u8],
    linked: &File<'_>,
    base: u64,
) -> Outcome {
    let (mut sections, mut bytes, mut got, mut reworded) = (0, 0, 0, 0);
    let mut different = Vec::new();
    for (number, file) in objects.files().iter().enumerate() {
        for (index, header) in (0u32..).zip(file.sections()) {
            let Some(offset) = layout.section(number, index) else { continue };
            if header.r#type == SHT_NOBITS || header.size == 0 {
                continue;
            }
            let label = || {
                format!("{} {}", objects.label(number), file.section_name(&header).expect("a name"))
            };
            let Some((address, theirs)) = content(linked, &renamed::name(number, index)) else {
                different.push(format!("{}: not in the linker's file", label()));
                continue;
            };
            if address != base + offset {
                different.push(format!(
                    "{}: linker placed it at {address:#x}, not {:#x}",
                    label(),
                    base + offset
                ));
                continue;
            }
            let mut ours = image[offset as usize..]
                [..layout.section_size(number, index).expect("a size") as usize]
                .to_vec();
            reworded += take_their_words(
                layout,
                objects,
                (number, index),
                (&mut ours, image),
                linked,
                theirs,
                base,
            );
            got += lead_to_other_got(
                layout,
                objects,
                (number, index),
                &mut ours,
                linked,
                theirs,
                base,
            );
            if let Some(at) = (0..ours.len()).find(|&at| theirs.get(at) != Some(&ours[at])) {
                let near = |bytes: &[u8]| {
                    format!("{:02x?}", bytes.get(at..(at + 8).min(bytes.len())).unwrap_or_default())
                };
                different.push(format!(
                    "{} at {at:#x}: here {}, there {}",
                    label(),
                    near(&ours),
                    near(theirs)
                ));
                continue;
            }
            sections += 1;
            bytes += ours.len();
        }
    }
    if !different.is_empty()
        && let Some(why) = zeros_elsewhere(layout, objects, linked, base)
    {
        return Outcome::LinkerRefused(why);
    }
    if different.is_empty() {
        Outcome::Equal { sections, bytes, got, reworded }
    } else {
        Outcome::Different(different)
    }
}

/// Whether a linker has thread-local zeros not where the script says: lld counts those of several sections twice.
fn zeros_elsewhere<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    linked: &File<'_>,
    base: u64,
) -> Option<String> {
    for (number, file) in objects.files().iter().enumerate() {
        for (index, header) in (0u32..).zip(file.sections()) {
            let is_zero = header.r#type == SHT_NOBITS && header.flags.contains(SectionFlags::TLS);
            let Some(offset) = layout.section(number, index).filter(|_| is_zero) else { continue };
            let place = address_of(linked, &renamed::name(number, index));
            if header.size > 0 && place != Some(base + offset) {
                let ours = base + offset;
                return Some(format!("thread-local zeros are at {place:x?}, not {ours:#x}"));
            }
        }
    }
    None
}

/// Leads the fields of a section that mean GOT entries to the other linker's entries of the same content: how many they are.
fn lead_to_other_got<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    (number, index): (usize, u32),
    ours: &mut [u8],
    linked: &File<'_>,
    theirs: &[u8],
    base: u64,
) -> usize {
    let file = &objects.files()[number];
    let address = base + layout.section(number, index).expect("a section that is loaded");
    let big_endian = file.encoding().is_big_endian();
    let entries = entries_of(linked, A::ADDRESS_SIZE as usize, big_endian);
    let moved = |offset| layout.place(number, index, offset).expect("a place") + base - address;
    let section = file.section(index).expect("a section");
    let original = file.section_data(&section).expect("its bytes");
    let mut count = 0;
    for header in file.sections().iter().filter(|header| header.info == index) {
        for mut record in file.relocations(&header).expect("relocations").into_iter().flatten() {
            let Some(kind) = find(A::KINDS, record.r#type) else { continue };
            // a lower part has the value of the upper one at its label
            let upper = match kind.value.of {
                Role::Partner => upper_part::<A>(file, &header, &record),
                _ => None,
            };
            let asked = upper.unwrap_or(record);
            let role = find(A::KINDS, asked.r#type).map(|kind| kind.value.of);
            let Some(Role::Got(content)) = role else { continue };
            count += 1;
            let start = moved(record.offset);
            let place = start as usize..start as usize + kind.field.bytes;
            if theirs.get(place.clone()) == ours.get(place.clone()) {
                continue;
            }
            // the addend of a REL record was at the place
            let at = record.offset as usize..record.offset as usize + kind.field.bytes;
            let held = || kind.field.addend_at(&original[at.clone()], big_endian);
            record = Record { addend: record.addend.or_else(held), offset: start, ..record };
            let upper = upper.map(|upper| Record { offset: moved(upper.offset), ..upper });
            let got_base = base + layout.got().0;
            let held = match content {
                Slot::Address => layout.symbol(number, asked.symbol).map(|it| it.at(base)),
                content => variable(layout, number, asked.symbol, content),
            };
            let Some(held) = held else { continue };
            // the second of two words
            let before = (content.entries() - 1) * A::ADDRESS_SIZE;
            for entry in entries.get(&held).map_or(&[][..], Vec::as_slice) {
                let entry = entry - before;
                let resolve = |query: &Query| match query.role {
                    Role::Got(_) => Some(entry),
                    Role::GotBase => Some(got_base),
                    _ => None,
                };
                let mut section = SectionMut { bytes: &mut *ours, address, big_endian };
                let _ = apply_kind::<A>(kind, &record, upper.as_ref(), &mut section, &resolve);
                if theirs.get(place.clone()) == ours.get(place.clone()) {
                    break;
                }
            }
        }
    }
    count
}

/// The relocation with the upper part, which is at the label that a record's symbol is.
fn upper_part<A: Arch>(file: &File<'_>, header: &SectionHeader, record: &Record) -> Option<Record> {
    let table = file.symbol_table().expect("symbols")?;
    let label = table.get(record.symbol).expect("a symbol").value;
    let is_got = |record: &Record| {
        find(A::KINDS, record.r#type).is_some_and(|kind| matches!(kind.value.of, Role::Got(_)))
    };
    let mut records = file.relocations(header).expect("relocations").into_iter().flatten();
    records.find(|record| record.offset == label && is_got(record))
}

/// The last word of a GOT entry of this content for a thread-local variable.
fn variable<A: Arch>(
    layout: &Layout<'_, '_, A>,
    object: usize,
    symbol: u32,
    content: Slot,
) -> Option<u64> {
    let offset = layout.variable(object, symbol)?;
    let word = match content {
        Slot::TpOffset => offset.wrapping_add_signed(layout.executable_area().distance?),
        Slot::TlsGd => offset.wrapping_add_signed(A::TLS?.dtp_bias),
        _ => return None,
    };
    Some(if A::ADDRESS_SIZE == 4 { word & u64::from(u32::MAX) } else { word })
}

/// Where an instruction and the linker's do the same in other words, takes the linker's: how often.
fn take_their_words<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    (number, index): (usize, u32),
    (ours, image): (&mut [u8], &[u8]),
    linked: &File<'_>,
    theirs: &[u8],
    base: u64,
) -> usize {
    let file = &objects.files()[number];
    let address = base + layout.section(number, index).expect("a section that is loaded");
    let machine = objects.machine();
    let got_base = base + layout.got().0;
    let word = |bytes: &[u8]| {
        let bytes = bytes.get(..A::ADDRESS_SIZE as usize)?;
        let fold = |word, &byte: &u8| word << 8 | u64::from(byte);
        Some(match file.encoding().is_big_endian() {
            true => bytes.iter().fold(0, fold),
            false => bytes.iter().rev().fold(0, fold),
        })
    };
    let our_got = |at: u64| word(image.get(usize::try_from(at.checked_sub(base)?).ok()?..)?);
    let tables = [".got", ".got.plt"].map(|name| content(linked, name));
    let their_got = |at: u64| {
        let entry =
            |(start, bytes): &(u64, &[u8])| word(bytes.get(at.checked_sub(*start)? as usize..)?);
        tables.iter().flatten().find_map(entry)
    };
    let mut count = 0;
    for header in file.sections().iter().filter(|header| header.info == index) {
        for record in file.relocations(&header).expect("relocations").into_iter().flatten() {
            let Some((before, size)) = meaning::extent(machine, record.r#type) else { continue };
            let Some(start) = (record.offset as usize).checked_sub(before) else { continue };
            let place = start..start + size;
            let (Some(our), Some(their)) = (ours.get(place.clone()), theirs.get(place.clone()))
            else {
                continue;
            };
            if our == their {
                continue;
            }
            let at = address + start as u64;
            let meant = meaning::meaning(machine, our, at, got_base, &our_got);
            if meant.is_some()
                && meant == meaning::meaning(machine, their, at, got_base, &their_got)
            {
                count += 1;
                ours[place.clone()].copy_from_slice(&theirs[place]);
            }
        }
    }
    count
}

/// The GOT entries of a linked file by what they hold.
fn entries_of(linked: &File<'_>, size: usize, big_endian: bool) -> HashMap<u64, Vec<u64>> {
    let mut entries: HashMap<u64, Vec<u64>> = HashMap::new();
    for name in [".got", ".got.plt"] {
        let Some((address, bytes)) = content(linked, name) else { continue };
        for (entry, word) in (address..).step_by(size).zip(bytes.chunks(size)) {
            let fold = |word, &byte: &u8| word << 8 | u64::from(byte);
            let value = if big_endian {
                word.iter().fold(0, fold)
            } else {
                word.iter().rev().fold(0, fold)
            };
            entries.entry(value).or_default().push(entry);
        }
    }
    entries
}

/// Objects that are linked alone, and those that are linked together.
fn cases(folder: &str) -> Vec<Vec<PathBuf>> {
    let all = fixtures::all().into_iter().map(|(path, _)| path);
    let objects: Vec<PathBuf> = all
        .filter(|path| path.starts_with(folder) && path.extension().is_some_and(|end| end == "o"))
        .collect();
    let exists = |path: &PathBuf| objects.contains(path);
    let mut cases: Vec<Vec<PathBuf>> = Vec::new();
    for path in &objects {
        let name = path.file_name().expect("a name").to_str().expect("a name");
        cases.push(vec![path.clone()]);
        for (first, second) in [
            ("pair-a", "pair-b"),
            ("shapes-", "shapes-second-"),
            ("threads-a", "threads-b"),
            ("threads-cpp", "threads-second"),
            ("relocations", "absolute"),
        ] {
            let other = match first {
                "relocations" if name.starts_with(first) => String::from("absolute.o"),
                _ if name.starts_with(first) && !name.starts_with(second) => {
                    name.replacen(first, second, 1)
                }
                _ => continue,
            };
            let other = path.with_file_name(other);
            if exists(&other) && other != *path {
                cases.push(vec![path.clone(), other]);
            }
        }
    }
    let absolute =
        |paths: Vec<PathBuf>| paths.iter().map(|path| fixtures::folder().join(path)).collect();
    cases.into_iter().map(absolute).collect()
}

/// What is expected of a comparison (`linkers/expected.toml`).
#[derive(serde::Deserialize)]
struct Expected {
    /// Links that must be compared, at the least.
    links: usize,
    /// Objects that hoist refuses, by their files and why.
    refused_here: BTreeSet<String>,
    /// Objects that the linker refuses, by their files.
    refused_there: BTreeSet<String>,
}

fn expected(test: &str) -> Expected {
    let text = include_str!("linkers/expected.toml");
    let mut all: BTreeMap<String, Expected> = toml::from_str(text).expect("expected.toml");
    all.remove(test).expect("an entry of expected.toml")
}

/// The files of a case, and what is said of them, without folders.
fn short(paths: &[PathBuf], why: &str) -> String {
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let names: Vec<String> = paths.iter().map(name).collect();
    let why = why.split_once(".o: ").map_or(why, |(_, why)| why);
    match why {
        "" => names.join(" "),
        why => format!("{}: {why}", names.join(" ")),
    }
}

/// Compares all cases of a folder with a linker and says what came out: fails if less is compared than is expected, or anything is
/// refused that is not.
fn compare_all(test: &str, folder: &str, base: u64, programs: &[&str], relax: bool) {
    let Some(linker) = Linker::find(programs) else {
        println!("skipped: {test}: none of {programs:?} is installed");
        return;
    };
    let scratch = tempfile::tempdir().expect("a folder");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut add = |what, count| *counts.entry(what).or_default() += count;
    let (mut different, mut refused) = (Vec::new(), Vec::new());
    let (expected, mut surprises) = (expected(test), Vec::new());
    for paths in cases(folder) {
        match compare(&linker, &paths, base, relax, scratch.path()) {
            Outcome::Equal { sections, bytes, got, reworded } => {
                for (what, count) in [
                    ("links", 1),
                    ("sections", sections),
                    ("bytes", bytes),
                    ("GOT fields", got),
                    ("in other words", reworded),
                ] {
                    add(what, count);
                }
            }
            Outcome::Different(found) => {
                add("different links", 1);
                different.extend(found);
            }
            Outcome::Refused(why) => {
                add("refused here", 1);
                let case = short(&paths, &why);
                if !expected.refused_here.contains(&case) {
                    surprises.push(format!("refused_here {case:?}"));
                }
                refused.push(format!("here: {why}"));
            }
            Outcome::LinkerRefused(why) => {
                add("refused there", 1);
                let case = short(&paths, "");
                if !expected.refused_there.contains(&case) {
                    surprises.push(format!("refused_there {case:?}"));
                }
                refused.push(format!("there: {paths:?}: {why}"));
            }
        }
    }
    println!("{test}: {}: {counts:?}", linker.version);
    refused.iter().for_each(|line| println!("  refused {line}"));
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
    let links = counts.get("links").copied().unwrap_or_default();
    let known = "not in linkers/expected.toml";
    assert!(surprises.is_empty(), "{test}: {known}:\n{}", surprises.join("\n"));
    assert!(links >= expected.links, "{test}: {links} links, expected {}", expected.links);
}

#[test]
fn x86_64_as_gnu_ld() {
    compare_all("x86_64_as_gnu_ld", "x86_64", 0x40_0000, &["x86_64-linux-gnu-ld", "ld.bfd"], false);
}

#[test]
fn x86_64_as_gnu_ld_relaxed() {
    compare_all(
        "x86_64_as_gnu_ld_relaxed",
        "x86_64",
        0x40_0000,
        &["x86_64-linux-gnu-ld", "ld.bfd"],
        true,
    );
}

#[test]
fn x86_64_as_lld() {
    compare_all("x86_64_as_lld", "x86_64", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn x86_64_as_lld_relaxed() {
    compare_all("x86_64_as_lld_relaxed", "x86_64", 0x40_0000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn i386_as_gnu_ld() {
    compare_all(
        "i386_as_gnu_ld",
        "i386",
        0x804_8000,
        &["x86_64-linux-gnu-ld", "i686-linux-gnu-ld", "ld.bfd"],
        false,
    );
}

#[test]
fn i386_as_gnu_ld_relaxed() {
    compare_all(
        "i386_as_gnu_ld_relaxed",
        "i386",
        0x804_8000,
        &["x86_64-linux-gnu-ld", "i686-linux-gnu-ld", "ld.bfd"],
        true,
    );
}

#[test]
fn i386_as_lld() {
    compare_all("i386_as_lld", "i386", 0x804_8000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn i386_as_lld_relaxed() {
    compare_all("i386_as_lld_relaxed", "i386", 0x804_8000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn aarch64_as_gnu_ld() {
    compare_all("aarch64_as_gnu_ld", "aarch64", 0x40_0000, &["aarch64-linux-gnu-ld"], false);
}

#[test]
fn aarch64_as_gnu_ld_relaxed() {
    compare_all("aarch64_as_gnu_ld_relaxed", "aarch64", 0x40_0000, &["aarch64-linux-gnu-ld"], true);
}

#[test]
fn aarch64_as_lld() {
    compare_all("aarch64_as_lld", "aarch64", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn aarch64_as_lld_relaxed() {
    compare_all("aarch64_as_lld_relaxed", "aarch64", 0x40_0000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn riscv64_as_gnu_ld() {
    compare_all("riscv64_as_gnu_ld", "riscv64", 0x40_0000, &["riscv64-linux-gnu-ld"], false);
}

#[test]
fn riscv64_as_lld() {
    compare_all("riscv64_as_lld", "riscv64", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}

#[test]
fn riscv64_as_gnu_ld_relaxed() {
    compare_all("riscv64_as_gnu_ld_relaxed", "riscv64", 0x40_0000, &["riscv64-linux-gnu-ld"], true);
}

#[test]
fn riscv64_as_lld_relaxed() {
    compare_all("riscv64_as_lld_relaxed", "riscv64", 0x40_0000, &["ld.lld", "ld.lld-19"], true);
}

#[test]
fn riscv32_as_gnu_ld() {
    compare_all("riscv32_as_gnu_ld", "riscv32", 0x8000_0000, &["riscv64-linux-gnu-ld"], false);
}

#[test]
fn riscv32_as_lld() {
    compare_all("riscv32_as_lld", "riscv32", 0x40_0000, &["ld.lld", "ld.lld-19"], false);
}
