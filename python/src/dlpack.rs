//! DLPack: memory of other packages' tensors, which may have no buffer of Python's.

use crate::refused::Refused;
use core::ffi::c_void;
use pyo3::ffi;
use pyo3::prelude::*;

/// Memory of the processor that an object has.
pub(crate) struct Tensor<'py> {
    /// Where its elements begin.
    pub(crate) address: u64,
    /// How many bytes they are.
    pub(crate) size: usize,
    /// Keeps them.
    pub(crate) capsule: Bound<'py, PyAny>,
}

impl<'py> Tensor<'py> {
    /// Of an object that has `__dlpack__`; `None` if it has not.
    ///
    /// # Errors
    /// [`Refused::Memory`] of other devices, and if elements are not in one piece; [`Refused::Set`] with what the object raises.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> Result<Option<Self>, Refused> {
        let py = object.py();
        let refuse = |error: PyErr| {
            error.restore(py);
            Refused::Set
        };
        let Some(device) = object.getattr_opt("__dlpack_device__").map_err(refuse)? else {
            return Ok(None);
        };
        let (device, _): (i64, i64) =
            device.call0().and_then(|pair| pair.extract()).map_err(refuse)?;
        if device != CPU {
            return Err(Refused::Memory);
        }
        let capsule = object.call_method0("__dlpack__").map_err(refuse)?;
        // SAFETY: the capsule's pointer has this name, or the exception is set.
        let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dltensor".as_ptr()) };
        if tensor.is_null() {
            return Err(Refused::Set);
        }
        // SAFETY: a `DLManagedTensor` begins with a `DLTensor`, which is valid as long as the capsule.
        let found = unsafe { &*tensor.cast::<Raw>() }.bytes();
        let (address, size) = found.ok_or(Refused::Memory)?;
        Ok(Some(Self { address, size, capsule }))
    }
}

/// `kDLCPU`.
const CPU: i64 = 1;

/// `DLTensor` of `dlpack.h`.
#[repr(C)]
struct Raw {
    data: *mut c_void,
    device: [i32; 2],
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

impl Raw {
    /// Where its elements are and how many bytes, if they are in one piece, the last dimension the fastest.
    fn bytes(&self) -> Option<(u64, usize)> {
        let dimensions = usize::try_from(self.dimensions).ok()?;
        let (mut shape, mut strides): (&[i64], Option<&[i64]>) = (&[], None);
        if dimensions > 0 {
            // SAFETY: so many numbers are at each, as `dlpack.h` says; strides may be missing.
            unsafe {
                shape = core::slice::from_raw_parts(self.shape, dimensions);
                if !self.strides.is_null() {
                    strides = Some(core::slice::from_raw_parts(self.strides, dimensions));
                }
            }
        }
        let mut count = 1_usize;
        for (index, &size) in shape.iter().enumerate().rev() {
            let stride = strides.and_then(|strides| strides.get(index));
            if size > 1 && stride.is_some_and(|&stride| usize::try_from(stride) != Ok(count)) {
                return None;
            }
            count = count.checked_mul(usize::try_from(size).ok()?)?;
        }
        let bits = usize::from(self.bits).checked_mul(self.lanes.into())?.checked_mul(count)?;
        let size = bits.is_multiple_of(8).then_some(bits / 8)?;
        Some(((self.data.addr() as u64).wrapping_add(self.offset), size))
    }
}
