//! What a call borrows of its arguments.

use crate::buffer::{PyBuffer_Release, PyObject_GetBuffer, RawBuffer, SIMPLE};
use core::mem::MaybeUninit;
use pyo3::ffi::{self, PyObject};

/// What a call borrows, given back when this is dropped: buffers, and objects that keep memory.
pub(crate) struct Borrowed {
    buffers: [MaybeUninit<RawBuffer>; Self::FEW],
    used: usize,
    #[expect(clippy::vec_box, reason = "a view may point into itself, and stays where it is")]
    more: Vec<Box<RawBuffer>>,
    /// Counted references.
    pub(crate) objects: Vec<*mut PyObject>,
}

impl Borrowed {
    /// Buffers for which no memory is taken.
    const FEW: usize = 8;

    pub(crate) const fn new() -> Self {
        Self {
            buffers: [const { MaybeUninit::uninit() }; Self::FEW],
            used: 0,
            more: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// An object's buffer. `None` with an exception set.
    ///
    /// # Safety
    /// The interpreter is held, and the object is one.
    pub(crate) unsafe fn buffer(&mut self, object: *mut PyObject) -> Option<&RawBuffer> {
        if let Some(place) = self.buffers.get_mut(self.used) {
            // SAFETY: the place is ours, and stays while the buffer is lent.
            if unsafe { PyObject_GetBuffer(object, place.as_mut_ptr(), SIMPLE) } != 0 {
                return None;
            }
            self.used += 1;
            // SAFETY: it was filled.
            return Some(unsafe { place.assume_init_ref() });
        }
        let mut place = Box::new(MaybeUninit::<RawBuffer>::uninit());
        // SAFETY: as above.
        if unsafe { PyObject_GetBuffer(object, place.as_mut_ptr(), SIMPLE) } != 0 {
            return None;
        }
        // SAFETY: as above.
        let place = unsafe { place.assume_init() };
        self.more.push(place);
        self.more.last().map(|place| &**place)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        for place in self.buffers.iter_mut().take(self.used) {
            // SAFETY: the first ones were filled; each is given back once, with the interpreter held.
            unsafe { PyBuffer_Release(place.as_mut_ptr()) };
        }
        for place in &mut self.more {
            // SAFETY: as above.
            unsafe { PyBuffer_Release(&raw mut **place) };
        }
        for object in self.objects.drain(..) {
            // SAFETY: each was counted when it was put there.
            unsafe { ffi::Py_DECREF(object) };
        }
    }
}
