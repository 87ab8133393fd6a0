//! What two linked cubins differ in: sections, attributes, relocations, symbols, whatever numbers those have.

use elf_core::names::{SHF_CUDA_MERCURY, SHT_NOBITS, SHT_REL, SHT_RELA};
use elf_core::{Definition, File, SectionHeader};
use nvinfo::{Attributes, Calls, Cubin, Payload};
use std::collections::BTreeMap;

/// Sections whose bytes say who linked, or depend on the order in which names were met.
const OWN: &[&str] = &["", ".shstrtab", ".strtab", ".symtab", ".note.nv.tkinfo"];

/// A cubin with its symbols by name.
struct Linked<'a> {
    cubin: Cubin<'a>,
    symbols: Vec<String>,
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
        Self { cubin, symbols: (0..).zip(table.symbols()).map(symbol).collect() }
    }

    /// Everything but Mercury, by name; of several sections of a name in order.
    fn sections(&self) -> BTreeMap<(String, usize), SectionHeader> {
        let mut found = BTreeMap::new();
        for section in self.cubin.file().sections() {
            let name = name(self.cubin.file(), &section);
            if section.flags.bits() & SHF_CUDA_MERCURY == 0 && !OWN.contains(&name.as_str()) {
                let count = (0..).find(|&count| !found.contains_key(&(name.clone(), count)));
                found.insert((name, count.unwrap()), section);
            }
        }
        found
    }

    fn symbol(&self, index: u32) -> String {
        self.symbols.get(index as usize).cloned().unwrap_or_default()
    }

    /// The contents in words, numbers of symbols resolved.
    fn content(&self, name: &str, section: &SectionHeader) -> Vec<String> {
        let file = self.cubin.file();
        if matches!(section.r#type, SHT_REL | SHT_RELA) {
            let rows = file.relocations(section).unwrap().unwrap();
            let row = |row: elf_core::Record| {
                let symbol = self.symbol(row.symbol);
                format!("{:#x} {} {symbol} {:?}", row.offset, row.r#type, row.addend)
            };
            return rows.iter().map(row).collect();
        }
        if section.r#type == SHT_NOBITS {
            return Vec::new();
        }
        let data = file.section_data(section).unwrap();
        match name {
            ".nv.callgraph" => Calls::new(data).map(|call| self.call(call)).collect(),
            ".nv.prototype" => {
                let rows = data.chunks(8).map(|row| u64::from_le_bytes(row.try_into().unwrap()));
                let text = |row: u64| {
                    let text = self.cubin.prototype((row >> 32) as u32).unwrap();
                    format!("{} {text}", self.symbol(row as u32))
                };
                rows.map(text).collect()
            }
            name if name.starts_with(".nv.info") => {
                Attributes::new(data, 0).map(|row| self.attribute(&row.unwrap())).collect()
            }
            _ => vec![format!("{data:x?}")],
        }
    }

    fn call(&self, call: nvinfo::Call) -> String {
        use nvinfo::Call::{AddressTaken, Direct, Indirect, MayReach};
        let text = |prototype| self.cubin.prototype(prototype).unwrap().to_string();
        match call {
            Direct { caller, callee } => {
                format!("{} > {}", self.symbol(caller), self.symbol(callee))
            }
            MayReach { caller, callee } => {
                format!("{} may {}", self.symbol(caller), self.symbol(callee))
            }
            AddressTaken { function, prototype } => {
                format!("{} taken {}", self.symbol(function), text(prototype))
            }
            Indirect { caller, prototype } => {
                format!("{} calls {}", self.symbol(caller), text(prototype))
            }
            other => format!("{other:?}"),
        }
    }

    fn attribute(&self, row: &nvinfo::Attribute<'_>) -> String {
        let value = match row.payload() {
            Payload::OfSymbol { symbol, value } => format!("{} {value:#x}", self.symbol(symbol)),
            Payload::ParameterBank(bank) => {
                format!("{} {:#x} {:#x}", self.symbol(bank.symbol), bank.offset, bank.size)
            }
            Payload::Symbols(symbols) => {
                let names: Vec<_> = symbols.into_iter().map(|symbol| self.symbol(symbol)).collect();
                names.join(" ")
            }
            _ => format!("{:?}", row.value),
        };
        format!("{:#x} {value}", row.number)
    }
}

fn name(file: &File<'_>, section: &SectionHeader) -> String {
    file.section_name(section).unwrap().to_string()
}

/// All differences in words; none of the order of lists.
pub(crate) fn differences(expected: &[u8], found: &[u8]) -> Vec<String> {
    let (expected, found) = (Linked::of(expected), Linked::of(found));
    let mut all = Vec::new();
    let (ours, theirs) = (found.sections(), expected.sections());
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
        let (mut a, mut b) = (expected.content(&key.0, a), found.content(&key.0, b));
        a.sort();
        b.sort();
        if a != b {
            let missing: Vec<_> = a.iter().filter(|row| !b.contains(row)).take(2).collect();
            let extra: Vec<_> = b.iter().filter(|row| !a.contains(row)).take(2).collect();
            all.push(format!("{}: {extra:?}, expected {missing:?}", key.0));
        }
    }
    let sorted = |one: &Linked<'_>| {
        let mut symbols: Vec<_> =
            one.symbols.iter().filter(|name| !name.contains(" in .nv.merc")).cloned().collect();
        symbols.sort();
        symbols
    };
    let (a, b) = (sorted(&expected), sorted(&found));
    all.extend(a.iter().filter(|symbol| !b.contains(symbol)).map(|one| format!("no {one}")));
    all.extend(b.iter().filter(|symbol| !a.contains(symbol)).map(|one| format!("has {one}")));
    all
}
