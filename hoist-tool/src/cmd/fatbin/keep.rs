//! Which code is kept: `sm_90`, `compute_90`, `ptx`.

use std::fmt;

use fatbin::{EntryKind, Sm};

use super::filter::kind;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// All of a kind.
    Kind(EntryKind),
    /// Machine code for an architecture.
    Code(Sm),
    /// PTX for an architecture.
    Ptx(Sm),
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::Code(sm) => write!(f, "sm_{sm}"),
            Self::Ptx(sm) => write!(f, "compute_{sm}"),
        }
    }
}

impl Keep {
    /// The narrowest word that keeps an image.
    #[must_use]
    pub const fn of(kind: EntryKind, sm: Sm) -> Self {
        match kind {
            EntryKind::Ptx | EntryKind::RelocatablePtx => Self::Ptx(sm),
            kind if kind.is_machine_code() => Self::Code(sm),
            kind => Self::Kind(kind),
        }
    }

    /// Whether an image of this kind for this architecture is kept.
    #[must_use]
    pub fn keeps(self, kind: EntryKind, sm: Sm) -> bool {
        match self {
            Self::Kind(wanted) => kind == wanted,
            Self::Code(wanted) => kind.is_machine_code() && sm == wanted,
            Self::Ptx(wanted) => {
                matches!(kind, EntryKind::Ptx | EntryKind::RelocatablePtx) && sm == wanted
            }
        }
    }
}

/// What is kept by a word: `sm_90`, `compute_90`, `ptx`.
///
/// # Errors
/// If it is none.
pub fn keep(text: &str) -> Result<Keep, String> {
    if let Ok(kind) = kind(text) {
        return Ok(Keep::Kind(kind));
    }
    let sm = text.parse().map_err(|error: fatbin::NotAnSm| error.to_string())?;
    Ok(if text.starts_with("compute_") { Keep::Ptx(sm) } else { Keep::Code(sm) })
}
