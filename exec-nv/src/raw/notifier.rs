//! Error notifiers: memory that the driver writes when it stops a channel (`NvNotification` of `nvtypes.h`, `nverror.h`).

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What the driver writes. 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Notification {
    /// Nanoseconds, low word first.
    pub time_stamp: [u32; 2],
    /// Number of the error: what the kernel's log calls Xid.
    pub info32: u32,
    /// More about it.
    pub info16: u16,
    /// Not zero once it was written.
    pub status: u16,
}

crate::raw::layout::assert_layout!(Notification, 16, time_stamp @ 0, info32 @ 8, info16 @ 12, status @ 14);

impl Notification {
    /// Why the channel was stopped; nothing while it runs.
    #[must_use]
    pub const fn error(&self) -> Option<ChannelError> {
        if self.status == 0 { None } else { Some(ChannelError(self.info32)) }
    }
}

/// Why a channel was stopped. Numbers without a name are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelError(pub u32);

impl ChannelError {
    /// Its name without `ROBUST_CHANNEL_`, if it has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "Xid {} ({name})", self.0),
            None => write!(f, "Xid {}", self.0),
        }
    }
}

impl core::error::Error for ChannelError {}

#[rustfmt::skip]
const NAMES: &[(u32, &str)] = &[
    (13, "GR_EXCEPTION"),
    (30, "BAD_ADDR_ACCESS"),
    (31, "FIFO_ERROR_MMU_ERR_FLT"),
    (32, "PBDMA_ERROR"),
    (39, "CE0_ERROR"),
    (40, "CE1_ERROR"),
    (41, "CE2_ERROR"),
    (43, "RESETCHANNEL_VERIF_ERROR"),
    (44, "GR_FAULT_DURING_CTXSW"),
    (45, "PREEMPTIVE_REMOVAL"),
    (48, "GPU_ECC_DBE"),
    (69, "GR_CLASS_ERROR"),
    (70, "CE3_ERROR"),
    (71, "CE4_ERROR"),
    (72, "CE5_ERROR"),
    (75, "CE6_ERROR"),
    (76, "CE7_ERROR"),
    (77, "CE8_ERROR"),
    (79, "GPU_HAS_FALLEN_OFF_THE_BUS"),
    (85, "CE9_ERROR"),
    (94, "CONTAINED_ERROR"),
    (95, "UNCONTAINED_ERROR"),
    (119, "GSP_RPC_TIMEOUT"),
    (120, "GSP_ERROR"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_that_nobody_wrote_is_no_error() {
        let running = Notification::read_from_bytes(&[0; 16]).unwrap();
        assert_eq!(running.error(), None);
    }

    #[test]
    fn the_reason_is_named() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0, 31, 0, 0, 0, 9, 0, 0xff, 0xff];
        let stopped = Notification::read_from_bytes(&bytes).unwrap();
        assert_eq!(stopped.error(), Some(ChannelError(31)));
        assert_eq!(ChannelError(31).to_string(), "Xid 31 (FIFO_ERROR_MMU_ERR_FLT)");
        assert_eq!(ChannelError(7).to_string(), "Xid 7");
        assert!(NAMES.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
