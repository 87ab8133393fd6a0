//! What the ioctls of unified virtual memory take (`uvm_ioctl.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

structure! {
    /// `UVM_INITIALIZE`.
    Initialize, 16 {
        0 flags: u64,
        8 rm_status: u32,
        12 padding: u32,
    }
}

structure! {
    /// `UVM_MM_INITIALIZE`.
    MmInitialize, 8 {
        0 uvm_fd: i32,
        4 rm_status: u32,
    }
}

structure! {
    /// `UVM_REGISTER_GPU`.
    RegisterGpu, 40 {
        0 gpu_uuid: [u8; 16],
        16 numa_enabled: u8,
        17 padding: [u8; 3],
        20 numa_node_id: i32,
        24 rm_ctrl_fd: i32,
        28 h_client: u32,
        32 h_smc_part_ref: u32,
        36 rm_status: u32,
    }
}

structure! {
    /// `UVM_REGISTER_GPU_VASPACE`.
    RegisterGpuVaspace, 32 {
        0 gpu_uuid: [u8; 16],
        16 rm_ctrl_fd: i32,
        20 h_client: u32,
        24 h_va_space: u32,
        28 rm_status: u32,
    }
}

structure! {
    /// `UVM_REGISTER_CHANNEL`: a free range where the channel's context buffers are mapped.
    RegisterChannel, 56 {
        0 gpu_uuid: [u8; 16],
        16 rm_ctrl_fd: i32,
        20 h_client: u32,
        24 h_channel: u32,
        28 padding: u32,
        32 base: u64,
        40 length: u64,
        48 rm_status: u32,
        52 padding2: u32,
    }
}

structure! {
    /// `UVM_CREATE_EXTERNAL_RANGE`.
    CreateExternalRange, 24 {
        0 base: u64,
        8 length: u64,
        16 rm_status: u32,
        20 padding: u32,
    }
}

structure! {
    /// How one GPU sees a range.
    GpuMappingAttributes, 36 {
        0 gpu_uuid: [u8; 16],
        /// 1: read, write and atomic.
        16 gpu_mapping_type: u32,
        20 gpu_caching_type: u32,
        24 gpu_format_type: u32,
        28 gpu_element_bits: u32,
        32 gpu_compression_type: u32,
    }
}

structure! {
    /// `UVM_MAP_EXTERNAL_ALLOCATION`, from driver 550 on.
    MapExternalAllocation, 9264 {
        0 base: u64,
        8 length: u64,
        16 offset: u64,
        24 per_gpu_attributes: [GpuMappingAttributes; 256],
        9240 gpu_attributes_count: u64,
        9248 rm_ctrl_fd: i32,
        9252 h_client: u32,
        9256 h_memory: u32,
        9260 rm_status: u32,
    }
}

structure! {
    /// `UVM_FREE`, up to driver 590.
    Free590, 24 {
        0 base: u64,
        8 length: u64,
        16 rm_status: u32,
        20 padding: u32,
    }
}

structure! {
    /// `UVM_FREE`, from driver 595 on.
    Free595, 16 {
        0 base: u64,
        8 rm_status: u32,
        12 padding: u32,
    }
}

structure! {
    /// `UVM_UNREGISTER_GPU_VASPACE` and `UVM_UNREGISTER_GPU`.
    UnregisterGpu, 20 {
        0 gpu_uuid: [u8; 16],
        16 rm_status: u32,
    }
}

structure! {
    /// `UVM_UNREGISTER_CHANNEL`, up to driver 590.
    UnregisterChannel590, 28 {
        0 gpu_uuid: [u8; 16],
        16 h_client: u32,
        20 h_channel: u32,
        24 rm_status: u32,
    }
}

structure! {
    /// `UVM_UNREGISTER_CHANNEL`, from driver 595 on.
    UnregisterChannel595, 12 {
        0 h_client: u32,
        4 h_channel: u32,
        8 rm_status: u32,
    }
}
