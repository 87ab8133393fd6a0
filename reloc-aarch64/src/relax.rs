//! Instructions that need no GOT entry, for those that use one (AAELF64, section 5.7.3 "Relocation optimization": GOT
//! indirection).
//!
//! ```text
//! adrp x0, :got:foo                adrp x0, foo                  nop
//! ldr  x0, [x0, :got_lo12:foo]     add  x0, x0, :lo12:foo        adr x0, foo, within 1 MiB
//! ```

use elf_core::{Check, Reach, Record, Rewrite, Site};

const REGISTER: u32 = 0x1f;
const ADR: u32 = 0x1000_0000;
const ADRP: u32 = 0x9000_0000;
const ADD: u32 = 0x9100_0000;
const LDR: u32 = 0xf940_0000;
const NOP: u32 = 0xd503_201f;

/// The relocations of a pair and of what stands for it.
pub(crate) struct Numbers {
    /// Of the load, `R_AARCH64_LD64_GOT_LO12_NC`.
    pub(crate) load: u32,
    /// Of `adr`, `R_AARCH64_ADR_PREL_LO21`.
    pub(crate) adr: u32,
    /// Of `adrp`, `R_AARCH64_ADR_PREL_PG_HI21`.
    pub(crate) adrp: u32,
    /// Of `add`, `R_AARCH64_ADD_ABS_LO12_NC`.
    pub(crate) add: u32,
}

/// The pair that stands for an `adrp` and the `ldr` behind it, of one register and one symbol.
pub(crate) fn got_pair(site: &Site<'_>, reach: Reach, numbers: &Numbers) -> Option<Rewrite> {
    let (page, low) = (site.record, &site.next()?);
    if low.r#type != numbers.load
        || low.offset != page.offset.checked_add(4)?
        || (page.symbol, page.addend, low.addend) != (low.symbol, Some(0), Some(0))
        || !reach.near
    {
        return None;
    }
    let [adrp, ldr] = words(site.around::<8>(0)?);
    let register = adrp & REGISTER;
    // neither displacement has anything in it, nor need it
    if adrp & 0x9f00_0000 != ADRP || ldr & 0xffc0_0000 != LDR {
        return None;
    }
    // 31 is the stack pointer to the one and nothing to the other
    if (ldr & REGISTER, ldr >> 5 & REGISTER) != (register, register) || register == 31 {
        return None;
    }
    let relocation = |record: &Record, r#type| Record { r#type, ..*record };
    // the distance is from the first of them, the new instruction is the second
    let is_close =
        reach.distance.is_some_and(|far| Check::Signed(21).holds(far.wrapping_sub(4) as u64));
    let rewrite = if is_close {
        Rewrite::new(page, 0, bytes([NOP, ADR | register])).with(relocation(low, numbers.adr))
    } else {
        Rewrite::new(page, 0, bytes([ADRP | register, ADD | register << 5 | register]))
            .with(relocation(page, numbers.adrp))
            .with(relocation(low, numbers.add))
    };
    Some(rewrite.taking(1))
}

/// Two instructions.
fn words(bytes: &[u8; 8]) -> [u32; 2] {
    let word = u64::from_le_bytes(*bytes);
    [word as u32, (word >> 32) as u32]
}

/// Their bytes.
fn bytes([first, second]: [u32; 2]) -> [u8; 8] {
    (u64::from(second) << 32 | u64::from(first)).to_le_bytes()
}
