//! What the dynamic loader keeps of a library, and the library's dynamic section in memory.

use crate::c_library;
use crate::descriptions::Description;
use core::ffi::{CStr, c_char, c_void};
use elf_core::names::{DT_AUXILIARY, DT_FILTER, DT_NEEDED, DT_NULL, DT_SONAME, DT_STRTAB};

/// The beginning of a `struct link_map` (<link.h>).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkMap {
    /// What is added to addresses of its file.
    bias: usize,
    name: *const c_char,
    /// Null if the library has no dynamic section.
    dynamic: *const [usize; 2],
}

impl LinkMap {
    /// That of a library.
    ///
    /// # Safety
    /// The handle is open, and stays so as long as the result is used.
    pub(crate) unsafe fn of(handle: *mut c_void) -> Option<Self> {
        // SAFETY: the handle is open.
        let map = unsafe { c_library::dlinfo_link_map(handle) }.cast::<Self>();
        // SAFETY: the link map lives as long as the library is open.
        (!map.is_null()).then(|| unsafe { map.read() })
    }

    /// The same of a library that is shown.
    ///
    /// # Safety
    /// The result is used only while the library is shown.
    pub(super) unsafe fn of_shown(library: &Description<'_>) -> Self {
        let dynamic = library.header(libc::PT_DYNAMIC).map(|header| library.range(header).start);
        let dynamic = dynamic.unwrap_or_default() as usize;
        Self {
            bias: library.bias() as usize,
            name: library.path().as_ptr(),
            dynamic: core::ptr::with_exposed_provenance(dynamic),
        }
    }

    /// What is added to addresses of its file.
    pub(crate) const fn bias(&self) -> u64 {
        self.bias as u64
    }

    /// What it was opened as.
    pub(super) fn name(&self) -> Option<&CStr> {
        // SAFETY: the name ends in NUL, and lives as long as the library.
        (!self.name.is_null()).then(|| unsafe { CStr::from_ptr(self.name) })
    }

    /// Where its dynamic section is.
    pub(super) fn dynamic(&self) -> Option<u64> {
        (!self.dynamic.is_null()).then(|| self.dynamic.addr() as u64)
    }

    /// Gives `f` each entry of the dynamic section: tag and value.
    fn each(&self, mut f: impl FnMut(u64, u64)) {
        if self.dynamic.is_null() {
            return;
        }
        let mut entry = self.dynamic;
        loop {
            // SAFETY: the entries of a loaded library are there up to the one that ends them.
            let [tag, value] = unsafe { entry.read() }.map(|word| word as u64);
            if tag == DT_NULL {
                return;
            }
            f(tag, value);
            entry = entry.wrapping_add(1);
        }
    }

    /// The addresses that entries with these tags say.
    pub(super) fn values<const N: usize>(&self, tags: [u64; N]) -> [Option<u64>; N] {
        let mut found = [None; N];
        self.each(|tag, value| {
            for (wanted, place) in tags.iter().zip(&mut found) {
                if *wanted == tag {
                    // the loader may have added the bias
                    let bias = if value < self.bias() { self.bias() } else { 0 };
                    *place = Some(value.wrapping_add(bias));
                }
            }
        });
        found
    }

    /// Gives `f` the tag and the text of each entry with one of these tags.
    fn each_text(&self, tags: &[u64], mut f: impl FnMut(u64, &CStr)) {
        let [Some(strings)] = self.values([DT_STRTAB]) else { return };
        self.each(|tag, value| {
            if tags.contains(&tag) {
                let text = core::ptr::with_exposed_provenance(strings.wrapping_add(value) as usize);
                // SAFETY: texts of a loaded library are in its string table, and end in NUL.
                f(tag, unsafe { CStr::from_ptr(text) });
            }
        });
    }

    /// Gives `f` the name of each library that this one needs, in order, and whether that is asked before it.
    pub(super) fn each_needed(&self, mut f: impl FnMut(&CStr, bool)) {
        self.each_text(&[DT_NEEDED, DT_AUXILIARY, DT_FILTER], |tag, name| {
            f(name, tag != DT_NEEDED)
        });
    }

    /// Gives `f` what the library calls itself, if it does.
    pub(super) fn own_name(&self, mut f: impl FnMut(&CStr)) {
        self.each_text(&[DT_SONAME], |_, name| f(name));
    }
}
