//! Machine code into memory without a linker or a dynamic loader: the layers of the workspace under one name.
//!
//! ```
//! # #[cfg(all(feature = "host", target_os = "linux", target_arch = "x86_64"))] {
//! use hoist::host::{Module, Process};
//!
//! let object = std::fs::read("../fixtures/x86_64/elftest.o")?; // float foo(int x) { return x + 12345678.f; }
//! let mut process = Process::new(); // libc, libm and what else is loaded
//! let module = Module::load([object], &mut |name| process.find(name))?;
//! // SAFETY: the signature is that of the source.
//! let foo = unsafe { module.get::<unsafe extern "C" fn(i32) -> f32>("foo")? };
//! // SAFETY: as above.
//! assert_eq!(unsafe { foo(321) }, 12345999.0);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Or as bytes, for another address, process or machine:
//!
//! ```
//! # #[cfg(all(feature = "alloc", feature = "layout", feature = "x86"))] {
//! use hoist::{elf::File, layout::{Options, HeapStorage}, x86::X86_64};
//!
//! let bytes = std::fs::read("../fixtures/x86_64/elftest.o")?;
//! let files = [File::parse(&bytes)?];
//! let mut room = HeapStorage::new();
//! let layout = room.plan::<X86_64>(&files, Options::default(), &mut |_| None)?;
//! let mut image = vec![0; layout.size() as usize];
//! layout.write(&mut image, 0x10_0000)?; // as it will stand at 0x100000, wherever it is now
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | feature | crate | gives |
//! |---|---|---|---|
//! | [`elf`] | | `elf-core` | bytes to tables; what a relocation is |
//! | `image` | `image` | `elf-image` | executables and shared objects to images |
//! | `layout` | `layout`, on by default | `elf-layout` | tables to addresses |
//! | `x86` | `x86`, on by default | `reloc-x86` | relocations of x86-64 and i386 |
//! | `aarch64` | `aarch64`, on by default | `reloc-aarch64` | relocations of AArch64 |
//! | `arm` | `arm` | `reloc-arm` | relocations of Arm with addresses of 4 bytes |
//! | `riscv` | `riscv` | `reloc-riscv` | relocations of RISC-V, 32 and 64 bits |
//! | `loongarch` | `loongarch` | `reloc-loongarch` | relocations of LoongArch64 |
//! | `cuda` | `cuda` | `reloc-cuda` | relocations of CUDA cubins |
//! | `nvinfo` | `nvinfo` | `nvinfo` | what a cubin's kernels need |
//! | `fatbin` | `fatbin` | `fatbin` | containers of device code |
//! | `host`, `exec` | `host`, on by default | `exec-host`, `exec-core` | objects into this process: Linux on x86-64, AArch64, Arm (hard float) and RISC-V (64 bits) |
//! | `nv`, `exec` | `nv` | `exec-nv`, `exec-core` | cubins onto NVIDIA GPUs |
//!
//! Feature `alloc`, on by default, has the heap lend where a crate can do without one. Without features the crate is `elf-core`
//! alone. The default ones need no C compiler; what needs one is a feature of the crate that it belongs to (`exec-core/disk`,
//! `exec-host/dynamic`, `fatbin/libzstd`). The command line is a crate of its own, `hoist-tool`.
#![no_std]
#![forbid(unsafe_code)]

pub use elf_core as elf;
#[cfg(feature = "image")]
pub use elf_image as image;
#[cfg(feature = "layout")]
pub use elf_layout as layout;
#[cfg(any(feature = "host", feature = "nv"))]
pub use exec_core as exec;
#[cfg(all(
    feature = "host",
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        all(target_arch = "arm", target_abi = "eabihf")
    )
))]
pub use exec_host as host;
#[cfg(feature = "nv")]
pub use exec_nv as nv;
#[cfg(feature = "fatbin")]
pub use fatbin;
#[cfg(feature = "nvinfo")]
pub use nvinfo;
#[cfg(feature = "aarch64")]
pub use reloc_aarch64 as aarch64;
#[cfg(feature = "arm")]
pub use reloc_arm as arm;
#[cfg(feature = "cuda")]
pub use reloc_cuda as cuda;
#[cfg(feature = "loongarch")]
pub use reloc_loongarch as loongarch;
#[cfg(feature = "riscv")]
pub use reloc_riscv as riscv;
#[cfg(feature = "x86")]
pub use reloc_x86 as x86;

/// The example of `README.md`, as a test.
#[cfg(all(doctest, feature = "host", target_os = "linux", target_arch = "x86_64"))]
#[doc = include_str!("../README.md")]
mod readme {}
