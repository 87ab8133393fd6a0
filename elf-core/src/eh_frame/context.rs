//! What a table is checked against: its machine, and what it may point to.

use crate::names::{EM_AARCH64, EM_RISCV, EM_X86_64};

/// What an unwinder has room for, of machines with addresses of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Registers that a frame is computed from are below this (`__LIBGCC_DWARF_FRAME_REGISTERS__`).
    pub(super) columns: u64,
    /// Registers that the psABI has numbers for are below this. Rules for those that the unwinder has no room for do nothing.
    pub(super) registers: u64,
    /// Return addresses can be signed (AADWARF64 4.4: `DW_CFA_AARCH64_negate_ra_state`, its register, augmentations B and G).
    pub(super) signs: Option<u64>,
}

impl Machine {
    /// x86-64 (psABI 3.6.2).
    pub const X86_64: Self = Self { columns: 17, registers: 130, signs: None };
    /// AArch64 (AADWARF64 4.1).
    pub const AARCH64: Self = Self { columns: 96, registers: 128, signs: Some(34) };

    /// RISC-V (psABI, "DWARF register numbers": general, floats, the alternate return column, vectors, control and status).
    pub const RISCV: Self = Self { columns: 65, registers: 8192, signs: None };

    /// The machine of this number (`e_machine`).
    #[must_use]
    pub const fn of(machine: u16) -> Option<Self> {
        match machine {
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::AARCH64),
            EM_RISCV => Some(Self::RISCV),
            _ => None,
        }
    }
}

/// What a table may point to. Without answers of its own, nothing.
pub trait Places {
    /// Whether `size` bytes at `address` are code that the table may speak of. `size` may be 0, at the end of code too.
    fn is_code(&self, address: u64, size: u64) -> bool;

    /// Whether a table of exceptions (LSDA) may be at `address`.
    fn is_data(&self, address: u64) -> bool {
        let _ = address;
        false
    }

    /// Whether a personality routine may be at `address`.
    fn is_personality(&self, address: u64) -> bool {
        let _ = address;
        false
    }

    /// The address that is stored at `address`: some pointers lead there by way of a word. None if no word is there.
    fn word(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }
}

/// All that is known when a table is read.
#[derive(Debug)]
pub(super) struct Context<'p, P> {
    /// The address of the table's first byte.
    pub(super) address: u64,
    pub(super) machine: Machine,
    pub(super) places: &'p P,
}
