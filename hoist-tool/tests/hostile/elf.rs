//! Objects for x86-64, written by hand.

/// A section.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) bytes: &'a [u8],
    /// Its size, if that is not how many bytes it has.
    pub(crate) size: u64,
}

impl<'a> Section<'a> {
    /// Data that are loaded and writable.
    pub(crate) fn bytes(name: &'a str, bytes: &'a [u8]) -> Self {
        Self { name, kind: 1, flags: 3, bytes, size: bytes.len() as u64 }
    }

    /// `.bss`.
    pub(crate) fn zeros(size: u64) -> Self {
        Self { name: ".bss", kind: 8, flags: 3, bytes: &[], size }
    }
}

/// A relocatable object of these sections, numbered from 1, and global functions: where their names start in one long name, and
/// their section. Behind them stand the symbols, the long name, and the names of sections.
pub(crate) fn object(sections: &[Section<'_>], symbols: &[(u32, u16)]) -> Vec<u8> {
    let mut file = vec![0; 64];
    let mut headers = vec![[0u8; 64]];
    let mut names = vec![0u8];
    let mut add = |file: &mut Vec<u8>, section: Section<'_>, link: u32, info: u32, entry: u64| {
        let name = names.len() as u32;
        names.extend(section.name.as_bytes());
        names.push(0);
        file.resize(file.len().next_multiple_of(8), 0);
        let fields: [&[u8]; 10] = [
            &name.to_le_bytes(),
            &section.kind.to_le_bytes(),
            &section.flags.to_le_bytes(),
            &[0; 8],
            &(file.len() as u64).to_le_bytes(),
            &section.size.to_le_bytes(),
            &link.to_le_bytes(),
            &info.to_le_bytes(),
            &8u64.to_le_bytes(),
            &entry.to_le_bytes(),
        ];
        file.extend(section.bytes);
        headers.push(fields.concat().try_into().expect("a header"));
    };
    for section in sections {
        let entry = if section.kind == 19 { 8 } else { 0 };
        add(&mut file, *section, 0, 0, entry);
    }
    let table = 1 + sections.len() as u32;
    if !symbols.is_empty() {
        let mut rows = vec![0; 24];
        for (name, section) in symbols {
            rows.extend(name.to_le_bytes());
            rows.extend([0x12, 0]);
            rows.extend(section.to_le_bytes());
            rows.extend([0; 16]);
        }
        let longest = symbols.iter().map(|(name, _)| *name).max().unwrap_or_default() as usize;
        let text = [&[0][..], &vec![b'x'; longest + 4], &[0]].concat();
        let plain = |name, kind, bytes| Section { kind, flags: 0, ..Section::bytes(name, bytes) };
        add(&mut file, plain(".symtab", 2, &rows), table + 1, 1, 24);
        add(&mut file, plain(".strtab", 3, &text), 0, 0, 0);
    }
    // the names of sections, which end with their own
    let at = names.len() as u32;
    names.extend(b".shstrtab\0");
    let start = file.len() as u64;
    let mut header = [0u8; 64];
    header[..4].copy_from_slice(&at.to_le_bytes());
    header[4] = 3;
    header[24..32].copy_from_slice(&start.to_le_bytes());
    header[32..40].copy_from_slice(&(names.len() as u64).to_le_bytes());
    header[48] = 1;
    file.extend(&names);
    headers.push(header);
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    let count = headers.len() as u16;
    file.extend(headers.concat());
    file[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0");
    file[20] = 1;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[52] = 64;
    file[58] = 64;
    file[60..62].copy_from_slice(&count.to_le_bytes());
    file[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    file
}

fn header(file: &[u8], index: usize) -> usize {
    u64::from_le_bytes(file[40..48].try_into().expect("8 bytes")) as usize + 64 * index
}

/// Where section `index` is in the file.
pub(crate) fn offset_of(file: &[u8], index: usize) -> u64 {
    let at = header(file, index) + 24;
    u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes"))
}

/// Puts section `index` elsewhere.
pub(crate) fn set_offset(file: &mut [u8], index: usize, offset: u64) {
    let at = header(file, index) + 24;
    file[at..at + 8].copy_from_slice(&offset.to_le_bytes());
}
