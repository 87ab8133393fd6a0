//! Instructions that do without a GOT entry, because it is known now what they ask for.

use crate::options::Options;
use crate::place::{Group, Spans};
use crate::storage::{Needs, SymbolSlot, SymbolState};
use elf_core::{Arch, Reach, Record, Relocations, Rewrite, Site};

/// How far instructions of this image may reach, known before anything is placed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// Instructions are relaxed at all.
    relax: bool,
    /// All distances in the image fit 32 bits, with their sign and 4 KiB more.
    near: bool,
    /// The whole image is below 2 GiB.
    low: bool,
}

impl Bounds {
    /// For sections in `spans`, so many symbols, and `common` bytes of those that are common.
    pub(crate) fn of<A: Arch>(
        options: &Options,
        spans: &Spans,
        symbols: usize,
        common: u64,
    ) -> Self {
        if !cfg!(feature = "relax") {
            return Self::default();
        }
        if A::ADDRESS_SIZE == 4 {
            return Self { relax: options.relax, near: true, low: true };
        }
        let additions = (symbols as u64).saturating_mul(ADDITIONS).saturating_add(common);
        let most = spans.most(options).saturating_add(additions);
        Self {
            relax: options.relax && most < LIMIT,
            near: most < LIMIT,
            low: options.base.is_some_and(|base| base.saturating_add(most) < LIMIT),
        }
    }

    /// Whether instructions are relaxed at all.
    #[inline]
    pub(crate) const fn relaxes(&self) -> bool {
        cfg!(feature = "relax") && self.relax
    }

    /// What is known of a symbol that has an address of its own; `None` of others, and of those of the caller's.
    fn reach(&self, slot: &SymbolSlot) -> Option<Reach> {
        match (slot.state, slot.group) {
            (SymbolState::Defined | SymbolState::UndefinedWeak, Group::Absolute) => {
                Some(Reach { near: false, low: slot.value < LIMIT, distance: None })
            }
            (SymbolState::Defined | SymbolState::Common, _) => {
                Some(Reach { near: self.near, low: self.low, distance: None })
            }
            _ => None,
        }
    }

    /// Whether other instructions will stand for those that ask for a symbol's GOT entry, as far as it is known where they will be; if
    /// so, whether they stand for those of the next relocation, too.
    #[inline]
    pub(crate) fn takes_next<A: Arch>(&self, slot: &SymbolSlot, site: &Site<'_>) -> Option<bool> {
        Some(A::relax(site, self.reach(slot)?)?.takes_next)
    }

    /// The instructions that stand for those that ask for a symbol's GOT entry, once it is known which entries there are.
    #[inline]
    pub(crate) fn rewrite<A: Arch>(
        &self,
        slot: &SymbolSlot,
        site: &Site<'_>,
        distance: Option<i64>,
    ) -> Option<Rewrite> {
        if A::RELAXES_ALL_OR_NONE && slot.needs.has(Needs::GOT) {
            return None;
        }
        A::relax(site, Reach { distance, ..self.reach(slot)? })
    }
}

/// First address that is not low, and first size of an image that is not near in itself.
const LIMIT: u64 = 0x7fff_0000;

/// Most bytes that a symbol adds to an image, copies of the caller's data aside: GOT entries, a stub.
const ADDITIONS: u64 = 128;

/// The record behind `index`, if the architecture relaxes pairs, and it is found without reading all before it.
#[inline]
pub(crate) fn next_record<A: Arch>(records: &Relocations<'_>, index: usize) -> Option<Record> {
    match records {
        _ if !A::RELAXES_ALL_OR_NONE => None,
        Relocations::Rela(table) => table.get(index.checked_add(1)?),
        Relocations::Rel(table) => table.get(index.checked_add(1)?),
        _ => None,
    }
}
