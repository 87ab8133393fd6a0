//! Each limit of kernel and device that a launch can break: the words have both numbers.
#![expect(clippy::unwrap_used, reason = "a test")]

use exec_nv::{ClusterPolicy, DeviceProperties, LaunchAttributes, NvLaunch};
use nvinfo::{Cubin, Resources};

fn device(sm: u32) -> DeviceProperties {
    DeviceProperties {
        name: String::new(),
        uuid: [0; 16],
        sm,
        driver: fatbin::CudaVersion::new(13, 0),
        memory: 1 << 30,
        sm_count: 132,
        warp: 32,
        max_grid: [0x7fff_ffff, 65535, 65535],
        max_block: [1024, 1024, 64],
        max_threads: 1024,
        max_registers: 65536,
        shared: 48 << 10,
        shared_opt_in: 227 << 10,
        shared_per_sm: 228 << 10,
        shared_reserved: 1024,
        l2_cache: 0,
        pci: [0; 3],
        cooperative_launch: sm >= 60,
        cluster_launch: sm >= 90,
        memory_pools: true,
        managed_memory: true,
    }
}

/// What a kernel of the fixtures needs, changed.
fn kernel(change: impl FnOnce(&mut Resources)) -> Resources {
    let bytes = include_bytes!("../../fixtures/cuda/kernels-13.5-sm_90a.cubin");
    let cubin = Cubin::parse(bytes).unwrap();
    let mut needs = cubin.kernel("globals".into()).unwrap().resources().unwrap();
    change(&mut needs);
    needs
}

#[test]
fn each_limit_is_named_with_its_numbers() {
    let usual = NvLaunch::new(4, 32);
    let clustered = |cluster| NvLaunch { cluster: Some(cluster), ..usual };
    let attributes = |attributes| NvLaunch { attributes, ..usual };
    let none = LaunchAttributes::NONE;
    let rows = [
        (90, kernel(|_| ()), usual, "ok"),
        (
            90,
            kernel(|_| ()),
            NvLaunch::new(1, 1025),
            "a block of 1025x1x1, where 1x1x1 to 1024x1024x64 can be",
        ),
        (
            90,
            kernel(|needs| needs.registers = Some(128)),
            NvLaunch::new(1, 513),
            "513 threads of 128 registers in a block, where the device's 65536 registers allow 512",
        ),
        (90, kernel(|needs| needs.registers = Some(128)), NvLaunch::new(1, 512), "ok"),
        (
            90,
            kernel(|needs| needs.max_threads = Some([8, 4, 2])),
            NvLaunch::new(1, 65),
            "65 threads in a block, where the kernel allows 64",
        ),
        (
            90,
            kernel(|needs| needs.required_threads = Some([16, 2, 1])),
            usual,
            "a block of 32x1x1, where the kernel takes 16x2x1",
        ),
        (
            90,
            kernel(|needs| needs.shared = 1),
            NvLaunch { dynamic_shared: 227 << 10, ..usual },
            "1 and 232448 bytes of shared memory for a block, where 232448 can be",
        ),
        (
            80,
            kernel(|_| ()),
            clustered([2, 1, 1]),
            "a cluster of 2x1x1, and the device has none: it is sm_80, and they are from sm_90 on",
        ),
        (
            90,
            kernel(|needs| needs.cluster = Some([4, 1, 1])),
            clustered([2, 1, 1]),
            "a cluster of 2x1x1, where the kernel takes 4x1x1",
        ),
        (90, kernel(|needs| needs.cluster = Some([4, 1, 1])), usual, "ok"),
        (
            90,
            kernel(|needs| needs.explicit_cluster = true),
            usual,
            "no cluster, where the kernel takes one of 1 to 16 blocks",
        ),
        (
            90,
            kernel(|needs| needs.max_cluster_rank = Some(2)),
            clustered([4, 1, 1]),
            "a cluster of 4 blocks, where 1 to 2 can be",
        ),
        (
            90,
            kernel(|_| ()),
            clustered([3, 1, 1]),
            "a grid of 4x1x1 has no whole clusters of 3x1x1",
        ),
        (
            50,
            kernel(|_| ()),
            NvLaunch { cooperative: true, ..usual },
            "a cooperative grid of 4 blocks, and this device of sm_50 has no cooperative launches",
        ),
        (
            80,
            kernel(|_| ()),
            attributes(LaunchAttributes { programmatic: true, ..none }),
            "programmatic dependent launch from sm_90 on, and the device is sm_80",
        ),
        (
            80,
            kernel(|_| ()),
            attributes(LaunchAttributes { cluster_policy: Some(ClusterPolicy::Spread), ..none }),
            "cluster policies from sm_90 on, and the device is sm_80",
        ),
        (80, kernel(|_| ()), attributes(LaunchAttributes { priority: Some(-5), ..none }), "ok"),
    ];
    for (sm, needs, launch, expected) in rows {
        let found = launch.check(&device(sm), Some(&needs));
        assert_eq!(found.map_or_else(|error| error.to_string(), |()| "ok".into()), expected);
    }
}
