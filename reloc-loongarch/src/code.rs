//! What the instructions at a place say, where the number of a relocation does not.

use elf_core::{Site, Unencodable};

/// Whether the instruction begins a sequence that makes 64 bits: the ABI has all four stand together, the last three of one register.
pub(crate) fn makes_64_bits(site: &Site<'_>) -> bool {
    begins_64_bits(site, 0)
}

/// Whether the instruction is the second of such a sequence.
pub(crate) fn is_in_64_bits(site: &Site<'_>) -> bool {
    begins_64_bits(site, 4)
}

/// Whether the one that starts so many bytes before the place begins such a sequence.
fn begins_64_bits(site: &Site<'_>, before: u64) -> bool {
    let Some(bytes) = site.around::<16>(before) else { return false };
    let [[_, second, third, fourth]] = *bytes.as_chunks::<4>().0.as_chunks::<4>().0 else {
        return false;
    };
    let [second, third, fourth] = [second, third, fourth].map(u32::from_le_bytes);
    let register = second & 0x1f;
    // addi.d rd, zero, lower; or ori rd, rd, lower
    (second & 0xffc0_03e0 == 0x02c0_0000 || second & 0xffc0_03e0 == 0x0380_0000 | register << 5)
        // lu32i.d rd, ..
        && third & 0xfe00_001f == 0x1600_0000 | register
        // lu52i.d rd, rd, ..
        && fourth & 0xffc0_03ff == 0x0300_0000 | register << 5 | register
}

/// Whether the instruction is `jirl`, of whose 16 bits only a few are the lower part of an address.
pub(crate) fn is_jirl(site: &Site<'_>) -> bool {
    site.around::<4>(0).is_some_and(|bytes| u32::from_le_bytes(*bytes) >> 26 == 0x13)
}

/// Fills bits 25 to 20 of `jirl` with the sign of a lower part of 12 bits, which is in bits 19 to 10.
#[expect(clippy::unnecessary_wraps, reason = "an encoder may fail")]
pub(crate) const fn jirl_sign(word: u64, _: i64, _: u8) -> Result<u64, Unencodable> {
    const SIGN: u64 = 0x3f << 20;
    Ok(if word >> 19 & 1 == 0 { word & !SIGN } else { word | SIGN })
}

/// Fills the same bits of the second of two instructions with zeros: its lower part has no sign.
#[expect(clippy::unnecessary_wraps, reason = "an encoder may fail")]
pub(crate) const fn without_jirl_sign(word: u64, _: i64, _: u8) -> Result<u64, Unencodable> {
    Ok(word & !(0x3f << 52))
}
