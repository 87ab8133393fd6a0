//! Functions of Python's that machine code can call.

use crate::borrowed::Borrowed;
use crate::call;
use crate::convert;
use crate::interpreter;
use crate::signature::{MOST, Signature};
use crate::types::{Kind, Type};
use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use libffi::low::ffi_cif;
use libffi::middle::Closure;
use pyo3::exceptions::PyValueError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::PyTuple;

/// What a closure leads to.
struct Target {
    callable: Py<PyAny>,
    arguments: Box<[Kind]>,
    result: Kind,
    /// Calls that are not over, and the callback itself. A function may give up the last reference to its own callback.
    users: AtomicUsize,
    /// The closure of a callback that is gone while calls are not over: it is put there by the callback, and taken by the last call.
    left: Cell<Option<Closure<'static>>>,
}

impl Target {
    /// Whether no one else uses it any more.
    fn leave(&self) -> bool {
        self.users.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// What closures are given: it stays as long as they do, and is nothing of Python's.
struct Place(*mut Target);

/// A closure whose callback was gone when its last call ended.
struct Ended {
    closure: Option<Closure<'static>>,
    place: *mut Place,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.closure = None;
        // SAFETY: made by `Box::into_raw`, and the closure that led to it is gone.
        drop(unsafe { Box::from_raw(self.place) });
    }
}

std::thread_local! {
    /// Those of this thread: libffi may look into one until the call has come back.
    static ENDED: RefCell<Vec<Ended>> = const { RefCell::new(Vec::new()) };
}

/// Puts away those of this thread, none of which is called any more.
fn forget_ended() {
    // a thread that ends has done so
    let _ = ENDED.try_with(RefCell::take);
}

/// A function of Python's with an address that machine code can call, from any thread.
///
/// It must stay as long as somebody may call it. A module keeps those that it was loaded with.
///
/// If it raises, the caller gets 0, and so it does from all callbacks until the call of machine code that led there is over, which
/// then raises. Where machine code was not called from here (a thread of its own), `sys.unraisablehook` is told.
#[pyclass(frozen, weakref, module = "hoist")]
pub(crate) struct Callback {
    closure: Option<Closure<'static>>,
    /// What the closure leads to; both go after the closure.
    place: *mut Place,
    target: *mut Target,
}

// SAFETY: neither is changed; what Python owns is used with the interpreter held.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    fn target(&self) -> &Target {
        // SAFETY: it was made with one, which goes with it.
        unsafe { &*self.target }
    }

    /// Where it is.
    pub(crate) fn at(&self) -> u64 {
        self.closure.as_ref().map_or(0, |closure| *closure.code_ptr() as usize as u64)
    }
}

#[pymethods]
impl Callback {
    #[new]
    #[pyo3(signature = (callable, args, ret))]
    fn new(callable: Bound<'_, PyAny>, args: &Bound<'_, PyTuple>, ret: Type) -> PyResult<Self> {
        let arguments: Box<[Kind]> =
            args.iter().map(|one| Ok(one.cast::<Type>()?.get().0)).collect::<PyResult<_>>()?;
        if arguments.len() > MOST || arguments.contains(&Kind::Void) {
            return Err(PyValueError::new_err(format!(
                "at most {MOST} arguments, none of them void"
            )));
        }
        if ret.0 == Kind::Text {
            return Err(PyValueError::new_err(
                "a callback cannot return hoist.cstr: nobody would keep the text; return a hoist.ptr",
            ));
        }
        let cif = Signature::cif(&arguments, ret.0);
        forget_ended();
        let target = Box::into_raw(Box::new(Target {
            callable: callable.unbind(),
            arguments,
            result: ret.0,
            users: AtomicUsize::new(1),
            left: Cell::new(None),
        }));
        let place = Box::into_raw(Box::new(Place(target)));
        // SAFETY: it stays until after the closure.
        let closure = Closure::try_new(cif, called, unsafe { &*place });
        let new = Self { closure: closure.ok(), place, target };
        if new.closure.is_none() {
            return Err(pyo3::exceptions::PyMemoryError::new_err(
                "no memory for a callback's code",
            ));
        }
        Ok(new)
    }

    /// Its address.
    #[getter]
    fn address(&self) -> u64 {
        self.at()
    }

    #[getter]
    fn __hoist_address__(&self) -> u64 {
        self.at()
    }

    /// The function of Python's.
    #[getter]
    fn callable(&self, py: Python<'_>) -> Py<PyAny> {
        self.target().callable.clone_ref(py)
    }

    /// Calls the function of Python's, as if there were no machine code.
    #[pyo3(signature = (*args))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.target().callable.bind(py).call1(args)
    }

    /// Who has it in a cycle can be changed, and breaks it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.target().callable)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let target = self.target();
        let arguments: Vec<&str> = target.arguments.iter().map(|kind| kind.name()).collect();
        let callable = target.callable.bind(py).repr()?;
        Ok(format!(
            "<hoist.Callback {callable} ({}) -> {} at {:#x}>",
            arguments.join(", "),
            target.result.name(),
            self.at()
        ))
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // the last of the calls puts all away, if there are any
        let closure = self.closure.take();
        self.target().left.set(closure);
        if !self.target().leave() {
            return;
        }
        drop(self.target().left.take());
        // SAFETY: made by `Box::into_raw`, and nothing leads to either any more.
        drop(unsafe { (Box::from_raw(self.place), Box::from_raw(self.target)) });
    }
}

/// What closures run.
unsafe extern "C" fn called(
    _: &ffi_cif,
    result: &mut u64,
    arguments: *const *const c_void,
    place: &Place,
) {
    *result = 0;
    let place = core::ptr::from_ref(place);
    // SAFETY: any thread may take the interpreter; it is given back below. The target stays until its last call ends.
    unsafe {
        let state = ffi::PyGILState_Ensure();
        forget_ended();
        let at = (*place).0;
        let target = &*at;
        target.users.fetch_add(1, Ordering::Relaxed);
        // one exception at a time
        if ffi::PyErr_Occurred().is_null() {
            call::outside(|depth| match run(arguments, target) {
                Some(bits) => *result = bits,
                None if depth > 0 => {}
                None => ffi::PyErr_WriteUnraisable(target.callable.as_ptr()),
            });
        }
        if target.leave()
            && let Some(closure) = target.left.take()
        {
            let ended = Ended { closure: Some(closure), place: place.cast_mut() };
            let mut ended = Some(ended);
            let kept = ENDED.try_with(|all| all.borrow_mut().extend(ended.take()));
            // the thread ends, and cannot put it away later
            kept.is_err().then(|| core::mem::forget(ended));
            interpreter::held(|_| drop(Box::from_raw(at)));
        }
        ffi::PyGILState_Release(state);
    }
}

/// The bits of what the function returns; `None` with an exception set.
///
/// # Safety
/// The interpreter is held; there is a pointer to each argument.
unsafe fn run(arguments: *const *const c_void, target: &Target) -> Option<u64> {
    // SAFETY: as the caller says; references are counted as the functions' documentation has it.
    unsafe {
        let tuple = ffi::PyTuple_New(target.arguments.len() as isize);
        if tuple.is_null() {
            return None;
        }
        for (index, &kind) in target.arguments.iter().enumerate() {
            let argument = object(kind, *arguments.add(index));
            if argument.is_null() || ffi::PyTuple_SetItem(tuple, index as isize, argument) != 0 {
                ffi::Py_DECREF(tuple);
                return None;
            }
        }
        let value = ffi::PyObject_Call(target.callable.as_ptr(), tuple, core::ptr::null_mut());
        ffi::Py_DECREF(tuple);
        if value.is_null() {
            return None;
        }
        let bits = bits(target, value);
        ffi::Py_DECREF(value);
        bits
    }
}

/// # Safety
/// The interpreter is held; an argument of this kind is at `place`.
unsafe fn object(kind: Kind, place: *const c_void) -> *mut PyObject {
    // SAFETY: as the caller says: no more bytes are read than there are.
    unsafe {
        let bits = match kind {
            Kind::Void => 0,
            Kind::Bool | Kind::I8 | Kind::U8 => place.cast::<u8>().read().into(),
            Kind::I16 | Kind::U16 => place.cast::<u16>().read().into(),
            Kind::I32 | Kind::U32 | Kind::F32 => place.cast::<u32>().read().into(),
            Kind::I64 | Kind::U64 | Kind::F64 | Kind::Pointer | Kind::Text => {
                place.cast::<u64>().read()
            }
        };
        convert::object(kind, bits)
    }
}

/// # Safety
/// The interpreter is held, and `value` is an object.
unsafe fn bits(target: &Target, value: *mut PyObject) -> Option<u64> {
    if target.result == Kind::Void {
        return Some(0);
    }
    let mut borrowed = Borrowed::new();
    // SAFETY: as the caller says.
    match unsafe { convert::bits(target.result, value, &mut borrowed) } {
        Ok(bits) => Some(bits),
        Err(refused) => {
            let raise = |py: Python<'_>| {
                // SAFETY: as the caller says.
                let value = unsafe { Bound::from_borrowed_ptr(py, value) };
                refused.error(py, "result of a callback", target.result, &value).restore(py);
            };
            // SAFETY: as the caller says.
            unsafe { interpreter::held(raise) };
            None
        }
    }
}
