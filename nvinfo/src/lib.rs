//! What a CUDA cubin says of itself: the architecture it is for, the attributes of `.nv.info`, and what its kernels need.
//!
//! ```
//! use nvinfo::{Cubin, occupancy};
//!
//! let bytes = include_bytes!("../../fixtures/cuda/kernels-13.5-sm_80.cubin");
//! let cubin = Cubin::parse(bytes)?;
//! assert_eq!(cubin.target().to_string(), "sm_80");
//!
//! let kernel = cubin.kernel("shared_memory".into()).expect("the kernel is there");
//! let needs = kernel.resources()?;
//! assert_eq!((needs.registers, needs.shared, needs.threads()), (Some(10), 1040, Some(128)));
//!
//! let limits = occupancy::limits(80).expect("sm_80 is in the table");
//! assert_eq!(limits.occupancy(&needs.demand(128, 0)).warps, 64);
//! # Ok::<(), nvinfo::Error>(())
//! ```
//!
//! # From bytes to kernels
//!
//! - [`Cubin`] finds the tables of the ELF file; [`Target`] puts together what header, notes and `.nv.compat` say. Both forms of
//!   the header are read, of 32 and 64 bits.
//! - [`Attributes`] are the records of a section; [`Attribute::payload`] types their values.
//! - [`Function`] is a kernel, a device function, or a subroutine inside one; [`Resources`] is what it needs.
//! - [`CallTree`] tells what a kernel reaches and how deep its stack gets, in storage that the caller lends. Nodes and edges may
//!   be those of several files.
//! - [`Patch`] changes a number in place: planned while the cubin is borrowed, applied when it no longer is.
//! - [`occupancy`] has the limits of each architecture.
//!
//! Above `elf-core`; beside `reloc-cuda`, which has the relocations.
//!
//! # What is not promised
//!
//! What a file does not record is `None`, what is not known to have a meaning is a number or bytes: nothing is guessed, and a
//! number that no tool has written yet is no error. Code is not disassembled. Sections in the Mercury form of the code, which a
//! finalizer turns into machine code, are passed over.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod attribute;
mod bank;
mod calls;
mod check;
mod compat;
mod cubin;
mod error;
mod function;
mod instruction;
mod kernels;
mod names;
mod note;
pub mod occupancy;
mod parameter;
mod patch;
mod payload;
mod resources;
mod sort;
mod symbol;
mod target;
mod tree;
mod value;

pub use attribute::{Attribute, Attributes};
pub use bank::ConstantBank;
pub use calls::{Call, Calls};
pub use check::{Fault, Suspect};
pub use compat::compat_name;
pub use cubin::Cubin;
pub use error::{Error, ErrorKind};
pub use function::{Function, Functions};
pub use instruction::Instructions;
pub use kernels::KernelNeeds;
pub use names::{attribute_name, attribute_number, eiattr};
pub use note::{CubinNote, CubinNotes, Tool};
pub use parameter::{KernelParameter, ParameterBank};
pub use patch::Patch;
pub use payload::{Branches, IndirectBranch, Mbarrier, Mbarriers, Pairs, Payload, Words};
pub use resources::{Resources, Stack};
pub use symbol::{Space, is_entry};
pub use target::{HeaderForm, LinkStage, Target, TargetSuffix, TextureMode, Toolkit};
pub use tree::{CallTree, Edge, Node};
pub use value::AttributeValue;

/// The example of `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
