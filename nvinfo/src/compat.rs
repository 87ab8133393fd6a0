//! Names of the attributes of `.nv.compat`, whose records have the form of those of `.nv.info`.

/// The name of an attribute of `.nv.compat`, if it is known.
#[must_use]
pub fn compat_name(number: u8) -> Option<&'static str> {
    NAMES.iter().find(|row| row.0 == number).map(|row| row.1)
}

/// Whether the code is for one architecture only, with all it has: the `a` of `sm_100a`.
pub(crate) const CUDA_ACCELERATOR_TARGET: u8 = 9;

/// As cuobjdump 13.5 names them.
static NAMES: &[(u8, &str)] = &[
    (0, "EICOMPAT_ATTR_ERROR"),
    (1, "EICOMPAT_ATTR_PAD"),
    (2, "EICOMPAT_ATTR_ISA_CLASS"),
    (3, "EICOMPAT_ATTR_INST_TENSORMAP_V1"),
    (4, "EICOMPAT_ATTR_INST_TCGEN05_MMA_DEPRECATED"),
    (5, "EICOMPAT_ATTR_INST_TCGEN05_MMA"),
    (6, "EICOMPAT_ATTR_ENABLE_OPPORTUNISTIC_FINALIZATION"),
    (CUDA_ACCELERATOR_TARGET, "EICOMPAT_ATTR_CUDA_ACCELERATOR_TARGET"),
    (10, "EICOMPAT_ATTR_CUDA_DRIVER_VERSION"),
    (11, "EICOMPAT_ATTR_CAN_FASTPATH_FINALIZE"),
    (12, "EICOMPAT_ATTR_CUDA_INTERNAL_TARGET"),
    (14, "EICOMPAT_ATTR_FINALIZER_VERSION"),
    (15, "EICOMPAT_ATTR_MIN_FINALIZER_VERSION_FOR_MVC"),
];
