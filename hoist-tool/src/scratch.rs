//! Memory that one image after another is unpacked into.

use std::sync::{Condvar, Mutex, PoisonError};

use anyhow::{Context as _, Result};
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::MmapMut;

/// Memory comes in steps of this.
const STEP: usize = 1 << 16;
/// From this size on it is made of large pages, which take long to fill with zeros.
const LARGE: usize = 4 << 20;
/// Bytes that all scratches of the process have together, but for one that alone has more: a core waits until there is room.
const ALL: usize = 128 << 20;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// Memory as large as what is unpacked into it. Where the system has large pages it is made of them: what unpacks looks back over
/// all of it, and much of the time would go into finding pages.
#[derive(Debug, Default)]
pub struct Scratch(Option<CountedMap>);

impl Scratch {
    /// So many bytes; what is in them is not said.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn take(&mut self, size: usize) -> Result<&mut [u8]> {
        let no_memory = || format!("no memory for {size} bytes");
        let rounded = size.max(1).checked_next_multiple_of(STEP).with_context(no_memory)?;
        // one that is much too large goes back as well: others wait for it
        let fits = |map: &MmapMut| map.len() >= rounded && map.len() / 2 <= rounded.max(LARGE);
        if !self.0.as_ref().is_some_and(|map| fits(&map.0)) {
            self.0 = None; // nobody waits with something in hand
            self.0 = Some(CountedMap::new(rounded).with_context(no_memory)?);
        }
        let all = self.0.as_mut().map_or(&mut [][..], |map| &mut map.0[..]);
        all.get_mut(..size).with_context(no_memory)
    }
}

/// Memory that is counted.
#[derive(Debug)]
struct CountedMap(MmapMut);

impl CountedMap {
    fn new(size: usize) -> std::io::Result<Self> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0 && taken.saturating_add(size) > ALL {
            taken = FREED.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        let map = MmapMut::map_anon(size)?;
        *taken = taken.saturating_add(size);
        drop(taken);
        // advice that is not taken does no harm
        #[cfg(target_os = "linux")]
        if size >= LARGE {
            let _ = map.advise(Advice::HugePage);
        }
        Ok(Self(map))
    }
}

impl Drop for CountedMap {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(self.0.len());
        FREED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_as_large_as_it_must_be() {
        let mut scratch = Scratch::default();
        for size in [0, 1, STEP, STEP + 1, LARGE * 3, 7] {
            let bytes = scratch.take(size).unwrap();
            assert_eq!(bytes.len(), size);
            bytes.fill(1);
        }
        assert!(scratch.0.as_ref().unwrap().0.len() < LARGE);
        assert!(scratch.take(usize::MAX).is_err() && scratch.take(usize::MAX / 2).is_err());
        assert_eq!(scratch.take(3).unwrap().len(), 3);
    }

    #[test]
    fn many_threads_wait_for_each_other() {
        let most = Mutex::new((0, 0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for size in [ALL * 2, ALL / 2, ALL / 3, 1] {
                        let mut scratch = Scratch::default();
                        let size = scratch.take(size).unwrap().len();
                        let mut now = most.lock().unwrap();
                        now.0 += size;
                        now.1 = now.1.max(now.0);
                        drop(now);
                        most.lock().unwrap().0 -= size;
                    }
                });
            }
        });
        let (now, most) = *most.lock().unwrap();
        assert!(now == 0 && most <= ALL * 2, "{most}");
    }
}
