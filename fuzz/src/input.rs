//! Numbers out of bytes.

/// Bytes that are taken from the front; zeros when there are none left.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    /// The next bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let size = self.0.len().min(N);
        let (taken, rest) = self.0.split_at(size);
        bytes.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
        self.0 = rest;
        bytes
    }

    /// A byte.
    pub(super) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.bytes())
    }

    /// Two bytes.
    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    /// Four bytes.
    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    /// Eight bytes.
    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}
