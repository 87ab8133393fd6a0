//! What is to be done about a record, decided once.
//!
//! A decision is a pure function of the records of a section, of its bytes as the file has them, and of [`Facts`] that are known
//! before anything has an address. Who counts what relocations need and who writes both go over the same decisions: [`decide_all`].

use super::arch::{Arch, find_of};
use super::error::{ApplyError, ApplyErrorKind};
use super::kind::{Kind, Relax, Special, Uses};
use super::pairing::Pairing;
use super::query::Query;
use super::rewrite::{Addresses, GotLoad, Reach, Rewrite};
use super::site::{Neighbours, Site, Steps};
use super::tls::Transition;
use crate::records::relocations::Relocations;
use crate::views::record::Record;

/// What is to be done about a record.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// Its kind is applied.
    Apply,
    /// Its kind is applied, with the value of a relocation that it belongs with.
    Pair(Pairing),
    /// Other instructions stand for those at the place.
    Rewrite(Rewrite),
    /// Code that reaches a thread-local variable becomes local exec.
    Transition {
        /// How.
        transition: Transition,
        /// The relocation of the call, if one is part of the sequence.
        call: Option<Record>,
        /// The relocation that names the variable, if it is not the record itself.
        partner: Option<Record>,
        /// Whether the instructions go altogether.
        goes: bool,
    },
}

impl Decision {
    /// About how many of the following records it is made, too.
    #[must_use]
    #[inline]
    pub const fn takes(&self) -> usize {
        match self {
            Self::Apply => 0,
            Self::Pair(pairing) => pairing.takes_next as usize,
            Self::Rewrite(rewrite) => rewrite.takes,
            Self::Transition { transition, .. } => transition.takes_call as usize,
        }
    }
}

/// What may be known of symbols before anything has an address, and stays so.
pub trait Facts {
    /// Whether [`reach`](Self::reach) may know anything of any record.
    #[inline]
    fn relaxes(&self) -> bool {
        true
    }

    /// What is known of the address of which the record's instructions load the GOT entry; `None` to leave them as they are.
    #[inline]
    fn reach(&self, record: &Record) -> Option<Reach> {
        let _ = record;
        None
    }

    /// What is known of the record's symbol where code may become shorter; `None` to leave it as long as it is.
    #[inline]
    fn addresses(&self, record: &Record) -> Option<Addresses> {
        let _ = record;
        None
    }

    /// Whether bytes may go from the place of the record, which is of a kind that [says](Kind::goes) how many.
    #[inline]
    fn may_go(&self, record: &Record) -> bool {
        let _ = record;
        false
    }

    /// Whether code that reaches the record's thread-local variable becomes local exec.
    #[inline]
    fn is_local_exec(&self, record: &Record) -> bool {
        let _ = record;
        false
    }

    /// Whether the record's symbol is a thread-local variable.
    #[inline]
    fn is_thread_local(&self, record: &Record) -> bool {
        let _ = record;
        false
    }

    /// Offset in the section of the label that the record's symbol is; `None` if it is no symbol of the section.
    #[inline]
    fn label(&self, record: &Record) -> Option<u64> {
        let _ = record;
        None
    }
}

/// Nothing is known: all code stays as it was compiled.
impl<F: Fn(&Query) -> Option<u64>> Facts for F {}

/// The row for the record of a site, whose type is `kind`: that one or its alternative.
#[inline]
pub fn choose(
    kind: &'static Kind,
    site: &Site<'_>,
    facts: &(impl Facts + ?Sized),
) -> &'static Kind {
    match kind.special {
        Special::Alternative(alternative) => {
            alternative(site, facts.is_thread_local(site.record)).unwrap_or(kind)
        }
        _ => kind,
    }
}

/// Decides about the record of a site, for which `kind` was [chosen](choose).
///
/// # Errors
/// [`ApplyErrorKind::Unpaired`] if it belongs with another that is not there, and what a [`Pair`](crate::Pair) gives.
// a part of every loop over records where there is room for code
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline)]
pub fn decide(
    kind: &'static Kind,
    site: &Site<'_>,
    facts: &(impl Facts + ?Sized),
) -> Result<Decision, ApplyErrorKind> {
    // rows have nothing of this without the feature
    let relaxes = cfg!(feature = "relax");
    Ok(match kind.special {
        Special::None
        | Special::Padding(_)
        | Special::Copy
        | Special::Descriptor { .. }
        | Special::Alternative(_) => Decision::Apply,
        Special::Relax(relax) if relaxes => {
            let rewrite = facts.reach(site.record).and_then(|reach| relax(site, reach));
            rewrite.map_or(Decision::Apply, Decision::Rewrite)
        }
        Special::Shrink(shrink) if relaxes && (shrink.size == 0 || facts.may_go(site.record)) => {
            let addresses = facts.addresses(site.record);
            let rewrite =
                addresses.and_then(|addresses| (shrink.rewrite)(site, site.record, &addresses));
            rewrite.map_or(Decision::Apply, Decision::Rewrite)
        }
        Special::Transition(transition) if relaxes && facts.is_local_exec(site.record) => {
            let call = if transition.takes_call { site.next() } else { None };
            let goes = goes(&transition, site, site.record, facts);
            Decision::Transition { transition, call, partner: None, goes }
        }
        Special::Relax(_) | Special::Shrink(_) | Special::Transition(_) => Decision::Apply,
        Special::Pair(pair) => {
            let pairing = pair(site, facts.label(site.record))?;
            let partner = pairing.partner;
            if relaxes
                && let Some(shorten) = pairing.shorten
                && let Some(addresses) = facts.addresses(&partner)
                && let Some(rewrite) = shorten(site, &partner, &addresses)
            {
                return Ok(Decision::Rewrite(rewrite));
            }
            match pairing.transition {
                Some(transition) if relaxes && facts.is_local_exec(&partner) => {
                    let goes = goes(&transition, site, &partner, facts);
                    Decision::Transition { transition, call: None, partner: Some(partner), goes }
                }
                _ => Decision::Pair(pairing),
            }
        }
        Special::Second => return Err(ApplyErrorKind::Unpaired),
    })
}

/// Whether the instructions at the site go, of code that becomes local exec and whose variable `record` names.
fn goes(
    transition: &Transition,
    site: &Site<'_>,
    record: &Record,
    facts: &(impl Facts + ?Sized),
) -> bool {
    let Some(goes) = transition.goes.filter(|_| facts.may_go(site.record)) else { return false };
    facts.addresses(record).is_some_and(|addresses| goes(site, record, &addresses))
}

/// Goes over a section's records as they are decided.
pub trait Pass: Facts {
    /// Why it ends early.
    type Error;

    /// What ends the pass when a record cannot be decided.
    fn failed(&self, error: ApplyError) -> Self::Error;

    /// The bytes of the section, for decisions that need them.
    ///
    /// # Errors
    /// If they cannot be had.
    fn bytes(&self) -> Result<&[u8], Self::Error>;

    /// Takes a record, whose type is `kind`, and what is to be done about it.
    ///
    /// # Errors
    /// What ends the pass.
    fn decided(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: Decision,
    ) -> Result<(), Self::Error>;

    /// Takes a record that is applied as most are: the same as [`Decision::Apply`], in a shorter way where there is one.
    ///
    /// # Errors
    /// As [`decided`](Self::decided).
    #[inline]
    fn applied(&mut self, kind: &'static Kind, record: &Record) -> Result<(), Self::Error> {
        self.decided(kind, record, Decision::Apply)
    }

    /// Takes a record at whose place an architecture's [`GOT_LOAD`](Arch::GOT_LOAD) stands, if the address is near: the same as
    /// [`rewritten`](Self::rewritten) with what becomes of it. `false` where that is to be found out the long way. Who does not
    /// [relax](Facts::relaxes) is not asked.
    ///
    /// # Errors
    /// As [`decided`](Self::decided).
    #[inline]
    fn loaded(&mut self, record: &Record, load: &GotLoad) -> Result<bool, Self::Error> {
        let _ = (record, load);
        Ok(false)
    }

    /// Takes a record for which other instructions stand: the same as [`Decision::Rewrite`], but that they are not copied.
    ///
    /// # Errors
    /// As [`decided`](Self::decided).
    #[inline]
    fn rewritten(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        rewrite: &Rewrite,
    ) -> Result<(), Self::Error> {
        self.decided(kind, record, Decision::Rewrite(*rewrite))
    }
}

/// Decides about all `records` of a section, in order. Those that a decision takes along are passed over.
///
/// ```
/// use elf_core::{ApplyError, Arch, Check, Decision, Encoding, Facts, Field, Kind, Pass, Record, Relocations};
/// use elf_core::{Role, Stub, Table, Value, decide_all};
///
/// elf_core::kinds! {
///     R_SMALL_NONE  = 0: marker();
///     R_SMALL_ABS32 = 1: new(Value::of(Role::Address).plus_a(), Check::Any, Field::DATA32);
/// }
///
/// struct Small;
///
/// impl Arch for Small {
///     const MACHINE: u16 = 0x1234;
///     const ADDRESS_SIZE: u64 = 4;
///     const KINDS: &'static [Kind] = KINDS;
///     const STUBS: &'static [Stub] = &[];
/// }
///
/// /// Notes the places that hold an address.
/// struct Addresses<'s> {
///     section: &'s [u8],
///     places: Vec<u64>,
/// }
///
/// impl Facts for Addresses<'_> {}
///
/// impl Pass for Addresses<'_> {
///     type Error = ApplyError;
///
///     fn failed(&self, error: ApplyError) -> ApplyError {
///         error
///     }
///
///     fn bytes(&self) -> Result<&[u8], ApplyError> {
///         Ok(self.section)
///     }
///
///     fn decided(&mut self, kind: &'static Kind, record: &Record, decision: Decision) -> Result<(), ApplyError> {
///         if kind.number == R_SMALL_ABS32 && matches!(decision, Decision::Apply) {
///             self.places.push(record.offset);
///         }
///         Ok(())
///     }
/// }
///
/// // r_offset, r_info (symbol 5), r_addend: three times
/// let words = [0u32, 5 << 8 | R_SMALL_ABS32, 8, 4, 0, 0, 8, 5 << 8 | R_SMALL_ABS32, 0];
/// let table: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let records = Relocations::Rela(Table::parse(&table, Encoding::Elf32Le, 0, 3)?);
///
/// let mut pass = Addresses { section: &[0; 12], places: Vec::new() };
/// decide_all::<Small, _>(&records, &mut pass)?;
/// assert_eq!(pass.places, [0, 8]);
///
/// // the first row has a type that nobody knows: nothing is decided after it
/// let table: Vec<u8> = [0u32, 5 << 8 | 77, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
/// let records = Relocations::Rela(Table::parse(&table, Encoding::Elf32Le, 0, 1)?);
/// assert!(decide_all::<Small, _>(&records, &mut pass).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first one of the pass; [`ApplyErrorKind::UnknownType`], and what [`decide`] gives.
#[inline]
pub fn decide_all<A: Arch, P: Pass + ?Sized>(
    records: &Relocations<'_>,
    pass: &mut P,
) -> Result<(), P::Error> {
    let Some(kind) = A::KINDS.first() else { return Ok(()) };
    let steps = Steps::new(records.len());
    let mut walk = Walk { kind, way: Way::of::<A>(kind, pass), skips: 0 };
    let is_table = matches!(records, Relocations::Rela(_) | Relocations::Rel(_));
    // a machine of 32 bits is small: it has one loop for all
    if cfg!(target_pointer_width = "64") && is_table {
        let mut following = 0usize;
        return records.try_for_each(|record| {
            let index = following;
            following = index.wrapping_add(1);
            walk.step::<A, P>(&record, pass, || Neighbours::Table(records, index, &steps))
        });
    }
    let mut rest = records.iter();
    let mut next = rest.next();
    let mut following = 0usize;
    while let Some(record) = next {
        let index = following;
        following = index.wrapping_add(1);
        next = rest.next();
        walk.step::<A, P>(&record, pass, || match is_table {
            true => Neighbours::Table(records, index, &steps),
            false => Neighbours::Packed(records, next.as_ref(), &steps),
        })?;
    }
    Ok(())
}

/// Decides about those records of a section that `next` names: given an index, the first from there on that is to be decided about. That
/// is what [`decide_all`] decides about them if the others take none along. Packed forms are gone over from the first to the last.
///
/// # Errors
/// As [`decide_all`].
#[inline]
pub fn decide_some<A: Arch, P: Pass + ?Sized>(
    records: &Relocations<'_>,
    pass: &mut P,
    next: impl Fn(&P, usize) -> Option<usize>,
) -> Result<(), P::Error> {
    if !matches!(records, Relocations::Rela(_) | Relocations::Rel(_)) {
        return decide_all::<A, P>(records, pass);
    }
    let Some(kind) = A::KINDS.first() else { return Ok(()) };
    let steps = Steps::new(records.len());
    let mut walk = Walk { kind, way: Way::of::<A>(kind, pass), skips: 0 };
    let mut from = 0usize;
    while let Some(index) = next(pass, from).filter(|index| *index >= from)
        && let Some(record) = records.get(index)
    {
        walk.skips = 0;
        walk.step::<A, P>(&record, pass, || Neighbours::Table(records, index, &steps))?;
        from = index.saturating_add(1).saturating_add(walk.skips);
    }
    Ok(())
}

/// What goes from one record to the next.
struct Walk {
    /// The kind of the last record: neighbours are often alike.
    kind: &'static Kind,
    way: Way,
    /// How many of the following records are decided already.
    skips: usize,
}

/// How much has to be decided about records of a kind.
#[derive(Clone, Copy)]
enum Way {
    /// Nothing.
    Applied,
    /// Whether it is relaxed.
    Relaxed(Relax),
    /// The same of what is often [`Arch::GOT_LOAD`].
    Loaded(Relax),
    /// All.
    Decided,
}

impl Way {
    /// What most code is full of, the loads of addresses too, goes the shortest way where there is room for code.
    #[inline]
    fn of<A: Arch>(kind: &'static Kind, pass: &(impl Facts + ?Sized)) -> Self {
        match kind.special {
            // a machine of 32 bits keeps no way
            _ if cfg!(not(target_pointer_width = "64")) => Self::Decided,
            _ if kind.special.is_none() => Self::Applied,
            Special::Relax(_) if !cfg!(feature = "relax") || !pass.relaxes() => Self::Applied,
            Special::Relax(relax) => match A::GOT_LOAD {
                Some(load) if load.r#type == kind.number => Self::Loaded(relax),
                _ => Self::Relaxed(relax),
            },
            _ => Self::Decided,
        }
    }
}

impl Walk {
    // the record is not in memory where it is applied as most are: whoever wants it there has a copy
    #[inline(always)]
    fn step<'s, A: Arch, P: Pass + ?Sized>(
        &mut self,
        record: &Record,
        pass: &mut P,
        neighbours: impl FnOnce() -> Neighbours<'s>,
    ) -> Result<(), P::Error> {
        if let Some(rest) = self.skips.checked_sub(1) {
            self.skips = rest;
            return Ok(());
        }
        if self.kind.number != record.r#type {
            let Some(kind) = find_of::<A>(record.r#type) else {
                return Err(undecided(record, None, ApplyErrorKind::UnknownType, pass));
            };
            (self.kind, self.way) = (kind, Way::of::<A>(kind, pass));
        }
        let kind = self.kind;
        let has_special = const { Uses::of(A::KINDS).special };
        // a machine of 32 bits keeps no way: the row says what its records are
        if cfg!(not(target_pointer_width = "64")) && (!has_special || kind.special.is_none()) {
            return pass.decided(kind, record, Decision::Apply);
        }
        // a shorter way for most of them, where there is room for code
        let way = if has_special { self.way } else { Way::Applied };
        if cfg!(target_pointer_width = "64") && !matches!(way, Way::Decided) {
            match way {
                Way::Loaded(_)
                    if let Some(load) = &A::GOT_LOAD
                        && load.is_at(record, pass.bytes()?)
                        && pass.loaded(record, load)? =>
                {
                    return Ok(());
                }
                Way::Loaded(relax) | Way::Relaxed(relax) => {
                    let copy = Record { ..*record };
                    if let Some(takes) = relaxed(kind, relax, &copy, pass, neighbours())? {
                        self.skips = takes;
                        return Ok(());
                    }
                }
                Way::Applied | Way::Decided => {}
            }
            return pass.applied(kind, record);
        }
        // a machine of 32 bits has it in memory
        self.skips = if cfg!(target_pointer_width = "64") {
            decide_any::<A, P>(kind, &Record { ..*record }, pass, neighbours())?
        } else {
            decide_any::<A, P>(kind, record, pass, neighbours())?
        };
        Ok(())
    }
}

/// Takes a record that is relaxed, and says how many more; `None` of others.
#[inline(never)]
fn relaxed<P: Pass + ?Sized>(
    kind: &'static Kind,
    relax: Relax,
    record: &Record,
    pass: &mut P,
    neighbours: Neighbours<'_>,
) -> Result<Option<usize>, P::Error> {
    let Some(reach) = pass.reach(record) else { return Ok(None) };
    let site = Site { bytes: pass.bytes()?, record, neighbours };
    let Some(rewrite) = &relax(&site, reach) else { return Ok(None) };
    pass.rewritten(kind, record, rewrite)?;
    Ok(Some(rewrite.takes))
}

/// Takes a record of which all is to be decided, and says how many more.
#[inline]
fn decide_any<A: Arch, P: Pass + ?Sized>(
    mut kind: &'static Kind,
    record: &Record,
    pass: &mut P,
    neighbours: Neighbours<'_>,
) -> Result<usize, P::Error> {
    let decision = {
        let site = Site { bytes: pass.bytes()?, record, neighbours };
        if const { Uses::of(A::KINDS).alternatives } {
            kind = choose(kind, &site, pass);
        }
        decide(kind, &site, pass)
    };
    let decision = match decision {
        Ok(decision) => decision,
        Err(error) => return Err(undecided(record, Some(kind.name), error, pass)),
    };
    // a shorter way, where there is room for code
    if cfg!(target_pointer_width = "64") && matches!(decision, Decision::Apply) {
        pass.applied(kind, record)?;
        return Ok(0);
    }
    let takes = decision.takes();
    pass.decided(kind, record, decision)?;
    Ok(takes)
}

#[cold]
fn undecided<P: Pass + ?Sized>(
    record: &Record,
    name: Option<&'static str>,
    error: ApplyErrorKind,
    pass: &P,
) -> P::Error {
    pass.failed(ApplyError::new(record, name, error))
}
