//! Thread-local storage: where a thread's variables are, and how code that would ask for their place is rewritten to know it.
//!
//! Terms and models are those of Drepper, "ELF Handling For Thread-Local Storage": the thread pointer, a module's block of
//! variables, and general dynamic, local dynamic, initial exec and local exec code.

/// What an architecture says of thread-local storage.
#[derive(Clone, Copy, Debug)]
pub struct Tls {
    /// On which side of the thread pointer an executable's block is.
    pub variant: Variant,
    /// Whether transitions make offsets in a block distances from the thread pointer. Code that asks for the start of the block
    /// (`_TLS_MODULE_BASE_`) to add such offsets to it then gets the thread pointer.
    pub offsets_become_distances: bool,
    /// How code becomes local exec, by rising number. Kinds without a row stay as they were compiled.
    pub transitions: &'static [Transition],
}

/// On which side of the thread pointer the block of an executable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Variant I: behind the thread pointer and what the system keeps there.
    Behind {
        /// Bytes that the system keeps.
        reserved: u64,
    },
    /// Variant II: right before the thread pointer.
    Before,
}

impl Variant {
    /// Where the block of an executable starts, from the thread pointer; `None` if there is no such block. `alignment` is a power
    /// of two.
    #[must_use]
    pub const fn executable_block(self, size: u64, alignment: u64) -> Option<i64> {
        let low = alignment.wrapping_sub(1);
        let exact = match self {
            Self::Behind { reserved } => reserved,
            Self::Before => size,
        };
        let Some(distance) = exact.checked_add(low) else { return None };
        let distance = distance & !low;
        if distance > i64::MAX as u64 {
            return None;
        }
        Some(match self {
            Self::Behind { .. } => distance.cast_signed(),
            Self::Before => distance.cast_signed().wrapping_neg(),
        })
    }
}

/// How code at the place of one kind of relocation becomes local exec.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// `r_type`.
    pub number: u32,
    /// Whether the relocation that follows, that of a call, is part of the sequence and is not applied.
    pub takes_call: bool,
    /// Rewrites the sequence around `place` in `code`, and tells how far behind the place the call's relocation must be, 0 if
    /// none is part of it. `None` if this is not the sequence that the ABI wants: nothing is changed then.
    pub rewrite: fn(code: &mut [u8], place: usize, distances: &Distances) -> Option<u64>,
}

/// Distances from the thread pointer in bytes, the same in every thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distances {
    /// To the variable, and the addend.
    pub variable: i64,
    /// To the start of the module's block.
    pub block: i64,
}

impl Tls {
    /// The transition of this kind, if there is one.
    #[must_use]
    pub fn transition(&self, number: u32) -> Option<&'static Transition> {
        self.transitions.iter().find(|transition| transition.number == number)
    }
}

/// `N` bytes of `code` from `before` bytes ahead of `place` on: what transitions match and rewrite.
#[must_use]
pub fn sequence<const N: usize>(
    code: &mut [u8],
    place: usize,
    before: usize,
) -> Option<&mut [u8; N]> {
    code.get_mut(place.checked_sub(before)?..)?.first_chunk_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_executables() {
        let behind = Variant::Behind { reserved: 16 };
        assert_eq!(behind.executable_block(100, 8), Some(16));
        assert_eq!(behind.executable_block(100, 64), Some(64));
        assert_eq!(Variant::Before.executable_block(100, 8), Some(-104));
        assert_eq!(Variant::Before.executable_block(0, 1), Some(0));
        assert_eq!(Variant::Before.executable_block(u64::MAX, 8), None);
        assert_eq!(Variant::Before.executable_block(1 << 63, 1), None);
    }

    #[test]
    fn sequences_stay_inside() {
        let mut code = [0; 8];
        assert!(sequence::<4>(&mut code, 4, 4).is_some());
        assert!(sequence::<4>(&mut code, 3, 4).is_none());
        assert!(sequence::<8>(&mut code, 4, 3).is_none());
        assert!(sequence::<4>(&mut code, usize::MAX, 0).is_none());
    }
}
