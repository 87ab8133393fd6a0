//! Unwinding tables, checked and then made known: to the process, and to unwinders that loads bring along.

/// The function that they ask for frames.
#[cfg_attr(target_arch = "arm", path = "unwind/find_index.rs")]
#[cfg_attr(not(target_arch = "arm"), path = "unwind/find_object.rs")]
mod asked;
/// The form of tables that unwinders of this machine read.
#[cfg_attr(target_arch = "arm", path = "unwind/exidx.rs")]
#[cfg_attr(not(target_arch = "arm"), path = "unwind/dwarf.rs")]
mod format;
mod hook;
mod library_table;
mod lookup;
#[cfg(not(target_arch = "arm"))]
mod opened;
#[cfg(all(target_env = "musl", not(target_arch = "arm")))]
mod other_gcc;
mod registry;
mod table;

use crate::Host;
use crate::contents::Externals;
use crate::error::Error;
use crate::word;
use core::ops::Range;
use elf_core::eh_frame::Places;
use elf_image::Image;
use elf_layout::Layout;
use format::Unwinders;
use registry::{Entered, Tables};

use table::Table;

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
    let load = Load { layout, image, base, code, externals: Externals::new(layout) };
    for table in format::tables(layout, base) {
        let offset = table.address.wrapping_sub(base);
        let bytes = load.bytes(offset, table.size).unwrap_or_default();
        format::check_each(bytes, &table, &load, |_| {}).map_err(|error| {
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
    /// Where routines of others may be.
    externals: Externals<'l>,
}

impl<'l> Load<'l> {
    fn bytes(&self, offset: u64, size: u64) -> Option<&'l [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.image.get(start..)?.get(..usize::try_from(size).ok()?)
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
        is_own || self.externals.contains(address)
    }

    fn word(&self, address: u64) -> Option<u64> {
        word::words(self.bytes(address.checked_sub(self.base)?, word::SIZE)?).next()
    }
}

/// The name of what unwinders ask for frames.
pub(crate) const ASKED: &str = match format::ASKED.to_str() {
    Ok(name) => name,
    Err(_) => "",
};

/// The tables of an image at `base`.
pub(crate) fn tables(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Table> {
    format::tables(layout, base)
}

/// Leads the unwinder of the process to ask for loads, if it can be: at once as long as the process has one thread, so a load that starts
/// threads does this before.
pub(crate) fn prepare() {
    let _ = format::of_llvm().is_none() && hook::is_in_place();
}

/// Offset and size in a library's image of what leads to its table.
pub(crate) fn table_of(image: &Image<'_>) -> Option<(u64, u64)> {
    format::table_of(image)
}

/// Tables that unwinders use as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct Unwinding {
    /// Addresses of the tables that were registered one by one.
    tables: Box<[u64]>,
    /// Those of the tables that others than the unwinder of the process were told of, and these.
    others: (Box<[u64]>, Unwinders),
    #[expect(dead_code, reason = "known as long as it lives")]
    entered: Entered,
}

impl Unwinding {
    /// Makes a load known, and these tables, which are those of `code`. The unwinder of the process is led to ask, if it can be: libgcc before GCC 13
    /// has a lock for its list of tables, which it takes for every frame once a table was registered, and which stays locked in the child of a process
    /// whose other threads throw.
    ///
    /// # Safety
    /// Each is relocated, was [checked](check), if it is an `.eh_frame` a length of 0 ends it, and it stays where it is, as it is, until this is
    /// dropped.
    pub(crate) unsafe fn register(tables: Vec<Table>, code: &[Range<u64>], extent: Extent) -> Self {
        // beside LLVM's there may be one that does not ask
        let may_ask = !format::REGISTERS || format::of_llvm().is_none();
        let asks = tables.is_empty() || may_ask && hook::is_in_place();
        let others = if tables.is_empty() { Unwinders::default() } else { format::others() };
        let addresses = |is_wanted: bool| {
            tables.iter().map(|table| table.address).filter(|_| is_wanted).collect()
        };
        let (of_process, of_others) = (addresses(!asks), addresses(!others.are_none()));
        // SAFETY: as the caller guarantees.
        let entered = unsafe { Entered::new(Tables::Checked(tables.into()), code, extent) };
        let known = Self { tables: of_process, others: (of_others, others), entered };
        for &table in &known.tables {
            // SAFETY: as the caller guarantees.
            unsafe { format::register(table) };
        }
        for &table in &known.others.0 {
            // SAFETY: as above.
            unsafe { known.others.1.register(table) };
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
            Some(table)
                if format::of_llvm().is_none()
                    && format::others().are_none()
                    && hook::is_in_place() =>
            {
                // SAFETY: as the caller guarantees.
                let entered = unsafe { Entered::new(Tables::Unchecked(table), code, extent) };
                let (tables, others) = Default::default();
                return Ok(Self { tables, others, entered });
            }
            Some(table) => table.check_each(|_, _| {})?,
            None => None,
        };
        // SAFETY: it was checked; the caller guarantees the rest.
        Ok(unsafe { Self::register(checked.into_iter().collect(), code, extent) })
    }
}

impl Drop for Unwinding {
    fn drop(&mut self) {
        let (tables, others) = &self.others;
        tables.iter().rev().for_each(|&table| others.deregister(table));
        for &table in self.tables.iter().rev() {
            format::deregister(table);
        }
    }
}
