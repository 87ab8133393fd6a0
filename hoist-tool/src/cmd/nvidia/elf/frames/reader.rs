//! Numbers of DWARF, one after another.

/// What is left of a section.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Offset in the section.
    at: u64,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest, at: 0 }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next bytes, which have a reader of their own.
    pub(super) fn split(&mut self, count: u64) -> Option<Self> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        let split = Self { rest: bytes, at: self.at };
        *self = Self { rest, at: self.at.checked_add(count)? };
        Some(split)
    }

    /// A number of so many bytes, at most eight.
    pub(super) fn number(&mut self, bytes: u64) -> Option<u64> {
        let bytes = self.split(bytes)?.rest;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Text up to its NUL.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.rest.iter().position(|byte| *byte == 0)?;
        let text = self.split(length as u64)?.rest;
        self.number(1)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// ULEB128.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        self.leb().map(|(number, _)| number)
    }

    /// SLEB128.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let (number, bits) = self.leb()?;
        let unused = 64u32.saturating_sub(bits);
        Some((number << unused).cast_signed() >> unused)
    }

    /// Groups of seven bits, and how many bits these are.
    fn leb(&mut self) -> Option<(u64, u32)> {
        let (mut number, mut bits) = (0, 0u32);
        loop {
            let byte = self.number(1)?;
            number |= (byte & 0x7f).unbounded_shl(bits);
            bits = bits.checked_add(7)?;
            if byte < 0x80 {
                return Some((number, bits));
            }
        }
    }
}
