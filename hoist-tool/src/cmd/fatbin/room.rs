//! Memory of images that are unpacked and packed at the same time: however many cores there are, no more images than there is room for.

use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes that all images on their way may take together. One that takes more is alone.
const ROOM: u64 = 1 << 29;
/// The most that Zstandard's tables take at its smallest level, and about how many bytes for each byte of an image that is smaller than that.
const TABLES: u64 = 96 << 20;
const TABLES_FOR_EACH: u64 = 16;

/// What is free of it.
static FREE: Room = Room { free: Mutex::new(ROOM), changed: Condvar::new() };

#[derive(Debug)]
struct Room {
    free: Mutex<u64>,
    changed: Condvar,
}

/// Room that was taken, until this is dropped.
#[derive(Debug)]
pub struct Taken {
    of: &'static Room,
    bytes: u64,
}

/// Waits until there is room for an image that unpacks to so many bytes, and is packed. Who has it takes no more, and waits for nobody else's
/// work.
#[must_use]
pub fn for_image(unpacked: u64, has_tables: bool) -> Taken {
    FREE.take(needed(unpacked, has_tables))
}

/// Bytes that an image takes: itself, what is packed of it, and what the encoder has or, later, what it unpacks to again.
fn needed(unpacked: u64, has_tables: bool) -> u64 {
    let tables = if has_tables { TABLES.min(unpacked.saturating_mul(TABLES_FOR_EACH)) } else { 0 };
    unpacked.saturating_mul(2).saturating_add(tables.max(unpacked))
}

impl Room {
    fn take(&'static self, bytes: u64) -> Taken {
        let bytes = bytes.min(ROOM);
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.changed.wait_while(free, |free| *free < bytes);
        let mut free = wait.unwrap_or_else(PoisonError::into_inner);
        *free = free.saturating_sub(bytes);
        Taken { of: self, bytes }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut free = self.of.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.saturating_add(self.bytes);
        self.of.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        static SMALL: Room = Room { free: Mutex::new(ROOM), changed: Condvar::new() };
        static NOW: AtomicU64 = AtomicU64::new(0);
        let sizes = [ROOM / 2, ROOM / 3, ROOM / 5, u64::MAX, 1, 0];
        thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    for round in 0..50 {
                        let taken = SMALL.take(sizes[(thread + round) % sizes.len()]);
                        let now = NOW.fetch_add(taken.bytes, Ordering::SeqCst) + taken.bytes;
                        assert!(now <= ROOM, "{now}");
                        thread::yield_now();
                        NOW.fetch_sub(taken.bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(*SMALL.free.lock().unwrap(), ROOM);
    }

    #[test]
    fn what_images_need() {
        assert_eq!(needed(1 << 10, true), 18 << 10);
        assert_eq!(needed(100 << 20, true), 300 << 20);
        assert_eq!(needed(20 << 20, true), (40 << 20) + TABLES);
        assert_eq!(needed(20 << 20, false), 60 << 20);
        assert_eq!(needed(u64::MAX, true), u64::MAX);
    }
}
