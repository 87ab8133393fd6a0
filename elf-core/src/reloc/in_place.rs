//! All relocations of a section, decided by its bytes and applied to them.

use super::apply::{SectionMut, apply_kind, apply_rewrite};
use super::arch::Arch;
use super::decide::{Decision, Facts, Pass, decide_all};
use super::error::{ApplyError, ApplyErrorKind};
use super::kind::Kind;
use super::query::Resolve;
use super::rewrite::Reach;
use super::value::Role;
use crate::records::relocations::Relocations;
use crate::views::record::Record;
use core::marker::PhantomData;

/// Applies `records` to `section`, one after the other, up to the first that fails: what came before it is done.
///
/// # Errors
/// As [`apply`](crate::apply). Code that would become local exec is refused as [`ApplyErrorKind::Unresolved`]: a layout does that.
pub fn apply_all<A: Arch>(
    records: Relocations<'_>,
    section: &mut SectionMut<'_>,
    symbols: &(impl Resolve + Facts),
) -> Result<(), ApplyError> {
    decide_all::<A, _>(&records, &mut InPlace { section, symbols, arch: PhantomData::<A> })
}

/// Writes what is decided into the section that it is decided of.
struct InPlace<'p, 'm, S, A> {
    section: &'p mut SectionMut<'m>,
    symbols: &'p S,
    arch: PhantomData<A>,
}

impl<S: Facts, A> Facts for InPlace<'_, '_, S, A> {
    fn reach(&self, record: &Record) -> Option<Reach> {
        self.symbols.reach(record)
    }

    fn is_local_exec(&self, record: &Record) -> bool {
        self.symbols.is_local_exec(record)
    }

    fn is_thread_local(&self, record: &Record) -> bool {
        self.symbols.is_thread_local(record)
    }

    fn label(&self, record: &Record) -> Option<u64> {
        self.symbols.label(record)
    }
}

impl<S: Facts + Resolve, A: Arch> Pass for InPlace<'_, '_, S, A> {
    type Error = ApplyError;

    fn failed(&self, error: ApplyError) -> ApplyError {
        error
    }

    fn bytes(&self) -> Result<&[u8], ApplyError> {
        Ok(self.section.bytes)
    }

    fn decided(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: Decision,
    ) -> Result<(), ApplyError> {
        let Self { section, symbols, .. } = self;
        match decision {
            Decision::Apply => apply_kind::<A>(kind, record, None, section, *symbols),
            Decision::Pair(pairing) => {
                apply_kind::<A>(kind, record, Some(&pairing.partner), section, *symbols)
            }
            Decision::Rewrite(rewrite) => apply_rewrite::<A>(&rewrite, section, *symbols),
            Decision::Transition { .. } => {
                let kind_of_error = ApplyErrorKind::Unresolved(Role::TpOffset);
                Err(ApplyError::new(record, Some(kind.name), kind_of_error))
            }
        }
    }
}
