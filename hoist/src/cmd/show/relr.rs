//! Relative relocations in the packed form (gABI, "Relative Relocation Table"): only places, every one `R_.._RELATIVE`.

use elf_core::names::SHT_RELR;
use elf_core::{Error, ErrorKind, File, SectionHeader};

/// The places of a section of type `SHT_RELR`, in order; `None` for other types.
pub(super) fn places<'a>(
    file: &File<'a>,
    section: &SectionHeader,
) -> Result<Option<impl Iterator<Item = u64> + Clone + use<'a>>, Error> {
    if section.r#type != SHT_RELR {
        return Ok(None);
    }
    let (size, big) =
        (if file.encoding().is_64() { 8 } else { 4 }, file.encoding().is_big_endian());
    let data = file.section_data(section)?;
    if data.len() % size != 0 {
        let kind = ErrorKind::UnevenTable {
            what: "packed relocations",
            size: section.size,
            entry: size as u64,
        };
        return Err(Error { at: section.offset, kind });
    }
    let words = data.chunks_exact(size).map(move |bytes| {
        let fold = |word, &byte: &u8| word << 8 | u64::from(byte);
        if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
    });
    let (step, bits) = (size as u64, size as u64 * 8 - 1);
    let mut base = 0u64;
    Ok(Some(words.flat_map(move |word| {
        // an address and the place behind it; or, of the places that follow, those whose bits are set
        let (first, map) = if word & 1 == 0 { (word, 1) } else { (base, word >> 1) };
        base = if word & 1 == 0 {
            word.wrapping_add(step)
        } else {
            base.wrapping_add(bits.wrapping_mul(step))
        };
        let set = (0..bits).filter(move |bit| map >> bit & 1 != 0);
        set.map(move |bit| first.wrapping_add(bit.wrapping_mul(step)))
    })))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn addresses_and_bitmaps() {
        let words = [0x1000u64, 0b1011, 1 << 63 | 1, 0x2000];
        let mut bytes: Vec<u8> =
            Vec::from(*include_bytes!("../../../../fixtures/x86_64/elftest.o"));
        let section = SectionHeader {
            r#type: SHT_RELR,
            offset: bytes.len() as u64,
            size: 32,
            ..SectionHeader::default()
        };
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let file = File::parse(&bytes).unwrap();
        let places: Vec<u64> = places(&file, &section).unwrap().unwrap().collect();
        assert_eq!(places, [0x1000, 0x1008, 0x1018, 0x1008 + 63 * 8 + 62 * 8, 0x2000]);
        assert!(super::places(&file, &SectionHeader { size: 31, ..section }).is_err());
    }
}
