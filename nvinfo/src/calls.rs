//! `.nv.callgraph`: direct calls, functions whose address is taken, indirect calls.

/// A record of the call graph. Functions are given by the index of their symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// One function calls another (list -1).
    Direct {
        /// Who calls.
        caller: u32,
        /// Who is called.
        callee: u32,
    },
    /// The address of a function is taken (list -2): every indirect call of the same prototype may reach it.
    AddressTaken {
        /// The function.
        function: u32,
        /// Its prototype: see [`Cubin::prototype`](crate::Cubin::prototype).
        prototype: u32,
    },
    /// A function calls through an address (list -3).
    Indirect {
        /// Who calls.
        caller: u32,
        /// The prototype that it calls.
        prototype: u32,
    },
    /// What an indirect call may reach, as the compiler knows it (list -4).
    MayReach {
        /// Who calls.
        caller: u32,
        /// Who may be called.
        callee: u32,
    },
    /// A record of another list.
    Other {
        /// Number of the list.
        list: i32,
        /// First word of the record.
        first: u32,
        /// Second word.
        second: u32,
    },
}

/// The records in order. Bytes that make no whole record at the end are not read.
#[derive(Clone, Debug, Default)]
pub struct Calls<'a> {
    rows: &'a [[u8; 8]],
    list: i32,
}

impl<'a> Calls<'a> {
    /// The records in the contents of `.nv.callgraph`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rows: bytes.as_chunks().0, list: 0 }
    }
}

impl Iterator for Calls<'_> {
    type Item = Call;

    #[inline]
    fn next(&mut self) -> Option<Call> {
        loop {
            let (row, rest) = self.rows.split_first()?;
            self.rows = rest;
            let row = u64::from_le_bytes(*row);
            let (first, second) = (row as u32, (row >> 32) as u32);
            if first == 0 && second.cast_signed() < 0 {
                self.list = second.cast_signed();
                continue;
            }
            return Some(match self.list {
                -1 => Call::Direct { caller: first, callee: second },
                -2 => Call::AddressTaken { function: first, prototype: second },
                -3 => Call::Indirect { caller: first, prototype: second },
                -4 => Call::MayReach { caller: first, callee: second },
                list => Call::Other { list, first, second },
            });
        }
    }
}

impl core::iter::FusedIterator for Calls<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn lists_are_told_apart() {
        let words: [(u32, i32); 7] = [(0, -1), (5, 6), (0, -2), (7, 1), (0, -3), (5, 1), (0, -4)];
        let bytes: Vec<u8> =
            words.iter().flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()]).flatten().collect();
        let calls: Vec<_> = Calls::new(&bytes).collect();
        let direct = Call::Direct { caller: 5, callee: 6 };
        let taken = Call::AddressTaken { function: 7, prototype: 1 };
        assert_eq!(calls, [direct, taken, Call::Indirect { caller: 5, prototype: 1 }]);
        for end in 0..bytes.len() {
            assert!(Calls::new(&bytes[..end]).count() <= 3);
        }
    }
}
