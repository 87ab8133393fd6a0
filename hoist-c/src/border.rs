//! The border: where pointers of C become references, and where panics end.
//!
//! C's side of the contract, which the header states once for all functions: a pointer is NULL or leads to what its type says, for as
//! long as the call runs (handles: until they are freed); text ends in NUL; a length counts bytes that are there.

use crate::error::{Error, Status};
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Text that ends in NUL, or NULL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    fn c_str(&self) -> Option<&CStr> {
        // SAFETY: C gives NULL, or text that ends in NUL and stays as it is during the call.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }

    /// The text, which must be there and UTF-8.
    pub(crate) fn get(&self, what: &str) -> Result<&str, Error> {
        let text = self.c_str().ok_or_else(|| Error::null(what))?;
        text.to_str().map_err(|_| Error::argument(format_args!("{what} is not UTF-8")))
    }

    /// The same of text that may be NULL.
    pub(crate) fn optional(&self, what: &str) -> Result<Option<&str>, Error> {
        self.c_str().map(|_| self.get(what)).transpose()
    }

    /// The path of a file: any bytes.
    pub(crate) fn path(&self, what: &str) -> Result<&Path, Error> {
        let text = self.c_str().ok_or_else(|| Error::null(what))?;
        Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
    }
}

/// The first of some bytes, or NULL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bytes(*const c_void);

impl Bytes {
    /// All of them. NULL stands for none, if there are none.
    ///
    /// # Safety
    /// `size` is the length that C gave with the pointer.
    pub(crate) unsafe fn get(&self, size: usize, what: &str) -> Result<&[u8], Error> {
        // SAFETY: as the caller says; bytes have no alignment.
        unsafe { elements(self.0.cast(), size, what) }
    }
}

/// The first of some numbers, or NULL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Numbers(*const usize);

impl Numbers {
    /// All of them. NULL stands for none, if there are none.
    ///
    /// # Safety
    /// As for [`Bytes::get`].
    pub(crate) unsafe fn get(&self, count: usize, what: &str) -> Result<&[usize], Error> {
        // SAFETY: as the caller says.
        unsafe { elements(self.0, count, what) }
    }
}

/// The first of some texts, or NULL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Texts(*const *const c_char);

impl Texts {
    /// All of them. NULL stands for none, if there are none.
    ///
    /// # Safety
    /// As for [`Bytes::get`].
    pub(crate) unsafe fn get(&self, count: usize, what: &str) -> Result<&[Text], Error> {
        // SAFETY: as the caller says; a text is its pointer.
        unsafe { elements(self.0.cast(), count, what) }
    }
}

/// `count` elements, the first of which is at `first`. NULL stands for none, if there are none.
///
/// # Safety
/// C gave both: unless it is NULL, so many are there, aligned, and stay as they are during the call.
pub(crate) unsafe fn elements<'a, T>(
    first: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Error> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(Error::null(what));
    }
    if count.checked_mul(size_of::<T>()).is_none_or(|size| isize::try_from(size).is_err()) {
        return Err(Error::argument(format_args!("{what} has {count} elements")));
    }
    // SAFETY: as the caller says; there are not more than a slice can have.
    Ok(unsafe { core::slice::from_raw_parts(first, count) })
}

/// Where bytes are to be written, or NULL.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct OutBuffer(*mut c_void);

impl OutBuffer {
    /// All of it, zeros at first: what C gives may never have been written to. NULL stands for no room, if none is needed.
    ///
    /// # Safety
    /// `size` is the length that C gave with the pointer; nobody else uses the bytes during the call.
    pub(crate) unsafe fn zeroed<'a>(self, size: usize, what: &str) -> Result<&'a mut [u8], Error> {
        if size == 0 {
            return Ok(&mut []);
        }
        if self.0.is_null() {
            return Err(Error::null(what));
        }
        if isize::try_from(size).is_err() {
            return Err(Error::argument(format_args!("{what} has {size} bytes")));
        }
        // SAFETY: so many bytes are there, and are ours for the call; after the first line they have values.
        Ok(unsafe {
            self.0.cast::<u8>().write_bytes(0, size);
            core::slice::from_raw_parts_mut(self.0.cast(), size)
        })
    }
}

/// Does the work of a function that can fail. A panic, which would be a fault of this library, is an error like others.
pub(crate) fn fallible(
    error: Option<&mut MaybeUninit<*mut Error>>,
    work: impl FnOnce() -> Result<(), Error>,
) -> Status {
    let failed = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome.err(),
        Err(panic) => Some(Error::of_panic(&*panic)),
    };
    let status = failed.as_ref().map_or(Status::Ok, Error::status);
    if let Some(error) = error {
        error.write(failed.map_or(core::ptr::null_mut(), |failed| Box::into_raw(Box::new(failed))));
    }
    status
}

/// Does the work of a function that cannot fail.
pub(crate) fn infallible<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// A handle that C sees changed by the call. Here it is one that several may use: what changes is behind a lock ([`alone`]), or atomic.
pub(crate) fn changed<'a, T: Sync>(pointer: Option<NonNull<T>>) -> Option<&'a T> {
    // SAFETY: C gives NULL or a handle, which is freed when no call uses it.
    pointer.map(|pointer| unsafe { pointer.as_ref() })
}

/// A handle that must be there.
pub(crate) fn handle<'a, T>(pointer: Option<&'a T>, what: &str) -> Result<&'a T, Error> {
    pointer.ok_or_else(|| Error::null(what))
}

/// The place of a result. It holds nothing (0, NULL) until it is written. Where a function has several, all are empty before one of them is
/// found to be missing.
pub(crate) fn empty<T: Default>(place: Option<&mut MaybeUninit<T>>) -> Option<&mut T> {
    place.map(|place| place.write(T::default()))
}

/// The place of a result that must be there.
pub(crate) fn place<'a, T: Default>(
    place: Option<&'a mut MaybeUninit<T>>,
    what: &str,
) -> Result<&'a mut T, Error> {
    empty(place).ok_or_else(|| Error::null(what))
}

/// One that was emptied and must be there.
pub(crate) fn needed<'a, T>(place: Option<&'a mut T>, what: &str) -> Result<&'a mut T, Error> {
    place.ok_or_else(|| Error::null(what))
}

/// Makes a handle.
pub(crate) fn give<T>(place: &mut *mut T, value: T) {
    *place = Box::into_raw(Box::new(value));
}

/// What a handle has for one user at a time.
pub(crate) fn alone<'a, T>(inside: &'a Mutex<T>, what: &str) -> Result<MutexGuard<'a, T>, Error> {
    match inside.try_lock() {
        Ok(guard) => Ok(guard),
        // nothing is left half done by a panic: values are replaced as a whole
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            Err(Error::new(Status::Busy, format_args!("{what}: another call uses it")))
        }
    }
}

/// Rows for C, whose pointers lead to what their handle owns.
pub(crate) struct Rows<T>(pub(crate) Vec<T>);

// SAFETY: what the pointers lead to is not changed as long as the handle is there, and nothing is written through them here.
unsafe impl<T> Send for Rows<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Rows<T> {}

/// The row of a table, by its number.
pub(crate) fn row<'a, T>(rows: &'a [T], index: usize, what: &str) -> Result<&'a T, Error> {
    rows.get(index).ok_or_else(|| Error::out_of_range(what, index, rows.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_errors() {
        let mut place = MaybeUninit::uninit();
        assert_eq!(fallible(Some(&mut place), || panic!("on purpose")), Status::Internal);
        // SAFETY: it was written.
        let error = unsafe { place.assume_init() };
        assert!(!error.is_null());
        // SAFETY: it was made of a box, and is nobody else's.
        let error = unsafe { Box::from_raw(error) };
        assert_eq!(error.0.message.as_c_str(), c"a fault of this library: on purpose");
        assert_eq!(fallible(None, || panic!("{}", 1)), Status::Internal);
        assert_eq!(infallible(3, || panic!("on purpose")), 3);
    }

    #[test]
    fn lengths_are_looked_at_before_bytes() {
        let none = Bytes(core::ptr::null());
        let some = Bytes(core::ptr::dangling());
        // SAFETY: nothing is read where an error or nothing is expected.
        unsafe {
            assert_eq!(none.get(0, "data").unwrap(), b"");
            assert_eq!(none.get(1, "data").unwrap_err().status(), Status::InvalidArgument);
            assert_eq!(some.get(usize::MAX, "data").unwrap_err().status(), Status::InvalidArgument);
            let out = OutBuffer(core::ptr::dangling_mut());
            assert_eq!(
                out.zeroed(usize::MAX, "data").unwrap_err().status(),
                Status::InvalidArgument
            );
            let out = OutBuffer(core::ptr::null_mut());
            assert_eq!(out.zeroed(0, "data").unwrap(), b"");
            assert_eq!(out.zeroed(1, "data").unwrap_err().status(), Status::InvalidArgument);
            let numbers = Numbers(core::ptr::dangling());
            assert_eq!(
                numbers.get(usize::MAX / 8, "data").unwrap_err().status(),
                Status::InvalidArgument
            );
        }
    }

    #[test]
    fn one_at_a_time() {
        let inside = Mutex::new(1);
        let first = alone(&inside, "list").unwrap();
        assert_eq!(alone(&inside, "list").unwrap_err().status(), Status::Busy);
        drop(first);
        assert!(alone(&inside, "list").is_ok());
    }
}
