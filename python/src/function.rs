//! `hoist.Function`: an address with a signature. Its type is made by hand, because a call by `vectorcall` is a third of one by
//! `tp_call`, and classes of PyO3 have the latter.

use crate::call;
use crate::interpreter;
use crate::liveness::Liveness;
use crate::object::{FunctionObject, Inner, TYPE};
use crate::signature::{MOST, Signature};
use crate::types::{Kind, Type};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::offset_of;
use core::ptr::{self, null_mut};
use core::sync::atomic::Ordering;
use pyo3::exceptions::PyValueError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::sync::Arc;

/// Makes a function of an address.
#[expect(clippy::too_many_arguments, reason = "called by name from Python")]
pub(crate) fn make(
    py: Python<'_>,
    address: u64,
    name: &str,
    arguments: &Bound<'_, PyTuple>,
    result: Type,
    gives_up_lock: bool,
    liveness: Arc<Liveness>,
    owner: Py<PyAny>,
) -> PyResult<Py<PyAny>> {
    let kinds: Vec<Kind> =
        arguments.iter().map(|one| Ok(one.cast::<Type>()?.get().0)).collect::<PyResult<_>>()?;
    let Some(signature) = Signature::new(&kinds, result.0) else {
        return Err(PyValueError::new_err(format!(
            "{name}: at most {MOST} arguments, none of them void"
        )));
    };
    let inner = Box::new(Inner {
        address: address as usize,
        signature,
        liveness,
        gives_up_lock,
        name: PyString::new(py, name).unbind(),
        arguments: arguments.clone().unbind(),
        result: Bound::new(py, result)?.into_any().unbind(),
        owner,
    });
    let kind = TYPE.load(Ordering::Relaxed);
    // SAFETY: the type is made when the module is, and gives objects of its size.
    unsafe {
        let object = ffi::PyType_GenericAlloc(kind, 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        let function = object.cast::<FunctionObject>();
        (&raw mut (*function).vectorcall).write(call::vectorcall);
        (&raw mut (*function).inner).write(Box::into_raw(inner));
        Ok(Bound::from_owned_ptr(py, object).unbind())
    }
}

/// Calls of a bare address: `hoist.function`.
#[pyfunction]
#[pyo3(signature = (address, name, args, ret, gives_up_lock, owner))]
fn function(
    py: Python<'_>,
    address: u64,
    name: &str,
    args: &Bound<'_, PyTuple>,
    ret: Type,
    gives_up_lock: bool,
    owner: Py<PyAny>,
) -> PyResult<Py<PyAny>> {
    make(py, address, name, args, ret, gives_up_lock, Arc::default(), owner)
}

unsafe extern "C" fn deallocate(object: *mut PyObject) {
    // SAFETY: Python calls it once, when nobody has the object any more; what was put there is taken away.
    unsafe {
        let kind = ffi::Py_TYPE(object);
        ffi::PyObject_GC_UnTrack(object.cast());
        if !(*object.cast::<FunctionObject>()).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        let inner = (*object.cast::<FunctionObject>()).inner;
        if !inner.is_null() {
            let Inner { name, arguments, result, owner, .. } = *Box::from_raw(inner);
            for counted in
                [name.into_ptr(), arguments.into_ptr(), result.into_ptr(), owner.into_ptr()]
            {
                ffi::Py_DECREF(counted);
            }
        }
        let free = ffi::PyType_GetSlot(kind, ffi::Py_tp_free);
        if !free.is_null() {
            core::mem::transmute::<*mut c_void, ffi::freefunc>(free)(object.cast());
        }
        ffi::Py_DECREF(kind.cast());
    }
}

/// Shows the collector of garbage what a function keeps. Who has it in a cycle can be changed, and breaks it.
unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: ffi::visitproc,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: Python calls it with an object of the type, which may have nothing behind it yet, and what it gives to `visit`.
    unsafe {
        let kind = ffi::Py_TYPE(object);
        let visited = visit(kind.cast(), argument);
        match (*object.cast::<FunctionObject>()).inner.as_ref() {
            Some(inner) if visited == 0 => visit(inner.owner.as_ptr(), argument),
            _ => visited,
        }
    }
}

unsafe extern "C" fn representation(object: *mut PyObject) -> *mut PyObject {
    let shown = |py: Python<'_>| {
        // SAFETY: Python calls it with an object of the type.
        let inner = unsafe { &*object.cast::<FunctionObject>() }.inner();
        let arguments: Vec<&str> =
            inner.signature.parameters.iter().map(|one| one.kind.name()).collect();
        let (name, result) = (inner.name.bind(py), inner.signature.result.name());
        let gone = if inner.liveness.is_alive() { "" } else { ", unloaded" };
        let text = format!(
            "<hoist.Function {name}({}) -> {result} at {:#x}{gone}>",
            arguments.join(", "),
            inner.address
        );
        PyString::new(py, &text).into_any().into_ptr()
    };
    // SAFETY: Python calls it, and holds the interpreter.
    unsafe { interpreter::held(shown) }
}

/// Attributes that Python reads: which one is told by the last argument.
unsafe extern "C" fn attribute(object: *mut PyObject, which: *mut c_void) -> *mut PyObject {
    let read = |py: Python<'_>| {
        // SAFETY: Python calls it with an object of the type.
        let inner = unsafe { &*object.cast::<FunctionObject>() }.inner();
        match which.addr() {
            0 => inner.name.clone_ref(py).into_any().into_ptr(),
            1 => inner.arguments.clone_ref(py).into_any().into_ptr(),
            2 => inner.result.clone_ref(py).into_ptr(),
            3 => inner.owner.clone_ref(py).into_ptr(),
            // SAFETY: the interpreter is held.
            _ => unsafe { ffi::PyLong_FromUnsignedLongLong(inner.address as u64) },
        }
    };
    // SAFETY: Python calls it, and holds the interpreter.
    unsafe { interpreter::held(read) }
}

const DOC: &CStr = c"A function in memory with its signature: what `Module.fn`, `Library.fn` and `hoist.function` give.

Calling it converts and checks arguments, calls the machine code, and converts its result. The global lock is given up
meanwhile, unless the function was asked for with `nogil=False`. An exception that a callback raises comes out of the call.";

/// Makes the type, and adds it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    const fn member(name: &'static CStr, type_code: c_int, offset: usize) -> ffi::PyMemberDef {
        ffi::PyMemberDef {
            name: name.as_ptr(),
            type_code,
            offset: offset as isize,
            flags: ffi::Py_READONLY,
            doc: ptr::null(),
        }
    }
    const fn getter(name: &'static CStr, which: usize, doc: &'static CStr) -> ffi::PyGetSetDef {
        ffi::PyGetSetDef {
            name: name.as_ptr(),
            get: Some(attribute),
            set: None,
            doc: doc.as_ptr(),
            closure: ptr::without_provenance_mut(which),
        }
    }
    let members = [
        member(c"__vectorcalloffset__", ffi::Py_T_PYSSIZET, offset_of!(FunctionObject, vectorcall)),
        member(c"__weaklistoffset__", ffi::Py_T_PYSSIZET, offset_of!(FunctionObject, weak)),
        ffi::PyMemberDef::default(),
    ];
    let attributes = [
        getter(c"__name__", 0, c"The function's name."),
        getter(c"name", 0, c"The function's name."),
        getter(c"args", 1, c"The types of its arguments."),
        getter(c"ret", 2, c"The type of its result."),
        getter(c"owner", 3, c"What has the code, and stays as long as this."),
        getter(c"address", 4, c"Its address."),
        ffi::PyGetSetDef::default(),
    ];
    // Python keeps pointers to both as long as the type, which is for ever
    let members: &'static _ = Box::leak(Box::new(members));
    let attributes: &'static _ = Box::leak(Box::new(attributes));
    let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_new, crate::object::refuse_new as *mut c_void),
        slot(ffi::Py_tp_dealloc, deallocate as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse as *mut c_void),
        slot(ffi::Py_tp_call, call::tuple_call as *mut c_void),
        slot(ffi::Py_tp_repr, representation as *mut c_void),
        slot(ffi::Py_tp_members, (&raw const *members).cast_mut().cast()),
        slot(ffi::Py_tp_getset, (&raw const *attributes).cast_mut().cast()),
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"hoist.Function".as_ptr().cast::<c_char>(),
        basicsize: size_of::<FunctionObject>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC | HAVE_VECTORCALL) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the specification is complete; Python copies what of it does not stay.
    let kind =
        unsafe { Bound::from_owned_ptr_or_err(module.py(), ffi::PyType_FromSpec(&raw mut spec))? };
    TYPE.store(kind.as_ptr().cast(), Ordering::Relaxed);
    module.add("Function", &kind)?;
    // as long as the process
    core::mem::forget(kind);
    module.add_function(wrap_pyfunction!(function, module)?)
}

/// `Py_TPFLAGS_HAVE_VECTORCALL`: named in the stable ABI since 3.12, the same bit since 3.8.
const HAVE_VECTORCALL: core::ffi::c_ulong = 1 << 11;
