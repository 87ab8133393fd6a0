//! Who uses a buffer at the moment: queued calls, or the host, never both.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

/// Counts of uses in one word: calls in the lower half, readers on the host above, a writer on the host in the highest bit.
#[derive(Debug, Default)]
pub(crate) struct Uses(AtomicUsize);

/// A way to use a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A queued call: any number of them, as the queue keeps them apart.
    Call,
    /// The host reads.
    Read,
    /// The host writes.
    Write,
}

const READ: usize = 1 << (usize::BITS / 2);
const WRITE: usize = 1 << (usize::BITS - 1);

impl Use {
    /// What this use adds to the word.
    const fn unit(self) -> usize {
        match self {
            Self::Call => 1,
            Self::Read => READ,
            Self::Write => WRITE,
        }
    }

    /// Whether it can begin beside the others.
    const fn fits(self, word: usize) -> bool {
        match self {
            // one below the limit, so that a count never runs into its neighbour
            Self::Call => word < READ - 1,
            Self::Read => word & (READ - 1) == 0 && word < WRITE - READ,
            Self::Write => word == 0,
        }
    }
}

impl Uses {
    /// Begins a use.
    ///
    /// # Errors
    /// [`Error::InUse`] if another is in its way.
    pub(crate) fn begin(&self, r#use: Use) -> Result<(), Error> {
        let add = |word: usize| r#use.fits(word).then(|| word.wrapping_add(r#use.unit()));
        match self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::InUse),
        }
    }

    /// Ends a use that began.
    pub(crate) fn end(&self, r#use: Use) {
        self.0.fetch_sub(r#use.unit(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_readers_are_many_a_writer_is_alone() {
        use Use::{Call, Read, Write};
        for (first, second, fits) in [
            (Call, Call, true),
            (Call, Read, false),
            (Call, Write, false),
            (Read, Read, true),
            (Read, Call, false),
            (Read, Write, false),
            (Write, Call, false),
            (Write, Read, false),
            (Write, Write, false),
        ] {
            let uses = Uses::default();
            uses.begin(first).unwrap();
            assert_eq!(uses.begin(second).is_ok(), fits, "{first:?} {second:?}");
            if fits {
                uses.end(second);
            }
            uses.end(first);
            assert!(uses.begin(Write).is_ok());
        }
    }

    #[test]
    fn counts_do_not_overflow() {
        let uses = Uses(AtomicUsize::new(READ - 1));
        assert!(uses.begin(Use::Call).is_err());
        let uses = Uses(AtomicUsize::new(WRITE - READ));
        assert!(uses.begin(Use::Read).is_err());
    }
}
