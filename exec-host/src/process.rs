//! Symbols of this process and of libraries.

use crate::error::Error;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use elf_core::Name;
use elf_layout::External;
use libloading::os::unix::Library;
use std::path::Path;

/// What the process itself offers (libc and whatever else is loaded; libm, where it is a library of its own), and libraries
/// opened for this purpose.
///
/// Libraries stay open as long as this lives, which must be longer than the code that uses them.
#[derive(Debug)]
pub struct Process {
    libraries: Vec<Library>,
    code: Vec<Range<u64>>,
}

/// Programs that are not written in C may come without it.
const LIBM: &str = "libm.so.6";

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

impl Process {
    /// The symbols of the process.
    #[must_use]
    pub fn new() -> Self {
        let mut libraries = vec![Library::this()];
        // SAFETY: the mathematical library has no constructors that do anything.
        libraries.extend(unsafe { Library::new(LIBM) });
        Self { libraries, code: Vec::new() }
    }

    /// Opens a library as `dlopen` does: a path if the name has a slash, else a name to search for. What was opened first is
    /// asked first.
    ///
    /// # Errors
    /// [`Error::Library`] with the words of the dynamic loader.
    ///
    /// # Safety
    /// The library's constructors run.
    pub unsafe fn open(&mut self, library: impl AsRef<Path>) -> Result<(), Error> {
        // SAFETY: the caller vouches for the library.
        let library = unsafe { Library::new(library.as_ref()) }.map_err(Error::Library)?;
        self.libraries.push(library);
        self.code.clear();
        Ok(())
    }

    /// The symbol of this name.
    pub fn find(&mut self, name: Name<'_>) -> Option<External> {
        let address = self.libraries.iter().find_map(|library| {
            // SAFETY: only the address is taken, as a pointer to nothing in particular.
            let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes()) }.ok()?;
            Some(symbol.as_raw_ptr().expose_provenance() as u64).filter(|&address| address != 0)
        })?;
        Some(External { address, function: self.is_code(address) })
    }

    /// Whether `address` is in an executable segment of what is loaded.
    fn is_code(&mut self, address: u64) -> bool {
        if self.code.is_empty() {
            self.code = code_ranges();
        }
        self.code.iter().any(|range| range.contains(&address))
    }
}

/// The executable segments of everything that the dynamic loader has loaded.
fn code_ranges() -> Vec<Range<u64>> {
    unsafe extern "C" fn collect(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        ranges: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` gives a valid description, and back what `code_ranges` gave it.
        let (info, ranges) = unsafe { (&*info, &mut *ranges.cast::<Vec<Range<u64>>>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the description holds so many program headers.
        let headers =
            unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        for header in headers {
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
                let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
                ranges.push(start..start.wrapping_add(header.p_memsz));
            }
        }
        0
    }
    let mut ranges = Vec::<Range<u64>>::new();
    // SAFETY: the callback has the type asked for and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut ranges).cast()) };
    ranges
}
