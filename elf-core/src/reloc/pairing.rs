//! Relocations that belong with others, and what may stand for their code by what is known of those.

use super::rewrite::{Addresses, Rewrite};
use super::site::Site;
use super::tls::Transition;
use crate::views::record::Record;

/// What stands for the instructions of a site by the addresses of a record, its own or that of the one that it belongs with:
/// [`Shrink::rewrite`](crate::Shrink::rewrite), [`Pairing::shorten`](crate::Pairing::shorten).
pub type Shorten = fn(site: &Site<'_>, record: &Record, addresses: &Addresses) -> Option<Rewrite>;

/// The relocation that another one belongs with.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pairing {
    /// It.
    pub partner: Record,
    /// Whether it is the one that follows, and is done with.
    pub takes_next: bool,
    /// What becomes of the code at the place where the partner's thread-local variable is reached as local exec.
    pub transition: Option<Transition>,
    /// What may stand for the code at the place, by what is known of the partner's symbol.
    pub shorten: Option<Shorten>,
}

impl Pairing {
    /// With one that stands somewhere in the section.
    #[must_use]
    pub const fn new(partner: Record) -> Self {
        Self { partner, takes_next: false, transition: None, shorten: None }
    }

    /// The same with the partner where it is now.
    #[must_use]
    pub const fn with_partner(self, partner: Record) -> Self {
        Self { partner, ..self }
    }

    /// The same with the one that follows.
    #[must_use]
    pub const fn taking_next(self) -> Self {
        Self { takes_next: true, ..self }
    }

    /// The same of code for which other may stand that does without the partner's; without the feature `relax` none does.
    #[must_use]
    pub const fn shorten(self, shorten: Shorten) -> Self {
        if cfg!(feature = "relax") { Self { shorten: Some(shorten), ..self } } else { self }
    }

    /// The same of code that may become local exec code; without the feature `relax` it never does.
    #[must_use]
    pub const fn transition(self, transition: Transition) -> Self {
        if cfg!(feature = "relax") { Self { transition: Some(transition), ..self } } else { self }
    }
}
