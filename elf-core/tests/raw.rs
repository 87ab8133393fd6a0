//! Known bytes are read as known fields, in all four classes; every truncation is an error.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use elf_core::table::rows;
use elf_core::{
    Address, CompressionHeader, Dynamic, FileHeader, Half, ProgramHeader, Record, Rel, Rela,
    SectionHeader, Symbol,
};
use elf_core::{Encoding, Entry, ErrorKind, Table};
use elf_core::{SectionFlags, SegmentFlags, Word, Xword, raw};
use zerocopy::byteorder::{BE, LE};

const ENCODINGS: [Encoding; 4] =
    [Encoding::Elf32Le, Encoding::Elf32Be, Encoding::Elf64Le, Encoding::Elf64Be];

/// A field: its width in bytes in 32-bit and in 64-bit files, and its value.
type Field = (usize, usize, u64);

/// The fields as a file of this class has them.
fn bytes(encoding: Encoding, fields: &[Field]) -> Vec<u8> {
    let field = |&(narrow, wide, value): &Field| {
        let width = if encoding.is_64() { wide } else { narrow };
        match encoding.is_big_endian() {
            true => value.to_be_bytes()[8 - width..].to_vec(),
            false => value.to_le_bytes()[..width].to_vec(),
        }
    };
    fields.iter().flat_map(field).collect()
}

/// Reads a row of each class; `narrow` and `wide` are the fields in the order of that class.
fn check<E: Entry>(narrow: &[Field], wide: &[Field], expected: impl Fn(Encoding) -> E::View)
where
    E::View: PartialEq + std::fmt::Debug,
{
    for encoding in ENCODINGS {
        let bytes = bytes(encoding, if encoding.is_64() { wide } else { narrow });
        let read =
            |bytes: &[u8]| Table::<E>::parse(bytes, encoding, 0, 1).map(|table| table.get(0));
        assert_eq!(read(&bytes), Ok(Some(expected(encoding))), "{encoding:?}");
        assert!(Table::<E>::parse_bytes(&bytes, encoding, 0, bytes.len() as u64).is_ok());
        for end in 0..bytes.len() {
            let error = read(&bytes[..end]).unwrap_err();
            let kind = ErrorKind::Outside { what: E::WHAT, count: 1, file: end as u64 };
            assert_eq!((error.at, error.kind), (0, kind), "{encoding:?}: {end}");
        }
    }
}

const fn same(width: usize, value: u64) -> Field {
    (width, width, value)
}

const fn word(value: u64) -> Field {
    (4, 8, value)
}

#[test]
fn file_header() {
    let ident = [0x7f45_4c46_0201_0103, 0x0400_0000_0000_0000];
    let rest = [
        same(2, 1),
        same(2, 62),
        same(4, 5),
        word(0x1234_5678),
        word(0x40),
        word(0x100),
        same(4, 0x77),
        same(2, 64),
        same(2, 56),
        same(2, 7),
        same(2, 65),
        same(2, 8),
        same(2, 9),
    ];
    // e_ident is bytes, not numbers: as a big-endian number in both orders.
    for encoding in ENCODINGS {
        let mut all: Vec<u8> = ident.iter().flat_map(|part: &u64| part.to_be_bytes()).collect();
        all.extend(bytes(encoding, &rest));
        let expected = FileHeader {
            os_abi: 3,
            abi_version: 4,
            r#type: 1,
            machine: 62,
            version: 5,
            entry: 0x1234_5678,
            flags: 0x77,
            program_headers: 0x40,
            program_header_size: 56,
            program_header_count: 7,
            section_headers: 0x100,
            section_header_size: 65,
            section_header_count: 8,
            section_names: 9,
            header_size: 64,
        };
        let read = |bytes: &[u8]| {
            Table::<FileHeader>::parse(bytes, encoding, 0, 1).map(|table| table.get(0))
        };
        assert_eq!(read(&all), Ok(Some(expected)));
        for end in 0..all.len() {
            assert!(read(&all[..end]).is_err());
        }
    }
}

#[test]
fn program_header() {
    let [kind, flags, alignment] = [same(4, 1), same(4, 5), word(0x1000)];
    let between = [word(0x40), word(0x8000), word(0x9000), word(0x22), word(0x33)];
    let narrow = [&[kind], &between[..], &[flags, alignment]].concat();
    let wide = [&[kind, flags], &between[..], &[alignment]].concat();
    check::<ProgramHeader>(&narrow, &wide, |_| ProgramHeader {
        r#type: 1,
        flags: SegmentFlags::READ | SegmentFlags::EXECUTE,
        offset: 0x40,
        address: 0x8000,
        physical_address: 0x9000,
        file_size: 0x22,
        memory_size: 0x33,
        alignment: 0x1000,
    });
}

#[test]
fn section_header() {
    let fields = [
        same(4, 9),
        same(4, 4),
        word(0x42),
        word(0x8000),
        word(0x40),
        word(0x30),
        same(4, 5),
        same(4, 6),
        word(8),
        word(24),
    ];
    check::<SectionHeader>(&fields, &fields, |_| SectionHeader {
        name: 9,
        r#type: 4,
        flags: SectionFlags::ALLOC | SectionFlags::INFO_LINK,
        address: 0x8000,
        offset: 0x40,
        size: 0x30,
        link: 5,
        info: 6,
        alignment: 8,
        entry_size: 24,
    });
}

#[test]
fn symbol() {
    let [name, value, size] = [same(4, 9), word(0x10), word(0x20)];
    let rest = [same(1, 0x12), same(1, 2), same(2, 0xfff1)];
    let narrow = [&[name, value, size], &rest[..]].concat();
    let wide = [&[name], &rest[..], &[value, size]].concat();
    let expected = Symbol { name: 9, info: 0x12, other: 2, shndx: 0xfff1, value: 0x10, size: 0x20 };
    check::<Symbol>(&narrow, &wide, |_| expected);
}

#[test]
fn relocations() {
    // The same bits of r_info are split otherwise in each class.
    let info = (4, 8, 0x0102_0304);
    let record = |encoding: Encoding, addend| {
        let (symbol, r#type) = if encoding.is_64() { (0, 0x0102_0304) } else { (0x01_0203, 4) };
        Record { offset: 0x10, symbol, r#type, addend }
    };
    check::<Rel>(&[word(0x10), info], &[word(0x10), info], |encoding| record(encoding, None));
    let minus_4 = (4, 8, -4_i64 as u64);
    let fields = [word(0x10), info, minus_4];
    // A number of 32 bits is cut from the left or the right: of -4 both are right.
    check::<Rela>(&fields, &fields, |encoding| record(encoding, Some(-4)));
}

#[test]
fn dynamic_and_compressed() {
    let fields = [word(0x6fff_fef5), word(0x1000)];
    check::<Dynamic>(&fields, &fields, |_| Dynamic { tag: 0x6fff_fef5, value: 0x1000 });
    let fields = [(4, 4, 1), (0, 4, 0), word(0x100), word(8)];
    let expected = CompressionHeader { r#type: 1, size: 0x100, alignment: 8 };
    check::<CompressionHeader>(&fields, &fields, |_| expected);
}

#[test]
fn words() {
    check::<Half>(&[same(2, 0x1234)], &[same(2, 0x1234)], |_| 0x1234);
    check::<Word>(&[same(4, 0x1234_5678)], &[same(4, 0x1234_5678)], |_| 0x1234_5678);
    check::<Xword>(&[same(8, 1 << 40)], &[same(8, 1 << 40)], |_| 1 << 40);
    check::<Address>(&[word(0x1234_5678)], &[word(0x1234_5678)], |_| 0x1234_5678);
}

/// The structures of `raw.rs`, which are the same in both classes.
#[test]
fn structures_of_both_classes() {
    let bytes: Vec<u8> = (1..=20).collect();
    macro_rules! check {
        ($name:ident, $size:literal, $($field:ident = $value:literal),*) => {
            let big = rows::<raw::$name<BE>>(&bytes, "row", 0, 1).unwrap()[0];
            let little = rows::<raw::$name<LE>>(&bytes, "row", 0, 1).unwrap()[0];
            $(
                assert_eq!(big.$field.get(), $value);
                assert_eq!(little.$field.get(), $value.swap_bytes());
            )*
            for end in 0..$size {
                assert!(rows::<raw::$name<BE>>(&bytes[..end], "row", 0, 1).is_err());
            }
            assert!(rows::<raw::$name<BE>>(&bytes[..$size], "row", 0, 1).is_ok());
        };
    }
    check!(
        Nhdr,
        12,
        n_namesz = 0x0102_0304_u32,
        n_descsz = 0x0506_0708_u32,
        n_type = 0x090a_0b0c_u32
    );
    check!(Property, 8, pr_type = 0x0102_0304_u32, pr_datasz = 0x0506_0708_u32);
    check!(
        Verdef,
        20,
        vd_version = 0x0102_u16,
        vd_flags = 0x0304_u16,
        vd_ndx = 0x0506_u16,
        vd_cnt = 0x0708_u16
    );
    check!(
        Verdef,
        20,
        vd_hash = 0x090a_0b0c_u32,
        vd_aux = 0x0d0e_0f10_u32,
        vd_next = 0x1112_1314_u32
    );
    check!(Verdaux, 8, vda_name = 0x0102_0304_u32, vda_next = 0x0506_0708_u32);
    check!(Verneed, 16, vn_version = 0x0102_u16, vn_cnt = 0x0304_u16, vn_file = 0x0506_0708_u32);
    check!(Verneed, 16, vn_aux = 0x090a_0b0c_u32, vn_next = 0x0d0e_0f10_u32);
    check!(Vernaux, 16, vna_hash = 0x0102_0304_u32, vna_flags = 0x0506_u16, vna_other = 0x0708_u16);
    check!(Vernaux, 16, vna_name = 0x090a_0b0c_u32, vna_next = 0x0d0e_0f10_u32);
}
