//! Words of this process: as long as an address. Addresses are numbers of 64 bits everywhere else in this crate.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Structures of files of this process's class.
#[cfg(target_pointer_width = "32")]
pub(crate) use elf_core::raw32 as raw;
/// Structures of files of this process's class.
#[cfg(target_pointer_width = "64")]
pub(crate) use elf_core::raw64 as raw;
// the C library has a type for each class
#[cfg(target_pointer_width = "32")]
pub(crate) use libc::{Elf32_Phdr as ProgramHeader, Elf32_Sym as Symbol};
#[cfg(target_pointer_width = "64")]
pub(crate) use libc::{Elf64_Phdr as ProgramHeader, Elf64_Sym as Symbol};

/// Bytes of a word.
pub(crate) const SIZE: u64 = size_of::<usize>() as u64;
/// Whether files of this process are of 64 bits.
pub(crate) const IS_64: bool = SIZE == 8;
/// The largest word.
pub(crate) const MAX: u64 = usize::MAX as u64;

/// A number of the C library's, whose types differ between machines.
pub(crate) fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}

/// The bytes of a word, of which only the low part counts.
pub(crate) const fn bytes(word: u64) -> [u8; SIZE as usize] {
    (word as usize).to_le_bytes()
}

/// The words that bytes hold.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let words = bytes.as_chunks::<{ SIZE as usize }>().0;
    words.iter().map(|word| usize::from_le_bytes(*word) as u64)
}

/// The word at an address.
///
/// # Safety
/// It is mapped and aligned.
pub(crate) unsafe fn read(address: u64) -> u64 {
    // SAFETY: the caller guarantees it.
    unsafe { core::ptr::with_exposed_provenance::<usize>(address as usize).read() as u64 }
}

/// Writes the word at an address.
///
/// # Safety
/// It is mapped, aligned and writable, and nobody else uses it.
pub(crate) unsafe fn write(address: u64, word: u64) {
    let place = core::ptr::with_exposed_provenance_mut::<usize>(address as usize);
    // SAFETY: the caller guarantees it.
    unsafe { place.write(word as usize) }
}

/// Writes the word at an address while others read it.
///
/// # Safety
/// It is mapped, aligned and writable, and nobody has a reference to it but as an atomic one.
pub(crate) unsafe fn store(address: u64, word: u64) {
    let place = core::ptr::with_exposed_provenance_mut::<usize>(address as usize);
    // SAFETY: the caller guarantees it.
    unsafe { AtomicUsize::from_ptr(place) }.store(word as usize, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        let numbers = [1, MAX, 0x8000_0000];
        let image: Vec<u8> = numbers.into_iter().flat_map(bytes).collect();
        assert_eq!(image.len() as u64, 3 * SIZE);
        assert_eq!(words(&image).collect::<Vec<_>>(), numbers);
        let mut place = 0usize;
        let address = (&raw mut place).expose_provenance() as u64;
        // SAFETY: the place is a variable.
        unsafe {
            write(address, 5);
            store(address, read(address) + 1);
        }
        assert_eq!(place, 6);
    }
}
