//! Programs that have relative relocations only, and what is refused of them.
#![cfg(test)]

use elf_core::names::{
    DT_ANDROID_RELA, DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELAENT, DT_RELASZ, DT_RELR, DT_RELRENT,
    DT_RELRSZ, PT_DYNAMIC,
};
use elf_core::{Arch, File, Query};
use elf_image::{AddressKind, Error, ErrorKind, Image};
use reloc_arm::Arm;
use reloc_x86::X86_64;

const RELA: &[u8] = include_bytes!("../../fixtures/x86_64/static-pie");
const RELR: &[u8] = include_bytes!("../../fixtures/x86_64/static-pie-relr");
const REL_32: &[u8] = include_bytes!("../../fixtures/arm/static-pie");
const RELR_32: &[u8] = include_bytes!("../../fixtures/arm/static-pie-relr");
const BASE: u64 = 0x4000_0000;

fn parse(bytes: &[u8]) -> Result<Image<'_>, Error> {
    Image::parse(File::parse_segments(bytes)?, AddressKind::Virtual)
}

/// The image before and after.
fn relocated<A: Arch>(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let image = parse(bytes)?;
    let mut memory = vec![0; usize::try_from(image.size()).unwrap().min(1 << 24)];
    image.write(&mut memory)?;
    let before = memory.clone();
    image.relocate_relative::<A>(&mut memory, BASE)?;
    Ok((before, memory))
}

/// What is relocated in little code is what all relocations make of it.
fn agrees<A: Arch>(bytes: &[u8]) {
    let (before, memory) = relocated::<A>(bytes).unwrap();
    let mut all = before.clone();
    let image = parse(bytes).unwrap();
    image.relocate::<A>(&mut all, BASE, &|_: &Query| None).unwrap();
    assert_eq!(memory, all);
    let size = A::ADDRESS_SIZE as usize;
    let words = memory.chunks_exact(size).zip(before.chunks_exact(size));
    let changed = words.filter(|(word, before)| word != before).count();
    // every pointer of the source
    assert!(changed == 8, "{changed}");
}

/// Rows are applied in parts, the last first, and the others then without them: the result is that of all.
#[test]
fn rows_in_parts() {
    let image = parse(RELA).unwrap();
    let (before, all) = relocated::<X86_64>(RELA).unwrap();
    let (rows, bias) = (image.relative_rows::<X86_64>().unwrap(), image.bias(BASE).unwrap());
    assert_eq!((rows.len(), rows.is_empty()), (8, false));
    for middle in 1..rows.len() {
        let cut = usize::try_from(rows.place(middle).unwrap()).unwrap();
        let mut memory = before.clone();
        let (first, last) = memory.split_at_mut(cut);
        let [one, two] = [0..middle, middle..8].map(|range| rows.slice(range).unwrap());
        assert!(two.apply(last, cut as u64, bias) && one.apply(first, 0, bias));
        assert_eq!(memory, all);
        // places of the other part
        assert!(!one.apply(&mut memory[cut..], cut as u64, bias));
        assert!(!two.apply(&mut memory[..cut], 0, bias));
        // once more
        assert!(rows.apply(&mut memory, 0, bias));
        assert_eq!(memory, all);
    }
    assert!(rows.slice(0..9).is_none() && rows.place(8).is_none());
    assert!(!rows.apply(&mut [], 0, bias));
    assert!(image.relative_rows::<Arm>().is_none());
    assert!(parse(RELR).unwrap().relative_rows::<X86_64>().is_none());

    for done in 0..=8 {
        let mut memory = before.clone();
        assert!(rows.slice(0..done).unwrap().apply(&mut memory, 0, bias));
        let mut asked = 0;
        let none = |_: &Query| None;
        let count = |_: &elf_core::Record, _: &'static elf_core::Kind| {
            asked += 1;
            true
        };
        image.relocate_within::<X86_64>(&mut memory, BASE, &none, (0..0, done), count).unwrap();
        assert_eq!((memory, asked), (all.clone(), 8 - done));
    }
}

#[test]
fn is_what_all_relocations_make() {
    agrees::<X86_64>(RELA);
    agrees::<X86_64>(RELR);
    agrees::<Arm>(REL_32);
    agrees::<Arm>(RELR_32);
}

/// A copy whose dynamic section has another word: where the tag is, 0 the tag itself or 1 the value, and what is there then.
fn changed(bytes: &[u8], tag: u64, word: usize, value: u64) -> Vec<u8> {
    let file = File::parse(bytes).unwrap();
    let segment = file.segments().iter().find(|it| it.r#type == PT_DYNAMIC).unwrap();
    let start = usize::try_from(segment.offset).unwrap();
    let mut bytes = bytes.to_vec();
    let at = (start..).step_by(16).find(|at| bytes[*at..at + 8] == tag.to_le_bytes()).unwrap();
    bytes[at + 8 * word..][..8].copy_from_slice(&value.to_le_bytes());
    bytes
}

#[test]
fn what_is_refused() {
    let kind = |bytes: &[u8]| relocated::<X86_64>(bytes).unwrap_err().kind;
    let size = 8 * 24;
    assert_eq!(
        kind(&changed(RELA, DT_RELASZ, 1, size - 1)),
        ErrorKind::Rows { tag: DT_RELA, left: 23 }
    );
    assert_eq!(kind(&changed(RELR, DT_RELRSZ, 1, 31)), ErrorKind::Rows { tag: DT_RELR, left: 7 });
    let address = 0x10_0000;
    let outside = ErrorKind::Outside { address, size };
    assert_eq!(kind(&changed(RELA, DT_RELA, 1, address)), outside);
    let size = u64::MAX - 0x100;
    let outside = ErrorKind::Outside { address: 0x248, size };
    assert_eq!(kind(&changed(RELA, DT_RELASZ, 1, size)), outside);
    for tag in [DT_ANDROID_RELA, DT_PLTRELSZ] {
        let form = if tag == DT_PLTRELSZ { DT_JMPREL } else { tag };
        assert_eq!(kind(&changed(RELA, DT_RELA, 0, tag)), ErrorKind::Form { tag: form });
    }
    // what `relocate` tells in the same words
    for (bytes, tag, word, value, why) in [
        (RELA, DT_RELAENT, 1, 16, "DT_RELAENT is 16, not 24, at offset 0x"),
        (RELR, DT_RELRENT, 1, 0, "DT_RELRENT is 0, not 8, at offset 0x"),
        (RELA, DT_RELASZ, 0, 0x7777_7777, "DT_RELASZ is missing, at offset 0x"),
        (RELR, DT_RELRSZ, 0, 0x7777_7777, "DT_RELRSZ is missing, at offset 0x"),
    ] {
        let bytes = changed(bytes, tag, word, value);
        let error = relocated::<X86_64>(&bytes).unwrap_err();
        assert!(error.to_string().starts_with(why), "{error}");
        let image = parse(&bytes).unwrap();
        let mut memory = vec![0; usize::try_from(image.size()).unwrap()];
        let own = image.own_symbols::<X86_64>(0x1_0000).unwrap();
        assert_eq!(image.relocate::<X86_64>(&mut memory, 0x1_0000, &own), Err(error));
    }
    // a map before all addresses
    let file = File::parse(RELR).unwrap();
    let table = file.dynamic_by_segment().unwrap().unwrap().value(DT_RELR).unwrap();
    let at = usize::try_from(file.offset_of(table).unwrap()).unwrap();
    let mut bytes = RELR.to_vec();
    bytes[at..at + 8].copy_from_slice(&3u64.to_le_bytes());
    assert_eq!(kind(&bytes), ErrorKind::Map { address: table });
    // a place outside
    let mut bytes = RELA.to_vec();
    bytes[0x248..0x250].copy_from_slice(&address.to_le_bytes());
    assert_eq!(
        relocated::<X86_64>(&bytes).unwrap_err().to_string(),
        "relocation R_X86_64_RELATIVE at offset 0x100000: outside the section of 0x3600 bytes"
    );
    // one that says nothing, and one of a type that there is not
    let mut bytes = RELA.to_vec();
    bytes[0x250] = 0;
    assert!(relocated::<X86_64>(&bytes).is_ok());
    bytes[0x250] = 250;
    assert!(matches!(relocated::<X86_64>(&bytes).unwrap_err().kind, ErrorKind::NotRelative(_)));
}

/// Without a dynamic section there is nothing to do; one that is not in the image is told.
#[test]
fn dynamic_sections() {
    let file = File::parse(RELA).unwrap();
    let headers = usize::try_from(file.header().program_headers).unwrap();
    let number = file.segments().iter().position(|it| it.r#type == PT_DYNAMIC).unwrap();
    let at = headers + 56 * number;
    let mut bytes = RELA.to_vec();
    bytes[at..at + 4].copy_from_slice(&0u32.to_le_bytes());
    let (before, memory) = relocated::<X86_64>(&bytes).unwrap();
    assert!(before == memory);
    let mut bytes = RELA.to_vec();
    bytes[at + 16..at + 24].copy_from_slice(&0x9000_0000u64.to_le_bytes());
    let error = relocated::<X86_64>(&bytes).unwrap_err().kind;
    assert!(matches!(error, ErrorKind::Outside { address: 0x9000_0000, .. }), "{error:?}");
}

#[test]
fn truncations_and_changes() {
    for (bytes, is_64) in [(RELA, true), (RELR, true), (REL_32, false), (RELR_32, false)] {
        let load = |bytes: &[u8]| match is_64 {
            true => relocated::<X86_64>(bytes),
            false => relocated::<Arm>(bytes),
        };
        let whole = load(bytes).unwrap();
        for end in 0..bytes.len() {
            // what is behind the last segment says nothing to a loader
            assert!(load(&bytes[..end]).is_err() || load(&bytes[..end]).unwrap() == whole);
        }
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut refused = 0;
        for _ in 0..10_000 {
            let mut changed = bytes.to_vec();
            // where headers, tables and the dynamic section are
            for _ in 0..1 + next() % 3 {
                let at = (next() % 0x400) as usize % changed.len();
                changed[at] = next() as u8;
            }
            match load(&changed) {
                Ok((before, memory)) => assert_eq!(before.len(), memory.len()),
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        assert!((100..9_900).contains(&refused), "{refused} refused");
    }
}
