//! Linking in lent memory: all that a firmware needs of hoist.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use elf_core::{File, Name};
use elf_layout::{
    ErrorKind, ExternalSymbol, Layout, ImageMode, ObjectSlot, Options, SectionSlot, Storage, SymbolSlot,
};
use reloc_aarch64::Aarch64;

/// Memory that is given out once. Pages are the largest unit that instructions know.
#[repr(C, align(4096))]
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

/// A linked image.
pub struct Image<'m> {
    /// Its bytes, where they are now.
    pub bytes: &'m [u8],
    /// Names and addresses of the functions that somebody will ask for.
    functions: [(&'static str, Option<u64>); FUNCTIONS.len()],
}

/// The functions that somebody will ask for: their addresses outlive the layout.
const FUNCTIONS: [&str; 6] =
    ["is_even", "picked", "through_pointers", "total", "sum_zeroes", "call_absent"];

impl Image<'_> {
    /// The address of a function.
    #[cfg_attr(not(target_arch = "aarch64"), expect(dead_code, reason = "nobody can call here"))]
    pub fn find(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|(known, _)| *known == name)?.1
    }
}

/// Links `objects` into `memory`, to be run at address `base`; `outside` has the addresses of what they lack.
pub fn link<'m>(
    objects: [&[u8]; 2],
    memory: &'m mut [u8],
    base: u64,
    outside: impl Fn(Name<'_>) -> Option<u64>,
) -> Result<Image<'m>, elf_layout::Error> {
    let damaged = |error| elf_layout::Error { object: 0, section: 0, kind: ErrorKind::Elf(error) };
    let files =
        [File::parse(objects[0]).map_err(damaged)?, File::parse(objects[1]).map_err(damaged)?];
    let storage = Storage {
        objects: &mut [ObjectSlot::default(); 2],
        sections: &mut [SectionSlot::default(); 32],
        symbols: &mut [SymbolSlot::default(); 64],
        names: &mut [0; 128],
        edits: &mut [],
    };
    let options = Options { mode: ImageMode::Segments { page_size: 64 }, base: Some(base), ..Options::default() };
    let mut outside = |name: Name<'_>| outside(name).map(|address| ExternalSymbol::function(address));
    let layout = Layout::<Aarch64>::plan(&files, options, storage, &mut outside)?;
    layout.write(memory, base)?;
    let address = |name: &'static str| {
        let (object, symbol) = layout.find(name.into())?;
        Some(layout.symbol(object, symbol)?.at(base))
    };
    let functions = FUNCTIONS.map(|name| (name, address(name)));
    let size = layout.size() as usize;
    Ok(Image { bytes: memory.get(..size).unwrap_or_default(), functions })
}

/// FNV-1a of 64 bits.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
