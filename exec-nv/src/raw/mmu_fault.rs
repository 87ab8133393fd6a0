//! Accesses that the GPU's MMU refused: where, and why (`dev_fault.h`).

use core::fmt;

/// An access that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MmuFault {
    /// What was accessed: the driver may know its page only.
    pub address: u64,
    /// `NV_PFAULT_FAULT_TYPE`.
    pub kind: u32,
    /// `NV_PFAULT_ACCESS_TYPE`.
    pub access: u32,
}

/// By number.
const KINDS: [&str; 16] = [
    "PDE",
    "PDE_SIZE",
    "PTE",
    "VA_LIMIT_VIOLATION",
    "UNBOUND_INST_BLOCK",
    "PRIV_VIOLATION",
    "RO_VIOLATION",
    "WO_VIOLATION",
    "PITCH_MASK_VIOLATION",
    "WORK_CREATION",
    "UNSUPPORTED_APERTURE",
    "COMPRESSION_FAILURE",
    "UNSUPPORTED_KIND",
    "REGION_VIOLATION",
    "POISONED",
    "ATOMIC_VIOLATION",
];

impl MmuFault {
    /// The kind's name without `NV_PFAULT_FAULT_TYPE_`, if it has one: `PDE` and `PTE` are where nothing is mapped.
    #[must_use]
    pub fn kind_name(&self) -> Option<&'static str> {
        KINDS.get(self.kind as usize).copied()
    }

    const fn access_name(self) -> Option<&'static str> {
        Some(match self.access {
            0 | 8 => "read",
            1 | 9 => "write",
            2 | 4 | 10 => "atomic operation",
            3 | 11 => "prefetch",
            _ => return None,
        })
    }
}

impl fmt::Display for MmuFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.access_name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "access {}", self.access)?,
        }
        match self.kind_name() {
            Some(name) => write!(f, " at {:#x} ({name})", self.address),
            None => write!(f, " at {:#x} (fault {})", self.address, self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_said() {
        let fault = MmuFault { address: 0x7f00_1000, kind: 2, access: 1 };
        assert_eq!(fault.to_string(), "write at 0x7f001000 (PTE)");
        let unknown = MmuFault { address: 0, kind: 77, access: 5 };
        assert_eq!(unknown.to_string(), "access 5 at 0x0 (fault 77)");
    }
}
