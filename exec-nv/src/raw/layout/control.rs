//! What objects are asked: the parameters of `CONTROL` by command (`ctrl/*.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// `NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2`, of the client.
pub const GPU_GET_ID_INFO_V2: u32 = 0x205;
/// `NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2`, of the device.
pub const GPU_GET_CLASSLIST_V2: u32 = 0x80_0292;
/// `NV2080_CTRL_CMD_GPU_GET_GID_INFO`, of the subdevice.
pub const GPU_GET_GID_INFO: u32 = 0x2080_014a;
/// `NV2080_CTRL_CMD_GR_GET_INFO`, of the subdevice.
pub const GR_GET_INFO: u32 = 0x2080_1201;
/// `NV2080_CTRL_CMD_GR_GET_TPC_MASK`, of the subdevice.
pub const GR_GET_TPC_MASK: u32 = 0x2080_122b;
/// `NV2080_CTRL_CMD_FB_GET_INFO`, of the subdevice.
pub const FB_GET_INFO: u32 = 0x2080_1301;
/// `NV2080_CTRL_CMD_GPU_GET_NAME_STRING`, of the subdevice.
pub const GPU_GET_NAME_STRING: u32 = 0x2080_0110;
/// `NV2080_CTRL_CMD_CE_GET_ALL_CAPS`, of the subdevice.
pub const CE_GET_ALL_CAPS: u32 = 0x2080_2a0a;
/// `NV2080_CTRL_CMD_PERF_BOOST`, of the subdevice.
pub const PERF_BOOST: u32 = 0x2080_200a;
/// `NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO`, of a debugger.
pub const DEBUG_READ_MMU_FAULT_INFO: u32 = 0x83de_0328;
/// `NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN`, of a channel.
pub const GPFIFO_GET_WORK_SUBMIT_TOKEN: u32 = 0xc36f_0108;
/// `NVA06C_CTRL_CMD_GPFIFO_SCHEDULE`, of a group of channels.
pub const GPFIFO_SCHEDULE: u32 = 0xa06c_0101;

structure! {
    /// [`GPU_GET_ID_INFO_V2`].
    GpuGetIdInfoV2, 32 {
        0 gpu_id: u32,
        4 gpu_flags: u32,
        8 device_instance: u32,
        12 sub_device_instance: u32,
        16 sli_status: u32,
        20 board_id: u32,
        24 gpu_instance: u32,
        28 numa_id: i32,
    }
}

structure! {
    /// [`GPU_GET_CLASSLIST_V2`], up to driver 575.
    GpuGetClasslistV2With100, 404 {
        0 num_classes: u32,
        4 class_list: [u32; 100],
    }
}

structure! {
    /// [`GPU_GET_CLASSLIST_V2`], from driver 580 on.
    GpuGetClasslistV2With200, 804 {
        0 num_classes: u32,
        4 class_list: [u32; 200],
    }
}

structure! {
    /// [`GPU_GET_GID_INFO`]: the GPU's UUID.
    GpuGetGidInfo, 268 {
        0 index: u32,
        /// 2: binary.
        4 flags: u32,
        8 length: u32,
        12 data: [u8; 256],
    }
}

structure! {
    /// [`GR_GET_INFO`]: facts of the GPU. The list's entries are [`GrInfo`].
    GrGetInfo, 32 {
        0 gr_info_list_size: u32,
        4 padding: u32,
        8 gr_info_list: u64,
        16 gr_route_flags: u32,
        20 padding2: u32,
        24 gr_route: u64,
    }
}

structure! {
    /// A fact: which, and what.
    GrInfo, 8 {
        0 index: u32,
        4 data: u32,
    }
}

/// Indices of [`GrInfo`].
pub mod gr_info {
    /// Architecture: 0x900 for sm_90.
    pub const SM_VERSION: u32 = 0xc;
    /// Warps that an SM holds.
    pub const MAX_WARPS_PER_SM: u32 = 0xd;
    /// Graphics processing clusters.
    pub const NUM_GPCS: u32 = 0x14;
    /// TPCs of each.
    pub const NUM_TPC_PER_GPC: u32 = 0x17;
    /// SMs of each of those.
    pub const NUM_SM_PER_TPC: u32 = 0x20;
}

structure! {
    /// [`PERF_BOOST`].
    PerfBoost, 8 {
        0 flags: u32,
        /// Seconds; all ones: until the client ends.
        4 duration: u32,
    }
}

structure! {
    /// An access that failed, of [`DebugReadMmuFaultInfo`].
    DebugMmuFaultEntry, 16 {
        0 fault_address: u64,
        8 fault_type: u32,
        12 access_type: u32,
    }
}

structure! {
    /// [`DEBUG_READ_MMU_FAULT_INFO`]: the latest accesses that failed.
    DebugReadMmuFaultInfo, 72 {
        0 mmu_fault_info_list: [DebugMmuFaultEntry; 4],
        64 count: u32,
        68 reserved: u32,
    }
}

structure! {
    /// [`GPFIFO_GET_WORK_SUBMIT_TOKEN`]: what rings the doorbell.
    GpfifoGetWorkSubmitToken, 4 {
        0 work_submit_token: u32,
    }
}

structure! {
    /// [`GPFIFO_SCHEDULE`], up to driver 575.
    GpfifoSchedule570, 2 {
        0 b_enable: u8,
        1 b_skip_submit: u8,
    }
}

structure! {
    /// [`GPFIFO_SCHEDULE`], from driver 580 on.
    GpfifoSchedule580, 3 {
        0 b_enable: u8,
        1 b_skip_submit: u8,
        2 b_skip_enable: u8,
    }
}

structure! {
    /// [`GR_GET_TPC_MASK`].
    GrGetTpcMask, 24 {
        0 gr_route_flags: u32,
        4 padding: u32,
        8 gr_route: u64,
        16 gpc_id: u32,
        /// TPCs of the GPC that are switched on; none of a GPC that is not there.
        20 tpc_mask: u32,
    }
}

structure! {
    /// [`FB_GET_INFO`]: facts of the memory. The list's entries are [`GrInfo`].
    FbGetInfo, 16 {
        0 fb_info_list_size: u32,
        4 padding: u32,
        8 fb_info_list: u64,
    }
}

/// Indices of [`FB_GET_INFO`]; sizes are in KiB.
pub mod fb_info {
    /// Memory that can be allocated.
    pub const HEAP_SIZE: u32 = 0x9;
    /// What of it is free.
    pub const HEAP_FREE: u32 = 0x16;
}

structure! {
    /// [`GPU_GET_NAME_STRING`].
    GpuGetNameString, 132 {
        /// 0: bytes.
        0 flags: u32,
        4 name: [u8; 128],
    }
}

structure! {
    /// [`CE_GET_ALL_CAPS`]: what each copy engine can do, and which there are.
    CeGetAllCaps, 136 {
        0 caps: [[u8; 2]; 64],
        128 present: u64,
    }
}
