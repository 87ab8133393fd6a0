//! Device code inside host files: NVIDIA's fatbins and LLVM's offload containers, found, read, selected and built.
//!
//! ```
//! use fatbin::{Container, CudaVersion, TargetDevice, NewEntry, Search, region_size, select, walk, write_region};
//!
//! // A fatbin of our own; mostly these are read from executables, libraries, archives.
//! let ptx = NewEntry::ptx(b".version 8.0\n.target sm_75\n.address_size 64\n\0")?;
//! let mut buffer = [0; 256];
//! let file = &mut buffer[..region_size(&[ptx.into()])];
//! write_region(&[ptx.into()], file)?;
//!
//! for found in walk(file, Search::default()) {
//!     if let Container::Region(region) = found?.container {
//!         for entry in region.entries() {
//!             let entry = entry?;
//!             assert_eq!(format!("{:#x}: {} {}", entry.at(), entry.kind(), entry.sm()), "0x10: ptx 75");
//!         }
//!         let h200 = TargetDevice { sm: 90, driver: CudaVersion::new(12, 8) };
//!         assert!(select(region.entries(), h200)?.is_some());
//!     }
//! }
//! # Ok::<_, fatbin::Error>(())
//! ```
//!
//! # Layers
//! * **Bytes**: [`Span`] is a part of a file that knows its offset; [`raw`] and [`raw_llvm`] are the formats' headers as types.
//! * **Containers**: [`Region`] of [`RegionEntry`]s with [`Parts`] (NVIDIA); [`OffloadBinary`] of [`OffloadImage`]s, [`Bundle`],
//!   [`CompressedBundle`] (LLVM). Headers are checked when they are read; every length that lies is an [`Error`] with its offset.
//! * **Host files**: [`walk`] finds containers in any file; [`wrappers`], [`module_ids`], [`host_entries`] and
//!   [`device_image`] tell how a program finds them itself.
//! * **Payloads**: [`RegionEntry::unpack_into`] and [`CompressionMethod::unpack`], which believe no size that the stored bytes cannot hold.
//! * **Choice**: [`select`] is the driver's choice for a [`TargetDevice`], [`Candidate::fit`] its judgement of one image; [`OffloadTarget`]s go together
//!   or not.
//! * **Building**: [`write_region`] and [`write_offload`], from [`CubinHeader`]s and PTX, or from entries that exist ([`Item`]).
//!
//! # Features
//! None is on by default: without, there is no heap and no decoder. `lz4` and `zlib` decode without a heap. `zstd` takes one,
//! as does `libzstd`, which is the C library. `alloc` adds functions that return a `Vec`, and encoders; that of LZ4 makes larger
//! results than NVIDIA's tools do without `liblz4`, the C library's.
//!
//! # What it does not promise
//! * NVIDIA publishes neither its format nor its driver's choice. The format was read back from files that the tools of CUDA
//!   11.2 to 13.5 made, the choice from NVIDIA's guides.
//! * Compressed NVVM is obfuscated, by a scheme that is not public: it is said to be so, and not unpacked.
//! * No panic is reachable by any bytes without features. With them, the decoders' word is taken for it; they are tried with
//!   damaged files.
//! * Checksums of LZ4 and Zstandard frames are not compared.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

mod build;
mod build_object;
mod build_offload;
mod bundle;
mod code_object;
mod coff;
mod container;
mod cubin;
#[cfg(feature = "alloc")]
mod deflate;
mod descriptor;
mod entry;
mod error;
mod host;
mod host_entry;
mod inflate;
mod kind;
#[cfg(feature = "lz4")]
mod lz4_frame;
mod mode;
mod object;
mod offload;
mod parts;
mod pointer;
mod ptx;
pub mod raw;
pub mod raw_llvm;
mod region;
mod scan;
mod search;
mod select;
mod sink;
mod span;
mod target;
mod target_image;
mod wrapper;

#[cfg(feature = "alloc")]
pub use build::region;
pub use build::{Item, NewEntry, region_size, write_region};
pub use build_object::{object_size, write_object};
#[cfg(feature = "alloc")]
pub use build_offload::offload;
pub use build_offload::{NewImage, offload_size, write_offload};
pub use bundle::{Bundle, BundleEntries, BundleEntry, CompressedBundle};
pub use code_object::CodeObjectHeader;
pub use container::{Container, FoundContainer, Place};
pub use cubin::CubinHeader;
pub use descriptor::{Descriptor, DeviceImage, descriptor, device_image};
pub use entry::{EntryOptions, RegionEntry, text};
pub use error::{Error, ErrorKind};
pub use host::{Scans, Walk, scans, walk};
pub use host_entry::{HostEntries, HostEntry, host_entries};
pub use kind::{CompressionMethod, EntryFlags, EntryKind, NotAnSm, Sm, Suffix};
pub use mode::CompressionMode;
pub use offload::{ImageKind, OffloadBinary, OffloadImage, OffloadImages, Producer};
pub use parts::{Part, Parts};
pub use pointer::Pointer;
pub use ptx::PtxHeader;
pub use region::{Entries, Region};
pub use scan::{Scan, Search, Step};
pub use search::{Window, Windows};
pub use select::{Candidate, CudaVersion, Fit, Selected, TargetDevice, select};
pub use span::Span;
pub use target::OffloadTarget;
pub use target_image::{TargetImages, target_images};
pub use wrapper::{ModuleIds, Wrapper, Wrappers, module_ids, wrappers};

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
