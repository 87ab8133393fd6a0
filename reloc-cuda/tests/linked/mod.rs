//! What two linked cubins differ in: sections, attributes, relocations, symbols, whatever numbers those have.

#![allow(dead_code, reason = "each test uses a part")]

use elf_core::names::{
    SHF_CUDA_MERCURY, SHT_CUDA_CAPMERC, SHT_CUDA_MERCURY_RELA, SHT_CUDA_RESERVED_SHARED,
    SHT_NOBITS, SHT_NOTE, SHT_REL, SHT_RELA,
};
use elf_core::{Definition, File, SectionFlags, SectionHeader, SegmentFlags};
use nvinfo::{Attributes, Calls, Cubin, Payload};
use std::collections::BTreeMap;

/// Sections whose bytes say who linked, or depend on the order in which names were met.
const OWN: &[&str] = &["", ".shstrtab", ".strtab", ".symtab", ".note.nv.tkinfo", ".nv.merc.symtab"];

/// A cubin with its symbols by name.
struct Linked<'a> {
    cubin: Cubin<'a>,
    symbols: Vec<String>,
    /// Those of Mercury.
    mercury: Vec<String>,
}

impl<'a> Linked<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let cubin = Cubin::parse(bytes).unwrap();
        let table = *cubin.symbols().unwrap();
        let file = *cubin.file();
        let symbol = |(index, symbol): (u32, elf_core::Symbol)| {
            let section = match table.section_of(index, &symbol).unwrap() {
                Definition::Section(section) => name(&file, &file.section(section).unwrap()),
                other => format!("{other:?}"),
            };
            format!(
                "{} {:#x} {:#x} in {section} at {:#x}, {:#x} bytes",
                table.name_of(&symbol).unwrap(),
                symbol.info,
                symbol.other,
                symbol.value,
                symbol.size
            )
        };
        let symbols = (0..).zip(table.symbols()).map(symbol).collect();
        let found = file.sections().iter().find(|one| name(&file, one) == ".nv.merc.symtab");
        let rows = found.map(|section| file.rows::<elf_core::Symbol>(&section).unwrap());
        let rows = rows.into_iter().flat_map(|rows| rows.iter().collect::<Vec<_>>());
        Self { cubin, symbols, mercury: (0..).zip(rows).map(symbol).collect() }
    }

    /// Everything, Mercury only if asked for, by name; of several sections of a name in order.
    fn sections(&self, mercury: bool) -> BTreeMap<(String, usize), SectionHeader> {
        let mut found = BTreeMap::new();
        for section in self.cubin.file().sections() {
            let name = name(self.cubin.file(), &section);
            let is_taken = mercury || !is_mercury(&section);
            if is_taken && !OWN.contains(&name.as_str()) {
                let count = (0..).find(|&count| !found.contains_key(&(name.clone(), count)));
                found.insert((name, count.unwrap()), section);
            }
        }
        found
    }

    /// The names of all sections in the order of the file, Mercury only if asked for.
    fn order(&self, mercury: bool) -> Vec<String> {
        let file = self.cubin.file();
        let sections = file.sections().iter().filter(|one| mercury || !is_mercury(one));
        sections.map(|one| name(file, &one)).collect()
    }

    /// What is loaded with which permission, in order.
    fn segments(&self) -> Vec<(u32, SegmentFlags)> {
        let headers = self.cubin.file().segments().iter();
        headers.map(|one| (one.r#type, one.flags)).collect()
    }

    fn has_mercury(&self) -> bool {
        self.cubin.file().sections().iter().any(|section| is_mercury(&section))
    }

    /// What `sh_link` and `sh_info` name.
    fn named(&self, section: &SectionHeader) -> [String; 2] {
        let file = self.cubin.file();
        let of =
            |index: u32| file.section(index).map_or_else(|_| String::new(), |one| name(file, &one));
        // nvlink does not set the flag for all records
        let is_section = section.flags.contains(SectionFlags::INFO_LINK) || is_records(section);
        let info = match is_section {
            true => of(section.info),
            false => {
                let symbol = self.symbol(section.info & 0xff_ffff, is_mercury(section));
                format!("{:#x} {symbol}", section.info >> 24)
            }
        };
        [of(section.link), info]
    }

    fn symbol(&self, index: u32, mercury: bool) -> String {
        let symbols = if mercury { &self.mercury } else { &self.symbols };
        symbols.get(index as usize).cloned().unwrap_or_default()
    }

    /// The contents in words, numbers of symbols resolved.
    fn content(&self, name: &str, section: &SectionHeader) -> Vec<String> {
        let file = self.cubin.file();
        let mercury = is_mercury(section);
        let name = name.strip_prefix(".nv.merc").unwrap_or(name);
        if is_records(section) {
            let r#type = if mercury { SHT_RELA } else { section.r#type };
            let rows = file.relocations(&SectionHeader { r#type, ..*section }).unwrap().unwrap();
            let row = |row: elf_core::Record| {
                let symbol = self.symbol(row.symbol, mercury);
                format!("{:#x} {} {symbol} {:?}", row.offset, row.r#type, row.addend)
            };
            return rows.iter().map(row).collect();
        }
        // memory, of which a file has no bytes
        if matches!(section.r#type, SHT_NOBITS | SHT_CUDA_RESERVED_SHARED) {
            return Vec::new();
        }
        let mut data = file.section_data(section).unwrap();
        if section.r#type == SHT_CUDA_CAPMERC {
            // the number of a section
            data = &data[4..];
        }
        match name {
            ".nv.callgraph" => Calls::new(data).map(|call| self.call(call, mercury)).collect(),
            ".nv.prototype" => {
                let rows = data.chunks(8).map(|row| u64::from_le_bytes(row.try_into().unwrap()));
                let text = |row: u64| {
                    let text = self.cubin.prototype((row >> 32) as u32).unwrap();
                    format!("{} {text}", self.symbol(row as u32, mercury))
                };
                rows.map(text).collect()
            }
            name if name.starts_with(".nv.info") => {
                let rows = Attributes::new(data, 0).map(Result::unwrap);
                rows.map(|row| self.attribute(&row, mercury)).collect()
            }
            _ => vec![format!("{data:x?}")],
        }
    }

    fn call(&self, call: nvinfo::Call, mercury: bool) -> String {
        use nvinfo::Call::{AddressTaken, Direct, Indirect, MayReach};
        let symbol = |index| self.symbol(index, mercury);
        let text = |prototype| self.cubin.prototype(prototype).unwrap().to_string();
        match call {
            Direct { caller, callee } => {
                format!("{} > {}", symbol(caller), symbol(callee))
            }
            MayReach { caller, callee } => {
                format!("{} may {}", symbol(caller), symbol(callee))
            }
            AddressTaken { function, prototype } => {
                format!("{} taken {}", symbol(function), text(prototype))
            }
            Indirect { caller, prototype } => {
                format!("{} calls {}", symbol(caller), text(prototype))
            }
            other => format!("{other:?}"),
        }
    }

    fn attribute(&self, row: &nvinfo::Attribute<'_>, mercury: bool) -> String {
        let named = |index| self.symbol(index, mercury);
        let value = match row.payload() {
            Payload::OfSymbol { symbol, value } => format!("{} {value:#x}", named(symbol)),
            Payload::ParameterBank(bank) => {
                format!("{} {:#x} {:#x}", named(bank.symbol), bank.offset, bank.size)
            }
            Payload::Symbols(symbols) => {
                let names: Vec<_> = symbols.into_iter().map(named).collect();
                names.join(" ")
            }
            _ => format!("{:?}", row.value),
        };
        format!("{:#x} {value}", row.number)
    }
}

fn is_records(section: &SectionHeader) -> bool {
    matches!(section.r#type, SHT_REL | SHT_RELA | SHT_CUDA_MERCURY_RELA)
}

fn is_mercury(section: &SectionHeader) -> bool {
    section.flags.bits() & SHF_CUDA_MERCURY != 0 && section.r#type != SHT_NOTE
}

fn name(file: &File<'_>, section: &SectionHeader) -> String {
    file.section_name(section).unwrap().to_string()
}

/// All differences in words; none of the order of lists, and of Mercury only what is there if that is.
pub(crate) fn differences(expected: &[u8], found: &[u8]) -> Vec<String> {
    let (expected, found) = (Linked::of(expected), Linked::of(found));
    let mut all = Vec::new();
    let mercury = found.has_mercury();
    let (ours, theirs) = (found.sections(mercury), expected.sections(mercury));
    let mut keys: Vec<_> = ours.keys().chain(theirs.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let (Some(a), Some(b)) = (theirs.get(key), ours.get(key)) else {
            all.push(format!("{}: in one alone", key.0));
            continue;
        };
        let head =
            |one: &SectionHeader| (one.r#type, one.flags, one.size, one.alignment, one.entry_size);
        if head(a) != head(b) {
            all.push(format!("{}: {:x?}, expected {:x?}", key.0, head(b), head(a)));
        }
        let (named, wanted) = (found.named(b), expected.named(a));
        if named != wanted {
            all.push(format!("{}: belongs to {named:?}, expected {wanted:?}", key.0));
        }
        let (mut a, mut b) = (expected.content(&key.0, a), found.content(&key.0, b));
        a.sort();
        b.sort();
        if a != b {
            let missing: Vec<_> = a.iter().filter(|row| !b.contains(row)).take(2).collect();
            let extra: Vec<_> = b.iter().filter(|row| !a.contains(row)).take(2).collect();
            all.push(format!("{}: {extra:?}, expected {missing:?}", key.0));
        }
    }
    let sorted = |symbols: &[String]| {
        let mut symbols = symbols.to_vec();
        symbols.sort();
        symbols
    };
    let pairs = [(&expected.symbols, &found.symbols), (&expected.mercury, &found.mercury)];
    for (a, b) in pairs.into_iter().take(1 + usize::from(mercury)) {
        let (a, b) = (sorted(a), sorted(b));
        all.extend(a.iter().filter(|symbol| !b.contains(symbol)).map(|one| format!("no {one}")));
        all.extend(b.iter().filter(|symbol| !a.contains(symbol)).map(|one| format!("has {one}")));
    }
    all
}

/// The lists of a file without differences that stand in another order: sections, segments, symbols, or what is in a section.
pub(crate) fn disordered(expected: &[u8], found: &[u8]) -> Vec<String> {
    let (expected, found) = (Linked::of(expected), Linked::of(found));
    let mercury = found.has_mercury();
    let lists = [
        ("sections", expected.order(mercury) == found.order(mercury)),
        ("segments", expected.segments() == found.segments()),
        ("symbols", expected.symbols == found.symbols),
        ("symbols of Mercury", !mercury || expected.mercury == found.mercury),
    ];
    let all = lists.into_iter().filter(|(_, is_same)| !is_same).map(|(list, _)| list.to_owned());
    let theirs = expected.sections(mercury);
    let contents = found.sections(mercury).into_iter().filter(|(key, section)| {
        let other = theirs.get(key).map(|other| expected.content(&key.0, other));
        other != Some(found.content(&key.0, section))
    });
    all.chain(contents.map(|((name, _), _)| name)).collect()
}
