//! Unwinding tables of real files: what compilers, assemblers and linkers have written is taken.
#![cfg(feature = "default")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test"
)]

use elf_core::archive::Archive;
use elf_core::eh_frame::{EhFrame, Error, Machine, Places, Summary};
use elf_core::names::{EM_AARCH64, EM_X86_64, ET_REL, PT_LOAD, SHT_NOBITS};
use elf_core::{
    Definition, File, Query, Role, SectionFlags, SectionHeader, SectionMut, SegmentFlags, apply_all,
};
use reloc_aarch64::Aarch64;
use reloc_x86::X86_64;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What was found so far.
#[derive(Debug, Default)]
struct Count {
    files: usize,
    tables: usize,
    summary: Summary,
    refused: Vec<String>,
}

/// Where sections or segments are.
#[derive(Default)]
struct Map {
    code: Vec<Range<u64>>,
    all: Vec<Range<u64>>,
}

fn within(ranges: &[Range<u64>], address: u64, size: u64) -> bool {
    let holds =
        |range: &Range<u64>| range.start <= address && size <= range.end.saturating_sub(address);
    ranges.iter().any(|range| address <= range.end && holds(range))
}

impl Places for Map {
    fn is_code(&self, address: u64, size: u64) -> bool {
        within(&self.code, address, size)
    }
    fn is_data(&self, address: u64) -> bool {
        within(&self.all, address, 1)
    }
    /// Those of others are where the dynamic loader will say.
    fn is_personality(&self, _: u64) -> bool {
        true
    }
    fn word(&self, address: u64) -> Option<u64> {
        within(&self.all, address, 8).then_some(1)
    }
}

/// Where what nobody defines is said to be.
const ELSEWHERE: u64 = 0x2000_0000;

impl Count {
    /// Looks at all tables of a file, or of the members of an archive.
    fn file(&mut self, name: &str, bytes: &[u8]) {
        if bytes.starts_with(b"!<arch>") {
            for member in Archive::parse(bytes).into_iter().flat_map(|archive| archive.members()) {
                let Ok(member) = member else { continue };
                if let Some(bytes) = member.data {
                    self.file(&format!("{name}({})", member.name), bytes);
                }
            }
            return;
        }
        let Ok(file) = File::parse(bytes) else { return };
        let machine = file.header().machine;
        let is_known = file.encoding().is_64() && !file.encoding().is_big_endian();
        let Some(machine) = Machine::of(machine).filter(|_| is_known) else { return };
        self.files += 1;
        let map = map(&file);
        for (section, header) in (0u32..).zip(file.sections()) {
            let is_table = header.flags.contains(SectionFlags::ALLOC)
                && header.r#type != SHT_NOBITS
                && file.section_name(&header).is_ok_and(|name| name == ".eh_frame");
            let Some(data) = is_table.then(|| file.section_data(&header).ok()).flatten() else {
                continue;
            };
            let mut data = data.to_vec();
            let address = address(&map, &header, section, &file);
            relocate(&file, section, &mut data, address, &map);
            let table = EhFrame { bytes: &data, address, machine };
            self.tables += 1;
            match table.check(&map) {
                Ok(found) => {
                    self.summary.cies += found.cies;
                    self.summary.fdes += found.fdes;
                    self.summary.absent += found.absent;
                    self.summary.size += found.size;
                    let rest = &data[found.size as usize..];
                    if rest.iter().any(|byte| *byte != 0) {
                        println!(
                            "{name}: section {section}: goes on behind its end at {:#x}",
                            found.size
                        );
                    }
                }
                Err(error) => self.refuse(name, section, error),
            }
        }
    }

    fn refuse(&mut self, name: &str, section: u32, error: Error) {
        println!("{name}: section {section}: {error}");
        self.refused.push(format!("{name}: {error}"));
    }
}

/// Objects have their sections one after the other; others have segments.
fn map(file: &File<'_>) -> Map {
    let mut map = Map::default();
    if file.header().r#type == ET_REL {
        let mut next = 0x10_0000;
        for header in file.sections() {
            let range = next..next + header.size;
            next = (range.end + 8).next_multiple_of(header.alignment.clamp(16, 0x1000));
            if header.flags.contains(SectionFlags::EXECINSTR) {
                map.code.push(range.clone());
            }
            map.all.push(range);
        }
        return map;
    }
    for header in file.segments().iter().filter(|header| header.r#type == PT_LOAD) {
        let range = header.address..header.address + header.memory_size;
        if header.flags.contains(SegmentFlags::EXECUTE) {
            map.code.push(range.clone());
        }
        map.all.push(range);
    }
    map
}

fn address(map: &Map, header: &SectionHeader, section: u32, file: &File<'_>) -> u64 {
    let is_object = file.header().r#type == ET_REL;
    if is_object { map.all[section as usize].start } else { header.address }
}

fn relocate(file: &File<'_>, section: u32, bytes: &mut [u8], address: u64, map: &Map) {
    if file.header().r#type != ET_REL {
        return;
    }
    let Ok(Some(symbols)) = file.symbol_table() else { return };
    let resolve = |query: &Query| {
        if !matches!(query.role, Role::Address | Role::Plt) {
            return None;
        }
        let symbol = symbols.get(query.symbol).ok()?;
        Some(match symbols.section_of(query.symbol, &symbol).ok()? {
            Definition::Section(section) => map.all.get(section as usize)?.start + symbol.value,
            _ => ELSEWHERE,
        })
    };
    for header in file.sections().iter().filter(|header| header.info == section) {
        let Ok(Some(records)) = file.relocations(&header) else { continue };
        let mut target = SectionMut { bytes: &mut *bytes, address, big_endian: false };
        match file.header().machine {
            EM_X86_64 => apply_all::<X86_64>(records, &mut target, &resolve).unwrap(),
            EM_AARCH64 => apply_all::<Aarch64>(records, &mut target, &resolve).unwrap(),
            _ => {}
        }
    }
}

fn walk(folder: &Path, seen: &mut impl FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        match path.symlink_metadata() {
            Ok(data) if data.is_dir() => walk(&path, seen),
            Ok(data) if data.is_file() => seen(&path),
            _ => {}
        }
    }
}

#[test]
fn fixtures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for folder in ["x86_64", "aarch64"] {
        let count = counts.entry(folder).or_default();
        walk(&root.join(folder), &mut |path| {
            count.file(&path.display().to_string(), &std::fs::read(path).unwrap());
        });
        println!("{folder}: {} files, {} tables, {:?}", count.files, count.tables, count.summary);
        assert_eq!(count.refused, [] as [String; 0]);
        assert!(count.tables > 20, "{folder}: {}", count.tables);
    }
}

/// Libraries, archives and objects under these folders.
const FOLDERS: [&str; 4] = ["/usr", "/lib", "/opt", "/root"];

#[test]
#[ignore = "reads every library of this machine, which takes minutes"]
fn all_of_this_machine() {
    let mut count = Count::default();
    for folder in FOLDERS {
        walk(Path::new(folder), &mut |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let ends = [".so", ".a", ".o", ".rlib"].iter().any(|end| name.ends_with(end));
            if (ends || name.contains(".so."))
                && let Ok(bytes) = std::fs::read(path)
            {
                count.file(&path.display().to_string(), &bytes);
            }
        });
    }
    println!("{} files, {} tables, {:?}", count.files, count.tables, count.summary);
    println!("{} refused", count.refused.len());
    assert_eq!(count.refused, [] as [String; 0]);
}
