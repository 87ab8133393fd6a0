//! What the targets start from: made of the fixtures, so that no copies of them are kept.

use elf_core::names::{ET_REL, STB_LOCAL, STB_WEAK};
use elf_core::{Definition, File};
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
