//! The caller's answers.

/// The caller's answer for a symbol that no object defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalSymbol {
    /// Its address.
    pub address: u64,
    /// What is known of it.
    pub kind: ExternalKind,
}

/// What may stand for a symbol of the caller's where its address does not fit a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalKind {
    /// Nothing: the relocation is refused.
    Unknown,
    /// A stub, since it is a function.
    Function,
    /// A copy, since it is so many bytes that never change. The executor makes it: [`Layout::copies`](crate::Layout::copies). A branch has no use for it,
    /// and is refused where it does not reach the constant itself.
    Constant {
        /// Size in bytes; of 0 there is no copy.
        size: u64,
    },
    /// A thread-local variable. The address is its offset in the block of its module.
    ThreadLocal {
        /// The number by which `__tls_get_addr` knows the block.
        module: u64,
        /// TP offset: bytes from the thread pointer to the variable, if that is the same in every thread.
        tp_offset: Option<i64>,
    },
}

impl ExternalSymbol {
    /// A symbol of which nothing but the address is known.
    #[must_use]
    pub const fn new(address: u64) -> Self {
        Self { address, kind: ExternalKind::Unknown }
    }

    /// A function.
    #[must_use]
    pub const fn function(address: u64) -> Self {
        Self { address, kind: ExternalKind::Function }
    }

    /// A thread-local variable at `offset` in the block of `module` and, if that is the same in every thread, at `tp_offset`.
    #[must_use]
    pub const fn thread_local(module: u64, offset: u64, tp_offset: Option<i64>) -> Self {
        Self { address: offset, kind: ExternalKind::ThreadLocal { module, tp_offset } }
    }

    /// Data that never change.
    #[must_use]
    pub const fn constant(address: u64, size: u64) -> Self {
        Self { address, kind: ExternalKind::Constant { size } }
    }
}

/// A variable of the caller's, packed into a symbol's slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    /// In the block of its module.
    pub(crate) offset: u32,
    /// TP offset.
    pub(crate) tp_offset: Option<i32>,
}

impl Variable {
    const UNKNOWN: i32 = i32::MIN;

    /// `None` if the numbers are beyond what a process can have.
    pub(crate) fn new(offset: u64, tp_offset: Option<i64>) -> Option<Self> {
        let tp_offset = match tp_offset {
            Some(tp_offset) => {
                Some(i32::try_from(tp_offset).ok()?).filter(|&it| it != Self::UNKNOWN)
            }
            None => None,
        };
        Some(Self { offset: u32::try_from(offset).ok()?, tp_offset })
    }

    pub(crate) const fn pack(self) -> u64 {
        let tp_offset = match self.tp_offset {
            Some(tp_offset) => tp_offset,
            None => Self::UNKNOWN,
        };
        (tp_offset.cast_unsigned() as u64) << 32 | self.offset as u64
    }

    pub(crate) const fn unpack(value: u64) -> Self {
        let tp_offset = ((value >> 32) as u32).cast_signed();
        let tp_offset = if tp_offset == Self::UNKNOWN { None } else { Some(tp_offset) };
        Self { offset: value as u32, tp_offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_variables() {
        for (offset, tp_offset) in
            [(0, None), (7, Some(-64)), (u32::MAX.into(), Some(i32::MAX.into()))]
        {
            let packed = Variable::new(offset, tp_offset).unwrap().pack();
            let unpacked = Variable::unpack(packed);
            assert_eq!(u64::from(unpacked.offset), offset);
            assert_eq!(unpacked.tp_offset.map(i64::from), tp_offset);
        }
        assert!(Variable::new(1 << 32, None).is_none());
        assert!(Variable::new(0, Some(1 << 31)).is_none());
    }
}
