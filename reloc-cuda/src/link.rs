//! Device linking: relocatable cubins (`-rdc=true`) into one that can be loaded, as nvlink does it.
//!
//! Functions that no kernel reaches are dropped; those whose address is taken stay. Shared memory is placed per kernel over
//! what it calls, constants and variables of all objects are put together, kernels get the registers, barriers and stack that
//! their callees need. Relocations whose values are known then are applied; addresses of code and variables are left to
//! whoever loads the file: [`Load`](crate::Load) or a driver.
//!
//! # Beside nvlink 13.5
//!
//! Compared are code, banks, variables, unwind tables, attributes, relocations, call graph, prototypes, symbols and the headers
//! of all these sections; what one refuses the other does, but for a common variable smaller than a definition of zeros, a definition
//! of size 0 beside another, and a local function with the name of another object's kernel, which nvlink refuses and this takes; so it
//! does where nvlink ends with an internal error: a second name that no code calls, a weak definition behind a common one.
//! `cuobjdump -elf` and `nvdisasm` read what is written here without a
//! complaint. Programs of several objects, by architecture (those with suffixes counted with it) and toolkit of the objects:
//!
//! | architecture | 13.5: programs | equal | differ by |
//! |---|---|---|---|
//! | `sm_75` | 88 | 85 | 1, 2, 3 |
//! | `sm_80` | 93 | 90 | 1, 2, 3 |
//! | `sm_86` | 77 | 74 | 1, 2, 3 |
//! | `sm_87` | 51 | 49 | 2, 3 |
//! | `sm_89` | 77 | 74 | 1, 2, 3 |
//! | `sm_90` | 196 | 190 | 1, 2, 3 |
//! | `sm_100` | 142 | 130 | 1, 2, 3, Mercury 7 |
//! | `sm_103` | 84 | 77 | 1, 2, 3, Mercury 4 |
//! | `sm_110` | 61 | 56 | 2, 3, Mercury 3 |
//! | `sm_120` | 101 | 92 | 1, 2, 3, Mercury 6 |
//! | `sm_121` | 101 | 92 | 1, 2, 3, Mercury 6 |
//!
//! | toolkit | equal, of all |
//! |---|---|
//! | 13.0 | `sm_75` 34 of 35, `sm_80` 34 of 35, `sm_90` 36 of 37 (the others: 3); `sm_100` and `sm_120` 2 of 37 (Mercury) |
//! | 12.9 | `sm_80` 33 of 34, `sm_90` 35 of 36 (the others: 3); `sm_100` 2 of 36 (Mercury) |
//! | 11.8 | `sm_75`, `sm_80`, `sm_89` 32 of 33 each (the others: 3) |
//!
//! Of 147 programs of 54 generated sources of CUDA C++ (weak templates, tables of branches, virtual calls, recursion, `printf`,
//! `assert`, `malloc`; `sm_75` to `sm_121`) 58 were equal when they were taken. The others differ by literals of weak functions that gave
//! way (48), the name that nvlink has for a constant bank which it renamed (41; it is that here, too, since), functions that nvlink
//! makes anew (21), and 4 (5), as below. Of 168 more of such sources (24 each on `sm_89`, `sm_90`, `sm_103a`, `sm_110`, `sm_120a`, `sm_100f` and
//! `sm_75`) 150 are equal, with the Mercury form where there is one; the others, on `sm_75` and `sm_89`, have such literals. `sm_107a` was looked
//! at alone: there nvlink gives functions an attribute (0x67) that objects do not have, and this does not.
//!
//! Of generated programs 480 of calls, data and attributes, 450 with shared memory of many shapes and 154 with named textures,
//! samplers and surfaces are equal, and so are 1,200 with arrays of the launch, alignments up to 1,024, variables that nobody uses and
//! functions that are reached through pointers alone, on `sm_75` to `sm_121a`. Of 310 more, whose arrays have several alignments, 278.
//!
//! Of 378 links of 199 generated programs of PTX with all of that at once (two to four objects, some in other orders, with
//! `--kernels-used`, or behind `-r`) 35 are refused by both, and 337 are equal; of the others two have tables of branches, which nvlink
//! makes anew from `sm_100` on, two literals of weak functions that gave way, one has both, and one is of `nvlink -r`, whose kernels
//! keep shared memory that nobody uses. With second names and addresses of weak functions, too, most of what differs is 3.
//!
//! What nvlink does and this does not, since it breaks programs:
//!
//! 1. A common variable has the first of its alignments; here the largest.
//! 2. Arrays of the launch have the alignment of the one that is met first, and an array that of the first object, though all begin at
//!    one place: code that counts on more (1,024 for tensor maps) finds less. Here the largest.
//! 3. That the address of a weak function is taken is forgotten if another object's copy of the function is kept: kernels that
//!    call through it lack its barriers and its shared memory, and where nothing else needs it the function is gone and the word that
//!    had its address is zero. Here the address counts.
//! 4. For `sm_90` line numbers (`-lineinfo`) name functions of the first object where those of another were inlined.
//! 5. From `sm_100` on the unwind entry of a function that took the place of a weak one is that of its Mercury form: for another number
//!    of bytes, and without rules. Here it is that of the machine code.
//! 6. Words of an object's constants that have the address of a weak function or variable are zero if another object's copy of that
//!    is kept. Here they have the address.
//!
//! Smaller differences:
//!
//! - the order of some sections, symbols, and attributes that linking adds;
//! - the tables of names, which hold no names of what was dropped, the linker's own note, and in that on the architecture the
//!   toolkit, where no object says any: there nvlink writes its own;
//! - the bank of a kernel that took the place of a weak one is not there twice, nor are literals of weak functions that gave way;
//! - from `sm_100` on nvlink makes some functions anew from their Mercury form, with its own schedule: of objects of toolkits
//!   before 13.5, of the device runtime, with grid synchronisation, debug information, tables of addresses, or in the place of a
//!   weak function. Here the objects' own code is linked, with its own attributes, line numbers and unwind table.
//!
//! # Mercury
//!
//! From `sm_100` on objects have their code a second time in the form from which the driver makes machine code for other members
//! of the family. It is linked with the rest: `.nv.capmerc.text.F`, `.nv.merc.symtab`, `.nv.merc.nv.info*`, `.nv.merc.rela.*`,
//! `.nv.merc.debug_frame`, line numbers (`-lineinfo`), names of inlined functions and the text of PTX beside them, `.nv.merc.nv.callgraph`, `.nv.merc.nv.prototype`, `.nv.merc.nv.global.init` and
//! `.nv.merc.nv.constant.user`, constants that the optimizer made (`.nv.merc.nv.constant.optimizer.F`, which are bank 2), and shared
//! memory that the system reserves (`.nv.merc.nv.shared.reserved.0`: tensor memory, and every program for `sm_110`). Of 140 generated programs (100 on `sm_100`, 40 on `sm_120`) all these sections and the symbols
//! are equal to nvlink's, but for the order of external functions in an attribute of one of them.
//!
//! It is left out as a whole if an object lacks it, has one of another version than 13.5's, or one with what is not understood: debug
//! information beyond line numbers (`-G`), code that names textures, of whose numbers nvlink makes a table in Mercury.
//! [`LinkedCubin::mercury`] and the linker's note in `.note.nv.tkinfo` say so.
//!
//! # What is not linked
//!
//! Architectures before `sm_75`, and for `sm_90` objects of toolkits before 12, as with nvlink 13.5. Tables of unified
//! functions, which PTX can ask for by an attribute, addresses in bank 4, which none of 5,005 objects by toolkits 11.8 to 13.5
//! has, and device code for a later optimisation (LTO) are refused by name. PTX is for a compiler: `hoist cubin link` asks ptxas,
//! where it is installed.
//!
//! # Relocatable output
//!
//! [`link_relocatable`] makes one object of several. nvlink's `-r` resolves what it can, so that its output is linked with others to
//! something else than the objects are (constants of bank 3 get places that they do not keep); this resolves nothing. Linked
//! by nvlink or here it gives what the objects give, up to `sm_90`; from `sm_100` on it is for this linker alone, as it has no
//! Mercury form, without which nvlink ends with a fault.

mod aliases;
mod arena;
mod calls;
mod capsule;
mod carried;
mod compat;
mod debug;
mod driver;
mod entity;
mod error;
mod frame;
mod graph;
mod info;
mod lines;
mod linked;
mod literals;
mod mercury;
mod mercury_literals;
mod mercury_object;
mod mercury_records;
mod notes;
mod object;
mod order;
mod out;
mod record;
mod relocatable;
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
mod totals;
mod write;

pub use error::{LinkError, LinkErrorKind, LinkErrors};
pub use linked::{LinkOptions, LinkedCubin, LinkedFunction, LinkedMercury};

use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;
use object::Object;
use state::State;

/// Links relocatable cubins, in this order, for the architecture of the first.
///
/// # Errors
/// Every [`LinkErrorKind`]: what is wrong with which object.
///
/// ```
/// use reloc_cuda::link::link;
///
/// let a = include_bytes!("../../fixtures/cuda/calls_a-13.5-sm_90.cubin");
/// let b = include_bytes!("../../fixtures/cuda/calls_b-13.5-sm_90.cubin");
/// let linked = link(&[a, b])?;
/// assert!(elf_core::File::parse(&linked.bytes).is_ok());
///
/// // what one object lacks is an error that names it
/// assert!(link(&[a]).unwrap_err().to_string().contains("undefined"));
/// # Ok::<(), reloc_cuda::link::LinkErrors>(())
/// ```
pub fn link(objects: &[&[u8]]) -> Result<LinkedCubin, LinkErrors> {
    link_for(objects, None)
}

/// Links relocatable cubins, in this order, for architecture `sm` (90 for `sm_90`), or that of the first. Code for a lower minor
/// version of the architecture goes with it.
///
/// # Errors
/// Every [`LinkErrorKind`]: what is wrong with which object.
pub fn link_for(objects: &[&[u8]], sm: Option<u32>) -> Result<LinkedCubin, LinkErrors> {
    link_with(objects, LinkOptions { sm, ..LinkOptions::default() })
}

/// Puts relocatable cubins together into one that is relocatable still, as `nvlink -r` does: linked later, it is what the objects
/// are. Of several definitions one is chosen; names that are undefined stay so.
///
/// From `sm_100` on it has machine code alone, and says so ([`LinkedCubin::mercury`]).
///
/// # Errors
/// Every [`LinkErrorKind`] but those about what is undefined, or too large: what is wrong with which object.
pub fn link_relocatable(objects: &[&[u8]], sm: Option<u32>) -> Result<LinkedCubin, LinkErrors> {
    let (mut read, sm) = read(objects, sm)?;
    let entities = resolve::resolve(&mut read)?;
    relocatable::join(sm, read, entities)
}

/// The objects, and the architecture: that of the first, if none is named.
fn read<'a>(objects: &[&'a [u8]], sm: Option<u32>) -> Result<(Vec<Object<'a>>, u32), LinkErrors> {
    let mut read: Vec<Object<'_>> = Vec::new();
    let mut target = sm;
    for (index, bytes) in objects.iter().enumerate() {
        let object = Object::read(index, bytes, target)?;
        target = target.or(object.cubin.target().sm);
        read.push(object);
    }
    match read.is_empty() {
        true => Err(LinkError::new(0, LinkErrorKind::Nothing).into()),
        false => Ok((read, target.unwrap_or(0))),
    }
}

/// Links relocatable cubins, in this order, as the options say.
///
/// # Errors
/// Every [`LinkErrorKind`]: what is wrong with which object.
pub fn link_with(objects: &[&[u8]], options: LinkOptions<'_>) -> Result<LinkedCubin, LinkErrors> {
    let LinkOptions { sm, kernels } = options;
    let (mut read, sm) = read(objects, sm)?;
    let entities = resolve::resolve(&mut read)?;
    let calls = calls::Calls::read(&read, &entities, sm, kernels)?;
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
    state.place_inlined_names()?;
    state.relocate()?;
    let unbounded = state.texts.iter().filter(|(id, _)| {
        state.entities[*id].is_kernel() && state.calls.totals(*id).stack == u32::MAX
    });
    let unbounded = unbounded.map(|(id, _)| state.entities[*id].name.to_string()).collect();
    let functions = state.linked_functions();
    let (bytes, mercury) = state.finish()?;
    Ok(LinkedCubin { bytes, unbounded, mercury, functions })
}
