//! Pairs of instructions that do without a GOT entry, word for word.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use elf_core::{Arch as _, Query, Reach, Record, SectionMut, Site, Special, apply_rewrite, find};
use reloc_aarch64::Aarch64;
use reloc_aarch64::aarch64::{
    R_AARCH64_ADR_GOT_PAGE, R_AARCH64_LD64_GOT_LO12_NC, R_AARCH64_LD64_GOTPAGE_LO15,
};

const PLACE: u64 = 0x1000;
const REACH: Reach = Reach { near: true, low: false, distance: None };

const ADRP_X8: u32 = 0x9000_0008;
const LDR_X8: u32 = 0xf940_0108;

fn relax(site: &Site<'_>, reach: Reach) -> Option<elf_core::Rewrite> {
    let kind = find(Aarch64::KINDS, R_AARCH64_ADR_GOT_PAGE)?;
    let Special::Relax(relax) = kind.special else { return None };
    relax(site, reach)
}

/// The pair, relaxed and relocated for a symbol at `address`.
fn relaxed(pair: [u32; 2], records: [Record; 2], address: u64, reach: Reach) -> Option<[u32; 2]> {
    let mut bytes: Vec<u8> = pair.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rewrite = relax(&Site::new(&bytes, &records, 0)?, reach)?;
    assert_eq!(rewrite.takes, 1);
    let symbol = |_: &Query| Some(address);
    let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: true };
    apply_rewrite::<Aarch64>(&rewrite, &mut section, &symbol).unwrap();
    let word = |at: usize| u32::from_le_bytes(*bytes.get(at..).unwrap().first_chunk().unwrap());
    Some([word(0), word(4)])
}

fn records() -> [Record; 2] {
    let record = |offset, r#type| Record { offset, symbol: 1, r#type, addend: Some(0) };
    [record(0, R_AARCH64_ADR_GOT_PAGE), record(4, R_AARCH64_LD64_GOT_LO12_NC)]
}

#[test]
fn pairs() {
    let pair = [ADRP_X8, LDR_X8];
    // adrp x8, 0x5000000; add x8, x8, #0x123
    let far = [0xf002_7fe8, 0x9104_8d08];
    assert_eq!(relaxed(pair, records(), 0x500_0123, REACH), Some(far));
    // nop; adr x8, .+0xff
    let close = Reach { distance: Some(0x103), ..REACH };
    assert_eq!(relaxed(pair, records(), PLACE + 0x103, close), Some([0xd503_201f, 0x7000_07e8]));
    let edge = |distance| {
        let reach = Reach { distance: Some(distance), ..REACH };
        relaxed(pair, records(), PLACE.wrapping_add_signed(distance), reach).unwrap()[0]
    };
    assert_eq!(edge(0x10_0003), 0xd503_201f);
    assert_ne!(edge(0x10_0004), 0xd503_201f);
    assert_eq!(edge(-0xf_fffc), 0xd503_201f);
    assert_ne!(edge(-0xf_fffd), 0xd503_201f);
}

#[test]
fn what_stays() {
    let stays = |pair, records, reach| assert_eq!(relaxed(pair, records, PLACE, reach), None);
    let pair = [ADRP_X8, LDR_X8];
    stays(pair, records(), Reach { near: false, ..REACH });
    stays([ADRP_X8, LDR_X8 + 1], records(), REACH); // ldr x9, [x8]
    stays([ADRP_X8 + 1, LDR_X8], records(), REACH); // adrp x9
    stays([ADRP_X8 | 0x1f, LDR_X8 | 0x3ff], records(), REACH); // adrp xzr; ldr xzr, [sp]
    stays([ADRP_X8, 0xb940_0108], records(), REACH); // ldr w8, [x8]
    stays([0x1000_0008, LDR_X8], records(), REACH); // adr x8
    let [page, low] = records();
    stays(pair, [page, Record { offset: 8, ..low }], REACH);
    stays(pair, [page, Record { symbol: 2, ..low }], REACH);
    stays(pair, [page, Record { r#type: R_AARCH64_LD64_GOTPAGE_LO15, ..low }], REACH);
    stays(pair, [Record { addend: Some(8), ..page }, Record { addend: Some(8), ..low }], REACH);
    let alone = Site::new(&[0; 8], &[page], 0).and_then(|alone| relax(&alone, REACH));
    assert_eq!(alone, None);
}
