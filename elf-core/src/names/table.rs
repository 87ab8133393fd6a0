//! Tables of names, and the macros that write a number once for its constant and its row.

/// Names by number.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    rows: &'static [(u64, &'static str)],
}

impl Names {
    /// A table without rows.
    pub const EMPTY: Self = Self { rows: &[] };

    /// Compiles only where the numbers of `rows` rise strictly.
    pub(super) const fn sorted(rows: &'static [(u64, &'static str)]) -> Self {
        let mut rest = rows;
        while let [(low, _), above @ ..] = rest {
            if let [(high, _), ..] = above {
                assert!(*low < *high, "numbers must rise");
            }
            rest = above;
        }
        Self { rows }
    }

    /// The name of `number`.
    #[must_use]
    pub const fn get(self, number: u64) -> Option<&'static str> {
        let mut rows = self.rows;
        while let Some((below, [(middle, name), above @ ..])) =
            rows.split_at_checked(rows.len() / 2)
        {
            if number == *middle {
                return Some(name);
            }
            rows = if number < *middle { below } else { above };
        }
        None
    }

    /// The name of `number` here, else in `other`.
    pub(super) const fn or(self, other: Self, number: u64) -> Option<&'static str> {
        match self.get(number) {
            None => other.get(number),
            name => name,
        }
    }

    /// Every number with its name, in rising order.
    pub fn iter(self) -> impl Iterator<Item = (u64, &'static str)> + Clone {
        self.rows.iter().copied()
    }
}

/// One name of a flag word: it applies where `word & mask == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The bits the name speaks of.
    pub mask: u64,
    /// What they must be.
    pub value: u64,
    /// The specification's name for it.
    pub name: &'static str,
}

/// The names of a flag word's bits and fields.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    sets: [&'static [Flag]; 3],
}

impl Flags {
    /// A word without names.
    pub const EMPTY: Self = Self::new(&[]);

    pub(super) const fn new(rows: &'static [Flag]) -> Self {
        let mut rest = rows;
        while let [flag, others @ ..] = rest {
            assert!(flag.value & !flag.mask == 0, "a value lies in its mask");
            assert!(flag.mask != 0, "a name speaks of a bit");
            rest = others;
        }
        Self { sets: [rows, &[], &[]] }
    }

    /// These names, then those of two further tables of one set each.
    pub(super) const fn and(self, second: Self, third: Self) -> Self {
        let ([first, ..], [second, ..], [third, ..]) = (self.sets, second.sets, third.sets);
        Self { sets: [first, second, third] }
    }

    /// Every row, general ones first.
    pub fn iter(self) -> impl Iterator<Item = Flag> + Clone {
        let [first, second, third] = self.sets;
        first.iter().chain(second).chain(third).copied()
    }

    /// The names that apply to `word`. A field of which 0 has a name contributes it too.
    pub fn names(self, word: u64) -> impl Iterator<Item = &'static str> + Clone {
        self.iter().filter(move |flag| word & flag.mask == flag.value).map(|flag| flag.name)
    }

    /// The bits set in `word` that [`names`](Self::names) leaves out.
    #[must_use]
    pub fn unnamed(self, word: u64) -> u64 {
        let named = self.iter().filter(|flag| word & flag.mask == flag.value);
        named.fold(word, |rest, flag| rest & !flag.mask)
    }
}

/// A table without constants: `rows! { NAME = number, .. }`, numbers rising.
macro_rules! rows {
    ($($name:ident = $number:literal),* $(,)?) => {
        $crate::names::Names::sorted(&[$(($number, stringify!($name))),*])
    };
}

/// A constant for each row, and the table: `names! { pub TABLE: type { NAME = number, .. } }`, numbers rising.
macro_rules! names {
    ($($(#[$doc:meta])* pub $table:ident: $int:ty { $($name:ident = $number:literal),* $(,)? })*) => {$(
        $(
            #[doc = concat!("`", stringify!($name), "` (", stringify!($number), "), in [`", stringify!($table), "`].")]
            #[allow(non_upper_case_globals, reason = "the specification's spelling")]
            pub const $name: $int = $number;
        )*
        $(#[$doc])*
        pub const $table: $crate::names::Names = rows! { $($name = $number),* };
    )*};
}

/// A constant for each row, and the flags: `flags! { pub TABLE: type { BIT = value, FIELD = value in mask, .. } }`.
macro_rules! flags {
    ($(
        $(#[$doc:meta])* pub $table:ident: $int:ty { $($name:ident = $value:literal $(in $mask:literal)?),* $(,)? }
    )*) => {$(
        $(
            #[doc = concat!("`", stringify!($name), "` (", stringify!($value $(in $mask)?), "), ")]
            #[doc = concat!("in [`", stringify!($table), "`].")]
            #[allow(non_upper_case_globals, reason = "the specification's spelling")]
            pub const $name: $int = $value;
        )*
        $(#[$doc])*
        pub const $table: $crate::names::Flags = $crate::names::Flags::new(&[
            $($crate::names::Flag { mask: flags!(@mask $value $(, $mask)?), value: $value, name: stringify!($name) }),*
        ]);
    )*};
    (@mask $value:literal) => { $value };
    (@mask $value:literal, $mask:literal) => { $mask };
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Names = rows! { ZERO = 0, TWO = 2, FOUR = 4, LAST = 0xffff_ffff_ffff_ffff };

    #[test]
    fn every_row_is_found_and_nothing_else() {
        assert!([0, 2, 4, u64::MAX].map(|number| EVEN.get(number)).iter().all(Option::is_some));
        assert!([1, 3, 5, u64::MAX - 1].map(|number| EVEN.get(number)).iter().all(Option::is_none));
        assert_eq!(Names::EMPTY.get(0), None);
        assert_eq!(EVEN.or(Names::EMPTY, 4), Some("FOUR"));
        assert_eq!(Names::EMPTY.or(EVEN, 2), Some("TWO"));
        for table in [crate::names::EM, crate::names::SHT, crate::names::DT, crate::names::NT_CORE]
        {
            assert!(table.iter().all(|(number, name)| table.get(number) == Some(name)));
        }
    }

    #[test]
    fn fields_and_bits() {
        const WORD: Flags = Flags::new(&[
            Flag { mask: 1, value: 1, name: "BIT" },
            Flag { mask: 6, value: 0, name: "FIELD_0" },
            Flag { mask: 6, value: 4, name: "FIELD_2" },
        ]);
        assert!(WORD.names(0).eq(["FIELD_0"]));
        assert!(WORD.names(5).eq(["BIT", "FIELD_2"]));
        assert!(WORD.names(2).eq([""; 0]));
        assert_eq!(WORD.unnamed(0xf), 0xe);
        assert_eq!(WORD.unnamed(0xd), 0x8);
    }
}
