//! Device linking: relocatable cubins (`-rdc=true`) into one that can be loaded, as nvlink does it.
//!
//! Functions that no kernel reaches are dropped; those whose address is taken stay. Shared memory is placed per kernel over
//! what it calls, constants and variables of all objects are put together, kernels get the registers, barriers and stack that
//! their callees need. Relocations whose values are known then are applied; addresses of code and variables are left to
//! whoever loads the file: [`Load`](crate::Load) or a driver.
//!
//! # Beside nvlink 13.5
//!
//! Compared over generated programs for `sm_80`, `sm_90` and `sm_100`: code, banks, variables, unwind tables, attributes,
//! relocations, call graph, prototypes, symbols and the headers of all these sections are equal. Known to differ:
//!
//! - the order of `EIATTR_EXTERNS` among attributes that linking adds, and of the symbols in it;
//! - the tables of names, which hold no names of what was dropped, and the linker's own note;
//! - a common variable keeps the largest of its alignments, of which nvlink takes the first;
//! - from `sm_100` on there is no Mercury form of the code, and the unwind entry of a weak function whose place a longer one
//!   took is the weak one's.
//!
//! # What is not linked
//!
//! Only the form that toolkit 13 writes is linked. Tables of unified functions, addresses in bank 4, device code for a later
//! optimisation (LTO) and containers are refused by name or not looked into; debug information is left out and said to be.

mod arena;
mod calls;
mod debug;
mod driver;
mod error;
mod frame;
mod graph;
mod info;
mod literals;
mod notes;
mod object;
mod order;
mod out;
mod relocate;
mod resolve;
mod shared;
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

/// Links relocatable cubins of one architecture, in this order.
///
/// # Errors
/// Every [`LinkErrorKind`]: what is wrong with which object.
pub fn link(objects: &[&[u8]]) -> Result<LinkedCubin, LinkErrors> {
    let mut read: Vec<Object<'_>> = Vec::new();
    for (index, bytes) in objects.iter().enumerate() {
        let sm = read.first().and_then(|first| first.cubin.target().sm);
        read.push(Object::read(index, bytes, sm)?);
    }
    let Some(first) = read.first() else {
        return Err(LinkError::new(0, LinkErrorKind::Nothing).into());
    };
    let sm = first.cubin.target().sm.unwrap_or(0);
    let entities = resolve::resolve(&mut read)?;
    let calls = calls::Calls::read(&read, &entities)?;
    calls.check_registers(&entities)?;
    let mut state = State::new(sm, Rc::from(read), entities, calls);

    state.take_code();
    state.place_shared()?;
    state.take_variables();
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
