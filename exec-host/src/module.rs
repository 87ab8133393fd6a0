//! A module: objects loaded together.

use crate::Host;
use crate::error::Error;
use crate::function::{Function, FunctionPointer};
use crate::initialize::{Calls, Order};
use crate::memory::Mapping;
use crate::unwind::Unwinding;
use core::ops::Range;
use elf_core::{File, Name, SegmentFlags};
use elf_layout::{External, Layout, Mode, Options, Room, Sort};
use std::sync::atomic::{AtomicBool, Ordering};

/// Objects in executable memory. Dropping it runs what their code has registered with `__cxa_atexit`, then, if it was
/// [initialized](Self::initialize), their destructors, and gives everything back.
///
/// `B` holds the bytes of an object: `&[u8]`, `Vec<u8>`, a mapped file. They are kept for their symbol names.
#[derive(Debug)]
pub struct Module<B> {
    objects: Vec<B>,
    /// Addresses of the symbols that are not local, object by object; 0 if undefined.
    globals: Vec<Box<[u64]>>,
    code: Vec<Range<u64>>,
    calls: Calls,
    /// Somebody has vouched for constructors and destructors.
    initialized: AtomicBool,
    #[expect(dead_code, reason = "dropped before the memory")]
    unwinding: Unwinding,
    memory: Mapping,
}

impl<B: AsRef<[u8]>> Module<B> {
    /// Loads objects into one stretch of memory: code, read-only data and writable data apart, nothing writable and executable.
    ///
    /// `externals` answers for symbols that no object defines; [`Process::find`](crate::Process::find) knows those of the
    /// process. No code runs.
    ///
    /// # Errors
    /// What is wrong with which object; memory that cannot be had. Nothing stays mapped.
    pub fn load(
        objects: impl IntoIterator<Item = B>,
        externals: &mut dyn FnMut(Name<'_>) -> Option<External>,
    ) -> Result<Self, Error> {
        let objects: Vec<B> = objects.into_iter().collect();
        let files = parse(&objects)?;
        let mut room = Room::new();
        let options = Options {
            mode: Mode::Segments { page_size: rustix::param::page_size() as u64 },
            ..Options::default()
        };
        let layout: Layout<'_, '_, Host> =
            room.plan(&files, options, externals).map_err(Error::Layout)?;
        if let Some(fixed) = layout.fixed_sections().next() {
            let (object, section) = (fixed.object, fixed.section);
            return Err(Error::FixedAddress { object, section, address: fixed.segment.offset });
        }
        let size = |size: u64| usize::try_from(size).map_err(|_| Error::OutOfMemory { size });
        let mut memory =
            Mapping::new(size(layout.size())?, size(layout.alignment())?, layout.limit())?;
        let base = memory.address();
        layout.write_zeroed(memory.bytes_mut(), base).map_err(Error::Layout)?;
        copy_constants(&layout, memory.bytes_mut(), externals);
        let code: Vec<_> = layout
            .segments()
            .filter(|segment| segment.flags.contains(SegmentFlags::EXECUTE))
            .map(|segment| {
                base.wrapping_add(segment.offset)
                    ..base.wrapping_add(segment.offset).wrapping_add(segment.size)
            })
            .collect();
        let calls = Calls::collect(&layout, memory.bytes_mut(), &code)?;
        layout.segments().try_for_each(|segment| memory.protect(&segment))?;
        let globals = globals(&layout, base);
        let tables = layout.unwinding_tables().map(|(offset, _)| base.wrapping_add(offset));
        // SAFETY: the tables are relocated, in memory that the module keeps.
        let unwinding = unsafe { Unwinding::register(tables) };
        let initialized = AtomicBool::new(false);
        Ok(Self { objects, globals, code, calls, initialized, unwinding, memory })
    }

    /// Runs the objects' constructors, in the order of their priorities, once. Functions are given out only afterwards. The
    /// destructors will run when the module is dropped.
    ///
    /// # Safety
    /// Constructors and destructors are code of the objects: whatever they do must be sound in this process.
    pub unsafe fn initialize(&self) {
        if !self.initialized.swap(true, Ordering::AcqRel) {
            // SAFETY: the caller vouches for the constructors; they are in our code, which is executable now.
            unsafe { self.calls.run(Order::Initialize) };
        }
    }

    /// Whether there are constructors that [`initialize`](Self::initialize) has not run yet.
    #[must_use]
    pub fn needs_initialization(&self) -> bool {
        !self.calls.needs_no_initialization() && !self.initialized.load(Ordering::Acquire)
    }

    /// The function `name`, as a pointer that cannot outlive the module.
    ///
    /// # Errors
    /// [`Error::NoSymbol`], [`Error::NotFunction`]; [`Error::NotInitialized`] if there are constructors still to run.
    ///
    /// # Safety
    /// `F` is the type of the function. Calling it runs code of the objects: whatever that does must be sound.
    pub unsafe fn get<F: FunctionPointer>(&self, name: &str) -> Result<Function<'_, F>, Error> {
        let address = self.function(name)?;
        // SAFETY: the address is in our code; the caller vouches for the type.
        Ok(Function::new(unsafe { F::at(address as usize) }))
    }

    /// The address of the function `name`, good as long as the module.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn function(&self, name: &str) -> Result<u64, Error> {
        if self.needs_initialization() {
            return Err(Error::NotInitialized);
        }
        let address = self.address(name).ok_or_else(|| Error::NoSymbol(name.into()))?;
        if self.code.iter().any(|range| range.contains(&address)) {
            Ok(address)
        } else {
            Err(Error::NotFunction(name.into()))
        }
    }

    /// The address of the symbol `name`, whatever it is, good as long as the module.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let name = Name::from(name);
        self.objects.iter().zip(&self.globals).find_map(|(object, addresses)| {
            let table = File::parse(object.as_ref()).ok()?.symbol_table().ok()??;
            let symbols = table.symbols().iter().skip(table.first_global());
            let found = symbols.zip(addresses.iter()).find(|(symbol, address)| {
                **address != 0
                    && !symbol.is_undefined()
                    && table.name_of(symbol).is_ok_and(|found| found == name)
            });
            found.map(|(_, &address)| address)
        })
    }

    /// Address and size of the memory that the module occupies, in bytes.
    #[must_use]
    pub fn extent(&self) -> (u64, u64) {
        (self.memory.address(), self.memory.size())
    }
}

impl<B> Drop for Module<B> {
    fn drop(&mut self) {
        // SAFETY: it was registered by code of ours, which somebody vouched for who called it; no function is borrowed any more.
        unsafe { self.calls.run_registered() };
        if self.initialized.load(Ordering::Acquire) {
            // SAFETY: who initialized the module vouched for its destructors as well.
            unsafe { self.calls.run(Order::Finalize) };
        }
    }
}

/// The headers of all objects.
fn parse<B: AsRef<[u8]>>(objects: &[B]) -> Result<Vec<File<'_>>, Error> {
    let parsed = objects.iter().enumerate().map(|(object, bytes)| {
        File::parse(bytes.as_ref()).map_err(|error| Error::Elf { object, error })
    });
    parsed.collect()
}

/// Fills the room that the layout has for constants of the process.
fn copy_constants(
    layout: &Layout<'_, '_, Host>,
    image: &mut [u8],
    externals: &mut dyn FnMut(Name<'_>) -> Option<External>,
) {
    for copy in layout.copies() {
        let file = layout.files().get(copy.object);
        let table = file.and_then(|file| file.symbol_table().ok()?);
        let name = table.and_then(|table| table.name_of(&table.get(copy.symbol).ok()?).ok());
        let Some(External { address, sort: Sort::Constant { size } }) =
            name.and_then(&mut *externals)
        else {
            continue;
        };
        let place = usize::try_from(copy.offset).ok().and_then(|offset| image.get_mut(offset..));
        let Some(place) = place.and_then(|rest| rest.get_mut(..usize::try_from(size).ok()?)) else {
            continue;
        };
        let data = core::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: whoever answers with constant data vouches that so many bytes are there and never change.
        place.copy_from_slice(unsafe { core::slice::from_raw_parts(data, place.len()) });
    }
}

/// Addresses of the symbols that are not local, for an image at `base`.
fn globals(layout: &Layout<'_, '_, Host>, base: u64) -> Vec<Box<[u64]>> {
    let addresses = |(object, file): (usize, &File<'_>)| {
        let Ok(Some(table)) = file.symbol_table() else { return Box::default() };
        let ids = table.first_global()..table.len();
        ids.map(|index| layout.symbol(object, index as u32).map_or(0, |address| address.at(base)))
            .collect()
    };
    layout.files().iter().enumerate().map(addresses).collect()
}
