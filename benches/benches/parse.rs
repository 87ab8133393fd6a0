//! Parse a file and walk every section, symbol and relocation: hoist, its peers, and the tables as raw slices.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use elf_core::names::{SHT_DYNSYM, SHT_REL, SHT_RELA, SHT_SYMTAB};
use elf_core::{ClassFile, Elf64, File, SectionHeader, raw64};
use std::hint::black_box;
use zerocopy::{FromBytes, LE};

/// What a walk adds up, so that every entry is really read.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Sum {
    entries: u64,
    value: u64,
}

impl Sum {
    fn add(&mut self, value: u64) {
        self.entries += 1;
        self.value = self.value.wrapping_add(value);
    }
}

/// The tables as they stand, without a single check but those of the slices.
fn floor(bytes: &[u8]) -> Sum {
    let mut sum = Sum::default();
    let (header, _) = raw64::Ehdr::<zerocopy::LE>::ref_from_prefix(bytes).expect("a file");
    let rest = &bytes[header.e_shoff.get() as usize..];
    let (first, _) = raw64::Shdr::<zerocopy::LE>::ref_from_prefix(rest).expect("sections");
    let count = if header.e_shnum.get() == 0 {
        first.sh_size.get() as usize
    } else {
        header.e_shnum.get().into()
    };
    let (sections, _) =
        <[raw64::Shdr<zerocopy::LE>]>::ref_from_prefix_with_elems(rest, count).expect("sections");
    for section in sections {
        sum.add(section.sh_size.get());
        let data = || &bytes[section.sh_offset.get() as usize..][..section.sh_size.get() as usize];
        match section.sh_type.get() {
            SHT_SYMTAB | SHT_DYNSYM => {
                for symbol in <[raw64::Sym<zerocopy::LE>]>::ref_from_bytes(data()).expect("symbols")
                {
                    sum.add(symbol.st_value.get());
                }
            }
            SHT_RELA => {
                for record in
                    <[raw64::Rela<zerocopy::LE>]>::ref_from_bytes(data()).expect("relocations")
                {
                    sum.add(
                        record.r_offset.get().wrapping_add_signed(record.r_addend.get())
                            ^ record.r_info.get(),
                    );
                }
            }
            _ => {}
        }
    }
    sum
}

fn hoist(bytes: &[u8]) -> Sum {
    let mut sum = Sum::default();
    let file = File::parse(bytes).expect("a file");
    for (index, section) in (0u32..).zip(file.sections()) {
        sum.add(section.size);
        match section.r#type {
            SHT_SYMTAB | SHT_DYNSYM => {
                file.symbol_table_at(index)
                    .expect("symbols")
                    .symbols()
                    .iter()
                    .for_each(|symbol| sum.add(symbol.value));
            }
            SHT_RELA | SHT_REL => {
                let records =
                    file.relocations(&section).expect("relocations").expect("relocations");
                records.iter().for_each(|record| {
                    let info = u64::from(record.symbol) << 32 | u64::from(record.r#type);
                    sum.add(record.offset.wrapping_add_signed(record.addend.unwrap_or(0)) ^ info);
                });
            }
            _ => {}
        }
    }
    sum
}

/// The same for files of one class.
fn hoist_class(bytes: &[u8]) -> Sum {
    let mut sum = Sum::default();
    let file = ClassFile::<Elf64<LE>>::parse(bytes).expect("a file");
    for row in file.sections() {
        let section = SectionHeader::from(*row);
        sum.add(section.size);
        match section.r#type {
            SHT_SYMTAB | SHT_DYNSYM => {
                for symbol in file.symbols(&section).expect("symbols") {
                    sum.add(symbol.st_value.get());
                }
            }
            SHT_RELA => {
                for record in file.rela(&section).expect("relocations") {
                    sum.add(
                        record.r_offset.get().wrapping_add_signed(record.r_addend.get())
                            ^ record.r_info.get(),
                    );
                }
            }
            _ => {}
        }
    }
    sum
}

fn object(bytes: &[u8]) -> Sum {
    use object::elf::{FileHeader64, SHT_DYNSYM, SHT_RELA, SHT_SYMTAB};
    use object::read::elf::{FileHeader, Rela, SectionHeader, Sym};
    type Header = FileHeader64<object::LittleEndian>;
    let endian = object::LittleEndian;
    let mut sum = Sum::default();
    let header = Header::parse(bytes).expect("a file");
    let sections = header.sections(endian, bytes).expect("sections");
    for (index, section) in sections.enumerate() {
        sum.add(section.sh_size(endian));
        match section.sh_type(endian) {
            SHT_SYMTAB | SHT_DYNSYM => {
                let table = sections.symbol_table_by_index(endian, bytes, index).expect("symbols");
                for symbol in table.iter() {
                    sum.add(symbol.st_value(endian));
                }
            }
            SHT_RELA => {
                let (records, _) =
                    section.rela(endian, bytes).expect("relocations").expect("relocations");
                for record in records {
                    let info = u64::from(record.r_sym(endian, false)) << 32
                        | u64::from(record.r_type(endian, false).0);
                    sum.add(
                        record.r_offset(endian).wrapping_add_signed(record.r_addend(endian)) ^ info,
                    );
                }
            }
            _ => {}
        }
    }
    sum
}

/// The same through what `object` has for files of any class: its sections and symbols begin behind the null ones, relocations belong to
/// the sections that they change, those of `libc.so.6` to none.
fn object_any(bytes: &[u8]) -> Sum {
    use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};
    let mut sum = Sum::default();
    let file = object::File::parse(bytes).expect("a file");
    let relocation = |sum: &mut Sum, (offset, relocation): (u64, object::Relocation)| {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { return };
        let symbol = match relocation.target() {
            RelocationTarget::Symbol(index) => index.0 as u64,
            _ => 0,
        };
        let info = symbol << 32 | u64::from(r_type.0);
        sum.add(offset.wrapping_add_signed(relocation.addend()) ^ info);
    };
    sum.add(0);
    for section in file.sections() {
        sum.add(section.size());
        section.relocations().for_each(|record| relocation(&mut sum, record));
    }
    file.dynamic_relocations()
        .into_iter()
        .flatten()
        .for_each(|record| relocation(&mut sum, record));
    let tables = [file.symbol_table().is_some(), file.dynamic_symbol_table().is_some()];
    tables.into_iter().filter(|is_there| *is_there).for_each(|_| sum.add(0));
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        sum.add(symbol.address());
    }
    sum
}

fn elf(bytes: &[u8]) -> Sum {
    let mut sum = Sum::default();
    let file = elf::ElfBytes::<elf::endian::LittleEndian>::minimal_parse(bytes).expect("a file");
    for section in file.section_headers().expect("sections").iter() {
        sum.add(section.sh_size);
        match section.sh_type {
            SHT_SYMTAB | SHT_DYNSYM => {
                let (table, _) = if section.sh_type == SHT_SYMTAB {
                    file.symbol_table()
                } else {
                    file.dynamic_symbol_table()
                }
                .expect("symbols")
                .expect("symbols");
                table.iter().for_each(|symbol| sum.add(symbol.st_value));
            }
            SHT_RELA => {
                for record in file.section_data_as_relas(&section).expect("relocations") {
                    let info = u64::from(record.r_sym) << 32 | u64::from(record.r_type);
                    sum.add(record.r_offset.wrapping_add_signed(record.r_addend) ^ info);
                }
            }
            _ => {}
        }
    }
    sum
}

fn goblin(bytes: &[u8]) -> Sum {
    let mut sum = Sum::default();
    let file = goblin::elf::Elf::parse(bytes).expect("a file");
    file.section_headers.iter().for_each(|section| sum.add(section.sh_size));
    file.syms.iter().chain(file.dynsyms.iter()).for_each(|symbol| sum.add(symbol.st_value));
    for (_, records) in &file.shdr_relocs {
        for record in records.iter() {
            let info = (record.r_sym as u64) << 32 | u64::from(record.r_type);
            sum.add(record.r_offset.wrapping_add_signed(record.r_addend.unwrap_or(0)) ^ info);
        }
    }
    sum
}

/// Reads a file and adds up what is in it.
type Walk = fn(&[u8]) -> Sum;

fn parse(criterion: &mut Criterion) {
    let files = [
        ("small", Some(benches::SMALL.to_vec())),
        ("functions-20000", Some(benches::functions(20_000).expect("an object"))),
        ("libc", benches::libc()),
    ];
    for (name, bytes) in files {
        let Some(bytes) = bytes else { continue };
        let bytes = bytes.as_slice();
        let expected = floor(bytes);
        let walks: [(&str, Walk); 7] = [
            ("floor", floor),
            ("hoist", hoist),
            ("hoist-class", hoist_class),
            ("object", object),
            ("object-any", object_any),
            ("elf", elf),
            ("goblin", goblin),
        ];
        let mut group = criterion.benchmark_group(format!("parse/{name}"));
        group.throughput(Throughput::Elements(expected.entries));
        for (who, walk) in walks {
            assert_eq!(walk(bytes), expected, "{who} reads the same");
            group.bench_function(who, |bencher| bencher.iter(|| walk(black_box(bytes))));
        }
    }
}

criterion_group!(benches, parse);
criterion_main!(benches);
