//! What a placed symbol answers when a relocation asks.

use crate::model::external::Variable;
use crate::model::features::{INDIRECT_FUNCTIONS, THREAD_LOCAL};
use crate::model::layout::Layout;
use crate::model::options::Target2;
use crate::model::owner::attributes;
use crate::model::owner::owner;
use crate::model::spans::{Bases, Group};
use crate::model::storage::{Needs, SymbolSlot, SymbolState};
use crate::model::stubs;
use crate::model::tls::{self, rewrites};
use core::ops::Range;
use elf_core::{Arch, Check, Query, Resolve, Role, Slot, SymbolAttributes, asks_size};

/// The symbols of one object, at their addresses in an image at `base`.
pub(crate) struct Symbols<'l, 'a, 's, A> {
    pub(crate) layout: &'l Layout<'a, 's, A>,
    pub(crate) slots: &'s [SymbolSlot],
    pub(crate) object: usize,
    pub(crate) base: u64,
    pub(crate) bases: Bases<'l>,
    /// It is a table of functions themselves that asks (`.eh_frame`).
    pub(crate) is_unwinding: bool,
    /// It is a stub that asks, to which the GOT entry of an indirect function is the one with the resolver's answer.
    pub(crate) is_stub: bool,
}

impl<'l, 'a, 's, A: Arch> Symbols<'l, 'a, 's, A> {
    /// The symbols of `object` whose numbers are `ids`.
    pub(crate) fn new(
        layout: &'l Layout<'a, 's, A>,
        object: usize,
        ids: Range<usize>,
        base: u64,
    ) -> Self {
        let slots = layout.symbols.get(ids).unwrap_or_default();
        let bases = Bases::new(&layout.spans, base);
        Self { layout, slots, object, base, bases, is_unwinding: false, is_stub: false }
    }

    /// The address of what is in a section of an object, or the caller's.
    #[inline]
    fn own_address(&self, slot: &SymbolSlot) -> u64 {
        self.bases.of(slot.group).wrapping_add(slot.value)
    }

    /// S, the symbol's own address.
    #[inline]
    pub(crate) fn address(&self, slot: &SymbolSlot) -> Option<u64> {
        // most of them, where there is room for code
        if cfg!(target_pointer_width = "64") && slot.state == SymbolState::Defined {
            return Some(self.own_address(slot));
        }
        self.other_address(slot)
    }

    /// The same of symbols that are seldom.
    // out of the loop where there is room for code
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn other_address(&self, slot: &SymbolSlot) -> Option<u64> {
        match slot.state {
            SymbolState::Defined
            | SymbolState::External
            | SymbolState::ExternalFunction
            | SymbolState::ExternalConstant
            | SymbolState::UndefinedWeak
            | SymbolState::Common => Some(self.own_address(slot)),
            SymbolState::Replaceable if INDIRECT_FUNCTIONS && self.is_unwinding => {
                Some(self.stub_target(slot))
            }
            SymbolState::Indirect | SymbolState::Replaceable if INDIRECT_FUNCTIONS => {
                self.stub(slot, 0)
            }
            SymbolState::Indirect
            | SymbolState::Replaceable
            | SymbolState::ThreadLocal
            | SymbolState::TlsBase
            | SymbolState::ExternalThreadLocal
            | SymbolState::Undefined
            | SymbolState::NotLoaded
            | SymbolState::Discarded => None,
        }
    }

    /// The address of a symbol that is too far for some place: its own, that of its copy, or of its canonical PLT entry.
    fn canonical(&self, slot: &SymbolSlot) -> Option<u64> {
        let address = self.address(slot)?;
        let near = !slot.needs.has(Needs::NEAR) || {
            let end = self.base.wrapping_add(self.layout.spans.size);
            let reach = |place: u64| {
                Check::Signed(32).holds(address.wrapping_sub(place).wrapping_sub(REACH_MARGIN))
                    && Check::Signed(32)
                        .holds(address.wrapping_sub(place).wrapping_add(REACH_MARGIN))
            };
            reach(self.base) && reach(end)
        };
        let low = !slot.needs.has(Needs::LOW) || Check::Signed(32).holds(address);
        match (near && low, slot.needs.has(Needs::COPY)) {
            (true, _) => Some(address),
            (false, true) => self.copy(slot),
            (false, false) => self.stub(slot, 0),
        }
    }

    /// The address of the symbol's copy relocation.
    pub(crate) fn copy(&self, slot: &SymbolSlot) -> Option<u64> {
        let address = self.bases.of(Group::Copies).wrapping_add(slot.extra.copy());
        slot.needs.has(Needs::COPY).then_some(address)
    }

    /// S with T: what a pointer to it holds.
    pub(crate) fn pointer(&self, slot: &SymbolSlot) -> Option<u64> {
        let address = self.address(slot)?;
        if !A::HAS_STATES {
            return Some(address);
        }
        Some(address | u64::from(attributes::<A>(&[], 0, slot, 0).is_thumb))
    }

    /// The address of the symbol's stub `index` at the end of the code.
    pub(crate) fn stub(&self, slot: &SymbolSlot, index: u8) -> Option<u64> {
        if !slot.needs.has(Needs::stub(index)) || A::STUBS.is_empty() {
            return None;
        }
        let offset = slot.extra.stubs().wrapping_add(stubs::offset::<A>(slot.needs, index));
        Some(self.bases.of(Group::Stubs).wrapping_add(offset))
    }

    /// The address of the symbol's stub `index` that is nearest to `place`.
    fn nearest_stub(&self, slot: &SymbolSlot, index: u8, place: u64) -> Option<u64> {
        Some(self.nearest(self.stub(slot, index)?, place))
    }

    /// Of what stands at `last` in the stubs at the end of the code, and in those of all thunks, the address that is nearest to `place`.
    fn nearest(&self, last: u64, place: u64) -> u64 {
        let thunks = self.layout.thunks.offsets::<A>().iter();
        let offset = last.wrapping_sub(self.bases.of(Group::Stubs));
        let first = self.bases.of(Group::Text).wrapping_add(offset);
        thunks.map(|thunk| first.wrapping_add(*thunk)).fold(last, |nearest, stub| {
            if stub.abs_diff(place) < nearest.abs_diff(place) { stub } else { nearest }
        })
    }

    /// Where the symbol's first stub stands: at the end of the code, then on thunks in it.
    pub(crate) fn stub_runs(
        &self,
        slot: &SymbolSlot,
    ) -> impl Iterator<Item = u64> + use<'l, 'a, 's, A> {
        self.runs(slot.extra.stubs())
    }

    /// Where what is `first` bytes behind the start of stubs stands: at the end of the code, then on thunks in it.
    pub(crate) fn runs(&self, first: u64) -> impl Iterator<Item = u64> + use<'l, 'a, 's, A> {
        let text = self.bases.of(Group::Text).wrapping_add(first);
        let end = self.bases.of(Group::Stubs).wrapping_add(first);
        let thunks = self.layout.thunks.offsets::<A>().iter();
        core::iter::once(end).chain(thunks.map(move |thunk| text.wrapping_add(*thunk)))
    }

    /// The address of the symbol's GOT entry of this content.
    pub(crate) fn got_entry(&self, slot: &SymbolSlot, content: Slot) -> Option<u64> {
        if THREAD_LOCAL && content == Slot::TlsLd {
            return self.layout.found.tls_module.then_some(self.bases.of(Group::Got));
        }
        if content == Slot::Address && slot.is_indirect() && self.is_stub {
            return Some(self.stub_entry(slot));
        }
        slot.got_index(content).map(|index| self.entry(index))
    }

    /// The address of a GOT entry by its number.
    pub(crate) fn entry(&self, index: u32) -> u64 {
        let offset = u64::from(index).wrapping_mul(A::ADDRESS_SIZE);
        self.bases.of(Group::Got).wrapping_add(offset)
    }

    /// What is asked for less often.
    #[inline(never)]
    fn resolve_rarely(&self, slot: &SymbolSlot, role: Role, query: &Query) -> Option<u64> {
        match role {
            Role::Address if slot.needs.has(CANONICAL) => self.canonical(slot),
            Role::Address => self.address(slot),
            Role::Plt => {
                let address = self.address(slot)?;
                match stubs::choose::<A>(query, address, self.attributes_of(slot, query)) {
                    None => Some(address),
                    Some(choice) => {
                        let stub = self.nearest_stub(slot, choice.stub, query.place)?;
                        stubs::is_in_reach::<A>(query, choice, stub).then_some(stub)
                    }
                }
            }
            Role::Got(content) => self.got_entry(slot, content),
            Role::TypeInfo if A::DIRECT_TYPE_INFO != 0 => match self.layout.found.target2 {
                Target2::GotRelative => self.got_entry(slot, Slot::Address),
                // P is taken away again
                Target2::Absolute => Some(self.address(slot)?.wrapping_add(query.place)),
                _ => self.resolve(&Query { role: Role::Address, ..*query }),
            },
            Role::GotBase => Some(self.bases.of(Group::Got)),
            Role::SegmentBase if A::HAS_STATES => {
                Some(self.base.wrapping_add(self.layout.spans.segment_of(slot.group)?.offset))
            }
            Role::Size if const { asks_size(A::KINDS) } => self.size(slot, query.symbol),
            Role::TpOffset | Role::DtpOffset if THREAD_LOCAL => self.resolve_variable(slot, role),
            Role::TlsDescCall => tls::call::<A>(&self.layout.found)
                .map(|_| self.nearest(self.bases.of(Group::Stubs), query.place)),
            _ => None,
        }
    }

    /// What is known of the symbol where it is defined.
    fn attributes_of(&self, slot: &SymbolSlot, query: &Query) -> SymbolAttributes {
        if !A::HAS_STATES {
            return SymbolAttributes::default();
        }
        let objects = self.layout.objects;
        let own = objects.get(self.object).map_or(0, |object| object.first_symbol);
        let definition = match owner(objects, slot.definition) {
            Some(_) => slot.definition,
            None => own.saturating_add(query.symbol as usize) as u32,
        };
        attributes::<A>(objects, definition, slot, self.layout.found.processor)
    }

    /// Z: the size of the symbol where it is defined.
    fn size(&self, slot: &SymbolSlot, symbol: u32) -> Option<u64> {
        let (object, index) = match owner(self.layout.objects, slot.definition) {
            Some(owner) => owner,
            None => (self.object, symbol),
        };
        match slot.state {
            SymbolState::External
            | SymbolState::ExternalFunction
            | SymbolState::ExternalConstant
            | SymbolState::ExternalThreadLocal
            | SymbolState::TlsBase
            | SymbolState::Undefined => None,
            _ => Some(self.layout.objects.get(object)?.symbols.as_ref()?.get(index).ok()?.size),
        }
    }
}

/// Addends and fields move a target or place a little.
const REACH_MARGIN: u64 = 4096;

impl<A: Arch> Resolve for Symbols<'_, '_, '_, A> {
    // one function for all of the loop's kinds, where small machines have one loop as well
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn resolve(&self, query: &Query) -> Option<u64> {
        let slot = self.slots.get(query.symbol as usize)?;
        match query.role {
            Role::Address | Role::Plt
                if slot.state == SymbolState::UndefinedWeak
                    && let Some(address) = A::undefined_weak(query) =>
            {
                Some(address)
            }
            Role::Address | Role::Plt if !slot.needs.has(RARE) => {
                self.address(slot).or_else(|| discarded(slot, query))
            }
            Role::Got(Slot::Address) => self.got_entry(slot, Slot::Address),
            role => self.resolve_rarely(slot, role, query),
        }
    }

    #[inline]
    fn symbol_address(&self, symbol: u32) -> Option<u64> {
        let slot = self.slots.get(symbol as usize)?;
        let is_own = slot.state == SymbolState::Defined && !slot.needs.has(RARE);
        is_own.then(|| self.own_address(slot))
    }

    #[inline]
    fn got_address(&self, symbol: u32) -> Option<u64> {
        let slot = self.slots.get(symbol as usize)?;
        let has_entry = slot.state == SymbolState::Defined && slot.needs.has(Needs::GOT);
        has_entry.then(|| self.entry(slot.got))
    }

    fn attributes(&self, query: &Query) -> SymbolAttributes {
        if !A::HAS_STATES {
            return SymbolAttributes::default();
        }
        let Some(slot) = self.slots.get(query.symbol as usize) else {
            return SymbolAttributes::default();
        };
        let mut own = self.attributes_of(slot, query);
        if query.role == Role::TlsDescCall
            && let Some(call) = tls::call::<A>(&self.layout.found)
        {
            (own.is_thumb, own.is_function) = (call.is_thumb, true);
            return own;
        }
        if query.role != Role::Plt {
            // T is part of the caller's addresses, which may be those of data
            own.is_thumb &= slot.state != SymbolState::External;
            return own;
        }
        let choice = self.address(slot).and_then(|it| stubs::choose::<A>(query, it, own));
        if let Some(stub) = choice.and_then(|choice| A::STUBS.get(usize::from(choice.stub))) {
            (own.is_thumb, own.is_function) = (stub.is_thumb, true);
        }
        own
    }
}

/// Needs that may give a symbol another address than its own.
const RARE: Needs = CANONICAL.with(Needs::ANY_STUB);

/// What makes the field 0 that names a discarded function.
#[cold]
fn discarded(slot: &SymbolSlot, query: &Query) -> Option<u64> {
    let place = if query.kind.value.minus == Role::Place { query.place } else { 0 };
    (slot.state == SymbolState::Discarded)
        .then(|| place.wrapping_add_signed(query.addend.wrapping_neg()))
}

/// Needs that may give a symbol another address than its own, wherever it is asked for.
const CANONICAL: Needs = Needs::NEAR.with(Needs::LOW);

impl<A: Arch> Symbols<'_, '_, '_, A> {
    /// The address of what the stub of an indirect function stands for: the resolver, or the function that may be replaced.
    pub(crate) fn stub_target(&self, slot: &SymbolSlot) -> u64 {
        let thumb = u64::from(A::HAS_STATES && slot.needs.has(Needs::THUMB));
        self.bases.of(slot.group).wrapping_add(slot.value) | thumb
    }

    /// The address of the GOT entry that the stub of an indirect function jumps through.
    pub(crate) fn stub_entry(&self, slot: &SymbolSlot) -> u64 {
        self.entry(slot.got)
    }
}

impl<A: Arch> Symbols<'_, '_, '_, A> {
    /// What a thread-local variable answers.
    pub(crate) fn resolve_variable(&self, slot: &SymbolSlot, role: Role) -> Option<u64> {
        match role {
            Role::TpOffset => self.tp_offset(slot),
            Role::DtpOffset
                if matches!(slot.state, SymbolState::ThreadLocal | SymbolState::TlsBase) =>
            {
                self.dtp_offset(self.layout.block_offset(slot)?)
            }
            Role::DtpOffset if slot.state == SymbolState::UndefinedWeak => Some(0),
            _ => None,
        }
    }

    /// An offset in a block, as code and `__tls_get_addr` take it.
    fn dtp_offset(&self, offset: u64) -> Option<u64> {
        Some(offset.wrapping_add_signed(A::TLS?.dtp_bias))
    }

    /// A variable's TP offset.
    fn tp_offset(&self, slot: &SymbolSlot) -> Option<u64> {
        let tp_offset = match slot.state {
            SymbolState::TlsBase
                if rewrites(self.layout.options.thread_local) && A::TLS?.ld_to_le_by_tp =>
            {
                0
            }
            SymbolState::ThreadLocal | SymbolState::TlsBase => {
                let block = self.layout.static_tls_block?.tp_offset?;
                block.checked_add_unsigned(self.layout.block_offset(slot)?)?
            }
            SymbolState::ExternalThreadLocal => Variable::unpack(slot.value).tp_offset?.into(),
            // what lld gives, and no code that asks first comes to use
            SymbolState::UndefinedWeak => 0,
            _ => return None,
        };
        Some(tp_offset.cast_unsigned())
    }

    /// The words of a GOT entry for a variable.
    pub(crate) fn variable_entry(&self, slot: &SymbolSlot, content: Slot) -> Option<[u64; 2]> {
        let block = self.layout.static_tls_block?;
        match content {
            Slot::Address => None,
            Slot::TpOffset => Some([self.tp_offset(slot)?, 0]),
            Slot::TlsLd => Some([block.module, 0]),
            Slot::TlsGd => match slot.state {
                SymbolState::ThreadLocal | SymbolState::TlsBase => {
                    Some([block.module, self.dtp_offset(self.layout.block_offset(slot)?)?])
                }
                SymbolState::ExternalThreadLocal => {
                    let offset = Variable::unpack(slot.value).offset;
                    Some([slot.extra.module(), self.dtp_offset(offset.into())?])
                }
                _ => None,
            },
            Slot::TlsDesc => {
                let mut words = match (block.descriptor, self.tp_offset(slot)) {
                    (Some(function), Some(tp_offset)) => [function, tp_offset],
                    _ => [block.dynamic_descriptor?, self.got_entry(slot, Slot::TlsGd)?],
                };
                if const { tls::has_argument_first(A::KINDS) } {
                    words.reverse();
                }
                Some(words)
            }
        }
    }
}
