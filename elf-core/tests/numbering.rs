//! More sections than `e_shnum` counts, more segments than `e_phnum`; core files; what CUDA writes into `e_version`.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use elf_core::names::{
    EM_CUDA, EM_X86_64, ET_CORE, PT_LOAD, PT_NOTE, SHN_XINDEX, SHT_STRTAB, SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
};
use elf_core::{Definition, ErrorKind, File};

/// A writer of numbers of one class and byte order.
struct Writer {
    bytes: Vec<u8>,
    is_64: bool,
    big: bool,
}

impl Writer {
    /// A file with the header `e_ident .. e_shstrndx`.
    fn new(
        (is_64, big): (bool, bool),
        machine: u16,
        version: u32,
        tables: [u64; 2],
        counts: [u16; 3],
    ) -> Self {
        let mut ident = *b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0";
        (ident[4], ident[5]) = (1 + u8::from(is_64), 1 + u8::from(big));
        let mut it = Self { bytes: ident.to_vec(), is_64, big };
        it.half(ET_CORE)
            .half(machine)
            .word(version)
            .address(0)
            .address(tables[0])
            .address(tables[1])
            .word(0);
        it.half(if is_64 { 64 } else { 52 }).half(if is_64 { 56 } else { 32 }).half(counts[0]);
        it.half(if is_64 { 64 } else { 40 }).half(counts[1]).half(counts[2]);
        it
    }

    fn put(&mut self, value: u64, width: usize) -> &mut Self {
        match self.big {
            true => self.bytes.extend(&value.to_be_bytes()[8 - width..]),
            false => self.bytes.extend(&value.to_le_bytes()[..width]),
        }
        self
    }

    fn half(&mut self, value: u16) -> &mut Self {
        self.put(value.into(), 2)
    }

    fn word(&mut self, value: u32) -> &mut Self {
        self.put(value.into(), 4)
    }

    fn address(&mut self, value: u64) -> &mut Self {
        self.put(value, if self.is_64 { 8 } else { 4 })
    }

    fn section(
        &mut self,
        name: u32,
        kind: u32,
        offset: u64,
        size: u64,
        link: u32,
        info: u32,
    ) -> &mut Self {
        self.word(name)
            .word(kind)
            .address(0)
            .address(0)
            .address(offset)
            .address(size)
            .word(link)
            .word(info);
        self.address(1).address(0)
    }

    fn segment(&mut self, kind: u32, offset: u64, address: u64, size: u64) -> &mut Self {
        match self.is_64 {
            true => self
                .word(kind)
                .word(4)
                .address(offset)
                .address(address)
                .address(0)
                .address(size)
                .address(size)
                .address(4),
            false => self
                .word(kind)
                .word(offset as u32)
                .address(address)
                .address(0)
                .address(size)
                .address(size)
                .word(4)
                .word(4),
        }
    }
}

const CLASSES: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// 70,000 sections, a symbol in the last of them; 66,000 segments.
#[test]
fn extended_numbering_in_every_class() {
    const SECTIONS: u64 = 70_000;
    const SEGMENTS: u64 = 66_000;
    for class in CLASSES {
        let (header, shdr, phdr) = if class.0 { (64, 64, 56) } else { (52, 40, 32) };
        let names = header + SECTIONS * shdr + SEGMENTS * phdr;
        let symbol = if class.0 { 24 } else { 16 };
        let (symbols, indices) = (names + 16, names + 16 + 2 * symbol);
        let mut file = Writer::new(
            class,
            EM_X86_64,
            1,
            [header + SECTIONS * shdr, header],
            [0xffff, 0, SHN_XINDEX],
        );
        let last = SECTIONS as u32 - 1;
        file.section(0, 0, 0, SECTIONS, last, SEGMENTS as u32);
        for _ in 1..SECTIONS - 3 {
            file.section(1, 1, 0, 0, 0, 0);
        }
        file.section(1, SHT_SYMTAB_SHNDX, indices, 8, last - 1, 0);
        file.section(1, SHT_SYMTAB, symbols, 2 * symbol, last, 1)
            .section(3, SHT_STRTAB, names, 16, 0, 0);
        for segment in 0..SEGMENTS {
            file.segment(PT_LOAD, 0, segment * 0x1000, 0x10);
        }
        file.bytes.extend(b"\0x\0names\0symbol\0");
        file.bytes.extend(vec![0; symbol as usize]);
        match class.0 {
            true => file.word(9).put(0x12, 1).put(0, 1).half(SHN_XINDEX).address(5).address(0),
            false => file.word(9).address(5).address(0).put(0x12, 1).put(0, 1).half(SHN_XINDEX),
        };
        file.word(0).word(last - 2);

        let read = File::parse(&file.bytes).unwrap();
        assert_eq!(
            (read.sections().len() as u64, read.segments().len() as u64),
            (SECTIONS, SEGMENTS)
        );
        assert_eq!(read.section_names_index(), last);
        assert_eq!(read.section_name(&read.section(last).unwrap()).unwrap(), "names");
        assert_eq!(read.segments().get(65_999).unwrap().address, 65_999 * 0x1000);
        assert_eq!(read.offset_of(65_999 * 0x1000 + 7), Some(7));
        let table = read.symbol_table().unwrap().unwrap();
        let symbol = table.get(1).unwrap();
        assert_eq!(table.section_of(1, &symbol), Ok(Definition::Section(last - 2)));
        assert_eq!((table.name_of(&symbol).unwrap(), symbol.value), ("symbol".into(), 5));

        for end in (0..file.bytes.len()).step_by(10_007) {
            let _ = File::parse(&file.bytes[..end]).map(|file| file.symbol_table().map(|_| ()));
        }
        let short = &file.bytes[..(header + SECTIONS * shdr) as usize - 1];
        let kind = ErrorKind::Outside {
            what: "section headers",
            count: SECTIONS,
            file: short.len() as u64,
        };
        assert_eq!(File::parse(short).unwrap_err().kind, kind);
    }
}

/// As the kernel writes a core file: segments alone, notes first, no section headers.
#[test]
fn core_file() {
    for class in CLASSES {
        let (header, phdr) = if class.0 { (64, 56) } else { (52, 32) };
        let notes = header + 2 * phdr;
        let mut file = Writer::new(class, EM_X86_64, 1, [header, 0], [2, 0, 0]);
        file.segment(PT_NOTE, notes, 0, 60).segment(PT_LOAD, notes + 60, 0x40_0000, 4);
        for (kind, data) in [(1, [1; 8]), (0x4649_4c45, [2; 8])] {
            file.word(5).word(8).word(kind);
            file.bytes.extend(b"CORE\0\0\0\0");
            file.bytes.extend(data);
        }
        file.bytes.extend([0; 4]); // too short for a note
        file.bytes.extend(b"data");
        let read = File::parse(&file.bytes).unwrap();
        let segment = read.segments().get(0).unwrap();
        let found: Vec<_> = read.segment_notes(&segment).unwrap().unwrap().collect();
        let text =
            |index: usize| found[index].map(|note| (note.owner.to_str(), note.r#type, note.data));
        assert_eq!(text(0), Ok((Some("CORE"), 1, &[1; 8][..])));
        assert_eq!(text(1), Ok((Some("CORE"), 0x4649_4c45, &[2; 8][..])));
        assert_eq!((found.len(), found[2].unwrap_err().at), (3, notes + 56));
        assert_eq!(read.bytes_at("memory", 0x40_0001), Ok((notes + 61, &b"ata"[..])));
        let missing = ErrorKind::NoAddress { what: "memory", address: 0x40_0004 };
        assert_eq!(read.bytes_at("memory", 0x40_0004).unwrap_err().kind, missing);
        assert!(read.segment_notes(&read.segments().get(1).unwrap()).unwrap().is_none());
    }
}

/// Older CUDA tools write their own version into `e_version` (110 of CUDA 11).
#[test]
fn version_of_cuda() {
    for class in CLASSES {
        let file = Writer::new(class, EM_CUDA, 110, [0, 0], [0, 0, 0]);
        assert_eq!(File::parse(&file.bytes).unwrap().header().version, 110);
    }
}
