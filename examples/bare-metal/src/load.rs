//! Linking in lent memory: all that a firmware needs of hoist.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use elf_core::{File, Name};
use elf_layout::{
    Edit, ErrorKind, ExternalSymbol, ImageMode, Layout, ObjectSlot, Options, SectionSlot, Storage,
    SymbolSlot,
};

use crate::machine::{self, Architecture};

/// Memory that is given out once.
#[repr(C, align(64))]
pub struct Memory<const SIZE: usize> {
    bytes: UnsafeCell<[u8; SIZE]>,
    taken: AtomicBool,
}

// SAFETY: the bytes are given out once, to whoever comes first.
unsafe impl<const SIZE: usize> Sync for Memory<SIZE> {}

impl<const SIZE: usize> Memory<SIZE> {
    /// Zeroes.
    pub const fn new() -> Self {
        Self { bytes: UnsafeCell::new([0; SIZE]), taken: AtomicBool::new(false) }
    }

    /// The bytes, the first time.
    pub fn take(&'static self) -> Option<&'static mut [u8]> {
        // Load and store: there is one processor, and small ones cannot swap.
        if self.taken.load(Ordering::Relaxed) {
            return None;
        }
        self.taken.store(true, Ordering::Relaxed);
        // SAFETY: nobody had them before, and nobody gets them again.
        Some(unsafe { &mut *self.bytes.get() })
    }
}

/// The functions that somebody will ask for: their addresses outlive the layout.
const FUNCTIONS: [&str; 11] = [
    "construct", "constructed", "even", "odd", "data", "zeroed", "back", "pointers", "answer", "ask",
    "ask_pointer",
];

/// A linked image in memory of its own, which its code changes, too.
pub struct Image {
    start: *mut u8,
    /// Size in bytes.
    pub size: usize,
    /// The addresses of the functions, and where the entries are through which they are called.
    functions: [Option<(usize, usize)>; FUNCTIONS.len()],
}

impl Image {
    fn get(&self, name: &str) -> Option<(usize, usize)> {
        let (_, function) = FUNCTIONS.iter().zip(self.functions).find(|(known, _)| **known == name)?;
        function
    }

    /// Calls a function; `None` if there is no such function.
    ///
    /// # Safety
    /// It is an `int name(int)`, and may be called now.
    pub unsafe fn call(&self, name: &str, argument: i32) -> Option<i32> {
        let (address, _) = self.get(name)?;
        // SAFETY: by the caller; its code and data are in memory that nobody else uses.
        let function = unsafe { core::mem::transmute::<usize, extern "C" fn(i32) -> i32>(address) };
        Some(function(argument))
    }

    /// Has all who call a function, or have a pointer to it, call `new` from now on. Gives what they called before.
    pub fn replace(&mut self, name: &str, new: usize) -> Option<usize> {
        let (_, entry) = self.get(name)?;
        // SAFETY: the layout has put the entry there, aligned, within the image.
        unsafe {
            let entry = self.start.add(entry).cast::<usize>();
            let old = entry.read_volatile();
            entry.write_volatile(new);
            Some(old)
        }
    }
}

/// Links `objects` into `memory`, to be run there; `outside` has the addresses of what they lack.
pub fn link(
    objects: [&[u8]; 2],
    memory: &mut [u8],
    outside: impl Fn(Name<'_>) -> Option<usize>,
) -> Result<Image, elf_layout::Error> {
    let parse = |object: usize| {
        let damaged = |error| elf_layout::Error { object, section: 0, kind: ErrorKind::Elf(error) };
        File::parse(objects[object]).map_err(damaged)
    };
    let files = [parse(0)?, parse(1)?];
    let storage = Storage {
        objects: &mut [ObjectSlot::default(); 2],
        sections: &mut [SectionSlot::default(); 48],
        symbols: &mut [SymbolSlot::default(); 96],
        names: &mut [0; 64],
        edits: &mut [Edit::default(); machine::EDITS],
    };
    let base = memory.as_ptr().addr() as u64;
    let options = Options {
        mode: ImageMode::Segments { page_size: 64 },
        base: Some(base),
        replaceable_functions: true,
        ..Options::default()
    };
    let mut outside = |name: Name<'_>| Some(ExternalSymbol::function(outside(name)? as u64));
    let layout = Layout::<Architecture>::plan(&files, options, storage, &mut outside)?;
    layout.write(memory, base)?;

    let function = |name: &str| {
        let (object, symbol) = layout.find(name.into())?;
        let address = layout.symbol(object, symbol)?.at(base);
        let mut all = layout.replaceable_functions();
        let own = all.find(|one| (one.object, one.symbol) == (object, symbol))?;
        Some((address as usize, own.entry as usize))
    };
    let (functions, size) = (FUNCTIONS.map(function), layout.size() as usize);
    machine::code_has_changed(memory.as_ptr(), size);
    Ok(Image { start: memory.as_mut_ptr(), size, functions })
}
