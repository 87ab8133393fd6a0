//! Program properties: the records of a note `NT_GNU_PROPERTY_TYPE_0`.

use super::processor::of;
use super::table::Flags;

names! {
    /// `pr_type` of every machine (Linux Extensions to gABI, "Program Property").
    pub GNU_PROPERTY: u32 {
        GNU_PROPERTY_STACK_SIZE           = 1,
        GNU_PROPERTY_NO_COPY_ON_PROTECTED = 2,
        GNU_PROPERTY_MEMORY_SEAL          = 3,
        GNU_PROPERTY_1_NEEDED             = 0xb000_8000,
    }
}

flags! {
    /// `GNU_PROPERTY_1_NEEDED` (Linux Extensions to gABI, "Program Property").
    pub GNU_PROPERTY_1_NEEDED_BITS: u32 {
        GNU_PROPERTY_1_NEEDED_INDIRECT_EXTERN_ACCESS = 0x1,
    }
}

/// The name of a program property.
#[must_use]
pub const fn property_type(machine: u16, pr_type: u32) -> Option<&'static str> {
    of(machine).properties.or(GNU_PROPERTY, pr_type as u64)
}

/// The names of the bits of a property whose value is a word of bits; without rows for the others.
#[must_use]
pub const fn property_flags(machine: u16, pr_type: u32) -> Flags {
    let mut own = of(machine).property_flags;
    while let [(number, flags), rest @ ..] = own {
        if *number == pr_type {
            return *flags;
        }
        own = rest;
    }
    if pr_type == GNU_PROPERTY_1_NEEDED { GNU_PROPERTY_1_NEEDED_BITS } else { Flags::EMPTY }
}
