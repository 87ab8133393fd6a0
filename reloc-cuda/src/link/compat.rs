//! `.nv.compat`: which code may be linked with which, and what a finalizer may do with it.

use alloc::vec::Vec;
use nvinfo::{Attribute, AttributeValue, Attributes};

/// The first architecture that is made of Mercury.
const FIRST_OF_MERCURY: u32 = 100;
const CUDA_ACCELERATOR_TARGET: u8 = 9;
const CAN_FASTPATH_FINALIZE: u8 = 11;
const CUDA_INTERNAL_TARGET: u8 = 12;
const FINALIZER_VERSION: u8 = 14;
/// Numbers without a known name: toolkits up to 13.0 have 5 and 6, from 13.5 on 13.
const OLDER: [u8; 2] = [5, 6];
const NEWER: u8 = 13;
/// Values of objects by toolkits that do not say them.
const UNKNOWN_INTERNAL_TARGET: u8 = 2;
const UNKNOWN_NEWER: u16 = 0x100;
/// The finalizer of nvlink 13.5, whose files these are like.
const OWN_FINALIZER: u16 = 0x440;

/// What `.nv.compat` of a linked file says, `lists` being those of the objects that have one: undamaged ones.
pub(super) fn merged<'d>(
    lists: impl IntoIterator<Item = &'d [u8]>,
    sm: u32,
    is_accelerated: bool,
) -> Vec<u8> {
    let mut all: Option<Rows> = None;
    for list in lists {
        let rows = Rows::read(list);
        all = Some(match all {
            Some(known) => known.merge(rows),
            None => rows,
        });
    }
    let Some(mut all) = all else { return Rows(Vec::new()).target(is_accelerated).bytes() };
    all.0.retain(|row| row.number != OLDER[1]);
    all.add_newer();
    if sm >= FIRST_OF_MERCURY {
        let fast = match sm {
            100 => 9,
            120 => 0x50,
            _ => 0,
        };
        let value = Vec::from([8, 0, fast, 0, 0, 0, 0, 0, 0, 0]);
        all.add(Row { format: 4, number: CAN_FASTPATH_FINALIZE, value });
        all.add(Row::half(FINALIZER_VERSION, OWN_FINALIZER));
    }
    all.target(is_accelerated).bytes()
}

/// A record: what follows its number, the size of a value of bytes too.
struct Row {
    format: u8,
    number: u8,
    value: Vec<u8>,
}

impl Row {
    fn byte(number: u8, value: u8) -> Self {
        Self { format: 2, number, value: Vec::from([value, 0]) }
    }

    fn half(number: u8, value: u16) -> Self {
        Self { format: 3, number, value: value.to_le_bytes().into() }
    }

    fn of(row: &Attribute<'_>) -> Self {
        let number = row.number;
        match row.value {
            AttributeValue::None(value) => Self { format: 1, ..Self::half(number, value) },
            AttributeValue::Byte(low, high) => {
                Self { format: 2, number, value: Vec::from([low, high]) }
            }
            AttributeValue::Half(value) => Self::half(number, value),
            AttributeValue::Bytes(bytes) => {
                let mut value = (bytes.len() as u16).to_le_bytes().to_vec();
                value.extend_from_slice(bytes);
                Self { format: 4, number, value }
            }
        }
    }

    /// The value, if it is a number that counts upwards.
    fn level(&self) -> Option<u16> {
        let value = self.value.first_chunk().map(|value| u16::from_le_bytes(*value));
        value.filter(|_| matches!(self.format, 2 | 3))
    }
}

/// Records in their order.
struct Rows(Vec<Row>);

impl Rows {
    fn read(list: &[u8]) -> Self {
        Self(Attributes::new(list, 0).flatten().map(|row| Row::of(&row)).collect())
    }

    fn get(&mut self, number: u8) -> Option<&mut Row> {
        self.0.iter_mut().find(|row| row.number == number)
    }

    fn add(&mut self, row: Row) {
        if self.get(row.number).is_none() {
            self.0.push(row);
        }
    }

    /// What objects say from toolkit 13.5 on, as it is taken to be of others.
    fn add_newer(&mut self) {
        self.add(Row::byte(CUDA_INTERNAL_TARGET, UNKNOWN_INTERNAL_TARGET));
        self.add(Row::half(NEWER, UNKNOWN_NEWER));
    }

    /// With another object's: of a number in both the larger; what is of no use unless all say it goes.
    fn merge(mut self, mut other: Self) -> Self {
        let of_all = |number| OLDER.contains(&number) || number == FINALIZER_VERSION;
        self.0.retain(|row| !of_all(row.number) || other.get(row.number).is_some());
        let is_said = other.get(CUDA_INTERNAL_TARGET).is_some();
        if let Some(known) = self.get(CUDA_INTERNAL_TARGET).filter(|_| !is_said) {
            *known = Row::byte(CUDA_INTERNAL_TARGET, UNKNOWN_INTERNAL_TARGET);
        }
        let late = [CUDA_INTERNAL_TARGET, NEWER, CAN_FASTPATH_FINALIZE, CUDA_ACCELERATOR_TARGET];
        let mut rest = Vec::new();
        for row in other.0 {
            match self.get(row.number) {
                Some(known) if row.level() > known.level() => *known = row,
                Some(_) => {}
                None if of_all(row.number) => {}
                None if late.contains(&row.number) => rest.push(row),
                None => self.0.push(row),
            }
        }
        for row in rest {
            match row.number {
                NEWER => {
                    self.add(Row::byte(CUDA_INTERNAL_TARGET, UNKNOWN_INTERNAL_TARGET));
                    self.add(row);
                }
                CAN_FASTPATH_FINALIZE => {
                    self.add_newer();
                    self.add(row);
                }
                // both are found anew where one does not say them
                _ => {}
            }
        }
        self
    }

    /// With whether the code is of one architecture alone, in front, if that is not said.
    fn target(mut self, is_accelerated: bool) -> Self {
        if self.get(CUDA_ACCELERATOR_TARGET).is_none() {
            self.0.insert(0, Row::byte(CUDA_ACCELERATOR_TARGET, u8::from(is_accelerated)));
        }
        self
    }

    fn bytes(self) -> Vec<u8> {
        let rows = self.0.into_iter();
        rows.flat_map(|row| [row.format, row.number].into_iter().chain(row.value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::merged;

    const TOOLKIT_12: &[u8] = &[2, 2, 1, 0, 2, 5, 5, 0, 2, 3, 0, 0, 2, 6, 1, 0];
    const TOOLKIT_13: &[u8] = &[
        2, 9, 0, 0, 2, 12, 0, 0, 2, 2, 1, 0, 3, 13, 1, 1, 3, 7, 1, 1, 2, 3, 0, 0, 4, 11, 8, 0, 9,
        0, 0, 0, 0, 0, 0, 0, 3, 14, 0x40, 4,
    ];

    #[test]
    fn lists_of_one_toolkit_stay() {
        assert_eq!(merged([TOOLKIT_13, TOOLKIT_13], 100, false), TOOLKIT_13);
        assert_eq!(merged([], 90, true), [2, 9, 1, 0]);
    }

    #[test]
    fn older_lists_are_made_newer() {
        let rest = [2, 12, 2, 0, 3, 13, 0, 1, 4, 11, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3, 14, 0x40, 4];
        let alone = [&[2, 9, 0, 0], &TOOLKIT_12[..12], &rest].concat();
        assert_eq!(merged([TOOLKIT_12], 100, false), alone);
        let mut both = [&[2, 9, 0, 0, 2, 2, 1, 0, 2, 3, 0, 0, 3, 7, 1, 1], &rest[..]].concat();
        both[22] = 1;
        assert_eq!(merged([TOOLKIT_12, TOOLKIT_13], 100, false), both);
    }

    /// What a finalizer may do is said for each architecture, and kept where an object says it.
    #[test]
    fn the_fast_path_is_that_of_the_architecture() {
        for (sm, fast) in [(100, 9), (103, 0), (120, 0x50)] {
            let list = merged([TOOLKIT_12], sm, false);
            let at = list.windows(2).position(|row| row == [4, 11]).unwrap();
            assert_eq!(list[at..at + 12], [4, 11, 8, 0, fast, 0, 0, 0, 0, 0, 0, 0], "sm_{sm}");
        }
        let rest = [2, 12, 2, 0, 3, 13, 1, 1, 4, 11, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        let both = [&[2, 9, 0, 0, 2, 2, 1, 0, 2, 3, 0, 0, 3, 7, 1, 1], &rest[..]].concat();
        assert_eq!(merged([TOOLKIT_12, TOOLKIT_13], 90, false), both);
    }

    #[test]
    fn records_without_a_value_stay() {
        let list = [2, 9, 1, 0, 1, 0x20, 0, 0];
        assert!(merged([&list[..]], 90, true).starts_with(&list));
    }
}
