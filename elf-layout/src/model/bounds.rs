//! Instructions that do without a GOT entry, because it is known now what they ask for.

use crate::model::options::Options;
use crate::model::spans::{Group, Spans};
use crate::model::storage::{Needs, SymbolSlot, SymbolState};
use elf_core::{Arch, Reach};

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
    #[inline]
    pub(crate) fn reach(&self, slot: &SymbolSlot) -> Option<Reach> {
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

    /// The same, once it is known which GOT entries there are, and how far the symbol is.
    #[inline]
    pub(crate) fn reach_at<A: Arch>(
        &self,
        slot: &SymbolSlot,
        distance: Option<i64>,
    ) -> Option<Reach> {
        if A::RELAXES_ALL_OR_NONE && slot.needs.has(Needs::GOT) {
            return None;
        }
        Some(Reach { distance, ..self.reach(slot)? })
    }
}

/// First address that is not low, and first size of an image that is not near in itself.
const LIMIT: u64 = 0x7fff_0000;

/// Most bytes that a symbol adds to an image, copies of the caller's data aside: GOT entries, a stub.
const ADDITIONS: u64 = 128;
