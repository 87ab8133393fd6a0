//! What relocations need beside the sections: GOT entries and stubs, found before anything is placed.

use crate::error::{Error, ErrorKind};
use crate::islands;
use crate::options::Options;
use crate::place::Group;
use crate::relax::{self, Bounds};
use crate::storage::{
    INDIRECT_FUNCTIONS, Needs, ObjectSlot, STAND_INS, SectionSlot, SectionState, Stretch,
    SymbolSlot, SymbolState, THREAD_LOCAL,
};
use crate::tls;
use elf_core::names::{SHT_CREL, SHT_REL, SHT_RELA};
use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Check, File, Kind, Query, Record, Relocations, Role,
    SectionHeader, Site, Slot, Value, find,
};

/// What was found beside the needs of single symbols.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Some relocation asks for the module's own pair of TLS entries.
    pub(crate) tls_module: bool,
    /// Some relocation is for thread-local variables.
    pub(crate) threads: bool,
    /// Some relocation is rewritten.
    pub(crate) transitions: bool,
    /// First address that is too high for the image, if there is one: some place is too narrow for all of them.
    pub(crate) limit: Option<u64>,
    /// Offset of the word that `__dso_handle` means, in the GOT.
    pub(crate) handle: Option<u64>,
    /// How far branches go, if some may not reach their targets in the code.
    pub(crate) reach: Option<u64>,
    /// What instructions may be relaxed by.
    pub(crate) bounds: Bounds,
    /// Symbols of which the image has more than what their sections hold.
    pub(crate) special: Stretch,
}

/// A relocation section whose target is loaded.
pub(crate) struct Target<'a> {
    /// Index of the relocation section.
    pub(crate) section: u32,
    /// Index of the section it applies to.
    pub(crate) target: u32,
    /// Where that is, among all sections.
    pub(crate) slot: SectionSlot,
    pub(crate) records: Relocations<'a>,
}

/// Whether a section holds relocations.
#[inline]
pub(crate) const fn is_relocations(header: &SectionHeader) -> bool {
    matches!(header.r#type, SHT_RELA | SHT_REL | SHT_CREL)
}

/// The relocations of section `index`, which holds some, if they are for a loaded section.
#[inline]
pub(crate) fn target<'a>(
    number: usize,
    index: u32,
    header: &SectionHeader,
    file: &File<'a>,
    object: &ObjectSlot<'_>,
    sections: &[SectionSlot],
) -> Result<Option<Target<'a>>, Error> {
    let elf = Error::elf(number, index);
    let target = header.info;
    let at =
        object.first_section.checked_add(target as usize).filter(|_| target < object.section_count);
    let slot = match at.and_then(|at| sections.get(at)) {
        Some(slot) => *slot,
        None => return file.section(target).map(|_| None).map_err(elf),
    };
    if !matches!(slot.state, SectionState::Placed(_)) {
        return Ok(None);
    }
    let Some(records) = file.relocations(header).map_err(elf)? else { return Ok(None) };
    if header.link != object.symbol_table && !records.is_empty() {
        let kind = ErrorKind::SymbolTable { link: header.link };
        return Err(Error { object: number, section: index, kind });
    }
    Ok(Some(Target { section: index, target, slot, records }))
}

/// Notes what the relocations of one object need.
pub(crate) fn scan<A: Arch>(
    number: usize,
    file: &File<'_>,
    object: &ObjectSlot<'_>,
    sections: &[SectionSlot],
    symbols: &mut [SymbolSlot],
    options: &Options,
    found: &mut Found,
) -> Result<(), Error> {
    let (bounds, reach) = (found.bounds, found.reach);
    let mut next = 0u32;
    file.sections().try_for_each(|header| {
        let index = next;
        next = index.wrapping_add(1);
        if !is_relocations(&header) {
            return Ok(());
        }
        let Some(target) = target(number, index, &header, file, object, sections)? else {
            return Ok(());
        };
        let error = |kind| Error { object: number, section: target.target, kind };
        let Some(mut kind) = A::KINDS.first() else { return Ok(()) };
        let (mut following, mut is_done, mut bytes) = (0usize, false, None);
        target.records.try_for_each(|record| {
            let at = following;
            following = at.wrapping_add(1);
            if core::mem::take(&mut is_done) {
                return Ok(());
            }
            // neighbours are often alike
            if kind.number != record.r#type {
                kind = find(A::KINDS, record.r#type)
                    .ok_or_else(|| error(ErrorKind::Apply(unknown(&record))))?;
            }
            let id =
                usize::try_from(record.symbol).ok().filter(|&index| index < object.symbol_count);
            let id = id.and_then(|index| object.first_symbol.checked_add(index));
            let Some(mut slot) = id.and_then(|id| symbols.get(id)) else {
                return Err(no_symbol(number, &target, &header, object, &record));
            };
            let definition = slot.definition as usize;
            if Some(definition) != id
                && let Some(defining) = symbols.get(definition)
            {
                slot = defining;
            }
            if kind.value.of == Role::Got(Slot::Address) && bounds.relaxes() {
                let bytes = match bytes {
                    Some(bytes) => bytes,
                    None => {
                        let section =
                            file.section(target.target).and_then(|it| file.section_data(&it));
                        *bytes.insert(section.map_err(Error::elf(number, target.target))?)
                    }
                };
                let next = relax::next_record::<A>(&target.records, at);
                let site = Site { bytes, record: &record, next: next.as_ref() };
                if let Some(takes_next) = bounds.takes_next::<A>(slot, &site) {
                    is_done = takes_next;
                    return Ok(());
                }
            }
            let usual =
                if cfg!(target_pointer_width = "64") { usual_needs(kind, slot) } else { None };
            let needs = match usual {
                Some(needs) if reach.is_none() => needs,
                _ if !THREAD_LOCAL && tls::concerns(kind) => {
                    let kind = elf_core::ErrorKind::FeatureOff("thread-local");
                    return Err(error(ErrorKind::Elf(elf_core::Error { at: header.offset, kind })));
                }
                _ => {
                    let (needs, takes_next) =
                        other_needs::<A>(kind, slot, &record, &target.slot, options, found)
                            .map_err(error)?;
                    is_done = takes_next;
                    needs
                }
            };
            let needs = slot.needs.with(needs);
            if needs != slot.needs
                && let Some(slot) = symbols.get_mut(definition)
            {
                slot.needs = needs;
                found.special.include(definition);
            }
            Ok(())
        })
    })
}

/// What most relocations need of most symbols; `None` where more has to be known.
#[inline]
fn usual_needs(kind: &Kind, slot: &SymbolSlot) -> Option<Needs> {
    let Value { of, minus, .. } = kind.value;
    match (slot.state, of, minus) {
        (SymbolState::Defined, Role::Got(Slot::Address), Role::Place) => Some(Needs::GOT),
        (SymbolState::Defined, Role::Address | Role::Plt, Role::Place) => Some(Needs::default()),
        (SymbolState::Defined, Role::Address, Role::Zero) if kind.check == Check::Any => {
            Some(Needs::default())
        }
        _ => None,
    }
}

/// What a relocation needs of the symbol, and whether the next one goes with it.
#[cfg_attr(target_pointer_width = "64", inline(never))]
fn other_needs<A: Arch>(
    kind: &'static Kind,
    slot: &SymbolSlot,
    record: &Record,
    place: &SectionSlot,
    options: &Options,
    found: &mut Found,
) -> Result<(Needs, bool), ErrorKind> {
    if let Some(problem) = problem(kind, slot, record, place.unwinding, options) {
        return Err(problem);
    }
    if THREAD_LOCAL && tls::concerns(kind) {
        found.threads = true;
        if let Some(transition) = tls::transition::<A>(record.r#type, slot, options.thread_local) {
            found.transitions = true;
            return Ok((Needs::default(), transition.takes_call));
        }
        return Ok((tls::needs(kind.value.of, found), false));
    }
    let is_far = cfg!(feature = "islands")
        && kind.value.of == Role::Plt
        && found.reach.is_some_and(|reach| islands::is_far(kind, record, place, slot, reach));
    let needs =
        if is_far { Needs::STUB.with(Needs::GOT) } else { needs_of::<A>(kind, slot, found) };
    Ok((needs, false))
}

#[cold]
fn no_symbol(
    number: usize,
    target: &Target<'_>,
    header: &SectionHeader,
    object: &ObjectSlot<'_>,
    record: &Record,
) -> Error {
    let kind =
        elf_core::ErrorKind::NoSymbol { index: record.symbol, count: object.symbol_count as u64 };
    Error::elf(number, target.section)(elf_core::Error { at: header.offset, kind })
}

#[cold]
pub(crate) fn unknown(record: &Record) -> ApplyError {
    let Record { offset, symbol, r#type, .. } = *record;
    ApplyError { offset, r#type, name: None, symbol, kind: ApplyErrorKind::UnknownType }
}

/// What one relocation of this kind needs for the symbol.
#[inline]
fn needs_of<A: Arch>(kind: &'static Kind, slot: &SymbolSlot, found: &mut Found) -> Needs {
    let value = &kind.value;
    match value.of {
        Role::Got(Slot::Address) => Needs::GOT,
        // nobody branches to constants, which may have a copy but no stub
        Role::Plt if is_narrow::<A>(kind) => match slot.state {
            SymbolState::External | SymbolState::ExternalFunction => Needs::STUB.with(Needs::GOT),
            SymbolState::UndefinedWeak if !has_own_weak::<A>(kind) => Needs::STUB.with(Needs::GOT),
            _ => Needs::default(),
        },
        Role::Address if is_narrow::<A>(kind) => match (slot.state, value.minus, STAND_INS) {
            // a function of the process is reached by way of a stub that becomes its address here
            (SymbolState::ExternalFunction, Role::Place, true) => {
                near(kind.check).with(Needs::STUB).with(Needs::GOT)
            }
            (SymbolState::ExternalFunction, Role::Zero, true) => {
                limit(value, kind.check, found);
                Needs::LOW.with(Needs::STUB).with(Needs::GOT)
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
            _ => Needs::default(),
        },
        _ => Needs::default(),
    }
}

/// Whether the ABI says what the kind makes of a weak symbol that nobody defines.
fn has_own_weak<A: Arch>(kind: &'static Kind) -> bool {
    let query = Query { role: kind.value.of, symbol: 0, place: 0, addend: 0, kind };
    A::undefined_weak(&query).is_some()
}

/// Whether the kind cannot take every address.
fn is_narrow<A: Arch>(kind: &Kind) -> bool {
    kind.check != Check::Any && A::ADDRESS_SIZE == 8
}

/// What makes an external symbol come near. A field that is narrower than most has no use for an address that is near for others:
/// it is satisfied if neither distance nor address will do.
const fn near(check: Check) -> Needs {
    match check {
        Check::Signed(..32) => Needs::NEAR.with(Needs::LOW),
        _ => Needs::NEAR,
    }
}

/// Lowers the limit of the image's addresses to what an absolute field of this check holds.
fn limit(value: &Value, check: Check, found: &mut Found) {
    let bits = match check {
        Check::Signed(bits) => bits.saturating_sub(1),
        Check::Unsigned(bits) | Check::Either(bits) => bits,
        Check::Any => return,
    };
    // narrower fields hold parts of addresses or small absolute values: the relocation itself will tell
    if value.page == elf_core::Page::Neither && (31..64).contains(&bits) {
        let end = 1u64.unbounded_shl(bits);
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
        SymbolState::Undefined | SymbolState::NotLoaded | SymbolState::Dropped => {}
        SymbolState::Indirect if !INDIRECT_FUNCTIONS || is_tls || !options.indirect_functions => {}
        SymbolState::Indirect => return None,
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
    if kind.field.bytes == 0 || kind.value.of == Role::GotBase {
        return None;
    }
    let Record { offset, symbol, r#type, .. } = *record;
    let name = kind.name;
    Some(match slot.state {
        SymbolState::Undefined => ErrorKind::Undefined { symbol, offset, r#type, name },
        // unwinding tables speak of functions that are not there any more: nobody will ask
        SymbolState::Dropped if is_unwinding => return None,
        SymbolState::Dropped => ErrorKind::Dropped { symbol, offset, r#type, name },
        SymbolState::NotLoaded => ErrorKind::NotLoaded { symbol, offset, r#type, name },
        _ if is_tls => ErrorKind::NotThreadLocal { symbol, offset, r#type, name },
        SymbolState::Indirect => ErrorKind::Indirect { symbol, offset, r#type, name },
        SymbolState::ThreadLocal | SymbolState::ExternalThreadLocal | SymbolState::TlsBase => {
            ErrorKind::ThreadLocal { symbol, offset, r#type, name }
        }
        _ => ErrorKind::NotLoaded { symbol, offset, r#type, name },
    })
}
