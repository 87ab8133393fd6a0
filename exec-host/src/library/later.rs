//! Which relocations of a library are for a later step than the first.

use elf_core::{Kind, Record, Role};

/// Relocations that are for later steps.
#[derive(Default)]
pub(super) struct Later {
    /// Those that speak of threads.
    pub(super) of_threads: Vec<(Record, &'static Kind)>,
    /// One of them wants variables at one distance from the thread pointer.
    pub(super) wants_tp_offset: bool,
    /// Those that functions of the library answer.
    pub(super) answered: Vec<(Record, &'static Kind)>,
}

impl Later {
    /// Takes the relocation if it is for later. `is_indirect` is whether the symbol is an indirect function of the library.
    pub(super) fn takes(
        &mut self,
        record: &Record,
        kind: &'static Kind,
        is_indirect: impl FnOnce() -> bool,
    ) -> bool {
        if is_tls(kind.value.of) || is_tls(kind.value.minus) {
            self.of_threads.push((*record, kind));
            self.wants_tp_offset |=
                kind.value.of == Role::TpOffset || kind.value.minus == Role::TpOffset;
            return true;
        }
        let is_answered = match kind.value.of {
            Role::Indirect => true,
            Role::Address | Role::Plt => is_indirect(),
            _ => false,
        };
        if is_answered {
            self.answered.push((*record, kind));
        }
        is_answered
    }
}

const fn is_tls(role: Role) -> bool {
    matches!(role, Role::TlsModule | Role::DtpOffset | Role::TpOffset | Role::TlsDescFunction)
}
