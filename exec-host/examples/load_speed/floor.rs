//! What no loader does without, in straight-line code: segments are mapped from the file, or copied, relative relocations applied, and pages get
//! their permissions. No symbol is looked up, nothing is checked, nobody is told: of 64-bit files that are sound, by x86-64's numbers.

use std::error::Error;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

const PAGE: usize = 4096;

/// Pages that go with it.
pub(crate) struct Pages {
    start: *mut u8,
    size: usize,
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: they are ours.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}

fn word(bytes: &[u8], at: usize) -> usize {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word) as usize)
}

/// Type, flags, offset, address, size in the file and in memory.
type Segment = [usize; 6];

fn segments(head: &[u8]) -> Vec<Segment> {
    let (start, count) = (word(head, 32), word(head, 56) & 0xffff);
    let segment = |index: usize| {
        let at = start.saturating_add(index.saturating_mul(56));
        let short = |offset| word(head, at.saturating_add(offset)) & 0xffff_ffff;
        let rest = [8, 16, 32, 40].map(|offset| word(head, at.saturating_add(offset)));
        let [offset, address, file, memory] = rest;
        [short(0), short(4), offset, address, file, memory]
    };
    (0..count).map(segment).collect()
}

/// Loads what the file has, or the bytes if there are any.
pub(crate) fn load(path: &str, bytes: Option<&[u8]>) -> Result<Pages, Box<dyn Error>> {
    let file = bytes.is_none().then(|| File::open(path)).transpose()?;
    let mut head = [0; 1024];
    if let Some(file) = &file {
        file.read_at(&mut head, 0)?;
    }
    let segments = segments(bytes.unwrap_or(&head));
    let loaded = || segments.iter().filter(|[r#type, ..]| *r#type == 1);
    let end = loaded().map(|[.., address, _, memory]| address + memory).max().unwrap_or(0);
    let size = end.next_multiple_of(PAGE);
    let protection = |flags: usize| {
        let each = [(4, libc::PROT_READ), (2, libc::PROT_WRITE), (1, libc::PROT_EXEC)];
        each.into_iter().filter(|(flag, _)| flags & flag != 0).fold(0, |all, (_, it)| all | it)
    };
    let (private, both) = (libc::MAP_PRIVATE, libc::PROT_READ | libc::PROT_WRITE);
    let map = |at: *mut u8, size: usize, how: (i32, i32), from: Option<(&File, usize)>| {
        let (number, offset) = from.map_or((-1, 0), |(file, at)| (file.as_raw_fd(), at));
        // SAFETY: it replaces only what is ours.
        unsafe {
            libc::mmap(at.cast(), size, how.0, private | how.1, number, offset as libc::off_t)
        }
    };
    let first = match &file {
        Some(file) => {
            let flags = loaded().next().map_or(0, |[_, flags, ..]| *flags);
            map(core::ptr::null_mut(), size, (protection(flags), 0), Some((file, 0)))
        }
        None => map(core::ptr::null_mut(), size, (both, libc::MAP_ANONYMOUS), None),
    };
    if first == libc::MAP_FAILED {
        return Err("there is no memory".into());
    }
    let pages = Pages { start: first.cast(), size };
    let at = |address: usize| pages.start.wrapping_add(address);
    for (number, &[_, flags, offset, address, in_file, in_memory]) in loaded().enumerate() {
        let start = address - address % PAGE;
        if let Some(bytes) = bytes {
            let data = bytes.get(offset..offset + in_file).unwrap_or_default();
            // SAFETY: the segment has room for it.
            unsafe { at(address).copy_from_nonoverlapping(data.as_ptr(), data.len()) };
            continue;
        }
        if number > 0 {
            let size = address + in_file - start;
            let from = file.as_ref().map(|file| (file, offset - offset % PAGE));
            map(at(start), size, (protection(flags), libc::MAP_FIXED), from);
        }
        let filled = (address + in_file).next_multiple_of(PAGE);
        if in_memory > in_file && flags & 2 != 0 {
            let rest = filled - address - in_file;
            // SAFETY: the rest of the last page.
            unsafe { at(address + in_file).write_bytes(0, rest) };
            let end = (address + in_memory).next_multiple_of(PAGE);
            if end > filled {
                let how = (both, libc::MAP_FIXED | libc::MAP_ANONYMOUS);
                map(at(filled), end - filled, how, None);
            }
        }
    }
    // SAFETY: the pages are there, and the file is sound.
    unsafe { relocate(&segments, pages.start) };
    let protect = |address: usize, end: usize, protection: i32| {
        let start = address - address % PAGE;
        // SAFETY: they are ours.
        unsafe { libc::mprotect(at(start).cast(), end - start, protection) };
    };
    for &[_, flags, _, address, _, in_memory] in loaded().filter(|[_, flags, ..]| flags & 2 == 0) {
        if file.is_none() {
            protect(address, address + in_memory, protection(flags));
        }
    }
    for &[_, _, _, address, _, in_memory] in segments.iter().filter(|it| it[0] == 0x6474_e552) {
        let end = address + in_memory;
        protect(address, end - end % PAGE, libc::PROT_READ);
    }
    Ok(pages)
}

/// Relative relocations, packed ones and others.
///
/// # Safety
/// The image is there, of a sound file.
unsafe fn relocate(segments: &[Segment], base: *mut u8) {
    let dynamic = segments.iter().find(|[r#type, ..]| *r#type == 2);
    let Some(&[_, _, _, address, _, size]) = dynamic else { return };
    // SAFETY: as the caller guarantees.
    let read = |at: usize| unsafe { base.wrapping_add(at).cast::<usize>().read() };
    // SAFETY: as above.
    let add = |at: usize| unsafe {
        let place = base.wrapping_add(at).cast::<usize>();
        place.write(place.read().wrapping_add(base.addr()));
    };
    let value = |tag: usize| {
        let mut entries = (address..address + size).step_by(16);
        entries.find(|at| read(*at) == tag).map_or(0, |at| read(at + 8))
    };
    let (table, count) = (value(7), value(0x6fff_fff9));
    for row in (table..).step_by(24).take(count) {
        let (place, addend) = (read(row), read(row + 16));
        // SAFETY: as above.
        unsafe { base.wrapping_add(place).cast::<usize>().write(base.addr().wrapping_add(addend)) };
    }
    let (packed, size, mut next) = (value(36), value(35), 0);
    for row in (packed..packed + size).step_by(8) {
        let entry = read(row);
        if entry & 1 == 0 {
            add(entry);
            next = entry + 8;
        } else {
            (0..63).filter(|bit| entry >> (bit + 1) & 1 != 0).for_each(|bit| add(next + bit * 8));
            next += 63 * 8;
        }
    }
}
