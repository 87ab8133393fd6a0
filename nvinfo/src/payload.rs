//! What the values of attributes mean.

use crate::names::Shape;
use crate::parameter::{KernelParameter, ParameterBank};
use crate::value::AttributeValue;

/// A value, typed. What is not known, or has another size than its type, is [`Payload::Bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload<'a> {
    /// The attribute is there: that is all.
    Flag,
    /// A number of one, two or four bytes.
    Number(u32),
    /// A number that belongs to a symbol: registers, bytes of stack.
    OfSymbol {
        /// Index of the symbol.
        symbol: u32,
        /// The number.
        value: u32,
    },
    /// Indices of symbols.
    Symbols(Words<'a>),
    /// Offsets in the code of the function whose section this is, in bytes.
    Offsets(Words<'a>),
    /// Numbers.
    Numbers(Words<'a>),
    /// Numbers for x, y and z.
    Triple([u32; 3]),
    /// A parameter of the kernel.
    Parameter(KernelParameter),
    /// Where the parameters are.
    ParameterBank(ParameterBank),
    /// Indirect branches, each with its targets.
    Branches(Branches<'a>),
    /// Loads of which some bytes are not used: offset in the code, mask of bytes.
    UnusedLoads(Pairs<'a>),
    /// Spills and refills of registers (annotations of kind 1): offsets in the code.
    SpillRefills(Pairs<'a>),
    /// Barrier instructions on shared memory.
    Mbarriers(Mbarriers<'a>),
    /// Instructions that stand for an atomic one of 16 bits: offset in the code, register.
    RegisterMap(Pairs<'a>),
    /// Where coroutines go on: number, offset in the code.
    Resumes(Pairs<'a>),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> Payload<'a> {
    pub(crate) fn read(shape: Shape, value: AttributeValue<'a>) -> Self {
        match value {
            AttributeValue::None(_) => Self::Flag,
            AttributeValue::Byte(byte, _) => Self::Number(byte.into()),
            AttributeValue::Half(half) => Self::Number(half.into()),
            AttributeValue::Bytes(bytes) => Self::typed(shape, bytes).unwrap_or(Self::Bytes(bytes)),
        }
    }

    fn typed(shape: Shape, bytes: &'a [u8]) -> Option<Self> {
        let words = || Words::new(bytes);
        let three = || match words()?.rows {
            [x, y, z] => Some([*x, *y, *z].map(u32::from_le_bytes)),
            _ => None,
        };
        let pairs = || Pairs::new(bytes);
        match shape {
            Shape::Bytes => None,
            Shape::Number => Some(Self::Number(words()?.only()?)),
            Shape::OfSymbol => {
                pairs()?.only().map(|(symbol, value)| Self::OfSymbol { symbol, value })
            }
            Shape::Symbols => words().map(Self::Symbols),
            Shape::Offsets => words().map(Self::Offsets),
            Shape::Numbers => words().map(Self::Numbers),
            Shape::Triple => three().map(Self::Triple),
            Shape::Parameter => {
                three().map(|words| Self::Parameter(KernelParameter::from_words(words)))
            }
            Shape::ParameterV2 => {
                three().map(|words| Self::Parameter(KernelParameter::from_words_v2(words)))
            }
            Shape::ParameterBank => {
                let (symbol, place) = pairs()?.only()?;
                Some(Self::ParameterBank(ParameterBank {
                    symbol,
                    offset: place as u16,
                    size: (place >> 16) as u16,
                }))
            }
            Shape::Branches => Branches::new(bytes).map(Self::Branches),
            Shape::UnusedLoads => pairs().map(Self::UnusedLoads),
            Shape::Annotations => {
                let pairs = pairs()?;
                pairs.into_iter().all(|(kind, _)| kind == 1).then_some(Self::SpillRefills(pairs))
            }
            Shape::Mbarriers => Mbarriers::new(bytes).map(Self::Mbarriers),
            Shape::RegisterMap => pairs().map(Self::RegisterMap),
            Shape::Resumes => pairs().map(Self::Resumes),
        }
    }

    /// The offsets in the code that this value names, whatever else it says; each is that of an instruction.
    ///
    /// The targets of indirect branches are among them.
    pub fn code_offsets(self) -> impl Iterator<Item = u32> + use<'a> {
        let (words, pairs, spills, barriers, branches) = match self {
            Self::Offsets(words) => (Some(words), None, None, None, None),
            Self::UnusedLoads(pairs) | Self::RegisterMap(pairs) => {
                (None, Some(pairs), None, None, None)
            }
            Self::SpillRefills(pairs) | Self::Resumes(pairs) => {
                (None, None, Some(pairs), None, None)
            }
            Self::Mbarriers(barriers) => (None, None, None, Some(barriers), None),
            Self::Branches(branches) => (None, None, None, None, Some(branches)),
            _ => (None, None, None, None, None),
        };
        let branches = branches.into_iter().flatten();
        let branches =
            branches.flat_map(|branch| core::iter::once(branch.offset).chain(branch.targets));
        (words.into_iter().flatten())
            .chain(pairs.into_iter().flatten().map(|(offset, _)| offset))
            .chain(spills.into_iter().flatten().map(|(_, offset)| offset))
            .chain(barriers.into_iter().flatten().map(|barrier| barrier.offset))
            .chain(branches)
    }
}

/// Rows of so many words, little-endian: a value cut into equal parts, none left over.
macro_rules! rows {
    ($(#[$doc:meta])* $name:ident, $size:literal, $item:ty, $read:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a> {
            rows: &'a [[u8; $size]],
        }

        impl<'a> $name<'a> {
            fn new(bytes: &'a [u8]) -> Option<Self> {
                let (rows, rest) = bytes.as_chunks();
                rest.is_empty().then_some(Self { rows })
            }

            /// Number of rows.
            #[must_use]
            pub const fn len(&self) -> usize {
                self.rows.len()
            }

            /// Whether there are none.
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.rows.is_empty()
            }

            /// Row `index`.
            #[must_use]
            pub fn get(&self, index: usize) -> Option<$item> {
                self.rows.get(index).copied().map($read)
            }

            /// The row, if there is just one.
            #[must_use]
            pub fn only(&self) -> Option<$item> {
                self.get(0).filter(|_| self.rows.len() == 1)
            }
        }

        impl<'a> IntoIterator for $name<'a> {
            type Item = $item;
            type IntoIter = core::iter::Map<core::iter::Copied<core::slice::Iter<'a, [u8; $size]>>, fn([u8; $size]) -> $item>;

            fn into_iter(self) -> Self::IntoIter {
                self.rows.iter().copied().map($read)
            }
        }
    };
}

rows!(
    /// Numbers of four bytes.
    Words, 4, u32, u32::from_le_bytes
);
rows!(
    /// Pairs of numbers of four bytes.
    Pairs, 8, (u32, u32), |row| {
        let row = u64::from_le_bytes(row);
        (row as u32, (row >> 32) as u32)
    }
);
rows!(
    /// Barrier instructions.
    Mbarriers, 16, Mbarrier, Mbarrier::from_bytes
);

/// An instruction on a barrier in shared memory (`EIATTR_MBARRIER_INSTR_OFFSETS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mbarrier {
    /// Offset of the instruction in the code.
    pub offset: u32,
    /// The register that holds the address; 255 for none.
    pub register: u32,
    /// What is added to it, in bytes.
    pub immediate: i32,
    /// What the instruction does, as a number: [`kind_name`](Self::kind_name).
    pub kind: u8,
    /// The stride, as cuobjdump has it: 4 in all files measured, 8, 16 or 1.
    pub stride: u8,
    /// The uniform register that is added; 63 for none up to `sm_90`, then 255.
    pub uniform_register: u8,
    /// Not known: what lies above kind and stride, and the last byte. 0, 1 and 0 in all files measured.
    pub rest: [u8; 3],
}

/// What instructions on barriers do, by number, as cuobjdump 13.5 names them.
const MBARRIER_KINDS: [&str; 11] = [
    "MBARRIER_INIT",
    "MBARRIER_ARRIVE",
    "MBARRIER_ARRIVE_NOCOMPLETE",
    "MBARRIER_ARRIVE_DROP",
    "MBARRIER_ARRIVE_DROP_NOCOMPLETE",
    "MBARRIER_TEST_WAIT",
    "MBARRIER_TEST_WAIT_PARITY",
    "MBARRIER_CP_ASYNC_ARRIVE",
    "MBARRIER_INVAL",
    "MBARRIER_TRY_WAIT",
    "MBARRIER_TRY_WAIT_PARITY",
];

impl Mbarrier {
    /// What the instruction does, in cuobjdump's words; `None` for a number that no tool names.
    #[must_use]
    pub fn kind_name(&self) -> Option<&'static str> {
        MBARRIER_KINDS.get(usize::from(self.kind)).copied()
    }

    const fn from_bytes(row: [u8; 16]) -> Self {
        let row = u128::from_le_bytes(row);
        let [low, flags, uniform_register, last] = ((row >> 96) as u32).to_le_bytes();
        Self {
            offset: row as u32,
            register: (row >> 32) as u32,
            immediate: (row >> 64) as i32,
            kind: low & 0xf,
            stride: match low >> 4 & 3 {
                0 => 4,
                1 => 8,
                2 => 16,
                _ => 1,
            },
            uniform_register,
            rest: [low >> 6, flags, last],
        }
    }
}

/// An indirect branch and where it may go (`EIATTR_INDIRECT_BRANCH_TARGETS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectBranch<'a> {
    /// Offset of the branch in the code.
    pub offset: u32,
    /// What it is: 0 for a jump, 1 for a call.
    pub kind: u32,
    /// Offsets of its targets in the code.
    pub targets: Words<'a>,
}

/// Indirect branches, checked to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branches<'a> {
    rest: Words<'a>,
}

impl<'a> Branches<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let all = Self { rest: Words::new(bytes)? };
        let mut left = all;
        while left.next().is_some() {}
        left.rest.is_empty().then_some(all)
    }
}

impl<'a> Iterator for Branches<'a> {
    type Item = IndirectBranch<'a>;

    fn next(&mut self) -> Option<IndirectBranch<'a>> {
        let (&[offset, kind, count], left) = self.rest.rows.split_first_chunk::<3>()?;
        let count = usize::try_from(u32::from_le_bytes(count)).ok()?;
        let (targets, left) = left.split_at_checked(count)?;
        self.rest = Words { rows: left };
        let [offset, kind] = [offset, kind].map(u32::from_le_bytes);
        Some(IndirectBranch { offset, kind, targets: Words { rows: targets } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn typed<'a>(shape: Shape, bytes: &'a [u8]) -> Payload<'a> {
        Payload::read(shape, AttributeValue::Bytes(bytes))
    }

    #[test]
    fn a_size_that_does_not_suit_the_type_is_bytes() {
        let shapes =
            [Shape::Number, Shape::OfSymbol, Shape::Triple, Shape::Parameter, Shape::ParameterBank];
        for (shape, size) in shapes.into_iter().zip([4, 8, 12, 12, 8]) {
            for len in 0..20 {
                let data = vec![0; len];
                assert_eq!(
                    matches!(typed(shape, &data), Payload::Bytes(_)),
                    len != size,
                    "{shape:?} {len}"
                );
            }
        }
    }

    #[test]
    fn branches_are_whole_or_bytes() {
        let data = bytes(&[0x10, 0, 2, 0x20, 0x30, 0x40, 0, 0]);
        let Payload::Branches(branches) = typed(Shape::Branches, &data) else {
            panic!("no branches")
        };
        let read: Vec<_> =
            branches.map(|b| (b.offset, b.targets.into_iter().collect::<Vec<_>>())).collect();
        assert_eq!(read, [(0x10, vec![0x20, 0x30]), (0x40, vec![])]);
        for end in (0..data.len()).filter(|end| ![0, 20].contains(end)) {
            assert_eq!(typed(Shape::Branches, &data[..end]), Payload::Bytes(&data[..end]));
        }
        assert_eq!(
            typed(Shape::Branches, &data).code_offsets().collect::<Vec<_>>(),
            [0x10, 0x20, 0x30, 0x40]
        );
    }

    #[test]
    fn only_annotations_of_kind_1_are_known() {
        let known = bytes(&[1, 0x10, 1, 0x20]);
        assert_eq!(
            typed(Shape::Annotations, &known).code_offsets().collect::<Vec<_>>(),
            [0x10, 0x20]
        );
        let other = bytes(&[1, 0x10, 2, 0x20]);
        assert_eq!(typed(Shape::Annotations, &other), Payload::Bytes(&other));
    }

    #[test]
    fn offsets_come_first_or_second() {
        let data = bytes(&[0x110, 11, 0x150, 12]);
        let Payload::RegisterMap(pairs) = typed(Shape::RegisterMap, &data) else {
            panic!("no registers")
        };
        assert_eq!(pairs.into_iter().collect::<Vec<_>>(), [(0x110, 11), (0x150, 12)]);
        let offsets = |shape| typed(shape, &data).code_offsets().collect::<Vec<_>>();
        assert_eq!(offsets(Shape::RegisterMap), [0x110, 0x150]);
        assert_eq!(offsets(Shape::Resumes), [11, 12]);
    }

    #[test]
    fn a_barrier_instruction_has_its_registers() {
        let of = |word: u32| {
            let data = bytes(&[0x70, 0xff, 4, word]);
            let Payload::Mbarriers(all) = typed(Shape::Mbarriers, &data) else {
                panic!("no barriers")
            };
            all.only().unwrap()
        };
        let found = of(0x003f_0105);
        assert_eq!((found.offset, found.register, found.immediate), (0x70, 255, 4));
        assert_eq!((found.kind, found.stride, found.uniform_register), (5, 4, 63));
        assert_eq!(found.rest, [0, 1, 0]);
        // cuobjdump 13.5 of a cubin whose bits were changed one by one
        let kinds = [0x00, 0x12, 0x2a, 0x30, 0x40, 0xf1].map(|low| (of(low).kind, of(low).stride));
        assert_eq!(kinds, [(0, 4), (2, 8), (10, 16), (0, 1), (0, 4), (1, 1)]);
        assert_eq!(of(0x0b).kind_name(), None);
    }
}
