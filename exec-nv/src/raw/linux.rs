//! The files, ioctls and mappings of Linux.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::call::Call;
use super::error::Error;
use super::system::{Mapping, Part, System};

/// The kernel that this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

/// Bytes behind each part that the driver may read and write: it takes a structure's size from its class or command, and would
/// go past the end of one that is shorter in an older version.
const SLACK: usize = 0x4000;

impl System for Linux {
    type File = OwnedFd;
    type Mapping = Shared;

    fn open(&self, path: &str) -> Result<OwnedFd, Error> {
        open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| Error::Open { path: path.into(), errno: errno.raw_os_error() })
    }

    fn descriptor(&self, file: &OwnedFd) -> i32 {
        file.as_raw_fd()
    }

    unsafe fn ioctl(
        &self,
        file: &OwnedFd,
        call: Call,
        parts: &mut [Part<'_>],
    ) -> Result<(), Error> {
        let Some(size) = parts.first().map(|part| part.bytes.len()) else { return Ok(()) };
        let mut copies: Vec<Vec<u64>> = parts.iter().map(|part| copy_of(part.bytes)).collect();
        let mut next = None;
        for (part, copy) in parts.iter().zip(&mut copies).rev() {
            if let (Some(offset), Some(address)) = (part.pointer, next)
                && let Some(place) = copy.get_mut(offset / 8)
            {
                *place = address;
            }
            next = Some(copy.as_mut_ptr().expose_provenance() as u64);
        }
        let argument = copies.first_mut().map_or(core::ptr::null_mut(), |copy| copy.as_mut_ptr());
        let raw = Raw { opcode: call.word(size), argument: argument.cast() };
        // SAFETY: the argument and all parts that it points to are `copies`, which live until the call is over, and are longer than any
        // structure of the driver's interface by at least `SLACK`; for other addresses the caller guarantees.
        let done = unsafe { ioctl(file, raw) };
        done.map_err(|errno| Error::Ioctl { call: call.name, errno: errno.raw_os_error() })?;
        for (part, copy) in parts.iter_mut().zip(&copies) {
            let bytes = copy.iter().flat_map(|word| word.to_ne_bytes());
            for (to, from) in part.bytes.iter_mut().zip(bytes) {
                *to = from;
            }
        }
        Ok(())
    }

    fn map(&self, file: &OwnedFd, address: Option<u64>, size: u64) -> Result<Shared, Error> {
        let error = |errno: i32| Error::Map { size, errno };
        let length = usize::try_from(size).map_err(|_| error(0))?;
        let place = address.map(usize::try_from).transpose().map_err(|_| error(0))?;
        let fixed = if place.is_some() { MapFlags::FIXED_NOREPLACE } else { MapFlags::empty() };
        let wanted = core::ptr::without_provenance_mut(place.unwrap_or(0));
        // SAFETY: nothing that is mapped already is touched: the kernel chooses the address, or refuses one that is taken.
        let start = unsafe {
            mmap(
                wanted,
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | fixed,
                file,
                0,
            )
        };
        let start = start.map_err(|errno| error(errno.raw_os_error()))?;
        let start = NonNull::new(start).ok_or(error(0))?;
        let mapping = Shared { start, length };
        match place {
            // Kernels before 4.17 take the flag for a wish.
            Some(place) if start.as_ptr().addr() != place => Err(error(0)),
            _ => Ok(mapping),
        }
    }
}

/// `bytes` in words, with zeros behind.
fn copy_of(bytes: &[u8]) -> Vec<u64> {
    let mut words: Vec<u64> = bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            u64::from_ne_bytes(word)
        })
        .collect();
    words.resize(words.len() + SLACK / 8, 0);
    words
}

/// An ioctl whose word is known at run time only.
struct Raw {
    opcode: Opcode,
    argument: *mut c_void,
}

// SAFETY: the argument is what the creator says: memory that the call may read and write.
unsafe impl Ioctl for Raw {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Memory that a device shares with this process.
#[derive(Debug)]
pub struct Shared {
    start: NonNull<c_void>,
    length: usize,
}

// SAFETY: the mapping is the process's; nothing in it belongs to a thread.
unsafe impl Send for Shared {}
// SAFETY: words are read and written by volatile accesses of aligned words only, as the device does.
unsafe impl Sync for Shared {}

impl Shared {
    /// Address of `count` bytes inside the mapping.
    fn bytes(&self, offset: u64, count: usize) -> Option<*mut u8> {
        let at = usize::try_from(offset).ok()?;
        let end = at.checked_add(count)?;
        (end <= self.length).then(|| self.start.as_ptr().wrapping_byte_add(at).cast())
    }

    /// Address of `count` words inside the mapping.
    fn words(&self, offset: u64, count: usize) -> Option<*mut u32> {
        let at = usize::try_from(offset).ok().filter(|at| at.is_multiple_of(4))?;
        let end = count.checked_mul(4)?.checked_add(at)?;
        (end <= self.length).then(|| self.start.as_ptr().wrapping_byte_add(at).cast())
    }
}

// SAFETY: the pages are mapped until it is dropped.
unsafe impl Mapping for Shared {
    fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    fn size(&self) -> u64 {
        self.length as u64
    }

    fn read(&self, offset: u64) -> Option<u32> {
        // SAFETY: `words` gives an aligned address of a word inside the mapping, which lives as long as `self`.
        self.words(offset, 1).map(|word| unsafe { word.read_volatile() })
    }

    fn write(&self, offset: u64, words: &[u32]) -> bool {
        let Some(start) = self.words(offset, words.len()) else { return false };
        for (index, &word) in (0..).zip(words) {
            // SAFETY: `words` gives an aligned address with room for all of them inside the mapping.
            unsafe { start.wrapping_add(index).write_volatile(word) };
        }
        true
    }

    fn start(&self) -> NonNull<u8> {
        self.start.cast()
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(to) = self.bytes(offset, bytes.len()) else { return false };
        // SAFETY: so many bytes from `to` on lie inside the mapping, which is no object of this process.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        true
    }

    fn load(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let Some(from) = self.bytes(offset, bytes.len()) else { return false };
        // SAFETY: so many bytes from `from` on lie inside the mapping, which is no object of this process.
        unsafe { core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    fn fence(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has SSE; the instruction orders stores and does nothing else. A plain fence does not
        // order write-combined stores.
        unsafe {
            core::arch::x86_64::_mm_sfence();
        }
        fence(Ordering::SeqCst);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped by `map` and belong to `self` alone.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::call::resource_manager;

    #[test]
    fn a_missing_file_is_named() {
        let error = Linux.open("/dev/no-such-gpu").unwrap_err();
        assert_eq!(error.to_string(), "/dev/no-such-gpu cannot be opened: errno 2");
    }

    #[test]
    fn a_file_that_knows_no_such_call_says_so_and_leaves_the_argument() {
        let null = Linux.open("/dev/null").unwrap();
        let mut bytes = [1, 2, 3, 4];
        let part = Part { bytes: &mut bytes, pointer: None };
        // SAFETY: the file knows no calls.
        let error = unsafe { Linux.ioctl(&null, resource_manager::REGISTER_FD, &mut [part]) };
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), "REGISTER_FD: the kernel answers errno 25");
        assert_eq!(bytes, [1, 2, 3, 4]);
    }

    #[test]
    fn mappings_keep_to_their_bounds() {
        let zero = Linux.open("/dev/zero").unwrap();
        let mapping = Linux.map(&zero, None, 8192).unwrap();
        assert!(mapping.write(8188, &[7]) && mapping.write(0, &[1, 2]));
        assert_eq!([0, 4, 8188].map(|at| mapping.read(at)), [Some(1), Some(2), Some(7)]);
        assert_eq!([8192, 1, u64::MAX].map(|at| mapping.read(at)), [None; 3]);
        assert!(!mapping.write(8188, &[1, 2]) && mapping.read(8188) == Some(7));
        let again = Linux.map(&zero, Some(mapping.address()), 4096);
        assert!(matches!(again, Err(Error::Map { .. })), "what is there stays");
        mapping.fence();
    }
}
