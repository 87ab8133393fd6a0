//! ELF files as they are written, of 64 and of 32 bits.

use elf_core::names::{ELFCLASS64, SHN_XINDEX, SHT_STRTAB};

/// A header of a section.
#[derive(Default)]
pub(super) struct Header {
    pub(super) name: u32,
    pub(super) r#type: u32,
    pub(super) flags: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
    pub(super) info: u32,
    pub(super) alignment: u64,
    pub(super) entry_size: u64,
}

/// A file as it is written.
pub(super) struct File {
    class: u8,
    /// Contents of sections, behind where the file header will be.
    bytes: Vec<u8>,
    names: Vec<u8>,
    /// Those of all sections but the null section.
    headers: Vec<Header>,
}

/// Room for the file header of either class.
const HEADER: usize = 64;

impl File {
    pub(super) fn new(class: u8) -> Self {
        Self { class, bytes: vec![0; HEADER], names: vec![0], headers: Vec::new() }
    }

    fn name(&mut self, name: &str) -> u32 {
        let at = self.names.len() as u32;
        self.names.extend(name.bytes().chain([0]));
        at
    }

    /// Appends a section of these bytes.
    pub(super) fn put(&mut self, data: &[u8], name: &str, header: impl FnOnce(Header) -> Header) {
        let name = self.name(name);
        self.put_named(data, name, header);
    }

    fn put_named(&mut self, data: &[u8], name: u32, header: impl FnOnce(Header) -> Header) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let (offset, size) = (self.bytes.len() as u64, data.len() as u64);
        self.headers.push(header(Header { name, offset, size, ..Header::default() }));
        self.bytes.extend_from_slice(data);
    }

    /// The file, with the names of the sections, their headers and the file header; and the number of the last section, which is that of
    /// the names.
    pub(super) fn finish(mut self, r#type: u16, machine: u16) -> (Vec<u8>, u32) {
        let own_name = self.name(".shstrtab");
        let names = core::mem::take(&mut self.names);
        self.put_named(&names, own_name, |header| Header {
            r#type: SHT_STRTAB,
            alignment: 1,
            ..header
        });
        let Self { class, bytes: mut file, headers, .. } = self;
        let (count, strings) = (headers.len() + 1, headers.len());
        let many = count >= 0xff00;
        let null = match many {
            true => Header { size: count as u64, link: strings as u32, ..Header::default() },
            false => Header::default(),
        };
        file.resize(file.len().next_multiple_of(8), 0);
        let at = file.len() as u64;
        for header in [null].iter().chain(&headers) {
            file.extend([header.name, header.r#type].iter().flat_map(|half| half.to_le_bytes()));
            for word in [header.flags, header.address, header.offset, header.size] {
                put_word(&mut file, class, word);
            }
            file.extend([header.link, header.info].iter().flat_map(|half| half.to_le_bytes()));
            put_word(&mut file, class, header.alignment);
            put_word(&mut file, class, header.entry_size);
        }
        let mut start = [b"\x7fELF".as_slice(), &[class, 1, 1], &[0; 9]].concat();
        start.extend([r#type, machine].iter().flat_map(|half| half.to_le_bytes()));
        start.extend(1u32.to_le_bytes());
        for word in [0, 0, at] {
            put_word(&mut start, class, word);
        }
        let [own, row] = if class == ELFCLASS64 { [64, 64] } else { [52, 40] };
        let count = if many { 0 } else { count as u16 };
        let strings_row = if many { SHN_XINDEX } else { strings as u16 };
        start.extend([0; 4]);
        start.extend(
            [own, 0, 0, row, count, strings_row].iter().flat_map(|half: &u16| half.to_le_bytes()),
        );
        file[..start.len()].copy_from_slice(&start);
        (file, strings as u32)
    }
}

/// Appends what has as many bytes as an address.
pub(super) fn put_word(bytes: &mut Vec<u8>, class: u8, word: u64) {
    match class {
        ELFCLASS64 => bytes.extend(word.to_le_bytes()),
        _ => bytes.extend((word as u32).to_le_bytes()),
    }
}
