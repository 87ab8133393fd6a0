//! What a processor may add to the tables.

use crate::names::table::{Flags, Names};

/// The tables of one machine: what its ranges mean, or what it numbers apart from all others.
#[derive(Clone, Copy)]
pub(in crate::names) struct Processor {
    pub(in crate::names) os_abis: Names,
    pub(in crate::names) header_flags: Flags,
    pub(in crate::names) section_types: Names,
    pub(in crate::names) section_flags: Flags,
    pub(in crate::names) section_indices: Names,
    pub(in crate::names) segment_types: Names,
    pub(in crate::names) segment_flags: Flags,
    pub(in crate::names) dynamic_tags: Names,
    pub(in crate::names) symbol_types: Names,
    pub(in crate::names) symbol_bindings: Names,
    pub(in crate::names) symbol_other: Flags,
    pub(in crate::names) properties: Names,
    pub(in crate::names) property_flags: &'static [(u32, Flags)],
}

impl Processor {
    /// A machine that adds nothing.
    pub(in crate::names) const PLAIN: Self = Self {
        os_abis: Names::EMPTY,
        header_flags: Flags::EMPTY,
        section_types: Names::EMPTY,
        section_flags: Flags::EMPTY,
        section_indices: Names::EMPTY,
        segment_types: Names::EMPTY,
        segment_flags: Flags::EMPTY,
        dynamic_tags: Names::EMPTY,
        symbol_types: Names::EMPTY,
        symbol_bindings: Names::EMPTY,
        symbol_other: Flags::EMPTY,
        properties: Names::EMPTY,
        property_flags: &[],
    };
}
