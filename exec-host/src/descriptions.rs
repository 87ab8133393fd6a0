//! What the dynamic loader says of each library that it has loaded (`dl_iterate_phdr`).

use crate::word::{ProgramHeader, wide};
use core::ffi::{CStr, c_int, c_void};
use core::ops::{ControlFlow, Range};
use exec_core::sync::OnceLock;

/// A library, as long as it is shown.
pub(crate) struct Description<'d>(&'d libc::dl_phdr_info);

impl<'d> Description<'d> {
    /// What is added to addresses of its file.
    pub(crate) fn bias(&self) -> u64 {
        wide(self.0.dlpi_addr)
    }

    /// The path of its file; empty for the program itself.
    pub(crate) fn path(&self) -> &'d CStr {
        if self.0.dlpi_name.is_null() {
            return c"";
        }
        // SAFETY: the name ends in NUL, and lives as long as the library, which is there while it is shown.
        unsafe { CStr::from_ptr(self.0.dlpi_name) }
    }

    /// Its program headers.
    pub(crate) fn headers(&self) -> &'d [ProgramHeader] {
        if self.0.dlpi_phdr.is_null() {
            return &[];
        }
        // SAFETY: the description has so many program headers, which live as long as the library.
        unsafe { core::slice::from_raw_parts(self.0.dlpi_phdr, self.0.dlpi_phnum.into()) }
    }

    /// The addresses that a program header speaks of.
    pub(crate) fn range(&self, header: &ProgramHeader) -> Range<u64> {
        let start = self.bias().wrapping_add(wide(header.p_vaddr));
        start..start.wrapping_add(wide(header.p_memsz))
    }

    /// The first program header of a type.
    pub(crate) fn header(&self, r#type: u32) -> Option<&'d ProgramHeader> {
        self.headers().iter().find(|header| header.p_type == r#type)
    }

    /// The addresses from its first byte to its last segment's end.
    pub(crate) fn extent(&self) -> Range<u64> {
        let loaded = self.headers().iter().filter(|header| header.p_type == libc::PT_LOAD);
        let ranges = loaded.map(|header| self.range(header));
        let all = ranges.reduce(|one, next| one.start.min(next.start)..one.end.max(next.end));
        all.unwrap_or(self.bias()..self.bias())
    }

    /// Whether an address is in one of its segments.
    pub(crate) fn holds(&self, address: u64) -> bool {
        let mut loaded = self.headers().iter().filter(|header| header.p_type == libc::PT_LOAD);
        loaded.any(|header| self.range(header).contains(&address))
    }

    /// How many libraries came and went so far.
    pub(crate) const fn changes(&self) -> (u64, u64) {
        (self.0.dlpi_adds, self.0.dlpi_subs)
    }

    /// The number of its block of thread-local variables, 0 if it has none.
    pub(crate) const fn module(&self) -> u64 {
        self.0.dlpi_tls_modid as u64
    }

    /// Where this thread has its copy of that block, if it has one by now.
    pub(crate) fn variables(&self) -> Option<u64> {
        let address = self.0.dlpi_tls_data.addr() as u64;
        (address != 0).then_some(address)
    }
}

/// Shows each library, the program first, until `look` has seen enough. It cannot open or close libraries: the loader's list is locked.
pub(crate) fn each<F: FnMut(&Description<'_>) -> ControlFlow<()>>(mut look: F) {
    unsafe extern "C" fn show<F: FnMut(&Description<'_>) -> ControlFlow<()>>(
        info: *mut libc::dl_phdr_info,
        size: usize,
        look: *mut c_void,
    ) -> c_int {
        if size < size_of::<libc::dl_phdr_info>() {
            return 0;
        }
        // SAFETY: `dl_iterate_phdr` gives a valid description of this size, and back what `each` gave it.
        let (info, look) = unsafe { (&*info, &mut *look.cast::<F>()) };
        c_int::from(look(&Description(info)).is_break())
    }
    // the dynamic loader's lock for this stays in a child as it was
    let _held = exec_core::sync::hold();
    // SAFETY: the callback has the type asked for, and what it is given outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(show::<F>), (&raw mut look).cast()) };
}

/// Whether this code is in a program that was linked statically, and so has no dynamic loader. That of glibc opens libraries nevertheless: with a
/// second C library, whose memory, streams and threads are not the program's.
pub(crate) fn is_linked_statically() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        let here = is_linked_statically as *const () as u64;
        let mut is = false;
        each(|program| {
            is = program.holds(here) && program.header(libc::PT_INTERP).is_none();
            ControlFlow::Break(())
        });
        is
    })
}

/// Why such a program is refused libraries.
pub(crate) const LINKED_STATICALLY: &str = "this program is linked statically, and has no dynamic loader: a library would bring a second C library";

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn the_program_comes_first_and_has_this_function() {
        let here = the_program_comes_first_and_has_this_function as *const () as u64;
        let mut number = 0;
        each(|library| {
            number += 1;
            assert!(library.holds(here) && !library.holds(8), "{:?}", library.path());
            ControlFlow::Break(())
        });
        assert_eq!(number, 1, "it has seen enough");
        let mut paths = Vec::new();
        each(|library| {
            paths.push(library.path().to_owned());
            ControlFlow::Continue(())
        });
        assert!(paths.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{paths:?}");
    }
}
