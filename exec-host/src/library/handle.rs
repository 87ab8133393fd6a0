//! Libraries that the dynamic loader has loaded, and their symbols by name and version.

use crate::machine;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

/// A library that is open; closed on drop.
#[derive(Debug)]
pub(crate) struct Handle(*mut c_void);

// SAFETY: handles belong to the process, and the dynamic loader locks for itself.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// The program, the libraries it was linked to, and those that were opened for all.
    pub(crate) fn of_process() -> Option<Self> {
        Self::open(core::ptr::null(), libc::RTLD_NOW).ok()
    }

    /// Opens a library by name or path.
    ///
    /// # Errors
    /// The words of the dynamic loader.
    ///
    /// # Safety
    /// Its constructors run.
    pub(crate) unsafe fn library(name: &CStr) -> Result<Self, String> {
        Self::open(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL)
    }

    fn open(name: *const c_char, flags: c_int) -> Result<Self, String> {
        // SAFETY: a name that ends in NUL, or none.
        let handle = unsafe { libc::dlopen(name, flags) };
        if !handle.is_null() {
            return Ok(Self(handle));
        }
        // SAFETY: the words of this thread's last error, or none.
        let words = unsafe { libc::dlerror() };
        if words.is_null() {
            return Err(String::from("the dynamic loader says nothing"));
        }
        // SAFETY: they end in NUL, and stay until the next call.
        Err(unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned())
    }

    /// The address of a symbol of the library or one that it was linked to, for a thread-local variable that of this thread's; `None`
    /// if there is none, or it is 0.
    pub(crate) fn find(&self, name: &[u8], version: Option<&[u8]>) -> Option<u64> {
        let name = CString::new(name).ok()?;
        match version {
            Some(version) => self.of_version(&name, &CString::new(version).ok()?),
            // without a version the oldest is meant, which `dlsym` does not give
            None => self.of_version(&name, machine::OLDEST_VERSION).or_else(|| {
                // SAFETY: the handle is open, and the name ends in NUL.
                address(unsafe { libc::dlsym(self.0, name.as_ptr()) })
            }),
        }
    }

    fn of_version(&self, name: &CStr, version: &CStr) -> Option<u64> {
        // SAFETY: the handle is open, and the names end in NUL.
        address(unsafe { libc::dlvsym(self.0, name.as_ptr(), version.as_ptr()) })
    }
}

fn address(found: *mut c_void) -> Option<u64> {
    let address = found.expose_provenance() as u64;
    (address != 0).then_some(address)
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed once.
        unsafe { libc::dlclose(self.0) };
    }
}
