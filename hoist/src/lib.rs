//! Machine code into memory without a linker or a dynamic loader: the layers of the workspace under one name.
//!
//! ```
//! # #[cfg(feature = "cli")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use hoist::{elf::File, layout::{Options, Room}, x86::X86_64};
//!
//! let bytes = std::fs::read("../fixtures/x86_64/elftest.o")?;
//! let files = [File::parse(&bytes)?];
//! let mut room = Room::new();
//! let layout = room.plan::<X86_64>(&files, Options::default(), &mut |_| None)?;
//! let mut image = vec![0; layout.size() as usize];
//! layout.write(&mut image, 0x10_0000)?; // as it will stand at 0x100000, wherever it is now
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "cli"))]
//! # fn main() {}
//! ```
//!
//! | module | feature | crate | gives |
//! |---|---|---|---|
//! | [`elf`] | | `elf-core` | bytes to tables; what a relocation is |
//! | `layout` | `layout` | `elf-layout` | tables to addresses |
//! | `x86` | `x86` | `reloc-x86` | relocations of x86-64 and i386 |
//! | `aarch64` | `aarch64` | `reloc-aarch64` | relocations of AArch64 |
//! | `cuda` | `cuda` | `reloc-cuda` | relocations of CUDA cubins |
//! | `nvinfo` | `nvinfo` | `nvinfo` | what a cubin's kernels need |
//! | `fatbin` | `fatbin` | `fatbin` | containers of device code |
//! | `host` | `host` | `exec-host` | objects into this process |
//! | `nv` | `nv` | `exec-nv` | cubins onto NVIDIA GPUs |
//! | `cmd` and others | `cli` | | the command line and what its commands are made of |
//!
//! Without features it is `no_std` and pulls in `elf-core` alone. What the command line prints for people may change between
//! versions; keys of what it prints for programs stay.
#![cfg_attr(not(feature = "cli"), no_std)]
#![deny(unsafe_code)]

pub use elf_core as elf;
#[cfg(feature = "layout")]
pub use elf_layout as layout;
#[cfg(feature = "host")]
pub use exec_host as host;
#[cfg(feature = "nv")]
pub use exec_nv as nv;
#[cfg(feature = "fatbin")]
pub use fatbin;
#[cfg(feature = "nvinfo")]
pub use nvinfo;
#[cfg(feature = "aarch64")]
pub use reloc_aarch64 as aarch64;
#[cfg(feature = "cuda")]
pub use reloc_cuda as cuda;
#[cfg(feature = "x86")]
pub use reloc_x86 as x86;

#[cfg(feature = "cli")]
pub mod arguments;
#[cfg(all(feature = "cli", any(feature = "host", feature = "nv")))]
pub mod call;
#[cfg(all(feature = "cli", feature = "host"))]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod calling;
#[cfg(feature = "cli")]
pub mod cmd;
#[cfg(feature = "cli")]
pub mod explain;
#[cfg(feature = "cli")]
pub mod input;
#[cfg(all(feature = "cli", feature = "host"))]
#[expect(unsafe_code, reason = "opens the libraries that the user asks for")]
pub mod loading;
#[cfg(feature = "cli")]
pub mod machine;
#[cfg(feature = "cli")]
pub mod map;
#[cfg(feature = "cli")]
pub mod objects;
#[cfg(feature = "cli")]
pub mod output;
#[cfg(feature = "cli")]
pub mod overlap;
#[cfg(feature = "cli")]
pub mod printable;
#[cfg(feature = "cli")]
pub mod table;
