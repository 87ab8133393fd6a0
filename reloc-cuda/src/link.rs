//! Device linking: relocatable cubins (`-rdc=true`) into one that can be loaded, as nvlink does it.
//!
//! Functions that no kernel reaches are dropped; those whose address is taken stay. Shared memory is placed per kernel over
//! what it calls, constants and variables of all objects are put together, kernels get the registers, barriers and stack that
//! their callees need. Relocations whose values are known then are applied; addresses of code and variables are left to
//! whoever loads the file: [`Load`](crate::Load) or a driver.
//!
//! # Beside nvlink 13.5
//!
//! Compared over generated programs for `sm_80`, `sm_90` and `sm_100`, and over programs of other shapes (virtual functions,
//! templates, recursion, function and branch tables, weak and managed variables, launches of kernels by kernels, debug
//! information...) for ten architectures from `sm_75` to `sm_121`, with objects of toolkits 11.8, 12.9 and 13.5: code, banks,
//! variables, unwind tables, attributes, relocations, call graph, prototypes, symbols and the headers of all these sections are
//! equal, and what one refuses the other does. Known to differ:
//!
//! - the order of `EIATTR_EXTERNS` among attributes that linking adds, and of the symbols in it;
//! - the tables of names, which hold no names of what was dropped, the linker's own note, and in that on the architecture the
//!   toolkit, where no object says any: there nvlink writes its own;
//! - which word of the parameter bank a named texture has, if there are several;
//! - `.nv.compat` of objects by toolkits before 13.5 is linked as it is, where nvlink writes the entries of its own version;
//! - a common variable keeps the largest of its alignments, of which nvlink takes the first; the bank of a kernel that took the
//!   place of a weak one is not there twice, nor are literals of weak functions that gave way;
//! - shared memory of a kernel is aligned for its own arrays of the launch, not for those of kernels it shares none with, and
//!   debug information of it stays where nvlink has dropped it;
//! - from `sm_100` on empty sections of relocations of bank 2 are left out, and a dropped function's line numbers stay;
//! - from `sm_100` on there is no Mercury form of the code. From that nvlink makes some functions anew: of objects of
//!   toolkit 12, of the device runtime, with grid synchronisation, debug information, or in the place of a weak function. Here
//!   the objects' own code is linked, with its own attributes, line numbers and unwind table.
//!
//! # What is not linked
//!
//! Architectures before `sm_75`, and for `sm_90` objects of toolkits before 12, as with nvlink 13.5. Tables of unified
//! functions, addresses in bank 4, and device code for a later optimisation (LTO) are refused by name. PTX is for a compiler:
//! `hoist cubin link` asks ptxas, where it is installed. There is no relocatable output (`-r` of nvlink).

mod arena;
mod calls;
mod carried;
mod compat;
mod debug;
mod driver;
mod error;
mod frame;
mod graph;
mod info;
mod lines;
mod literals;
mod notes;
mod object;
mod order;
mod out;
mod relocate;
mod reserved;
mod resolve;
mod shared;
mod sort;
mod span;
mod state;
mod strings;
mod tables;
mod textures;
mod write;

pub use error::{LinkError, LinkErrorKind, LinkErrors};

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use object::Object;
use state::State;

/// A linked cubin.
#[derive(Clone, Debug)]
pub struct LinkedCubin {
    /// The file.
    pub bytes: Vec<u8>,
    /// Kernels whose stack has no bound that can be told: a launch must be given one.
    pub unbounded: Vec<String>,
}

/// Links relocatable cubins, in this order, for the architecture of the first.
///
/// # Errors
/// Every [`LinkErrorKind`]: what is wrong with which object.
pub fn link(objects: &[&[u8]]) -> Result<LinkedCubin, LinkErrors> {
    link_for(objects, None)
}

/// Links relocatable cubins, in this order, for architecture `sm` (90 for `sm_90`), or that of the first. Code for a lower minor
/// version of the architecture goes with it.
///
/// # Errors
/// Every [`LinkErrorKind`]: what is wrong with which object.
pub fn link_for(objects: &[&[u8]], sm: Option<u32>) -> Result<LinkedCubin, LinkErrors> {
    let mut read: Vec<Object<'_>> = Vec::new();
    let mut target = sm;
    for (index, bytes) in objects.iter().enumerate() {
        let object = Object::read(index, bytes, target)?;
        target = target.or(object.cubin.target().sm);
        read.push(object);
    }
    if read.is_empty() {
        return Err(LinkError::new(0, LinkErrorKind::Nothing).into());
    }
    let sm = target.unwrap_or(0);
    let entities = resolve::resolve(&mut read)?;
    let calls = calls::Calls::read(&read, &entities, sm)?;
    calls.check_registers(&entities)?;
    calls.check_carried(&entities)?;
    let mut state = State::new(sm, Rc::from(read), entities, calls);

    state.take_code();
    state.place_shared()?;
    state.take_variables();
    state.place_reserved();
    state.check_constants()?;
    state.take_parameters()?;
    state.place_textures()?;
    state.place_literals();
    state.take_frames()?;
    state.take_debug();
    state.relocate()?;
    let unbounded = state.texts.iter().filter(|(id, _)| {
        state.entities[*id].is_kernel() && state.calls.totals(*id).stack == u32::MAX
    });
    let unbounded = unbounded.map(|(id, _)| state.entities[*id].name.to_string()).collect();
    Ok(LinkedCubin { bytes: state.finish()?, unbounded })
}
