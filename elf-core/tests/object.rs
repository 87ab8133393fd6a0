//! Field for field what the crate `object` reads.
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
use elf_core::names::{EM_MIPS, SHT_DYNSYM, SHT_GROUP, SHT_SYMTAB, VERSYM_HIDDEN};
use elf_core::{Definition, File, Name, Note};
use object::Endianness;
use object::elf::{FileHeader32, FileHeader64};
use object::read::SymbolIndex;
use object::read::elf::{
    CompressionHeader, Dyn, FileHeader, NoteIterator, ProgramHeader, Rel, Rela, SectionHeader, Sym,
};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Something read: what and where, its numbers, its bytes.
type Fact<'a> = (&'static str, u64, [u64; 9], &'a [u8]);

/// What elf-core reads.
fn ours(bytes: &[u8]) -> Vec<Fact<'_>> {
    let mut facts: Vec<Fact<'_>> = Vec::new();
    let Ok(file) = File::parse(bytes) else { return vec![("no file", 0, [0; 9], &[])] };
    let it = file.header();
    let [os_abi, abi_version] = [it.os_abi, it.abi_version].map(u64::from);
    let (machine, flags, version) = (it.machine, it.flags.into(), it.version.into());
    let tables = [it.program_headers, it.section_headers];
    let (kind, size) = (u64::from(it.r#type), u64::from(it.header_size));
    facts.push((
        "header",
        size,
        [os_abi, abi_version, kind, machine.into(), version, it.entry, flags, tables[0], tables[1]],
        &[],
    ));
    for (index, it) in (0..).zip(file.segments()) {
        let [kind, flags] = [it.r#type, it.flags.bits()].map(u64::from);
        let (addresses, sizes) =
            ([it.address, it.physical_address], [it.file_size, it.memory_size]);
        let numbers = [
            kind,
            flags,
            it.offset,
            addresses[0],
            addresses[1],
            sizes[0],
            sizes[1],
            it.alignment,
            0,
        ];
        facts.push(("segment", index, numbers, file.segment_data(&it).unwrap_or(b"outside")));
        match file.segment_notes(&it) {
            Ok(found) => notes(&mut facts, index, found.into_iter().flatten()),
            Err(_) => facts.push(("bad notes", index, [0; 9], &[])),
        }
    }
    for (index, it) in (0u32..).zip(file.sections()) {
        let at = u64::from(index);
        let [kind, link, info] = [it.r#type, it.link, it.info].map(u64::from);
        let numbers = [
            kind,
            it.flags.bits(),
            it.address,
            it.offset,
            it.size,
            link,
            info,
            it.alignment,
            it.entry_size,
        ];
        facts.push((
            "section",
            at,
            numbers,
            file.section_name(&it).unwrap_or("no name".into()).as_bytes(),
        ));
        if matches!(it.r#type, SHT_SYMTAB | SHT_DYNSYM) {
            match file.symbol_table_at(index) {
                Err(_) => facts.push(("bad symbols", at, [0; 9], &[])),
                Ok(table) => {
                    for (index, symbol) in (0u32..).zip(table.symbols()) {
                        let section = match table.section_of(index, &symbol) {
                            Ok(Definition::Section(section)) => section.into(),
                            Ok(_) => 0,
                            Err(_) => u64::MAX,
                        };
                        let [name, info, other, shndx] = [
                            symbol.name,
                            symbol.info.into(),
                            symbol.other.into(),
                            symbol.shndx.into(),
                        ]
                        .map(u64::from);
                        let numbers = [
                            index.into(),
                            name,
                            symbol.value,
                            symbol.size,
                            info,
                            other,
                            shndx,
                            section,
                            0,
                        ];
                        let name = table.name_of(&symbol).unwrap_or("no name".into());
                        facts.push(("symbol", at, numbers, name.as_bytes()));
                    }
                }
            }
        }
        match file.relocations(&it) {
            Err(_) => facts.push(("bad relocations", at, [0; 9], &[])),
            Ok(None) => {}
            Ok(Some(records)) => {
                for record in records {
                    let addend = record.addend.unwrap_or(0).cast_unsigned();
                    let has_addend = record.addend.is_some().into();
                    let [symbol, kind] = [record.symbol, record.r#type].map(u64::from);
                    facts.push((
                        "relocation",
                        at,
                        [record.offset, symbol, kind, addend, has_addend, 0, 0, 0, 0],
                        &[],
                    ));
                }
            }
        }
        match file.section_notes(&it) {
            Ok(found) => notes(&mut facts, at, found.into_iter().flatten()),
            Err(_) => facts.push(("bad notes", at, [0; 9], &[])),
        }
        match file.compressed(&it) {
            Ok(None) => {}
            Ok(Some((header, data))) => {
                let numbers =
                    [header.r#type.into(), header.size, header.alignment, 0, 0, 0, 0, 0, 0];
                facts.push(("compressed", at, numbers, data));
            }
            Err(_) => facts.push(("bad compression", at, [0; 9], &[])),
        }
        if it.r#type == SHT_GROUP {
            let group = file.section_group(&it).ok().flatten();
            for member in group.iter().flat_map(|group| group.members()) {
                let flags = group.as_ref().map_or(0, |group| group.flags);
                facts.push(("member", at, [flags.into(), member.into(), 0, 0, 0, 0, 0, 0, 0], &[]));
            }
        }
    }
    if let Ok(Some(dynamic)) = file.dynamic_by_section() {
        for entry in dynamic.entries() {
            let text = dynamic.text(&entry).ok().flatten().unwrap_or_default();
            facts.push((
                "dynamic",
                0,
                [entry.tag.cast_unsigned(), entry.value, 0, 0, 0, 0, 0, 0, 0],
                text.as_bytes(),
            ));
        }
    }
    let Ok(Some(symbols)) = file.dynamic_symbol_table() else { return facts };
    let versions = file.versions().ok().flatten();
    let hash = file.sections().iter().find_map(|section| file.hash_table(&section).ok().flatten());
    let gnu_hash =
        file.sections().iter().find_map(|section| file.gnu_hash_table(&section).ok().flatten());
    for (index, symbol) in (0u32..).zip(symbols.symbols()) {
        if let Some(versions) = versions {
            match versions.of(index) {
                Ok(None) => {}
                Ok(Some(version)) => {
                    let hidden = version.is_hidden.into();
                    facts.push((
                        "version",
                        0,
                        [index.into(), hidden, 0, 0, 0, 0, 0, 0, 0],
                        version.name.as_bytes(),
                    ));
                    facts.push((
                        "version's file",
                        0,
                        [0; 9],
                        version.file.unwrap_or_default().as_bytes(),
                    ));
                }
                Err(_) => {
                    facts.push(("bad version", 0, [index.into(), 0, 0, 0, 0, 0, 0, 0, 0], &[]))
                }
            }
        }
        let Ok(name) = symbols.name_of(&symbol) else { continue };
        if name.is_empty() {
            continue;
        }
        // `object` finds what no version hides.
        let good = |index: u32, _: &elf_core::Symbol| {
            let word = versions.and_then(|versions| versions.indices().get(index as usize));
            word.is_none_or(|word| word & VERSYM_HIDDEN == 0)
        };
        let index = |found: Result<Option<(u32, _)>, _>| {
            found.ok().flatten().map_or(0, |(index, _)| index.into())
        };
        let found = [
            hash.map_or(0, |table| index(table.find_where(name, &symbols, good))),
            gnu_hash.map_or(0, |table| index(table.find_where(name, &symbols, good))),
        ];
        facts.push(("found", 0, [found[0], found[1], 0, 0, 0, 0, 0, 0, 0], name.as_bytes()));
    }
    facts
}

fn notes<'a>(
    facts: &mut Vec<Fact<'a>>,
    at: u64,
    notes: impl Iterator<Item = Result<Note<'a>, elf_core::Error>>,
) {
    for note in notes {
        let Ok(note) = note else {
            facts.push(("bad note", at, [0; 9], &[]));
            continue;
        };
        facts.push((
            "note",
            at,
            [note.r#type.into(), 0, 0, 0, 0, 0, 0, 0, 0],
            note.owner.as_bytes(),
        ));
        facts.push(("note's data", at, [0; 9], note.data));
        for property in note.properties().into_iter().flatten() {
            match property {
                Ok(it) => facts.push((
                    "property",
                    at,
                    [it.r#type.into(), 0, 0, 0, 0, 0, 0, 0, 0],
                    it.data,
                )),
                Err(_) => facts.push(("bad property", at, [0; 9], &[])),
            }
        }
    }
}

/// What `object` reads.
fn theirs<E: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Vec<Fact<'_>> {
    let mut facts: Vec<Fact<'_>> = Vec::new();
    let bad = || -> Vec<Fact<'_>> { vec![("no file", 0, [0; 9], &[])] };
    let Ok(header) = E::parse(bytes) else { return bad() };
    let Ok(e) = header.endian() else { return bad() };
    let (Ok(sections), Ok(segments)) =
        (header.sections(e, bytes), header.program_headers(e, bytes))
    else {
        return bad();
    };
    let ident = header.e_ident();
    facts.push((
        "header",
        header.e_ehsize(e).into(),
        [
            ident.os_abi.0.into(),
            ident.abi_version.into(),
            header.e_type(e).0.into(),
            header.e_machine(e).0.into(),
            header.e_version(e).into(),
            header.e_entry(e).into(),
            header.e_flags(e).0.into(),
            header.e_phoff(e).into(),
            header.e_shoff(e).into(),
        ],
        &[],
    ));
    for (index, it) in (0..).zip(segments) {
        let numbers = [
            it.p_type(e).0.into(),
            it.p_flags(e).0.into(),
            it.p_offset(e).into(),
            it.p_vaddr(e).into(),
            it.p_paddr(e).into(),
            it.p_filesz(e).into(),
            it.p_memsz(e).into(),
            it.p_align(e).into(),
            0,
        ];
        facts.push(("segment", index, numbers, it.data(e, bytes).unwrap_or(b"outside")));
        // `object` leaves PT_GNU_PROPERTY to the section.
        let property = it.p_type(e).0 == elf_core::names::PT_GNU_PROPERTY;
        let found = match property {
            false => it.notes(e, bytes),
            true => it
                .data(e, bytes)
                .map_or(Ok(None), |data| NoteIterator::new(e, it.p_align(e), data).map(Some)),
        };
        match found {
            Ok(found) => their_notes::<E>(&mut facts, e, index, found),
            Err(_) => facts.push(("bad notes", index, [0; 9], &[])),
        }
    }
    let machine = header.e_machine(e).0;
    let mips = header.is_mips64el(e);
    for (index, it) in sections.enumerate() {
        let at = index.0 as u64;
        let kind = it.sh_type(e).0;
        let numbers = [
            kind.into(),
            it.sh_flags(e).0,
            it.sh_addr(e).into(),
            it.sh_offset(e).into(),
            it.sh_size(e).into(),
            it.sh_link(e).into(),
            it.sh_info(e).into(),
            it.sh_addralign(e).into(),
            it.sh_entsize(e).into(),
        ];
        facts.push(("section", at, numbers, sections.section_name(e, it).unwrap_or(b"no name")));
        if matches!(kind, SHT_SYMTAB | SHT_DYNSYM) {
            match sections.symbol_table_by_index(e, bytes, index) {
                Err(_) => facts.push(("bad symbols", at, [0; 9], &[])),
                Ok(table) => {
                    for (index, it) in table.enumerate() {
                        let section = match table.symbol_section(e, it, index) {
                            Ok(section) => section.map_or(0, |section| section.0 as u64),
                            Err(_) => u64::MAX,
                        };
                        let numbers = [
                            index.0 as u64,
                            it.st_name(e).into(),
                            it.st_value(e).into(),
                            it.st_size(e).into(),
                            it.st_info().0.into(),
                            it.st_other().0.into(),
                            it.st_shndx(e).0.into(),
                            section,
                            0,
                        ];
                        facts.push((
                            "symbol",
                            at,
                            numbers,
                            table.symbol_name(e, it).unwrap_or(b"no name"),
                        ));
                    }
                }
            }
        }
        let mut relocation = |offset: u64, symbol: u32, kind: u32, addend: Option<i64>| {
            let (value, has_addend) =
                (addend.unwrap_or(0).cast_unsigned(), addend.is_some().into());
            facts.push((
                "relocation",
                at,
                [offset, symbol.into(), kind.into(), value, has_addend, 0, 0, 0, 0],
                &[],
            ));
        };
        match (it.rela(e, bytes), it.rel(e, bytes), it.relr(e, bytes), it.crel(e, bytes)) {
            (Ok(rela), Ok(rel), Ok(relr), Ok(crel)) => {
                for r in rela.into_iter().flat_map(|(rows, _)| rows) {
                    let (symbol, kind) = (r.r_sym(e, mips), r.r_type(e, mips).0);
                    relocation(r.r_offset(e).into(), symbol, kind, Some(r.r_addend(e).into()));
                }
                for r in rel.into_iter().flat_map(|(rows, _)| rows) {
                    relocation(r.r_offset(e).into(), r.r_sym(e), r.r_type(e).0, None);
                }
                for place in relr.into_iter().flatten() {
                    let kind = elf_core::relative_type(machine, E::is_type_64_sized());
                    relocation(place.into(), 0, kind, None);
                }
                for (r, has_addends) in crel.into_iter().flat_map(|(it, _)| {
                    let has_addends = it.is_rela();
                    it.flatten().map(move |r| (r, has_addends))
                }) {
                    relocation(r.r_offset, r.r_sym, r.r_type.0, has_addends.then_some(r.r_addend));
                }
            }
            _ => facts.push(("bad relocations", at, [0; 9], &[])),
        }
        match it.notes(e, bytes) {
            Ok(found) => their_notes::<E>(&mut facts, e, at, found),
            Err(_) => facts.push(("bad notes", at, [0; 9], &[])),
        }
        match it.compression(e, bytes) {
            Ok(None) => {}
            Ok(Some((header, offset, size))) => {
                let numbers = [
                    header.ch_type(e).0.into(),
                    header.ch_size(e).into(),
                    header.ch_addralign(e).into(),
                ];
                let [a, b, c] = numbers;
                let data = &bytes[offset as usize..][..size as usize];
                facts.push(("compressed", at, [a, b, c, 0, 0, 0, 0, 0, 0], data));
            }
            Err(_) => facts.push(("bad compression", at, [0; 9], &[])),
        }
        if let Ok(Some((flags, members))) = it.group(e, bytes) {
            for member in members {
                facts.push((
                    "member",
                    at,
                    [flags.0.into(), member.get(e).into(), 0, 0, 0, 0, 0, 0, 0],
                    &[],
                ));
            }
        }
    }
    if let (Ok(Some((entries, _))), Ok(table)) =
        (sections.dynamic(e, bytes), sections.dynamic_table(e, bytes))
    {
        let used = entries.iter().take_while(|entry| entry.d_tag(e).0 != 0);
        for (entry, it) in used.zip(table.iter()) {
            let text = if it.is_string() { table.string(it).unwrap_or(&[]) } else { &[] };
            let numbers =
                [entry.d_tag(e).0.cast_unsigned(), entry.d_val(e).into(), 0, 0, 0, 0, 0, 0, 0];
            facts.push(("dynamic", 0, numbers, text));
        }
    }
    let has_symbols = sections.iter().any(|section| section.sh_type(e).0 == SHT_DYNSYM);
    let Ok(symbols) = sections.symbols(e, bytes, object::elf::SHT_DYNSYM) else { return facts };
    if !has_symbols {
        return facts;
    }
    let versions = sections.versions(e, bytes).ok().flatten();
    let none = Default::default();
    let table = versions.as_ref().unwrap_or(&none);
    let hash = sections.hash(e, bytes).ok().flatten();
    let gnu_hash = sections.gnu_hash(e, bytes).ok().flatten();
    for (index, symbol) in symbols.enumerate() {
        if versions.is_some() {
            let word = table.version_index(e, index);
            match table.version(word.index()) {
                Ok(None) => {}
                Ok(Some(version)) => {
                    let numbers = [index.0 as u64, word.is_hidden().into(), 0, 0, 0, 0, 0, 0, 0];
                    facts.push(("version", 0, numbers, version.name()));
                    facts.push(("version's file", 0, [0; 9], version.file().unwrap_or(&[])));
                }
                Err(_) => {
                    facts.push(("bad version", 0, [index.0 as u64, 0, 0, 0, 0, 0, 0, 0, 0], &[]))
                }
            }
        }
        let Ok(name) = symbols.symbol_name(e, symbol) else { continue };
        if name.is_empty() {
            continue;
        }
        let number = |found: Option<(SymbolIndex, _)>| found.map_or(0, |(index, _)| index.0 as u64);
        let sysv = elf_core::sysv_hash(Name(name));
        let gnu = elf_core::gnu_hash(Name(name));
        assert_eq!((sysv, gnu), (object::elf::hash(name), object::elf::gnu_hash(name)));
        let found = [
            hash.as_ref()
                .map_or(0, |(it, _)| number(it.find(e, name, sysv, None, &symbols, table))),
            gnu_hash
                .as_ref()
                .map_or(0, |(it, _)| number(it.find(e, name, gnu, None, &symbols, table))),
        ];
        facts.push(("found", 0, [found[0], found[1], 0, 0, 0, 0, 0, 0, 0], name));
    }
    facts
}

fn their_notes<'a, E: FileHeader<Endian = Endianness>>(
    facts: &mut Vec<Fact<'a>>,
    e: Endianness,
    at: u64,
    notes: Option<NoteIterator<'a, E>>,
) {
    let Some(mut notes) = notes else { return };
    loop {
        match notes.next() {
            Ok(None) => return,
            Err(_) => return facts.push(("bad note", at, [0; 9], &[])),
            Ok(Some(note)) => {
                facts.push((
                    "note",
                    at,
                    [note.n_type(e).0.into(), 0, 0, 0, 0, 0, 0, 0, 0],
                    note.name(),
                ));
                facts.push(("note's data", at, [0; 9], note.desc()));
                let Some(mut properties) = note.gnu_properties(e) else { continue };
                loop {
                    match properties.next() {
                        Ok(None) => break,
                        Err(_) => break facts.push(("bad property", at, [0; 9], &[])),
                        Ok(Some(it)) => {
                            let numbers = [it.pr_type().0.into(), 0, 0, 0, 0, 0, 0, 0, 0];
                            facts.push(("property", at, numbers, it.pr_data()));
                        }
                    }
                }
            }
        }
    }
}

/// Facts that only one of both reads, and how many there were.
fn compare(bytes: &[u8]) -> (usize, Vec<String>) {
    let ours = ours(bytes);
    let theirs = match bytes.get(4) {
        Some(1) => theirs::<FileHeader32<Endianness>>(bytes),
        _ => theirs::<FileHeader64<Endianness>>(bytes),
    };
    if ours == theirs {
        return (ours.len(), Vec::new());
    }
    let (left, right): (HashSet<_>, HashSet<_>) = (ours.iter().collect(), theirs.iter().collect());
    let only = |who, facts: &[Fact<'_>], other: &HashSet<&Fact<'_>>| -> Vec<String> {
        let only = facts.iter().filter(|fact| !other.contains(fact));
        only.map(|(what, at, numbers, bytes)| {
            let text = Name(&bytes[..bytes.len().min(40)]);
            format!("{what} {at} {numbers:x?} {text:?} only by {who}")
        })
        .collect()
    };
    let mut differences = only("elf-core", &ours, &right);
    differences.extend(only("object", &theirs, &left));
    (ours.len(), differences)
}

/// Differences that are the peer's: counted, not reported.
fn known(machine: u16, bytes: &[u8], difference: &str) -> Option<&'static str> {
    let is = |what: &str, who: &str| difference.starts_with(what) && difference.ends_with(who);
    let mips64el = machine == EM_MIPS && bytes.starts_with(b"\x7fELF\x02\x01");
    let section = |r#type: u32| {
        File::parse(bytes).is_ok_and(|file| file.sections().iter().any(|it| it.r#type == r#type))
    };
    let packed = [0x6000_0001, 0x6000_0002, 0x6fff_ff00].into_iter().any(section);
    if is("relocation", "elf-core") && packed {
        return Some("object does not know Android's packed relocations");
    }
    if is("relocation", "") && mips64el {
        return Some("object takes r_info of SHT_REL as a number on little-endian MIPS64");
    }
    if is("found", "")
        && File::parse(bytes)
            .is_ok_and(|file| file.header().machine == 22 && file.encoding().is_64())
    {
        return Some("object reads 32-bit words in DT_HASH of s390x");
    }
    None
}

/// Compares files; prints what was counted. Whether nothing but known differences was found.
fn run(files: impl Iterator<Item = (impl AsRef<Path>, Vec<u8>)>) -> bool {
    let (mut count, mut facts, mut unknown) = (0_u64, 0_u64, 0_u64);
    let mut why: BTreeMap<&str, u64> = BTreeMap::new();
    for (path, bytes) in files {
        let machine = File::parse(&bytes).map_or(0, |file| file.header().machine);
        let (read, differences) = compare(&bytes);
        (count, facts) = (count + 1, facts + read as u64);
        for (shown, difference) in differences.iter().enumerate() {
            match known(machine, &bytes, difference) {
                Some(reason) => *why.entry(reason).or_default() += 1,
                None => {
                    unknown += 1;
                    if shown < 5 {
                        println!("{}: {difference}", path.as_ref().display());
                    }
                }
            }
        }
    }
    println!(
        "{count} files, {facts} facts, {unknown} unexplained differences; explained: {why:#?}"
    );
    count != 0 && unknown == 0
}

#[test]
fn fixtures_are_read_as_object_reads_them() {
    assert!(run(fixtures().into_iter()));
}

#[test]
#[ignore = "reads every ELF file of the machine: minutes"]
fn the_machine_is_read_as_object_reads_it() {
    assert!(run(machine()));
}
