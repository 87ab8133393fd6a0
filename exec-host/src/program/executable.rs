//! Of which file the system says that this process is (`/proc/self/exe`): programs start themselves by it, and look there for what was appended to
//! them. The kernel lets that be another one once nothing of the file is mapped (prctl(2), `PR_SET_MM_EXE_FILE`).

use super::description::Description;
use crate::machine;
use core::ptr;
use rustix::mm::{MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use rustix::mm::{mmap_anonymous, mprotect, mremap_fixed, munmap};
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Has the system say that this process is of the file at `path`. The pages of the program that it is of so far become copies.
///
/// # Errors
/// The kernel takes that from those only that may restore processes (`CAP_CHECKPOINT_RESTORE`), on Linux, for files that can be executed.
///
/// # Safety
/// No other thread runs, and no handler of a signal: what these write meanwhile could be lost.
pub unsafe fn set_executable(path: impl AsRef<Path>) -> io::Result<()> {
    let file = fs::File::open(path)?;
    let mut description = Description::of_process()?;
    description.file = Some(file.as_raw_fd());
    match description.tell() {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
        told => return told,
    }
    let own = fs::read_link("/proc/self/exe")?;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let of_own = maps.lines().filter_map(PageRange::of_line);
    let of_own = of_own.filter(|(_, path)| Path::new(path) == own);
    for (range, _) in of_own {
        // SAFETY: the program's pages; as the caller guarantees.
        unsafe { range.replace() }?;
    }
    description.tell()
}

/// Pages that are mapped.
struct PageRange {
    start: usize,
    size: usize,
    protection: MprotectFlags,
}

impl PageRange {
    /// Those of a line of `/proc/self/maps` (proc(5)), and the path of their file.
    fn of_line(line: &str) -> Option<(Self, &str)> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
        let permissions = words.next()?;
        let path = words.nth(3)?.trim_start();
        let mut protection = MprotectFlags::empty();
        for (letter, flag) in
            [('r', MprotectFlags::READ), ('w', MprotectFlags::WRITE), ('x', MprotectFlags::EXEC)]
        {
            protection.set(flag, permissions.contains(letter));
        }
        Some((Self { start: start?, size: end?.checked_sub(start?)?, protection }, path))
    }

    /// Puts a copy in their place, in one step.
    ///
    /// # Safety
    /// They are mapped, and nobody else writes to them.
    unsafe fn replace(&self) -> io::Result<()> {
        let (both, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let old = ptr::with_exposed_provenance_mut::<u8>(self.start);
        // SAFETY: new pages are nobody else's; the old ones can be read if they say so.
        let replaced = unsafe {
            let copy = mmap_anonymous(ptr::null_mut(), self.size, both, private)?;
            if self.protection.contains(MprotectFlags::READ) {
                copy.cast::<u8>().copy_from_nonoverlapping(old, self.size);
            }
            if self.protection.contains(MprotectFlags::EXEC) {
                machine::cache::synchronize(copy.cast(), self.size);
            }
            let replaced = mprotect(copy, self.size, self.protection).and_then(|()| {
                mremap_fixed(copy, self.size, self.size, MremapFlags::MAYMOVE, old.cast())
            });
            if replaced.is_err() {
                munmap(copy, self.size)?;
            }
            replaced
        };
        replaced?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "7f00-8f00 r-xp 00001000 fe:00 42                  /a b";
        let (range, path) = PageRange::of_line(line).unwrap();
        assert_eq!((range.start, range.size, path), (0x7f00, 0x1000, "/a b"));
        assert_eq!(range.protection, MprotectFlags::READ | MprotectFlags::EXEC);
        assert!(PageRange::of_line("7f00-8f00 rw-p 00000000 00:00 0 ").unwrap().1.is_empty());
        assert!(PageRange::of_line("").is_none());
    }
}
