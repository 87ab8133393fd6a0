//! Between Python's objects and bits of the C calling convention. All with the interpreter's lock held, and no memory from the heap
//! where numbers are concerned.

use crate::borrowed::Borrowed;
use crate::pointer;
use crate::refused::Refused;
use crate::types::Kind;
use core::ffi::{c_char, c_int};
use pyo3::ffi::{self, Py_ssize_t, PyObject};

unsafe extern "C" {
    // of the stable ABI since 3.10, and there long before
    fn PyUnicode_AsUTF8AndSize(text: *mut PyObject, size: *mut Py_ssize_t) -> *const c_char;
}

/// The bits of an argument: integers extended to 64 bits, single precision in the lower half.
///
/// # Safety
/// The interpreter is held, and the object is one that stays for the call.
pub(crate) unsafe fn bits(
    kind: Kind,
    object: *mut PyObject,
    borrowed: &mut Borrowed,
) -> Result<u64, Refused> {
    // SAFETY: all as the caller says.
    unsafe {
        match kind {
            Kind::I32 => signed::<i32>(object),
            Kind::I64 => signed::<i64>(object),
            Kind::F64 => double(object).map(f64::to_bits),
            Kind::F32 => double(object).map(|value| u64::from((value as f32).to_bits())),
            Kind::I8 => signed::<i8>(object),
            Kind::I16 => signed::<i16>(object),
            Kind::U8 => unsigned::<u8>(object),
            Kind::U16 => unsigned::<u16>(object),
            Kind::U32 => unsigned::<u32>(object),
            Kind::U64 => unsigned::<u64>(object),
            Kind::Bool => match ffi::PyObject_IsTrue(object) {
                -1 => Err(Refused::Set),
                truth => Ok(u64::from(truth != 0)),
            },
            Kind::Pointer if is_number(object) => unsigned::<u64>(object),
            Kind::Pointer => pointer::address(object, borrowed),
            Kind::Text => text(object, borrowed),
            Kind::Void => Err(Refused::Type),
        }
    }
}

/// Whether it is an integer of Python's. What it mostly is, `int` itself, is known without asking its type.
///
/// # Safety
/// As for [`bits`].
unsafe fn is_integer(object: *mut PyObject) -> bool {
    // SAFETY: as the caller says.
    unsafe { ffi::PyLong_CheckExact(object) != 0 || ffi::PyLong_Check(object) != 0 }
}

/// Whether it is an integer, of Python's or another (numpy's), and no array, which may have one element and say that this is its index.
///
/// # Safety
/// As for [`bits`].
unsafe fn is_number(object: *mut PyObject) -> bool {
    // SAFETY: as the caller says; a type is an object.
    unsafe {
        is_integer(object)
            || ffi::PyIndex_Check(object) != 0
                && ffi::PyObject_HasAttrString(ffi::Py_TYPE(object).cast(), c"__len__".as_ptr())
                    == 0
    }
}

/// An integer of Python's: the object itself, or what `__index__` gives.
///
/// # Safety
/// As for [`bits`].
unsafe fn integer<T>(
    object: *mut PyObject,
    read: impl FnOnce(*mut PyObject) -> Result<T, Refused>,
) -> Result<T, Refused> {
    // SAFETY: as the caller says.
    unsafe {
        if is_integer(object) {
            return read(object);
        }
        if ffi::PyIndex_Check(object) == 0 {
            return Err(Refused::Type);
        }
        let index = ffi::PyNumber_Index(object);
        if index.is_null() {
            return Err(Refused::Set);
        }
        let value = read(index);
        ffi::Py_DECREF(index);
        value
    }
}

/// # Safety
/// As for [`bits`].
unsafe fn signed<T: TryFrom<i64>>(object: *mut PyObject) -> Result<u64, Refused> {
    let read = |object| {
        let mut overflow: c_int = 0;
        // SAFETY: an integer of Python's; the place is ours.
        let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow) };
        match T::try_from(value) {
            Ok(_) if overflow == 0 => Ok(value.cast_unsigned()),
            _ => Err(Refused::Range),
        }
    };
    // SAFETY: as the caller says.
    unsafe { integer(object, read) }
}

/// # Safety
/// As for [`bits`].
unsafe fn unsigned<T: TryFrom<u64>>(object: *mut PyObject) -> Result<u64, Refused> {
    let read = |object| {
        let mut overflow: c_int = 0;
        // SAFETY: as in `signed`.
        let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow) };
        let value = match overflow {
            0 => u64::try_from(value).map_err(|_| Refused::Range)?,
            1 => {
                // SAFETY: as above.
                let value = unsafe { ffi::PyLong_AsUnsignedLongLong(object) };
                // SAFETY: the interpreter is held.
                if value == u64::MAX && !unsafe { ffi::PyErr_Occurred() }.is_null() {
                    // SAFETY: as above.
                    unsafe { ffi::PyErr_Clear() };
                    return Err(Refused::Range);
                }
                value
            }
            _ => return Err(Refused::Range),
        };
        T::try_from(value).map(|_| value).map_err(|_| Refused::Range)
    };
    // SAFETY: as the caller says.
    unsafe { integer(object, read) }
}

/// # Safety
/// As for [`bits`].
unsafe fn double(object: *mut PyObject) -> Result<f64, Refused> {
    // SAFETY: as the caller says.
    let value = unsafe { ffi::PyFloat_AsDouble(object) };
    // SAFETY: the interpreter is held.
    if value == -1.0 && !unsafe { ffi::PyErr_Occurred() }.is_null() {
        // SAFETY: as above.
        if unsafe { ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) } != 0 {
            // SAFETY: as above.
            unsafe { ffi::PyErr_Clear() };
            return Err(Refused::Type);
        }
        return Err(Refused::Set);
    }
    Ok(value)
}

/// # Safety
/// As for [`bits`].
unsafe fn text(object: *mut PyObject, borrowed: &mut Borrowed) -> Result<u64, Refused> {
    // SAFETY: as the caller says; the bytes stay as long as the object.
    unsafe {
        let mut size: Py_ssize_t = 0;
        let bytes = if ffi::Py_IsNone(object) != 0 {
            return Ok(0);
        } else if ffi::PyUnicode_Check(object) != 0 {
            match PyUnicode_AsUTF8AndSize(object, &raw mut size) {
                bytes if bytes.is_null() => encoded(object, &mut size, borrowed),
                bytes => bytes,
            }
        } else if ffi::PyBytes_Check(object) != 0 {
            size = ffi::PyBytes_Size(object);
            ffi::PyBytes_AsString(object).cast_const()
        } else {
            return Err(Refused::Type);
        };
        if bytes.is_null() {
            return Err(Refused::Set);
        }
        let all =
            core::slice::from_raw_parts(bytes.cast::<u8>(), usize::try_from(size).unwrap_or(0));
        if all.contains(&0) { Err(Refused::Nul) } else { Ok(bytes.addr() as u64) }
    }
}

/// A text with bytes in it that are no UTF-8, as results have them; null with an exception set, if it has what no bytes are.
///
/// # Safety
/// As for [`bits`]; an exception is set.
unsafe fn encoded(
    text: *mut PyObject,
    size: &mut Py_ssize_t,
    borrowed: &mut Borrowed,
) -> *const c_char {
    // SAFETY: as the caller says; the new object stays for the call.
    unsafe {
        ffi::PyErr_Clear();
        let bytes =
            ffi::PyUnicode_AsEncodedString(text, c"utf-8".as_ptr(), c"surrogateescape".as_ptr());
        if bytes.is_null() {
            return core::ptr::null();
        }
        borrowed.objects.push(bytes);
        *size = ffi::PyBytes_Size(bytes);
        ffi::PyBytes_AsString(bytes).cast_const()
    }
}

/// The object that stands for a result; null with an exception set.
///
/// # Safety
/// The interpreter is held; a text is null or ends in NUL.
pub(crate) unsafe fn object(kind: Kind, bits: u64) -> *mut PyObject {
    // SAFETY: as the caller says.
    unsafe {
        match kind {
            Kind::Void => {
                let none = ffi::Py_None();
                ffi::Py_INCREF(none);
                none
            }
            Kind::Bool => ffi::PyBool_FromLong((bits & 0xff != 0).into()),
            Kind::I8 => ffi::PyLong_FromLongLong((bits as i8).into()),
            Kind::I16 => ffi::PyLong_FromLongLong((bits as i16).into()),
            Kind::I32 => ffi::PyLong_FromLongLong((bits as i32).into()),
            Kind::I64 => ffi::PyLong_FromLongLong(bits.cast_signed()),
            Kind::U8 => ffi::PyLong_FromUnsignedLongLong((bits as u8).into()),
            Kind::U16 => ffi::PyLong_FromUnsignedLongLong((bits as u16).into()),
            Kind::U32 => ffi::PyLong_FromUnsignedLongLong((bits as u32).into()),
            Kind::U64 | Kind::Pointer => ffi::PyLong_FromUnsignedLongLong(bits),
            Kind::F32 => ffi::PyFloat_FromDouble(f32::from_bits(bits as u32).into()),
            Kind::F64 => ffi::PyFloat_FromDouble(f64::from_bits(bits)),
            Kind::Text if bits == 0 => object(Kind::Void, 0),
            Kind::Text => {
                let bytes = core::ptr::with_exposed_provenance::<c_char>(bits as usize);
                let size = core::ffi::CStr::from_ptr(bytes).count_bytes();
                ffi::PyUnicode_DecodeUTF8(bytes, size as Py_ssize_t, c"surrogateescape".as_ptr())
            }
        }
    }
}
