//! What the ioctls of the resource manager take (`nvos.h`, `nv-ioctl.h`). Pointers are 64-bit words, filled in when the call is made.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

structure! {
    /// `ALLOC`, the long form: makes an object of a class.
    Nvos64, 48 {
        0 h_root: u32,
        4 h_object_parent: u32,
        /// 0: the driver chooses.
        8 h_object_new: u32,
        12 h_class: u32,
        16 p_alloc_parms: u64,
        24 p_rights_requested: u64,
        32 params_size: u32,
        36 flags: u32,
        40 status: u32,
        44 padding: u32,
    }
}

structure! {
    /// `CONTROL`: asks an object for something.
    Nvos54, 32 {
        0 h_client: u32,
        4 h_object: u32,
        8 cmd: u32,
        12 flags: u32,
        16 params: u64,
        24 params_size: u32,
        28 status: u32,
    }
}

structure! {
    /// `FREE`: unmakes an object and what was made under it.
    Nvos00, 16 {
        0 h_root: u32,
        4 h_object_parent: u32,
        8 h_object_old: u32,
        12 status: u32,
    }
}

structure! {
    /// `ALLOC_MEMORY` with a file: memory that belongs to the system or the caller.
    Nvos02WithFd, 56 {
        0 h_root: u32,
        4 h_object_parent: u32,
        8 h_object_new: u32,
        12 h_class: u32,
        16 flags: u32,
        20 padding: u32,
        24 p_memory: u64,
        32 limit: u64,
        40 status: u32,
        44 padding2: u32,
        48 fd: i32,
        52 padding3: u32,
    }
}

structure! {
    /// `MAP_MEMORY` with a file: what mapping that file will show.
    Nvos33WithFd, 56 {
        0 h_client: u32,
        4 h_device: u32,
        8 h_memory: u32,
        12 padding: u32,
        16 offset: u64,
        24 length: u64,
        32 p_linear_address: u64,
        40 status: u32,
        44 flags: u32,
        48 fd: i32,
        52 padding2: u32,
    }
}

structure! {
    /// `UNMAP_MEMORY`.
    Nvos34, 32 {
        0 h_client: u32,
        4 h_device: u32,
        8 h_memory: u32,
        12 padding: u32,
        16 p_linear_address: u64,
        24 status: u32,
        28 flags: u32,
    }
}

structure! {
    /// `CARD_INFO`: one of an array.
    CardInfo, 72 {
        0 valid: u8,
        1 padding: [u8; 3],
        4 domain: u32,
        8 bus: u8,
        9 slot: u8,
        10 function: u8,
        11 padding2: u8,
        12 vendor_id: u16,
        14 device_id: u16,
        16 gpu_id: u32,
        20 interrupt_line: u16,
        22 padding3: u16,
        24 reg_address: u64,
        32 reg_size: u64,
        40 fb_address: u64,
        48 fb_size: u64,
        /// Number of its device file.
        56 minor_number: u32,
        60 dev_name: [u8; 10],
        70 padding4: [u8; 2],
    }
}

structure! {
    /// `REGISTER_FD`: ties a device file to the control file.
    RegisterFd, 4 {
        0 ctl_fd: i32,
    }
}

structure! {
    /// `CHECK_VERSION_STR`: with the command `'2'`, the driver writes its version.
    CheckVersionStr, 72 {
        0 cmd: u32,
        4 reply: u32,
        8 version_string: [u8; 64],
    }
}
