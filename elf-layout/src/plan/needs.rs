//! What relocations need beside the sections: GOT entries and stubs, found before anything is placed.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::model::edits::may_shrink;
use crate::model::features::{COPY_RELOCATIONS, INDIRECT_FUNCTIONS, THREAD_LOCAL};
use crate::model::options::{Options, Target2};
use crate::model::owner::attributes;
use crate::model::relocations::{Target, is_relocations, label, pass_over, target};
use crate::model::scan_result::ScanResult;
use crate::model::spans::Group;
use crate::model::storage::{Needs, ObjectSlot, SectionSlot, SymbolSlot, SymbolState};
use crate::model::stubs;
use crate::model::thunks::has_thunks;
use crate::model::tls;
use crate::plan::findings::Findings;
use crate::plan::thunks;
use core::cell::Cell;
use core::marker::PhantomData;
use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Check, Decision, Facts, File, GotLoad, Kind, Pass, Query,
    Reach, Record, Rewrite, Role, SectionHeader, Slot, Special, Value,
};

/// One object, whose relocations are gone over for what they need.
pub(crate) struct Scan<'p, 'a> {
    pub(crate) number: usize,
    pub(crate) file: &'p File<'a>,
    pub(crate) object: &'p ObjectSlot<'a>,
    pub(crate) objects: &'p [ObjectSlot<'a>],
    pub(crate) sections: &'p [SectionSlot],
    pub(crate) options: &'p Options,
}

impl<'a> Scan<'_, 'a> {
    /// Notes in `found`, as it does for `symbols`, what the relocations of the object need.
    pub(crate) fn run<A: Arch, F: Findings>(
        &self,
        symbols: &[F::Place],
        found: &mut F,
    ) -> Result<(), Error> {
        let own = symbols.get(self.object.first_symbol..).unwrap_or_default();
        let own = own.get(..self.object.symbol_count).unwrap_or_default();
        let mut next = 0u32;
        self.file.sections().try_for_each(|header| {
            let index = next;
            next = index.wrapping_add(1);
            if !is_relocations(&header) {
                return Ok(());
            }
            let Self { number, file, object, sections, .. } = *self;
            let Some(target) = target(number, index, &header, file, object, sections)? else {
                return Ok(());
            };
            let bytes = Cell::new(None);
            let found = &mut *found;
            let mut section = SectionScan::<A, F> {
                scan: self,
                header,
                target,
                symbols,
                own,
                found,
                bytes,
                kind: None,
                usual: Usual::Other,
                arch: PhantomData,
            };
            let records = section.target.records;
            pass_over::<A>(&records, &mut section)
        })
    }
}

/// A section of the object: what its relocations need is noted.
struct SectionScan<'p, 'a, A, F: Findings> {
    scan: &'p Scan<'p, 'a>,
    /// Of the relocations.
    header: SectionHeader,
    target: Target<'a, 'p>,
    /// Of all objects.
    symbols: &'p [F::Place],
    /// Of this one.
    own: &'p [F::Place],
    found: &'p mut F,
    bytes: Cell<Option<&'a [u8]>>,
    /// Of the last record that was applied.
    kind: Option<&'static Kind>,
    usual: Usual,
    arch: PhantomData<A>,
}

impl<A: Arch, F: Findings> SectionScan<'_, '_, A, F> {
    /// Something is wrong with the section that is relocated.
    #[cold]
    fn error(&self, kind: ErrorKind) -> Error {
        Error { object: self.scan.number, section: self.target.target, kind }
    }

    /// The slot of what defines a record's symbol.
    #[inline]
    fn definition(&self, record: &Record) -> Option<&F::Place> {
        let place = self.own.get(usize::try_from(record.symbol).ok()?)?;
        Some(self.symbols.get(F::slot(place).definition as usize).unwrap_or(place))
    }

    /// Enters what is needed of symbol `definition`.
    #[inline]
    fn note(&mut self, definition: u32, needs: Needs) {
        if let Some(place) = self.symbols.get(definition as usize) {
            self.found.note(place, definition, needs);
        }
    }

    /// What a relocation needs that is applied as it is.
    fn other_needs(
        &mut self,
        kind: &'static Kind,
        slot: &SymbolSlot,
        record: &Record,
    ) -> Result<Needs, Error> {
        let place = self.target.slot;
        if let Some(problem) = problem(kind, slot, record, place.unwinding, self.scan.options) {
            return Err(self.error(problem));
        }
        if THREAD_LOCAL && tls::concerns(kind) {
            let callers = A::TLS.map_or(0, |tls| tls.callers);
            if kind.value.of == Role::TlsDescCall
                && self.found.result().processor & callers != callers
            {
                let unsupported = ApplyErrorKind::Unsupported;
                let error = ApplyError::new(record, Some(kind.name), unsupported);
                return Err(self.error(ErrorKind::Apply(error)));
            }
            self.found.result_mut().threads = true;
            if kind.value.of == Role::TlsDescCall
                && self.found.result().is_large
                && let Some(span) = thunks::span(kind.check, place)
            {
                self.note_reach(span);
            }
            return Ok(tls_needs(kind.value.of, self.found.result_mut()));
        }
        if kind.value.of != Role::Plt {
            return Ok(needs_of::<A>(kind, slot, self.found.result_mut()));
        }
        let is_beyond = is_beyond::<A>(kind, slot);
        if !A::HAS_STATES && !is_beyond && !self.found.result().is_large {
            return Ok(Needs::default());
        }
        let target = attributes::<A>(
            self.scan.objects,
            slot.definition,
            slot,
            self.found.result().processor,
        );
        let Some(choice) = A::stub(kind, target) else { return Ok(Needs::default()) };
        let mut is_needed = is_beyond || choice.always;
        let check = choice.within.unwrap_or(kind.check);
        if const { has_thunks::<A>() }
            && self.found.result().is_large
            && let Some(span) = thunks::span(check, place)
        {
            is_needed |= thunks::is_far(span, record, place, slot);
            if is_needed || slot.is_indirect() {
                self.note_reach(span);
            }
        }
        Ok(if is_needed { stubs::needs::<A>(choice.stub) } else { Needs::default() })
    }

    /// Enters how far a branch goes that may need a stub.
    fn note_reach(&mut self, span: u64) {
        let found = self.found.result_mut();
        found.reach = Some(found.reach.map_or(span, |reach| reach.min(span)));
    }
}

impl<A: Arch, F: Findings> Facts for SectionScan<'_, '_, A, F> {
    #[inline]
    fn relaxes(&self) -> bool {
        self.found.result().bounds.relaxes()
    }

    #[inline]
    fn reach(&self, record: &Record) -> Option<Reach> {
        if !self.found.result().bounds.relaxes() {
            return None;
        }
        self.found.result().bounds.reach(&F::slot(self.definition(record)?))
    }

    fn is_local_exec(&self, record: &Record) -> bool {
        let access = self.scan.options.thread_local;
        self.definition(record).is_some_and(|place| tls::is_local_exec(&F::slot(place), access))
    }

    fn is_thread_local(&self, record: &Record) -> bool {
        self.definition(record).is_some_and(|place| tls::is_variable(&F::slot(place)))
    }

    fn label(&self, record: &Record) -> Option<u64> {
        label(self.scan.object, self.target.target, record)
    }
}

impl<A: Arch, F: Findings> Pass for SectionScan<'_, '_, A, F> {
    type Error = Error;

    #[cold]
    fn failed(&self, error: ApplyError) -> Error {
        self.error(ErrorKind::Apply(error))
    }

    #[inline]
    fn bytes(&self) -> Result<&[u8], Error> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let section = self.scan.file.section(self.target.target);
        let bytes = section.and_then(|it| self.scan.file.section_data(&it));
        let bytes = bytes.map_err(Error::elf(self.scan.number, self.target.target))?;
        self.bytes.set(Some(bytes));
        Ok(bytes)
    }

    // no part of the loop over records, in which `applied` is where there is room for code
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn decided(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: Decision,
    ) -> Result<(), Error> {
        let Some(slot) = self.definition(record) else {
            return Err(self.no_symbol(record));
        };
        let slot = F::slot(slot);
        if !THREAD_LOCAL && tls::concerns(kind) {
            let kind = elf_core::ErrorKind::FeatureOff("thread-local");
            let error = elf_core::Error { at: self.header.offset, kind };
            return Err(self.error(ErrorKind::Elf(error)));
        }
        if may_shrink::<A>() && matches!(kind.special, Special::Padding(_)) {
            self.found.result_mut().pads = true;
        }
        let needs = match decision {
            Decision::Rewrite(_) => return Ok(()),
            // the other one says what is needed
            Decision::Pair(_)
                if cfg!(target_pointer_width = "64")
                    && matches!(
                        (slot.state, kind.value.of, kind.value.minus),
                        (SymbolState::Defined, Role::Partner, Role::Zero)
                    ) =>
            {
                return Ok(());
            }
            Decision::Transition { .. } => {
                let is_unwinding = self.target.slot.unwinding;
                let options = self.scan.options;
                if let Some(problem) = problem(kind, &slot, record, is_unwinding, options) {
                    return Err(self.error(problem));
                }
                let found = self.found.result_mut();
                (found.threads, found.transitions) = (true, true);
                return Ok(());
            }
            _ => self.other_needs(kind, &slot, record)?,
        };
        self.note(slot.definition, needs);
        Ok(())
    }

    /// A shorter way for most of them, where there is room for code.
    #[inline(always)]
    fn applied(&mut self, kind: &'static Kind, record: &Record) -> Result<(), Error> {
        if cfg!(not(target_pointer_width = "64")) {
            return self.decided(kind, record, Decision::Apply);
        }
        if !self.kind.is_some_and(|last| core::ptr::eq(last, kind)) {
            (self.kind, self.usual) =
                (Some(kind), Usual::of::<A>(kind, self.found.result().is_large));
        }
        match (self.usual, self.definition(record).map(F::slot)) {
            (Usual::Marker, Some(_)) => Ok(()),
            (Usual::Needs(needs), Some(slot))
                if slot.state == SymbolState::Defined && slot.needs.with(needs) == slot.needs =>
            {
                Ok(())
            }
            // the record is not in memory here: others have a copy
            _ => self.applied_rarely(kind, Record { ..*record }),
        }
    }

    #[inline(always)]
    fn loaded(&mut self, record: &Record, _: &GotLoad) -> Result<bool, Error> {
        let has_room = cfg!(target_pointer_width = "64");
        Ok(has_room && self.reach(record).is_some_and(|reach| reach.near))
    }

    /// What is rewritten needs nothing.
    #[inline(always)]
    fn rewritten(&mut self, _: &'static Kind, _: &Record, _: &Rewrite) -> Result<(), Error> {
        Ok(())
    }
}

/// What relocations of a kind need of a symbol that has an address of its own.
#[derive(Clone, Copy)]
enum Usual {
    /// Nothing, of any symbol.
    Marker,
    /// These.
    Needs(Needs),
    /// More has to be known.
    Other,
}

impl Usual {
    /// Of an image that may be too large for branches.
    fn of<A: Arch>(kind: &Kind, is_large: bool) -> Self {
        if kind.is_marker() {
            return Self::Marker;
        }
        if is_large || A::HAS_STATES {
            return Self::Other;
        }
        match (kind.value.of, kind.value.minus) {
            (Role::Got(Slot::Address), Role::Place) => Self::Needs(Needs::GOT),
            (Role::Address | Role::Plt, Role::Place) => Self::Needs(Needs::default()),
            (Role::Address, Role::Zero) if kind.check == Check::Any => {
                Self::Needs(Needs::default())
            }
            _ => Self::Other,
        }
    }
}

impl<A: Arch, F: Findings> SectionScan<'_, '_, A, F> {
    /// Takes a record that is applied, whose kind or symbol is not one of most, or that is the first with its needs.
    #[inline(never)]
    fn applied_rarely(&mut self, kind: &'static Kind, record: Record) -> Result<(), Error> {
        let slot = self.definition(&record).map(F::slot);
        match (self.usual, slot) {
            (Usual::Needs(needs), Some(slot)) if slot.state == SymbolState::Defined => {
                let definition = slot.definition;
                self.note(definition, needs);
                Ok(())
            }
            _ => self.decided(kind, &record, Decision::Apply),
        }
    }

    #[cold]
    fn no_symbol(&self, record: &Record) -> Error {
        let count = self.scan.object.symbol_count as u64;
        let kind = elf_core::ErrorKind::NoSymbol { index: record.symbol, count };
        let error = elf_core::Error { at: self.header.offset, kind };
        Error::elf(self.scan.number, self.target.section)(error)
    }
}

/// What one relocation of this kind needs for the symbol.
#[inline]
fn needs_of<A: Arch>(kind: &'static Kind, slot: &SymbolSlot, found: &mut ScanResult) -> Needs {
    let value = &kind.value;
    match value.of {
        Role::Got(Slot::Address) => Needs::GOT,
        Role::TypeInfo if A::DIRECT_TYPE_INFO != 0 && found.target2 == Target2::GotRelative => {
            Needs::GOT
        }
        Role::Address if is_narrow::<A>(kind) => {
            match (slot.state, value.minus, COPY_RELOCATIONS) {
                // a canonical PLT entry: the stub becomes the address of the process's function here
                (SymbolState::ExternalFunction, Role::Place, true) => {
                    near(kind.check).with(stubs::needs::<A>(0))
                }
                (SymbolState::ExternalFunction, Role::Zero, true) => {
                    limit(value, kind.check, found);
                    Needs::LOW.with(stubs::needs::<A>(0))
                }
                (SymbolState::ExternalConstant, Role::Place, true) => {
                    near(kind.check).with(Needs::COPY)
                }
                (SymbolState::ExternalConstant, Role::Zero, true) => {
                    limit(value, kind.check, found);
                    Needs::LOW.with(Needs::COPY)
                }
                (SymbolState::Indirect | SymbolState::Replaceable, Role::Zero, _)
                    if INDIRECT_FUNCTIONS =>
                {
                    limit(value, kind.check, found);
                    Needs::default()
                }
                (SymbolState::Defined | SymbolState::Common, Role::Zero, _)
                    if slot.group != Group::Absolute || slot.state == SymbolState::Common =>
                {
                    limit(value, kind.check, found);
                    Needs::default()
                }
                // 0, which code counts to from its place: that is to be no farther
                (SymbolState::UndefinedWeak, Role::Place, _) if !has_own_weak::<A>(kind) => {
                    limit(value, kind.check, found);
                    Needs::default()
                }
                _ => Needs::default(),
            }
        }
        _ => Needs::default(),
    }
}

/// Whether the target of a branch may be out of its reach. Nobody branches to constants, which may have a copy but no stub.
fn is_beyond<A: Arch>(kind: &'static Kind, slot: &SymbolSlot) -> bool {
    spans_less::<A>(kind)
        && match slot.state {
            SymbolState::External | SymbolState::ExternalFunction => true,
            SymbolState::UndefinedWeak => !has_own_weak::<A>(kind),
            _ => false,
        }
}

/// Whether the ABI says what the kind makes of a weak symbol that nobody defines.
fn has_own_weak<A: Arch>(kind: &'static Kind) -> bool {
    let query = Query { role: kind.value.of, symbol: 0, place: 0, addend: 0, kind };
    A::undefined_weak(&query).is_some()
}

/// Whether a branch of the kind does not span all addresses.
const fn spans_less<A: Arch>(kind: &Kind) -> bool {
    match kind.check {
        Check::Any => false,
        Check::Signed(bits) | Check::SignedRounded { bits, .. } => {
            A::ADDRESS_SIZE == 8 || const { has_short_branches(A::KINDS) } && bits < 32
        }
        _ => A::ADDRESS_SIZE == 8,
    }
}

/// Whether some branch of these kinds, for addresses of 4 bytes, does not span all of them: what asks is no code where none does.
const fn has_short_branches(kinds: &[Kind]) -> bool {
    let mut rest = kinds;
    while let [kind, tail @ ..] = rest {
        let is_short =
            matches!(kind.check, Check::Signed(..32) | Check::SignedRounded { bits: ..32, .. });
        if is_short && matches!(kind.value.of, Role::Plt) {
            return true;
        }
        rest = tail;
    }
    false
}

/// Whether the kind cannot take every address.
fn is_narrow<A: Arch>(kind: &Kind) -> bool {
    kind.check != Check::Any && A::ADDRESS_SIZE == 8
}

/// What a symbol of the caller's needs that a field counts to from its place. A field that is narrower than most has no use for an address
/// that is near for others: it is satisfied if neither distance nor address will do.
const fn near(check: Check) -> Needs {
    match check {
        Check::Signed(..32) => Needs::NEAR.with(Needs::LOW),
        _ => Needs::NEAR,
    }
}

/// Lowers the limit of the image's addresses to what an absolute field of this check holds.
fn limit(value: &Value, check: Check, found: &mut ScanResult) {
    let bits = match check {
        Check::Signed(bits) | Check::SignedRounded { bits, .. } => bits.saturating_sub(1),
        Check::Unsigned(bits) | Check::Either(bits) => bits,
        _ => return,
    };
    // narrower fields hold parts of addresses or small absolute values: the relocation itself will tell
    if value.page == elf_core::Page::Neither && (31..64).contains(&bits) {
        let end = 1u64.unbounded_shl(bits.into());
        found.limit = Some(found.limit.map_or(end, |limit| limit.min(end)));
    }
}

/// Why the symbol cannot be used by this relocation.
#[inline]
fn problem(
    kind: &Kind,
    slot: &SymbolSlot,
    record: &Record,
    is_unwinding: bool,
    options: &Options,
) -> Option<ErrorKind> {
    let is_tls = THREAD_LOCAL && tls::concerns(kind);
    match slot.state {
        SymbolState::Undefined | SymbolState::NotLoaded | SymbolState::Discarded => {}
        SymbolState::Indirect if !INDIRECT_FUNCTIONS || !options.indirect_functions => {}
        SymbolState::UndefinedWeak => return None,
        SymbolState::ThreadLocal | SymbolState::ExternalThreadLocal | SymbolState::TlsBase
            if is_tls || kind.value.of == Role::Size =>
        {
            return None;
        }
        SymbolState::ThreadLocal | SymbolState::ExternalThreadLocal | SymbolState::TlsBase => {}
        _ if !is_tls => return None,
        _ => {}
    }
    if kind.field.bytes() == 0 || kind.value.of == Role::GotBase {
        return None;
    }
    let Record { offset, symbol, r#type, .. } = *record;
    let name = kind.name;
    Some(match slot.state {
        SymbolState::Undefined => ErrorKind::Undefined { symbol, offset, r#type, name },
        // unwinding tables speak of functions that are not there any more: nobody will ask
        SymbolState::Discarded if is_unwinding => return None,
        SymbolState::Discarded => ErrorKind::Discarded { symbol, offset, r#type, name },
        SymbolState::NotLoaded => ErrorKind::NotLoaded { symbol, offset, r#type, name },
        _ if is_tls => ErrorKind::NotThreadLocal { symbol, offset, r#type, name },
        SymbolState::Indirect => ErrorKind::Indirect { symbol, offset, r#type, name },
        SymbolState::ThreadLocal | SymbolState::ExternalThreadLocal | SymbolState::TlsBase => {
            ErrorKind::ThreadLocal { symbol, offset, r#type, name }
        }
        _ => ErrorKind::NotLoaded { symbol, offset, r#type, name },
    })
}

/// What a relocation needs that is not rewritten.
fn tls_needs(role: Role, found: &mut ScanResult) -> Needs {
    match role {
        Role::Got(Slot::TpOffset) => Needs::GOT_TP_OFFSET,
        Role::Got(Slot::TlsGd) => Needs::GOT_TLS_GD,
        // the argument of a dynamic descriptor leads to the pair
        Role::Got(Slot::TlsDesc) => Needs::GOT_TLS_DESC.with(Needs::GOT_TLS_GD),
        Role::Got(Slot::TlsLd) => {
            found.tls_module = true;
            Needs::default()
        }
        Role::TlsDescCall => {
            found.tls_call = true;
            Needs::default()
        }
        _ => Needs::default(),
    }
}
