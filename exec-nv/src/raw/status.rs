//! What the driver's resource manager answers (`nvstatuscodes.h`, `uvm_types.h`).

use core::fmt;

/// An answer; 0 is success. Numbers without a name are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

/// `NV_OK`.
pub(super) const OK: Status = Status(0);
/// `NV_ERR_NOT_SUPPORTED`: also what a sandbox says of controls that it does not pass on.
pub(super) const NOT_SUPPORTED: Status = Status(0x56);

impl Status {
    /// Its name without `NV_ERR_`, if it has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "status {:#x}", self.0),
        }
    }
}

#[rustfmt::skip]
const NAMES: &[(u32, &str)] = &[
    (0x00, "OK"),
    (0x02, "BUFFER_TOO_SMALL"),
    (0x03, "BUSY_RETRY"),
    (0x05, "CARD_NOT_PRESENT"),
    (0x0b, "ECC_ERROR"),
    (0x0f, "GPU_IS_LOST"),
    (0x10, "GPU_IN_FULLCHIP_RESET"),
    (0x11, "GPU_NOT_FULL_POWER"),
    (0x12, "GPU_UUID_NOT_FOUND"),
    (0x16, "ILLEGAL_ACTION"),
    (0x17, "IN_USE"),
    (0x19, "INSERT_DUPLICATE_NAME"),
    (0x1a, "INSUFFICIENT_RESOURCES"),
    (0x1b, "INSUFFICIENT_PERMISSIONS"),
    (0x1d, "INVALID_ACCESS_TYPE"),
    (0x1e, "INVALID_ADDRESS"),
    (0x1f, "INVALID_ARGUMENT"),
    (0x20, "INVALID_BASE"),
    (0x21, "INVALID_CHANNEL"),
    (0x22, "INVALID_CLASS"),
    (0x23, "INVALID_CLIENT"),
    (0x24, "INVALID_COMMAND"),
    (0x25, "INVALID_DATA"),
    (0x26, "INVALID_DEVICE"),
    (0x27, "INVALID_DMA_SPECIFIER"),
    (0x28, "INVALID_EVENT"),
    (0x29, "INVALID_FLAGS"),
    (0x2a, "INVALID_FUNCTION"),
    (0x2b, "INVALID_HEAP"),
    (0x2c, "INVALID_INDEX"),
    (0x2e, "INVALID_LIMIT"),
    (0x2f, "INVALID_LOCK_STATE"),
    (0x30, "INVALID_METHOD"),
    (0x31, "INVALID_OBJECT"),
    (0x32, "INVALID_OBJECT_BUFFER"),
    (0x33, "INVALID_OBJECT_HANDLE"),
    (0x34, "INVALID_OBJECT_NEW"),
    (0x35, "INVALID_OBJECT_OLD"),
    (0x36, "INVALID_OBJECT_PARENT"),
    (0x37, "INVALID_OFFSET"),
    (0x38, "INVALID_OPERATION"),
    (0x39, "INVALID_OWNER"),
    (0x3a, "INVALID_PARAM_STRUCT"),
    (0x3b, "INVALID_PARAMETER"),
    (0x3d, "INVALID_POINTER"),
    (0x3f, "INVALID_REQUEST"),
    (0x40, "INVALID_STATE"),
    (0x41, "INVALID_STRING_LENGTH"),
    (0x4b, "MODULE_LOAD_FAILED"),
    (0x4c, "MORE_DATA_AVAILABLE"),
    (0x4d, "MORE_PROCESSING_REQUIRED"),
    (0x4f, "NO_FREE_FIFOS"),
    (0x51, "NO_MEMORY"),
    (0x53, "NO_VALID_PATH"),
    (0x54, "NOT_COMPATIBLE"),
    (0x55, "NOT_READY"),
    (0x56, "NOT_SUPPORTED"),
    (0x57, "OBJECT_NOT_FOUND"),
    (0x58, "OBJECT_TYPE_MISMATCH"),
    (0x59, "OPERATING_SYSTEM"),
    (0x5a, "OTHER_DEVICE_FOUND"),
    (0x5b, "OUT_OF_RANGE"),
    (0x5d, "PAGE_TABLE_NOT_AVAIL"),
    (0x5e, "PID_NOT_FOUND"),
    (0x5f, "PROTECTION_FAULT"),
    (0x60, "RC_ERROR"),
    (0x62, "RESET_REQUIRED"),
    (0x63, "STATE_IN_USE"),
    (0x64, "SIGNAL_PENDING"),
    (0x65, "TIMEOUT"),
    (0x66, "TIMEOUT_RETRY"),
    (0x68, "UVM_ADDRESS_IN_USE"),
    (0x69, "MAX_SESSION_LIMIT_REACHED"),
    (0x6a, "LIB_RM_VERSION_MISMATCH"),
    (0x6b, "PRIV_SEC_VIOLATION"),
    (0x6d, "FEATURE_NOT_ENABLED"),
    (0x6e, "RESOURCE_LOST"),
    (0x71, "FATAL_ERROR"),
    (0x72, "MEMORY_ERROR"),
    (0x7a, "FABRIC_MANAGER_NOT_PRESENT"),
    (0x81, "NVLINK_FABRIC_NOT_READY"),
    (0x82, "NVLINK_FABRIC_FAILURE"),
    (0xffff, "GENERIC"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_have_one_name_each() {
        assert!(NAMES.is_sorted_by(|(a, _), (b, _)| a < b));
    }

    #[test]
    fn names_are_said_and_numbers_passed_on() {
        assert_eq!(OK.check("ALLOC", 1), Ok(()));
        let error = Status(0x29).check("REGISTER_GPU_VASPACE", 25).unwrap_err();
        let expected = "REGISTER_GPU_VASPACE 0x19: the driver answers INVALID_FLAGS (0x29)";
        assert_eq!(error.to_string(), expected);
        assert_eq!(Status(0x1234).to_string(), "status 0x1234");
    }
}
