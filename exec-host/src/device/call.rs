//! One call: arguments in memory, through libffi to the code.

use core::ffi::c_void;
use core::ptr;
use std::sync::Arc;

use exec_core::{Error, Hold, LruAllocator, Scalar, Type};
use libffi::middle::Cif;

use super::allocator::HostAllocator;
use super::image::HostImage;
use crate::dynamic::ffi;
use crate::guard;

/// The bytes of an argument.
pub(super) type Slot = [u8; 8];

/// A function's code, and how to pass arguments of certain types to it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) image: Arc<HostImage>,
    pub(super) name: Arc<str>,
    pub(super) address: usize,
    pub(super) is_guarded: bool,
    types: Vec<Type>,
    interface: Cif,
}

// SAFETY: the description of the interface is not changed after it is made: `ffi_call` reads it.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// Arguments that fit most functions without memory from the heap.
const FEW: usize = 16;

/// A call with what it uses.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) entry: Arc<Entry>,
    pub(super) slots: Vec<Slot>,
    pub(super) count: u32,
    /// Keeps the buffers.
    pub(super) _holds: Vec<Hold<LruAllocator<HostAllocator>>>,
}

impl Entry {
    /// For arguments of these types, and behind them the index in the grid.
    pub(super) fn new(
        image: Arc<HostImage>,
        name: Arc<str>,
        address: u64,
        is_guarded: bool,
        types: Vec<Type>,
    ) -> Self {
        let all: Vec<_> = types.iter().copied().chain([Type::U32]).map(ffi).collect();
        let interface = Cif::new(all, ffi(Type::Void));
        Self { image, name, address: address as usize, is_guarded, types, interface }
    }

    /// Whether it is for arguments of these types.
    pub(super) fn is_for(&self, types: impl Iterator<Item = Type>) -> bool {
        types.eq(self.types.iter().copied())
    }

    /// Calls the function with the index behind the other arguments: one that does not take it, does not see it.
    ///
    /// # Safety
    /// The function takes these arguments and is sound to run with them.
    pub(super) unsafe fn run(&self, slots: &[Slot], index: u32) -> Result<(), Error> {
        debug_assert_eq!(slots.len(), self.types.len());
        let index = Scalar::U32(index).bytes();
        let mut few = [ptr::null_mut(); FEW + 1];
        let mut many = Vec::new();
        let places = slots.iter().chain([&index]).map(|slot| ptr::from_ref(slot).cast_mut().cast());
        let pointers: *mut *mut c_void = if slots.len() <= FEW {
            few.iter_mut().zip(places).for_each(|(pointer, place)| *pointer = place);
            few.as_mut_ptr()
        } else {
            many.extend(places);
            many.as_mut_ptr()
        };
        let interface = self.interface.as_raw_ptr();
        let mut bare = Bare { interface, address: self.address, pointers };
        let data = (&raw mut bare).cast();
        if !self.is_guarded {
            // SAFETY: `data` is what `bare_call` wants; the caller guarantees the function.
            unsafe { bare_call(data) };
            return Ok(());
        }
        // SAFETY: a guarded entry is made after the handler is installed; `bare_call` has nothing to drop.
        unsafe { guard::call(bare_call, data) }.map_err(|fault| self.explain(fault))
    }

    fn explain(&self, fault: guard::Fault) -> Error {
        let guard::Fault { signal, address, instruction } = fault;
        let (function, offset) = match self.image.locate(instruction) {
            Some((function, offset)) => (function, Some(offset)),
            None => (String::from(&*self.name), None),
        };
        Error::Fault { signal, address, instruction, function, offset }
    }
}

/// What a call needs, and nothing that would have to be dropped.
struct Bare {
    interface: *mut libffi::raw::ffi_cif,
    address: usize,
    pointers: *mut *mut c_void,
}

/// # Safety
/// `data` points to a [`Bare`] whose function takes what its interface says.
unsafe extern "C" fn bare_call(data: *mut c_void) {
    // SAFETY: as the caller says.
    let Bare { interface, address, pointers } = unsafe { data.cast::<Bare>().read() };
    let code = ptr::with_exposed_provenance::<()>(address);
    // SAFETY: pointers to code and to data have one size here; `ffi_call` converts it back.
    let code = unsafe { core::mem::transmute::<*const (), unsafe extern "C" fn()>(code) };
    // SAFETY: one pointer for each argument of the interface; there is no result.
    unsafe { libffi::raw::ffi_call(interface, Some(code), ptr::null_mut(), pointers) };
}
