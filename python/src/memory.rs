//! Memory of ours as Python sees it: bytes by the buffer protocol, without a copy, for as long as somebody looks.

use crate::buffer::{PyBuffer_FillInfo, RawBuffer};
use crate::interpreter;
use crate::object::refuse_new;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// What keeps the bytes.
pub(crate) type Keeper = Arc<dyn Any + Send + Sync>;

/// The object that exports a buffer. Users get a `memoryview` of it.
#[repr(C)]
struct MemoryObject {
    head: PyObject,
    bytes: *mut c_void,
    size: isize,
    is_constant: c_int,
    keeper: *mut Keeper,
}

static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// A `memoryview` of memory that `keeper` keeps.
///
/// # Safety
/// So many bytes are at `address` as long as the keeper lives, writable if they are not constant; whoever writes them, machine code
/// included, does so as with any shared memory.
pub(crate) unsafe fn view(
    py: Python<'_>,
    address: u64,
    size: u64,
    is_constant: bool,
    keeper: Keeper,
) -> PyResult<Py<PyAny>> {
    let kind = TYPE.load(Ordering::Relaxed);
    // SAFETY: the type is made when the module is, and gives objects of its size; a null pointer is no memory view.
    unsafe {
        let object = ffi::PyType_GenericAlloc(kind, 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        let memory = object.cast::<MemoryObject>();
        (&raw mut (*memory).bytes).write(core::ptr::with_exposed_provenance_mut(address as usize));
        (&raw mut (*memory).size).write(isize::try_from(size).unwrap_or(0));
        (&raw mut (*memory).is_constant).write(is_constant.into());
        (&raw mut (*memory).keeper).write(Box::into_raw(Box::new(keeper)));
        let object = Bound::from_owned_ptr(py, object);
        Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(object.as_ptr()))
            .map(Bound::unbind)
    }
}

unsafe extern "C" fn get_buffer(object: *mut PyObject, buffer: *mut c_void, flags: c_int) -> c_int {
    // SAFETY: Python calls it with an object of the type.
    unsafe {
        let memory = &*object.cast::<MemoryObject>();
        PyBuffer_FillInfo(
            buffer.cast::<RawBuffer>(),
            object,
            memory.bytes,
            memory.size,
            memory.is_constant,
            flags,
        )
    }
}

unsafe extern "C" fn deallocate(object: *mut PyObject) {
    // SAFETY: Python calls it once, when nobody has the object any more.
    unsafe {
        let kind = ffi::Py_TYPE(object);
        let keeper = (*object.cast::<MemoryObject>()).keeper;
        if !keeper.is_null() {
            interpreter::held(|_| drop(Box::from_raw(keeper)));
        }
        let free = ffi::PyType_GetSlot(kind, ffi::Py_tp_free);
        if !free.is_null() {
            core::mem::transmute::<*mut c_void, ffi::freefunc>(free)(object.cast());
        }
        ffi::Py_DECREF(kind.cast());
    }
}

/// `Py_bf_getbuffer` of `typeslots.h`: named in the stable ABI since 3.11, understood since 3.9.
const GET_BUFFER: c_int = 1;

/// Makes the type.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_new, refuse_new as *mut c_void),
        slot(ffi::Py_tp_dealloc, deallocate as *mut c_void),
        slot(GET_BUFFER, get_buffer as *mut c_void),
        slot(ffi::Py_tp_doc, c"Memory that something else keeps.".as_ptr().cast_mut().cast()),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"hoist._hoist.Memory".as_ptr().cast::<c_char>(),
        basicsize: size_of::<MemoryObject>() as c_int,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the specification is complete; Python copies what of it does not stay.
    let kind =
        unsafe { Bound::from_owned_ptr_or_err(module.py(), ffi::PyType_FromSpec(&raw mut spec))? };
    TYPE.store(kind.as_ptr().cast(), Ordering::Relaxed);
    module.add("Memory", &kind)?;
    core::mem::forget(kind);
    Ok(())
}
