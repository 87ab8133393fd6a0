//! What the targets start from: made of the fixtures, so that no copies of them are kept.

use elf_core::names::{EM_AARCH64, EM_X86_64, ET_REL, STB_LOCAL, STB_WEAK};
use elf_core::{Definition, File, SectionFlags};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A seed: a name to keep it under, and its bytes.
pub type Seed = (String, Vec<u8>);

/// Largest fixture that is a seed, in bytes.
const LARGEST: usize = 32 << 10;
/// Pairs with the same first object.
const PAIRS: usize = 3;

/// The seeds of a target, by rising name.
///
/// # Errors
/// If a fixture cannot be read.
pub fn of(target: &str, fixtures: &Path) -> io::Result<Vec<Seed>> {
    let mut files = Vec::new();
    collect(fixtures, "", &mut files)?;
    files.sort();
    let under =
        |folder: &'static str| move |seed: &Seed| seed.0.starts_with(folder) && is_binary(&seed.1);
    Ok(match target {
        "apply" => every_kind(),
        "archive" => files.into_iter().filter(|seed| seed.1.starts_with(b"!<")).collect(),
        "cubin" => files.into_iter().filter(under("cuda-")).collect(),
        "fatbin" | "offload" => files.into_iter().filter(under("fatbin-")).collect(),
        "device_link" => pairs(&files.into_iter().filter(under("cuda-")).collect::<Vec<_>>()),
        "eh_frame" => files.iter().flat_map(tables).collect(),
        "link" => pairs(&files),
        _ => files.into_iter().filter(|seed| File::parse(&seed.1).is_ok()).collect(),
    })
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<Seed>) -> io::Result<()> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}-"), files)?;
        } else {
            let bytes = fs::read(&path)?;
            if bytes.len() <= LARGEST {
                files.push((format!("{prefix}{name}"), bytes));
            }
        }
    }
    Ok(())
}

/// Sources and texts hold no NUL.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

/// A record of every kind of every architecture, as the target `apply` reads them.
fn every_kind() -> Vec<Seed> {
    let seed = |arch: u8, kind: u16| {
        let mut bytes = vec![arch, 0b10];
        bytes.extend(kind.to_le_bytes());
        bytes.push(16); // offset
        bytes.extend((-4i64).to_le_bytes());
        bytes.extend(7u32.to_le_bytes()); // symbol
        bytes.extend(0x40_0000u64.to_le_bytes());
        bytes.extend(0x40_2000u64.to_le_bytes());
        bytes.extend(0x40_3000u64.to_le_bytes());
        bytes.extend((0..48).map(|byte: u8| byte.wrapping_mul(37)));
        (format!("{arch}-{kind:03}"), bytes)
    };
    (0..4).flat_map(|arch| (0..250).map(move |kind| seed(arch, kind))).collect()
}

/// The unwinding tables of an object of this machine, relocated for the area of the target `eh_frame`: code stands at 0xa000 behind
/// them, data at 0x9000.
fn tables((name, bytes): &Seed) -> Vec<Seed> {
    // addresses relative to their place, of 4 bytes: `R_X86_64_PC32`, `R_AARCH64_PREL32`
    let (machine, relative) =
        if cfg!(target_arch = "x86_64") { (EM_X86_64, 2) } else { (EM_AARCH64, 261) };
    let is_one = |file: &File<'_>| {
        let header = file.header();
        header.machine == machine && header.r#type == ET_REL && file.encoding().is_64()
    };
    let Some(file) = File::parse(bytes).ok().filter(is_one) else { return Vec::new() };
    let Ok(Some(symbols)) = file.symbol_table() else { return Vec::new() };
    let address = |symbol: u32| {
        let row = symbols.get(symbol).ok()?;
        let Definition::Section(section) = symbols.section_of(symbol, &row).ok()? else {
            return Some(0xa000);
        };
        let is_code = file.section(section).ok()?.flags.contains(SectionFlags::EXECINSTR);
        Some(if is_code { 0xa000 + row.value % 0x8000 } else { 0x9000 + row.value % 0x800 })
    };
    let mut found = Vec::new();
    for (index, header) in (0u32..).zip(file.sections()) {
        if file.section_name(&header).is_ok_and(|name| name == ".eh_frame")
            && let Ok(table) = file.section_data(&header)
        {
            let mut table = table.to_vec();
            for records in file.sections().iter().filter(|records| records.info == index) {
                let records = file.relocations(&records).ok().flatten();
                for record in records.into_iter().flatten().filter(|it| it.r#type == relative) {
                    let at = record.offset as usize;
                    if let (Some(address), Some(place)) =
                        (address(record.symbol), table.get_mut(at..).and_then(|it| it.get_mut(..4)))
                    {
                        let value = address as i64 + record.addend.unwrap_or(0) - at as i64;
                        place.copy_from_slice(&(value as i32).to_le_bytes());
                    }
                }
            }
            found.push((format!("{name}-{index}"), table));
        }
    }
    found
}

/// Names that an object lends to others.
#[derive(Default)]
struct Names<'a> {
    wanted: BTreeSet<&'a [u8]>,
    given: BTreeSet<&'a [u8]>,
    weak: BTreeSet<&'a [u8]>,
}

impl<'a> Names<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let file = File::parse(bytes).ok().filter(|file| file.header().r#type == ET_REL)?;
        let table = file.symbol_table().ok()??;
        let mut names = Self::default();
        for (index, symbol) in (0u32..).zip(table.symbols()) {
            let name = table.name_of(&symbol).ok()?.as_bytes();
            match table.section_of(index, &symbol).ok()? {
                _ if symbol.binding() == STB_LOCAL => continue,
                Definition::Undefined => names.wanted.insert(name),
                Definition::Common => names.weak.insert(name),
                _ if symbol.binding() == STB_WEAK => names.weak.insert(name),
                _ => names.given.insert(name),
            };
        }
        Some(names)
    }
}

/// Archives of two objects that belong together: one defines what the other wants, or both define the same weakly.
fn pairs(files: &[Seed]) -> Vec<Seed> {
    let objects: Vec<_> =
        files.iter().filter_map(|seed| Some((seed, Names::of(&seed.1)?))).collect();
    let mut pairs = Vec::new();
    for (one, names) in &objects {
        let folder = one.0.split('-').next().unwrap_or_default();
        let alike = objects.iter().filter(|(other, others)| {
            other.0.starts_with(folder)
                && names.given.is_disjoint(&others.given)
                && (!names.wanted.is_disjoint(&others.given)
                    || (one.0 < other.0 && !names.weak.is_disjoint(&others.weak)))
        });
        pairs.extend(
            alike
                .take(PAIRS)
                .map(|(other, _)| (format!("{}+{}", one.0, other.0), archive(&[&one.1, &other.1]))),
        );
    }
    pairs
}

/// An archive of members without names.
fn archive(members: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for member in members {
        let size = member.len();
        bytes.extend(
            format!("a.o/            0           0     0     644     {size:<10}`\n").bytes(),
        );
        bytes.extend_from_slice(member);
        if size % 2 != 0 {
            bytes.push(b'\n');
        }
    }
    bytes
}
