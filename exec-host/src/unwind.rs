//! Unwinding tables, checked and then made known: to the process, and to unwinders that loads bring along.

mod hook;
mod library_table;
mod lookup;
mod registry;

use crate::Host;
use crate::error::Error;
use core::cell::Cell;
use core::ops::Range;
use elf_core::Arch as _;
use elf_core::eh_frame::{EhFrame, Machine, Places};
use elf_layout::{Layout, SymbolAddress};
use registry::{Entered, Tables};
use std::sync::OnceLock;

pub(crate) use library_table::LibraryTable;
pub(crate) use lookup::{stands_for, start_of_load};
pub(crate) use registry::Extent;

/// Checks the tables of an image that is relocated for `base`: the unwinder of the process does not, and looks into all of them for
/// whatever function it meets.
///
/// # Errors
/// [`Error::Unwinding`].
pub(crate) fn check(
    layout: &Layout<'_, '_, Host>,
    image: &[u8],
    base: u64,
    code: &[Range<u64>],
) -> Result<(), Error> {
    let Some(machine) = Machine::of(Host::MACHINE) else { return Ok(()) };
    let load = Load { layout, image, base, code, personality: Cell::new(0) };
    for (offset, size) in layout.unwinding_tables() {
        let bytes = load.bytes(offset, size).unwrap_or_default();
        let table = EhFrame { bytes, address: base.wrapping_add(offset), machine };
        table.check(&load).map_err(|error| {
            let (object, section) = section_at(layout, offset).unwrap_or_default();
            Error::Unwinding { object, section, name: Box::default(), error }
        })?;
    }
    Ok(())
}

/// The section that starts at an offset of the image.
fn section_at(layout: &Layout<'_, '_, Host>, offset: u64) -> Option<(usize, u32)> {
    layout.files().iter().enumerate().find_map(|(object, file)| {
        let mut sections = (0u32..).zip(file.sections());
        let found = sections.find(|(section, header)| {
            header.size > 0 && layout.section(object, *section) == Some(offset)
        });
        found.map(|(section, _)| (object, section))
    })
}

/// What the tables of a load may point to: its own code and data, and what its symbols mean elsewhere.
struct Load<'l> {
    layout: &'l Layout<'l, 'l, Host>,
    image: &'l [u8],
    base: u64,
    code: &'l [Range<u64>],
    /// The routine of others that was found last: there are few.
    personality: Cell<u64>,
}

impl<'l> Load<'l> {
    fn bytes(&self, offset: u64, size: u64) -> Option<&'l [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.image.get(start..)?.get(..usize::try_from(size).ok()?)
    }

    /// Whether a symbol that the objects do not define is at `address`.
    fn is_external(&self, address: u64) -> bool {
        self.layout.files().iter().enumerate().any(|(object, file)| {
            let Ok(Some(table)) = file.symbol_table() else { return false };
            let symbols = (0u32..).zip(table.symbols()).skip(table.first_global());
            let mut undefined = symbols.filter(|(_, symbol)| symbol.is_undefined());
            undefined.any(|(index, _)| {
                self.layout.symbol(object, index) == Some(SymbolAddress::Absolute(address))
            })
        })
    }
}

impl Places for Load<'_> {
    fn is_code(&self, address: u64, size: u64) -> bool {
        self.code.iter().any(|range| {
            (range.start..=range.end).contains(&address) && size <= range.end.wrapping_sub(address)
        })
    }

    fn is_data(&self, address: u64) -> bool {
        let offset = address.wrapping_sub(self.base);
        let mut segments = self.layout.segments();
        segments.any(|segment| offset.wrapping_sub(segment.offset) < segment.size)
    }

    fn is_personality(&self, address: u64) -> bool {
        let is_own = self.code.iter().any(|range| range.contains(&address));
        if is_own || self.personality.get() == address {
            return true;
        }
        let is_known = self.is_external(address);
        if is_known {
            self.personality.set(address);
        }
        is_known
    }

    fn word(&self, address: u64) -> Option<u64> {
        let bytes = self.bytes(address.checked_sub(self.base)?, 8)?;
        bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
    }
}

/// Tables that unwinders use as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct Unwinding {
    /// Addresses of the tables that were registered one by one.
    tables: Box<[u64]>,
    #[expect(dead_code, reason = "known as long as it lives")]
    entered: Entered,
}

unsafe extern "C" {
    fn __register_frame(table: *const u8);
    fn __deregister_frame(table: *const u8);
}

/// Functions that make a whole table known to libunwind of LLVM, or unknown, where the process has it: its `__register_frame` takes
/// single entries.
type OfLlvm = unsafe extern "C" fn(u64);

/// Those that make it known and unknown.
fn of_llvm() -> Option<[OfLlvm; 2]> {
    static FUNCTIONS: OnceLock<Option<[OfLlvm; 2]>> = OnceLock::new();
    *FUNCTIONS.get_or_init(|| {
        let names =
            [c"__unw_add_dynamic_eh_frame_section", c"__unw_remove_dynamic_eh_frame_section"];
        // SAFETY: asks for functions by their names.
        let found = names.map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
        let are_there = found.iter().all(|function| !function.is_null());
        // SAFETY: functions of these names have this type (<libunwind_ext.h>).
        let function =
            |found| unsafe { core::mem::transmute::<*mut core::ffi::c_void, OfLlvm>(found) };
        are_there.then(|| found.map(function))
    })
}

impl Unwinding {
    /// Makes a load known, and the tables at these addresses, of so many bytes, which are those of `code`. `are_many`: one of very many
    /// loads, for which the unwinder of the process is led to ask, if it can be.
    ///
    /// # Safety
    /// Each is a relocated `.eh_frame` that was [checked](check) and that a length of 0 ends, and stays where it is, as it is, until this is
    /// dropped.
    pub(crate) unsafe fn register(
        tables: impl Iterator<Item = (u64, u64)>,
        code: &[Range<u64>],
        extent: Extent,
        are_many: bool,
    ) -> Self {
        let tables: Box<[(u64, u64)]> = tables.collect();
        let asks = tables.is_empty() || are_many && hook::is_in_place();
        let addresses = tables.iter().map(|&(table, _)| table).filter(|_| !asks).collect();
        // SAFETY: as the caller vouches.
        let entered = unsafe { Entered::new(Tables::Checked(tables), code, extent) };
        let known = Self { tables: addresses, entered };
        for &table in &known.tables {
            // SAFETY: as the caller vouches.
            unsafe { __register_frame(core::ptr::with_exposed_provenance(table as usize)) };
            if let Some([add, _]) = of_llvm() {
                // SAFETY: as above.
                unsafe { add(table) };
            }
        }
        known
    }
}

impl Unwinding {
    /// Makes a library known, and its table, which is that of `code`. Where the unwinder of the process asks for frames, the table is
    /// checked when it does so for the first time, and one with errors is as none; else it is checked now.
    ///
    /// # Errors
    /// What is wrong with it.
    ///
    /// # Safety
    /// The table is relocated, and stays where it is, as it is, until this is dropped.
    pub(crate) unsafe fn register_library(
        table: Option<LibraryTable>,
        code: &[Range<u64>],
        extent: Extent,
    ) -> Result<Self, elf_core::eh_frame::Error> {
        let checked = match table {
            Some(table) if of_llvm().is_none() && hook::is_in_place() => {
                // SAFETY: as the caller vouches.
                let entered = unsafe { Entered::new(Tables::Unchecked(table), code, extent) };
                return Ok(Self { tables: Box::default(), entered });
            }
            Some(table) => table.check_each(|_, _| {})?,
            None => None,
        };
        // SAFETY: it was checked; the caller vouches for the rest.
        Ok(unsafe { Self::register(checked.into_iter(), code, extent, false) })
    }
}

impl Drop for Unwinding {
    fn drop(&mut self) {
        for &table in self.tables.iter().rev() {
            // SAFETY: it was registered, and is still mapped.
            unsafe { __deregister_frame(core::ptr::with_exposed_provenance(table as usize)) };
            if let Some([_, remove]) = of_llvm() {
                // SAFETY: as above.
                unsafe { remove(table) };
            }
        }
    }
}
