//! Code that becomes shorter (LoongArch ABI, "Linker Relaxation"; newer lld for what that leaves to it): each record of which `RELAX` says
//! that it may.
//!
//! - A call of 36 bits that reaches its target becomes `bl`, or `b` where nothing is linked.
//! - An address, or one in the GOT, that `pcaddi` reaches needs no `pcalau12i` and `addi.d` or `ld.d`. The entry stays.
//! - A variable less than 2 KiB from the thread pointer needs no `lu12i.w` and `add.d`.
//! - Of a TLS descriptor and of initial exec that become local exec the NOPs go.
//! - What makes the address of an entry for `__tls_get_addr` becomes `pcaddi` as other addresses do.
//!
//! The instructions of a group are decided one by one, as lld does. So that all come to the same answer, the first two are let go only if the
//! whole variable is in reach from the addend on.

use elf_core::{Addresses, Check, Record, Rewrite, Site};

const B: u32 = 0x5000_0000;
const BL: u32 = 0x5400_0000;
const PCADDI: u32 = 0x1800_0000;
const ADDI_D: u32 = 0x02c0_0000;
const LD_D: u32 = 0x28c0_0000;
const RA: u32 = 1;
/// `tp`, where instructions take what they count from.
const FROM_TP: u32 = 2 << 5;

/// `pcaddu18i rX; jirl rY, rX`. `MARK` is the number of `RELAX`, `BRANCH` of `B26`.
pub(crate) fn call<const MARK: u32, const BRANCH: u32>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let [pcaddu18i, jirl] = *site.around::<8>(0)?.as_chunks::<4>().0 else { return None };
    let [pcaddu18i, jirl] = [pcaddu18i, jirl].map(u32::from_le_bytes);
    let is_pair = pcaddu18i >> 25 == 0xf && jirl >> 26 == 0x13 && jirl >> 5 & 31 == pcaddu18i & 31;
    let code = match jirl & 31 {
        0 => B,
        RA => BL,
        _ => return None,
    };
    let distance = to.distance?.checked_add(record.addend?)?.cast_unsigned();
    let reaches = distance & 3 == 0 && Check::Signed(28).holds(distance);
    (may_relax::<MARK>(site) && is_pair && reaches).then(|| {
        let rewrite = Rewrite::new(record, 0, code.to_le_bytes());
        rewrite.with(Record { r#type: BRANCH, ..*record }).deleting(4)
    })
}

/// `pcalau12i rX, %pc_hi20(symbol)` and `addi.d rX, rX, %pc_lo12(symbol)`. `LOW` is the number of the second relocation, `SHORT` of
/// `PCREL20_S2`.
pub(crate) fn address<const MARK: u32, const LOW: u32, const SHORT: u32>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let rewrite = pcaddi::<MARK>(site, (LOW, ADDI_D), to.distance);
    rewrite.map(|it| it.with(Record { r#type: SHORT, ..*record }))
}

/// The same of the entry of a thread-local variable for `__tls_get_addr`, in the GOT.
pub(crate) fn dynamic<const MARK: u32, const LOW: u32, const SHORT: u32>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let rewrite = pcaddi::<MARK>(site, (LOW, ADDI_D), to.tls_entry);
    rewrite.map(|it| it.with(Record { r#type: SHORT, ..*record }))
}

/// The same of `ld.d` that loads the address from the GOT.
pub(crate) fn entry<const MARK: u32, const LOW: u32, const SHORT: u32>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    // the addend would be one of the entry's address
    let rewrite =
        pcaddi::<MARK>(site, (LOW, LD_D), to.distance).filter(|_| record.addend == Some(0));
    rewrite.map(|it| it.with(Record { r#type: SHORT, ..*record }))
}

/// `pcaddi` for two instructions that stand together, both marked, the second of which is `opcode` and has a relocation `low`.
fn pcaddi<const MARK: u32>(
    site: &Site<'_>,
    (low, opcode): (u32, u32),
    distance: Option<i64>,
) -> Option<Rewrite> {
    let Record { offset, symbol, addend, .. } = *site.record;
    let second = Record { offset: offset.checked_add(4)?, symbol, r#type: low, addend };
    let is_mark = |count, offset| {
        site.following(count).is_some_and(|next| next.r#type == MARK && next.offset == offset)
    };
    let is_pair = is_mark(1, offset) && site.following(2)? == second && is_mark(3, second.offset);
    let [first, next] = *site.around::<8>(0)?.as_chunks::<4>().0 else { return None };
    let [first, next] = [first, next].map(u32::from_le_bytes);
    let register = first & 31;
    let is_code = first >> 25 == 0xd && next & 0xffc0_03ff == opcode | register << 5 | register;
    let distance = distance?.checked_add(addend?)?.cast_unsigned();
    let reaches = distance & 3 == 0 && Check::Signed(22).holds(distance);
    let code = (PCADDI | register).to_le_bytes();
    (is_pair && is_code && reaches)
        .then(|| Rewrite::new(site.record, 0, code).deleting(4).taking(2))
}

/// An instruction of those that make a descriptor's address.
pub(crate) fn descriptor_address<const MARK: u32>(
    site: &Site<'_>,
    _: &Record,
    to: &Addresses,
) -> bool {
    to.from_thread_pointer.is_some() && may_relax::<MARK>(site)
}

/// An instruction for which there is `lu12i.w` where the offset has more than the 12 bits of `ori`: `ld.d ra, a0, %desc_ld(symbol)`,
/// `pcalau12i rX, %ie_pc_hi20(symbol)`.
pub(crate) fn needs_no_upper_part<const MARK: u32>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> bool {
    let offset = to.from_thread_pointer.zip(record.addend);
    let offset = offset.and_then(|(variable, addend)| variable.checked_add(addend));
    offset.is_some_and(|offset| (0..0x1000).contains(&offset)) && may_relax::<MARK>(site)
}

/// `lu12i.w rX, %le_hi20_r(symbol)`, and the `add.d` of `tp` behind it.
pub(crate) fn local_exec_high<const MARK: u32>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let addend = record.addend?;
    let first = to.from_thread_pointer?.checked_add(addend)?;
    let rest = to.size.saturating_sub(addend.max(0).cast_unsigned()).saturating_sub(1);
    let is_near = reaches(first) && first.checked_add_unsigned(rest).is_some_and(reaches);
    (is_near && may_relax::<MARK>(site)).then(|| Rewrite::new(record, 0, []).deleting(4))
}

/// An instruction with `%le_lo12_r(symbol)`: it counts from `tp`.
pub(crate) fn local_exec_low<const MARK: u32>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let offset = to.from_thread_pointer?.checked_add(record.addend?)?;
    let code = u32::from_le_bytes(*site.around::<4>(0)?);
    let code = code & !(31 << 5) | FROM_TP;
    let rewrite = Rewrite::new(record, 0, code.to_le_bytes());
    (reaches(offset) && may_relax::<MARK>(site)).then(|| rewrite.with(*record))
}

/// Whether an instruction of 12 bits holds the offset.
fn reaches(offset: i64) -> bool {
    (-0x800..0x800).contains(&offset)
}

/// Whether the record of the site is one of those that may be relaxed: the mark is the next record.
fn may_relax<const MARK: u32>(site: &Site<'_>) -> bool {
    let offset = site.record.offset;
    site.next().is_some_and(|next| next.r#type == MARK && next.offset == offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loongarch::{
        KINDS, R_LARCH_B26, R_LARCH_CALL36, R_LARCH_RELAX, R_LARCH_TLS_LE_HI20_R,
        R_LARCH_TLS_LE_LO12_R,
    };
    use core::array::from_fn;
    use elf_core::{Special, find};

    /// What stands for two instructions whose record is marked, or not.
    fn relaxed(
        words: [u32; 2],
        (r#type, addend): (u32, i64),
        to: &Addresses,
        is_marked: bool,
    ) -> Option<Rewrite> {
        let words = words.map(u32::to_le_bytes);
        let bytes: [u8; 8] = from_fn(|at| words[at / 4][at % 4]);
        let record = Record { offset: 0, symbol: 3, r#type, addend: Some(addend) };
        let mark = Record { offset: 0, symbol: 0, r#type: R_LARCH_RELAX, addend: Some(0) };
        let records = [record, mark];
        let records = if is_marked { &records[..] } else { &records[..1] };
        let site = Site::new(&bytes, records, 0).unwrap();
        let Some(Special::Shrink(shrink)) = find(KINDS, r#type).map(|kind| kind.special) else {
            panic!("{}", r#type);
        };
        (shrink.rewrite)(&site, &record, to)
    }

    fn distance(distance: i64) -> Addresses {
        let mut to = Addresses::default();
        to.distance = Some(distance);
        to
    }

    fn variable(offset: i64, size: u64) -> Addresses {
        let mut to = Addresses::default();
        (to.from_thread_pointer, to.size) = (Some(offset), size);
        to
    }

    /// `pcaddu18i ra, 0; jirl ra, ra, 0`
    const CALL36: [u32; 2] = [0x1e00_0001, 0x4c00_0021];

    #[test]
    fn calls() {
        let of = |words, addend, to| relaxed(words, (R_LARCH_CALL36, addend), &distance(to), true);
        let bl = of(CALL36, 4, 0x100).unwrap();
        assert_eq!((bl.code, bl.size, bl.deletes), (BL.into(), 4, 4));
        let record = bl.records[0].unwrap();
        assert_eq!((record.r#type, record.addend, record.symbol), (R_LARCH_B26, Some(4), 3));
        // pcaddu18i t0, 0; jr t0
        assert_eq!(of([0x1e00_000c, 0x4c00_0180], 0, 0).unwrap().code, B.into());
        for (to, fits) in [
            (0x7ff_fffc, true),
            (0x800_0000, false),
            (-0x800_0000, true),
            (-0x800_0004, false),
            (2, false),
        ] {
            assert_eq!(of(CALL36, 0, to).is_some(), fits, "{to:#x}");
            assert_eq!(of(CALL36, 4, to - 4).is_some(), fits, "{to:#x}");
        }
        assert!(of(CALL36, 1, i64::MAX).is_none());
        // to t0, by way of another register, no jirl, no pcaddu18i
        for words in [
            [0x1e00_0001, 0x4c00_002c],
            [0x1e00_0001, 0x4c00_0181],
            [0x1e00_0001, 0x5000_0021],
            [0x1c00_0001, 0x4c00_0021],
        ] {
            assert!(of(words, 0, 0).is_none(), "{words:x?}");
        }
        let unmarked = relaxed(CALL36, (R_LARCH_CALL36, 0), &distance(0), false);
        assert!(unmarked.is_none());
        let unknown = Addresses::default();
        assert!(relaxed(CALL36, (R_LARCH_CALL36, 0), &unknown, true).is_none());
    }

    #[test]
    fn variables() {
        // lu12i.w a0, 0
        let high = |addend, to: &Addresses| {
            let record = (R_LARCH_TLS_LE_HI20_R, addend);
            let gone = relaxed([0x1400_0004, 0], record, to, true)?;
            Some((gone.size, gone.deletes))
        };
        assert_eq!(high(0, &variable(0x7fc, 4)), Some((0, 4)));
        assert_eq!(high(0, &variable(0x7fc, 5)), None, "its end is out of reach");
        assert_eq!(high(4, &variable(0x7fc, 4)), None);
        assert_eq!(high(4, &variable(0x7f8, 8)), Some((0, 4)));
        assert_eq!(high(-0x801, &variable(0, 4)), None);
        assert_eq!(high(0, &variable(0, u64::MAX)), None);
        // ld.w a1, a0, 0
        let low = |addend, to: &Addresses| {
            let record = (R_LARCH_TLS_LE_LO12_R, addend);
            let kept = relaxed([0x2880_0085, 0], record, to, true)?;
            assert_eq!((kept.size, kept.deletes, kept.records[0].is_some()), (4, 0, true));
            Some(kept.code)
        };
        // ld.w a1, tp, ..: the relocation fills the rest
        assert_eq!(low(0x7ff, &variable(0, 4)), Some(0x2880_0045));
        assert_eq!(low(0x800, &variable(0, 4)), None);
        assert_eq!(low(-0x800, &variable(0, 4)), Some(0x2880_0045));
    }
}
