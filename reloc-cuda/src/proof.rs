//! How a row is known to be right.

/// What proves that a row's field is where it says. Files are fixtures under `fixtures/cuda`, without `.cubin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// nvlink wrote the same bits as [`apply`](elf_core::apply) does, in this file.
    Linked(&'static str),
    /// The `.nv.rel.action` section of this file describes the same field.
    Described(&'static str),
    /// The instruction in this file, with an address applied, is disassembled by nvdisasm as one with that address.
    Disassembled(&'static str),
    /// It occurs in this file, where it leaves the driver to fill the field.
    Seen(&'static str),
    /// nvlink was seen to treat it so, in files that are not kept here.
    Compared,
    /// Only the tables of NVIDIA's tools say so: no file is known that has one.
    Table,
}

impl Proof {
    /// The fixture.
    #[must_use]
    pub const fn fixture(&self) -> Option<&'static str> {
        match self {
            Self::Linked(file)
            | Self::Described(file)
            | Self::Disassembled(file)
            | Self::Seen(file) => Some(file),
            Self::Compared | Self::Table => None,
        }
    }
}
