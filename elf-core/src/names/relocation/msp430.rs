//! Relocations of MSP430 (the numbering without MSP430X): numbers as GNU tools use them.

use crate::names::table::Names;

pub(super) const MSP430: Names = rows! {
    R_MSP430_NONE          = 0,
    R_MSP430_32            = 1,
    R_MSP430_10_PCREL      = 2,
    R_MSP430_16            = 3,
    R_MSP430_16_PCREL      = 4,
    R_MSP430_16_BYTE       = 5,
    R_MSP430_16_PCREL_BYTE = 6,
    R_MSP430_2X_PCREL      = 7,
    R_MSP430_RL_PCREL      = 8,
    R_MSP430_8             = 9,
    R_MSP430_SYM_DIFF      = 10,
};
