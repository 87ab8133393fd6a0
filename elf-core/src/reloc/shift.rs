//! Words of 64 bits, shifted: many instructions where words are smaller, and one function there for all.

/// `value << by`; 0 for 64 bits and more.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn shl(value: u64, by: u32) -> u64 {
    value.unbounded_shl(by)
}

/// `value >> by`; 0 for 64 bits and more.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn shr(value: u64, by: u32) -> u64 {
    value.unbounded_shr(by)
}
