//! What is large, done by several threads at once.

use crate::Host;
use crate::error::Error;
use crate::memory;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use elf_core::File;
use elf_layout::{ImagePart, Layout, ScanPart};
use exec_core::sync::OnceLock;
use exec_core::threads::on_threads;

/// Most threads that fill one image: memory is no faster for more.
const MOST_THREADS: usize = 8;

/// How many bytes of objects a thread should have to write the image of: where others run, too, to wait for one takes longer than less.
const SHARE: u64 = 8 << 20;

/// Writes a layout into `image`, memory that is new, for address `base`, once the system has brought in the pages of `worth`.
///
/// # Errors
/// As [`Layout::write`]: the same, however many threads there are.
pub(crate) fn write(
    layout: &Layout<'_, '_, Host>,
    image: &mut [u8],
    base: u64,
    worth: &[Range<u64>],
) -> Result<(), Error> {
    let count = threads(layout);
    if count > 1 {
        let parts = layout.parts(image, base, count).map_err(Error::Layout)?;
        let write = |part: ImagePart<'_>| {
            bring_in(part.bytes(), part.offset(), worth);
            layout.write_part(part).is_ok()
        };
        if let ((), true) = on_threads(count, parts, write, || ()) {
            return Ok(());
        }
        // for the error that is the first where there is one thread
    } else {
        bring_in(image, 0, worth);
    }
    layout.write_zeroed(image, base).map_err(Error::Layout)
}

/// Has threads scan parts of the objects of a layout.
pub(crate) fn scan(parts: &mut [ScanPart<'_, '_, Host>]) {
    let scan = |part: &mut ScanPart<'_, '_, Host>| {
        part.scan();
        true
    };
    on_threads(processors(), parts.iter_mut(), scan, || ());
}

/// How many parts of objects are worth scanning apart: more than threads, that those who are done early have something to do.
pub(crate) fn scan_parts(files: &[File<'_>]) -> usize {
    match threads_for(files) {
        1 => 1,
        threads => threads.saturating_mul(4),
    }
}

/// How many threads are worth making for the objects of a layout, this one among them.
fn threads(layout: &Layout<'_, '_, Host>) -> usize {
    threads_for(layout.files())
}

/// The same for objects.
pub(crate) fn threads_for(files: &[File<'_>]) -> usize {
    let bytes: u64 = files.iter().map(|file| file.bytes().len() as u64).sum();
    let share = usize::try_from(bytes / SHARE).unwrap_or(usize::MAX);
    if share < 2 { 1 } else { processors().min(share) }
}

/// Does two things for objects, the other one in another thread if there is much to do: then it is told when it shall end.
pub(crate) fn beside<T: Send, R>(
    files: &[File<'_>],
    other: impl Fn(Option<&AtomicBool>) -> T + Sync,
    own: impl FnOnce() -> R,
) -> (T, R) {
    if threads_for(files) == 1 {
        return (other(None), own());
    }
    let (shall_end, other) = (AtomicBool::new(false), &other);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || other(Some(&shall_end)));
        let own = own();
        shall_end.store(true, Ordering::Relaxed);
        // without a thread this one does it
        let done = thread.ok().and_then(|thread| thread.join().ok());
        (done.unwrap_or_else(|| other(None)), own)
    })
}

/// Has the system bring in what `bytes`, which stand at `start` of an image, have of the ranges.
fn bring_in(bytes: &[u8], start: u64, worth: &[Range<u64>]) {
    for range in worth {
        let from = range.start.saturating_sub(start).min(bytes.len() as u64);
        let to = range.end.saturating_sub(start).min(bytes.len() as u64);
        if let Some(bytes) = bytes.get(from as usize..to as usize) {
            memory::bring_in::bring_in(bytes);
        }
    }
}

/// How many processors this process may use, as far as threads are made for them.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    // the standard library reads files of control groups, too, which takes long
    let count = || {
        let set = rustix::thread::sched_getaffinity(None).ok()?;
        usize::try_from(set.count()).ok()
    };
    *PROCESSORS.get_or_init(|| count().unwrap_or(1).clamp(1, MOST_THREADS))
}
