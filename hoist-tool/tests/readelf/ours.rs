//! What `hoist show --json` prints, as readelf would say it.

use std::path::Path;

use elf_core::names::{EM_AARCH64, EM_MIPS, SHT_REL, SHT_RELA, SHT_RELR};
use hoist_tool::cmd::show::{Selection, show};
use hoist_tool::input::Input;

use crate::json::{
    Dynamic, File, Relocation, Relocations, Section, Segment, Symbol, SymbolTable, Version,
};
use crate::lines::{Lines, Topic};

/// What hoist says of a file, or of every ELF file in an archive; or why it says nothing.
pub(crate) fn read(path: &Path) -> Vec<Result<Lines, String>> {
    let one = |part: &hoist_tool::input::Part<'_>| {
        let mut json = Vec::new();
        show(part, "file", Selection::default(), true, &mut json)
            .map_err(|error| format!("{error:#}"))?;
        let file: File<'_> = serde_json::from_slice(&json).expect("the keys of a report");
        Ok(file.lines())
    };
    let read = Input::read(path).and_then(|input| {
        let parts = input.parts()?;
        Ok(parts.iter().filter(|part| part.bytes.starts_with(b"\x7fELF")).map(one).collect())
    });
    read.unwrap_or_else(|error: anyhow::Error| vec![Err(format!("{error:#}"))])
}

impl File<'_> {
    fn lines(&self) -> Lines {
        let mut lines = Lines::default();
        self.header(&mut lines);
        for section in &self.sections {
            let (named, unnamed) =
                (self.section(section, section.type_name), self.section(section, None));
            lines.add_either(Topic::Section, &named, &unnamed);
        }
        for segment in &self.segments {
            lines.add(Topic::Segment, &self.segment(segment));
        }
        for dynamic in &self.dynamic {
            let named = self.dynamic(dynamic, dynamic.tag_name);
            lines.add_either(Topic::Dynamic, &named, &self.dynamic(dynamic, None));
        }
        if !self.dynamic.is_empty() {
            lines.add(Topic::Dynamic, &format!("0x{} (NULL) 0x0", self.hex(0)));
        }
        for symbol in self.symbol_tables.iter().flat_map(|table| &table.symbols) {
            lines.add_either(
                Topic::Symbol,
                &self.symbol(symbol, true),
                &self.symbol(symbol, false),
            );
        }
        for section in &self.relocations {
            self.relocations(section, &mut lines);
        }
        lines
    }

    fn relocations(&self, of: &Relocations<'_>, lines: &mut Lines) {
        let r#type = self.sections.get(of.section as usize).map_or(0, |section| section.r#type);
        let table = self.symbol_tables.iter().find(|table| Some(table.section) == of.symbol_table);
        for record in &of.records {
            match r#type {
                SHT_RELR => lines.add(Topic::PackedRelocation, &self.hex(record.offset)),
                SHT_REL | SHT_RELA => {
                    let line = |name| self.relocation(record, name, table);
                    // binutils' own names: AAELF32 has none with _NC for the highest part, and one with the size
                    let theirs = record.type_name.as_deref().map(|name| match name {
                        "R_ARM_THM_ALU_ABS_G3" => "R_ARM_THM_ALU_ABS_G3_NC",
                        "R_ARM_THM_TLS_DESCSEQ16" => "R_ARM_THM_TLS_DESCSEQ",
                        name => name,
                    });
                    let mut names = theirs.iter().flat_map(|names| names.split('/'));
                    lines.add_either(Topic::Relocation, &line(names.next()), &line(None));
                    if self.header.machine == EM_MIPS && self.header.bits == 64 {
                        for number in 2..=3 {
                            let name = names.next().unwrap_or("R_MIPS_NONE");
                            lines.add(Topic::Relocation, &format!("Type{number}: {name}"));
                        }
                    }
                }
                // readelf does not read the other forms
                _ => {}
            }
        }
    }

    /// An address with all its digits.
    fn hex(&self, address: u64) -> String {
        if self.header.bits == 64 { format!("{address:016x}") } else { format!("{address:08x}") }
    }

    fn header(&self, lines: &mut Lines) {
        let header = &self.header;
        let r#type = header
            .type_name
            .map_or_else(|| format!("{:x}", header.r#type), |name| name.replace("ET_", ""));
        for (name, value) in [
            ("Class", format!("ELF{}", header.bits)),
            ("Data", format!("2's complement, {} endian", header.byte_order)),
            ("ABI Version", header.abi_version.to_string()),
            ("Type", r#type),
            ("Entry point address", format!("{:#x}", header.entry)),
            ("Start of program headers", format!("{} (bytes into file)", header.program_headers)),
            ("Start of section headers", format!("{} (bytes into file)", header.section_headers)),
            ("Flags", format!("{:#x}", header.flags)),
            ("Size of this header", format!("{} (bytes)", header.header_size)),
            ("Size of program headers", format!("{} (bytes)", header.program_header_size)),
            ("Number of program headers", header.segments.to_string()),
            ("Size of section headers", format!("{} (bytes)", header.section_header_size)),
            ("Number of section headers", header.sections.to_string()),
            ("Section header string table index", header.section_names.to_string()),
        ] {
            lines.add(Topic::Header, &format!("{name}: {value}"));
        }
    }

    fn section(&self, section: &Section<'_>, type_name: Option<&str>) -> String {
        let r#type = match type_name.map(|name| name.trim_start_matches("SHT_")) {
            Some("SYMTAB_SHNDX") => "SYMTAB SECTION INDICES",
            Some("GNU_verdef") => "VERDEF",
            Some("GNU_verneed") => "VERNEED",
            Some("GNU_versym") => "VERSYM",
            Some(name) => name,
            None => match section.r#type {
                0x6000_0000..0x7000_0000 => &format!("LOOS+{}", c_hex(section.r#type & 0xfff_ffff)),
                0x7000_0000..0x8000_0000 => {
                    &format!("LOPROC+{}", c_hex(section.r#type & 0xfff_ffff))
                }
                0x8000_0000.. => &format!("LOUSER+{}", c_hex(section.r#type & 0x7fff_ffff)),
                _ => &format!("{:08x}: <unknown>", section.r#type),
            },
        };
        let Section { index, name, offset, size, entry_size, link, info, alignment, .. } = section;
        let (address, flags) = (self.hex(section.address), self.section_flags(section.flags));
        format!(
            "[{index:2}] {name} {type} {address} {offset:06x} {size:06x} {entry_size:02x} {flags} {link} {info} {alignment}"
        )
    }

    /// Letters as readelf has them, by rising bits.
    fn section_flags(&self, mut flags: u64) -> String {
        let mut letters = String::new();
        while flags != 0 {
            let flag = flags & flags.wrapping_neg();
            flags &= !flag;
            let known = [
                (0x1, 'W'),
                (0x2, 'A'),
                (0x4, 'X'),
                (0x10, 'M'),
                (0x20, 'S'),
                (0x40, 'I'),
                (0x80, 'L'),
                (0x100, 'O'),
                (0x200, 'G'),
                (0x400, 'T'),
                (0x800, 'C'),
                (0x8000_0000, 'E'),
            ];
            let letter = match known.iter().find(|(bit, _)| *bit == flag) {
                Some((_, letter)) => *letter,
                None if flag == 0x1000_0000 && self.header.machine == 62 => 'l',
                // SHF_ARM_PURECODE
                None if flag == 0x2000_0000 && self.header.machine == 40 => 'y',
                None if flag == 0x20_0000 && self.header.os_abi == 3 => 'R',
                None if flag & 0x0ff0_0000 != 0 => {
                    flags &= !0x0ff0_0000;
                    'o'
                }
                None if flag & 0xf000_0000 != 0 => {
                    flags &= !0xf000_0000;
                    'p'
                }
                None => 'x',
            };
            letters.push(letter);
        }
        letters
    }

    fn segment(&self, segment: &Segment<'_>) -> String {
        let Segment { offset, file_size, memory_size, alignment, .. } = segment;
        let r#type = match segment.type_name {
            // readelf has no room for all of it
            Some("PT_RISCV_ATTRIBUTES") => "RISCV_ATTRIBUT",
            Some("PT_ARM_EXIDX") => "EXIDX",
            Some(name) => name.trim_start_matches("PT_"),
            None => &format!("<unknown>: {:x}", segment.r#type),
        };
        let (address, physical) = (self.hex(segment.address), self.hex(segment.physical_address));
        let flags: String = [(4, 'R'), (2, 'W'), (1, 'E')]
            .map(|(flag, letter)| if segment.flags & flag != 0 { letter } else { ' ' })
            .iter()
            .collect();
        let digits = if self.header.bits == 64 { 6 } else { 5 };
        let sizes = format!("0x{file_size:0digits$x} 0x{memory_size:0digits$x}");
        let alignment = c_hex(*alignment);
        format!("{type} 0x{offset:06x} 0x{address} 0x{physical} {sizes} {flags} {alignment}")
    }

    fn dynamic(&self, dynamic: &Dynamic<'_>, tag_name: Option<&str>) -> String {
        let name = match tag_name {
            Some(name) => name.trim_start_matches("DT_"),
            None => &format!("Operating System specific: {:x}", dynamic.tag),
        };
        let text =
            |what: &str| format!("{what}: [{}]", dynamic.text.as_deref().unwrap_or_default());
        let names = |prefix: &str| {
            dynamic
                .value_names
                .iter()
                .map(|name| name.trim_start_matches(prefix))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let value = match name {
            "NEEDED" => text("Shared library"),
            "SONAME" => text("Library soname"),
            "RPATH" => text("Library rpath"),
            "RUNPATH" => text("Library runpath"),
            "AUXILIARY" => text("Auxiliary library"),
            "FILTER" => text("Filter library"),
            "PLTREL" => names("DT_"),
            "FLAGS" => names("DF_"),
            "FLAGS_1" => format!("Flags: {}", names("DF_1_")),
            "BIND_NOW" => String::new(),
            "VERDEFNUM" | "VERNEEDNUM" | "RELACOUNT" | "RELCOUNT" => dynamic.value.to_string(),
            _ if name.ends_with("SZ") || name.ends_with("ENT") => {
                format!("{} (bytes)", dynamic.value)
            }
            _ => format!("{:#x}", dynamic.value),
        };
        format!("0x{} ({name}) {value}", self.hex(dynamic.tag.cast_unsigned()))
    }

    /// A symbol, with the names of systems and processors or without them.
    fn symbol(&self, symbol: &Symbol<'_>, named: bool) -> String {
        let word = |number: u8, name: Option<&str>, prefix: &str| match (number, name) {
            (13..16, _) if !named => format!("<processor specific>: {number}"),
            (10..13, _) if !named => format!("<OS specific>: {number}"),
            (_, Some(name)) => {
                name.trim_start_matches(prefix).trim_start_matches("GNU_").to_owned()
            }
            (_, None) => format!("<unknown>: {number}"),
        };
        let r#type = word(symbol.r#type, symbol.type_name, "STT_");
        let binding = word(symbol.binding, symbol.binding_name, "STB_");
        let visibility = symbol.visibility_name.map_or("", |name| name.trim_start_matches("STV_"));
        let section = match (symbol.section, symbol.section_name.as_deref()) {
            (0, _) => String::from("UND"),
            (0xfff1, Some("SHN_ABS")) => String::from("ABS"),
            (0xfff2, Some("SHN_COMMON")) => String::from("COM"),
            (0xff02, Some("SHN_X86_64_LCOMMON")) => String::from("LARGE_COM"),
            (section, None) => format!("bad section index[{section:3}]"),
            (section, _) => section.to_string(),
        };
        let size = if symbol.size > 99_999 {
            format!("{:#x}", symbol.size)
        } else {
            symbol.size.to_string()
        };
        let (index, value) = (symbol.index, self.hex(symbol.value));
        let is_version = symbol.version.as_ref().is_some_and(|version| version.name == symbol.name);
        let name = versioned(&symbol.name, symbol.version.as_ref().filter(|_| !is_version));
        let other = match (self.header.machine, symbol.other & !3) {
            (_, 0) => "",
            (EM_AARCH64, 0x80) => "[VARIANT_PCS]",
            _ => &format!("[<other>: {:x}]", symbol.other & !3),
        };
        format!("{index}: {value} {size} {type} {binding} {visibility} {other} {section} {name}")
    }

    fn relocation(
        &self,
        record: &Relocation<'_>,
        type_name: Option<&str>,
        table: Option<&SymbolTable<'_>>,
    ) -> String {
        let shift = if self.header.bits == 64 { 32 } else { 8 };
        let info = self.hex(u64::from(record.symbol) << shift | u64::from(record.r#type));
        let r#type = match type_name {
            Some(name) => name,
            None => &format!("unrecognized: {:x}", record.r#type),
        };
        let start = format!("{} {info} {type}", self.hex(record.offset));
        let addend = |addend: i64, signs: [&str; 2]| {
            let sign = if addend < 0 { signs[1] } else { signs[0] };
            format!("{sign}{:x}", addend.unsigned_abs())
        };
        if record.symbol == 0 {
            return format!(
                "{start} {}",
                record.addend.map_or_else(String::new, |value| addend(value, ["", "-"]))
            );
        }
        let symbol = table.and_then(|table| table.symbols.get(record.symbol as usize));
        let name = versioned(
            record.symbol_name.as_deref().unwrap_or_default(),
            record.symbol_version.as_ref(),
        );
        let value = match symbol {
            Some(symbol) if symbol.r#type == 10 => format!("{name}()"),
            symbol => self.hex(symbol.map_or(0, |symbol| symbol.value)),
        };
        let addend = record.addend.map_or_else(String::new, |value| addend(value, ["+ ", "- "]));
        format!("{start} {value} {name} {addend}")
    }
}

fn versioned(name: &str, version: Option<&Version<'_>>) -> String {
    match version {
        Some(Version { name: version, default: true }) => format!("{name}@@{version}"),
        Some(Version { name: version, default: false }) => format!("{name}@{version}"),
        None => name.to_owned(),
    }
}

/// As C's `%#x`: no prefix before 0.
fn c_hex(number: impl Into<u64>) -> String {
    match number.into() {
        0 => String::from("0"),
        number => format!("{number:#x}"),
    }
}
