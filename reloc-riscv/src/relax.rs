//! Code that becomes shorter (RISC-V psABI, "Linker Relaxation"): each record of which `RELAX` says that it may.
//!
//! - A call that reaches its target becomes `jal`, `c.j` where nothing is linked, `c.jal` on RV32.
//! - What `lui` and an instruction with the lower part address, and what `auipc` and such a one do, is counted from `gp` if code may,
//!   and from `x0` near address 0: the first instruction goes. A `lui` of a small value becomes `c.lui`.
//! - A variable less than 2 KiB from the thread pointer needs no `lui` and `add`.
//! - Of a TLS descriptor that becomes local exec the first two instructions go, and the third where the variable is that near.
//!
//! The instruction that goes and those with the lower parts are decided one by one, as linkers do. So that all of a group come to the same
//! answer, the first is let go only if the whole symbol is in reach from its addend on. Of a symbol without a size nobody knows how far
//! that is: its `lui` is not let go for `gp`, as linkers would. Around 0 and the thread pointer one upper part is all that is in reach.

use elf_core::names::EF_RISCV_RVC;
use elf_core::{Addresses, Alignment, Check, Padding, Record, Rewrite, Site};

pub(crate) const PADDING: Padding = Padding::new(alignment, &[&[0x13, 0, 0, 0], &[0x01, 0]]);
/// Numbers of relocations.
pub(crate) trait Numbers {
    const RELAX: u32;
    const JAL: u32;
    const RVC_JUMP: u32;
    const RVC_LUI: u32;
}

/// `x0`, `gp` and `tp`, where loads and additions take them.
const ZERO: u32 = 0;
const GLOBAL_POINTER: u32 = 3 << 15;
const THREAD_POINTER: u32 = 4 << 15;

/// Behind the A bytes of padding is a multiple of the least power of two above A.
fn alignment(record: &Record) -> Alignment {
    let padding = record.addend.unwrap_or(0).cast_unsigned();
    // all ones from the highest bit of A down
    let low = u64::MAX.unbounded_shr(padding.leading_zeros());
    Alignment { padding, alignment: low.wrapping_add(1), most: u64::MAX }
}

/// `auipc rx; jalr rd, rx`
pub(crate) fn call<N: Numbers>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let [auipc, jalr] = words(site.around::<8>(0)?);
    if !may_relax::<N>(site) || auipc & 0x7f != 0x17 || jalr & 0x707f != 0x67 {
        return None;
    }
    let link = jalr & 0xf80;
    let distance = to.distance?.checked_add(record.addend?)?.cast_unsigned();
    // `jalr` ignores bit 0, of which the shorter ones have none
    if distance & 1 != 0 {
        return None;
    }
    let is_compressed = to.flags & EF_RISCV_RVC != 0 && Check::Signed(12).holds(distance);
    let with = |r#type| Record { r#type, ..*record };
    let short = match link {
        0 => Some(0xa001u16),
        0x80 if to.address_size == 4 => Some(0x2001),
        _ => None,
    };
    if let Some(code) = short.filter(|_| is_compressed) {
        let rewrite = Rewrite::new(record, 0, code.to_le_bytes());
        return Some(rewrite.with(with(N::RVC_JUMP)).deleting(6));
    }
    Check::Signed(21).holds(distance).then(|| {
        let rewrite = Rewrite::new(record, 0, (link | 0x6f).to_le_bytes());
        rewrite.with(with(N::JAL)).deleting(4)
    })
}

/// `lui rd, %hi(symbol)`
pub(crate) fn high<N: Numbers>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let [lui] = words(site.around::<4>(0)?);
    let addend = record.addend?;
    if !may_relax::<N>(site) || lui & 0x7f != 0x37 {
        return None;
    }
    let whole = |start: Option<i64>| all_in_reach(start, addend, to.size);
    if to.size > 0 && whole(to.from_global_pointer) || whole(to.absolute) {
        return Some(gone(site));
    }
    let value = to.absolute?.checked_add(addend)?;
    let register = lui & 0xf80;
    // of 0 and of the stack pointer there is no c.lui; a page more is what GNU ld leaves for what may come to stand between
    let fits = |value: i64| {
        let high = value.wrapping_add(0x800) >> 12;
        high != 0 && (-0x20..0x20).contains(&high)
    };
    let is_compressed =
        to.flags & EF_RISCV_RVC != 0 && fits(value) && fits(value.wrapping_add(0x1000));
    (is_compressed && register != 0 && register != 0x100).then(|| {
        let code = register as u16 | 0x6001;
        let rewrite = Rewrite::new(record, 0, code.to_le_bytes());
        rewrite.with(Record { r#type: N::RVC_LUI, ..*record }).deleting(2)
    })
}

/// An instruction with `%lo(symbol)`.
pub(crate) fn low<N: Numbers>(site: &Site<'_>, record: &Record, to: &Addresses) -> Option<Rewrite> {
    if !may_relax::<N>(site) {
        return None;
    }
    let addend = record.addend?;
    let from_global_pointer = counted(site, (GLOBAL_POINTER, to.from_global_pointer), addend);
    from_global_pointer.or_else(|| counted(site, (ZERO, to.absolute), addend))
}

/// `auipc rd, %pcrel_hi(symbol)`
pub(crate) fn pcrel_high<N: Numbers>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let [auipc] = words(site.around::<4>(0)?);
    let addend = record.addend?;
    let is_near = all_in_reach(to.from_global_pointer, addend, to.size);
    (is_near && auipc & 0x7f == 0x17 && may_relax_upper::<N>(site, record)).then(|| gone(site))
}

/// An instruction with `%pcrel_lo(label)`, by the `auipc` there.
pub(crate) fn pcrel_low<N: Numbers>(
    site: &Site<'_>,
    high: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let addend = high.addend?;
    let is_near = all_in_reach(to.from_global_pointer, addend, to.size);
    if !is_near || !may_relax::<N>(site) || !may_relax_upper::<N>(site, high) {
        return None;
    }
    counted(site, (GLOBAL_POINTER, to.from_global_pointer), addend)
}

/// `lui rd, %tprel_hi(symbol)`, and the `add` of `tp` behind it.
pub(crate) fn tprel_high<N: Numbers>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let is_near = all_in_reach(to.from_thread_pointer, record.addend?, to.size);
    (is_near && may_relax::<N>(site)).then(|| gone(site))
}

/// An instruction with `%tprel_lo(symbol)`.
pub(crate) fn tprel_low<N: Numbers>(
    site: &Site<'_>,
    record: &Record,
    to: &Addresses,
) -> Option<Rewrite> {
    let addend = record.addend?;
    let counted = || counted(site, (THREAD_POINTER, to.from_thread_pointer), addend);
    if may_relax::<N>(site) { counted() } else { None }
}

/// The first two instructions of a TLS descriptor, the first of which has the record `high`.
pub(crate) fn descriptor<N: Numbers>(site: &Site<'_>, high: &Record, to: &Addresses) -> bool {
    to.from_thread_pointer.is_some() && may_relax_upper::<N>(site, high)
}

/// The third, which adds the upper part of the variable's offset.
pub(crate) fn descriptor_add<N: Numbers>(site: &Site<'_>, high: &Record, to: &Addresses) -> bool {
    let offset = to.from_thread_pointer.zip(high.addend);
    let offset = offset.and_then(|(variable, addend)| variable.checked_add(addend));
    offset.is_some_and(reaches) && may_relax_upper::<N>(site, high)
}

/// Whether an instruction of 12 bits reaches the symbol from its addend on to its end.
fn all_in_reach(start: Option<i64>, addend: i64, size: u64) -> bool {
    let Some(first) = start.and_then(|start| start.checked_add(addend)) else { return false };
    let rest = size.saturating_sub(addend.max(0).cast_unsigned()).saturating_sub(1);
    reaches(first) && first.checked_add_unsigned(rest).is_some_and(reaches)
}

/// Whether an instruction of 12 bits has the value.
fn reaches(value: i64) -> bool {
    (-0x800..0x800).contains(&value)
}

/// The instruction, counting from a register that is `start` bytes before the symbol.
fn counted(site: &Site<'_>, (register, start): (u32, Option<i64>), addend: i64) -> Option<Rewrite> {
    let value = start?.checked_add(addend)?;
    if !reaches(value) {
        return None;
    }
    let [code] = words(site.around::<4>(0)?);
    let value = value as u32;
    // STORE and STORE-FP
    let is_store = matches!(code & 0x7f, 0x23 | 0x27);
    let code = code & !(31 << 15) | register;
    let code = if is_store {
        code & 0x01ff_f07f | (value & 0x1f) << 7 | (value >> 5 & 0x7f) << 25
    } else {
        code & 0x000f_ffff | value << 20
    };
    Some(Rewrite::new(site.record, 0, code.to_le_bytes()))
}

/// The instruction goes.
fn gone(site: &Site<'_>) -> Rewrite {
    Rewrite::new(site.record, 0, []).deleting(4)
}

/// Whether the record of the site is one of those that may be relaxed: the mark is the next record.
fn may_relax<N: Numbers>(site: &Site<'_>) -> bool {
    is_mark::<N>(site.record, site.next())
}

/// The same of an upper part, asked at its own place or at that of a lower part, with the same answer.
fn may_relax_upper<N: Numbers>(site: &Site<'_>, high: &Record) -> bool {
    is_mark::<N>(high, site.next_of(high))
}

fn is_mark<N: Numbers>(record: &Record, next: Option<Record>) -> bool {
    next.is_some_and(|next| next.r#type == N::RELAX && next.offset == record.offset)
}

fn words<const N: usize, const BYTES: usize>(bytes: &[u8; BYTES]) -> [u32; N] {
    let mut words = bytes
        .chunks_exact(4)
        .map(|word| word.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)));
    core::array::from_fn(|_| words.next().unwrap_or(0))
}
