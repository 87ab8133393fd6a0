//! Every message that a reader may see, word for word.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use elf_core::{Error, ErrorKind};

#[test]
fn messages() {
    use ErrorKind::{
        EntrySize, FeatureOff, Foreign, Invalid, NamesTooLong, NoAddress, NoSection, NoString,
        NoSymbol, NotElf, Outside, SectionType, UnevenTable, UnknownByteOrder, UnknownClass,
    };
    let (what, at) = ("symbols", 0x40);
    let messages = [
        (NotElf, "not an ELF file"),
        (Foreign(elf_core::Foreign::Bitcode), "LLVM bitcode, not an ELF file: compiled with -flto"),
        (
            NamesTooLong { limit: 9 },
            "the names of the symbols at offset 0x40 have more than 9 bytes together",
        ),
        (FeatureOff("elf32"), "built without what reads the bytes at offset 0x40: feature elf32"),
        (UnknownClass(3), "unknown ELF class 3 at offset 0x40"),
        (UnknownByteOrder(0), "unknown byte order 0 at offset 0x40"),
        (
            Outside { what: "note", count: 1, file: 11 },
            "note at offset 0x40 is outside its 0xb bytes",
        ),
        (
            Outside { what, count: 12, file: 99 },
            "12 symbols at offset 0x40 are outside its 0x63 bytes",
        ),
        (
            EntrySize { what: "sh_entsize", found: 16, expected: 24 },
            "sh_entsize is 16, not 24, at offset 0x40",
        ),
        (
            UnevenTable { what, size: 0x31, entry: 24 },
            "the size 0x31 of the symbols at offset 0x40 is no multiple of 24",
        ),
        (
            NoSection { what: "sh_link", index: 9, count: 4 },
            "sh_link names section 9 of 4, at offset 0x40",
        ),
        (NoSymbol { index: 7, count: 5 }, "no symbol 7 in a table of 5, at offset 0x40"),
        (
            SectionType { what: "string table", found: 8 },
            "a section of type 0x8 at offset 0x40 is no string table",
        ),
        (
            NoString { offset: 0x99, table: 0x10 },
            "no string at 0x99 in the string table of 0x10 bytes at offset 0x40",
        ),
        (
            NoAddress { what: "hash table", address: 0x1000 },
            "hash table at address 0x1000 is in no segment of the file, at offset 0x40",
        ),
        (Invalid { what: "vd_version", value: 2 }, "vd_version is 0x2 at offset 0x40"),
    ];
    for (kind, message) in messages {
        assert_eq!(Error { at, kind }.to_string(), message);
    }
}
