//! What objects are made with: the parameters of `ALLOC` by class (`nvos.h`, `alloc_channel.h`, `class/*.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

structure! {
    /// `NV01_DEVICE_0`, 0x80.
    Nv0080AllocParameters, 56 {
        0 device_id: u32,
        4 h_client_share: u32,
        8 h_target_client: u32,
        12 h_target_device: u32,
        16 flags: u32,
        20 padding: u32,
        24 va_space_size: u64,
        32 va_start_internal: u64,
        40 va_limit_internal: u64,
        48 va_mode: u32,
        52 padding2: u32,
    }
}

structure! {
    /// `NV20_SUBDEVICE_0`, 0x2080.
    Nv2080AllocParameters, 4 {
        0 sub_device_id: u32,
    }
}

structure! {
    /// Memory: `NV01_MEMORY_LOCAL_USER` (0x40, of the device), `NV01_MEMORY_SYSTEM` (0x3e).
    NvMemoryAllocationParams, 128 {
        0 owner: u32,
        4 kind: u32,
        8 flags: u32,
        12 width: u32,
        16 height: u32,
        20 pitch: i32,
        24 attr: u32,
        28 attr2: u32,
        32 format: u32,
        36 compr_covg: u32,
        40 zcull_covg: u32,
        44 padding: u32,
        48 range_lo: u64,
        56 range_hi: u64,
        64 size: u64,
        72 alignment: u64,
        80 offset: u64,
        88 limit: u64,
        96 address: u64,
        104 ctag_offset: u32,
        108 h_va_space: u32,
        112 internalflags: u32,
        116 tag: u32,
        120 numa_node: i32,
        124 padding2: u32,
    }
}

structure! {
    /// `FERMI_VASPACE_A`, 0x90f1, up to driver 575.
    NvVaspaceAllocation570, 48 {
        0 index: u32,
        4 flags: u32,
        8 va_size: u64,
        16 va_start_internal: u64,
        24 va_limit_internal: u64,
        32 big_page_size: u32,
        36 padding: u32,
        40 va_base: u64,
    }
}

structure! {
    /// `FERMI_VASPACE_A`, 0x90f1, from driver 580 on.
    NvVaspaceAllocation580, 56 {
        0 index: u32,
        4 flags: u32,
        8 va_size: u64,
        16 va_start_internal: u64,
        24 va_limit_internal: u64,
        32 big_page_size: u32,
        36 padding: u32,
        40 va_base: u64,
        48 pasid: u32,
        52 padding2: u32,
    }
}

structure! {
    /// `KEPLER_CHANNEL_GROUP_A`, 0xa06c.
    NvChannelGroupAllocation, 20 {
        0 h_object_error: u32,
        4 h_object_ecc_error: u32,
        8 h_va_space: u32,
        /// 1: graphics and compute.
        12 engine_type: u32,
        16 b_is_calling_context_vgpu_plugin: u8,
        17 padding: [u8; 3],
    }
}

structure! {
    /// `FERMI_CONTEXT_SHARE_A`, 0x9067.
    NvCtxshareAllocation, 12 {
        0 h_va_space: u32,
        /// 1: asynchronous.
        4 flags: u32,
        8 subctx_id: u32,
    }
}

structure! {
    /// Where memory of a channel is.
    NvMemoryDescParams, 24 {
        0 base: u64,
        8 size: u64,
        16 address_space: u32,
        20 cache_attrib: u32,
    }
}

structure! {
    /// `*_CHANNEL_GPFIFO_A`, 0xc56f and later, drivers 570 to 595.
    NvChannelAllocParams, 368 {
        /// Memory for an error notifier.
        0 h_object_error: u32,
        /// Memory of the ring.
        4 h_object_buffer: u32,
        /// Device address of the ring.
        8 gp_fifo_offset: u64,
        /// Entries of the ring, a power of two.
        16 gp_fifo_entries: u32,
        20 flags: u32,
        24 h_context_share: u32,
        /// 0 inside a group.
        28 h_va_space: u32,
        /// Memory of the control page.
        32 h_userd_memory: [u32; 8],
        /// Where it is in that memory.
        64 userd_offset: [u64; 8],
        128 engine_type: u32,
        132 cid: u32,
        136 sub_device_id: u32,
        140 h_object_ecc_error: u32,
        144 instance_mem: NvMemoryDescParams,
        168 userd_mem: NvMemoryDescParams,
        192 ramfc_mem: NvMemoryDescParams,
        216 mthdbuf_mem: NvMemoryDescParams,
        240 h_phys_channel_group: u32,
        244 internal_flags: u32,
        248 error_notifier_mem: NvMemoryDescParams,
        272 ecc_error_notifier_mem: NvMemoryDescParams,
        296 process_id: u32,
        300 sub_process_id: u32,
        304 encrypt_iv: [u32; 3],
        316 decrypt_iv: [u32; 3],
        328 hmac_nonce: [u32; 8],
        360 tpc_config_id: u32,
        364 padding: u32,
    }
}

structure! {
    /// `HOPPER_USERMODE_A`, 0xc661: doorbells.
    NvHopperUsermodeAParams, 2 {
        0 b_bar1_mapping: u8,
        1 b_priv: u8,
    }
}

structure! {
    /// `*_DMA_COPY_A`, 0xc6b5 and later.
    Nvb0b5AllocationParameters, 8 {
        /// 1: the engine by its number of the subdevice.
        0 version: u32,
        4 engine_type: u32,
    }
}

structure! {
    /// `NV83DE_ALLOC_PARAMETERS`: whose compute object is looked at.
    Nv83deAllocParameters, 12 {
        0 h_debugger_client_obsolete: u32,
        4 h_app_client: u32,
        8 h_class3d_object: u32,
    }
}
