//! What names were found to be that libraries of the process have which stay: load after load asks for the same few.

use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use exec_core::sync::OnceLock;

/// What a name was found to be, in a line of the processor's cache.
#[derive(Debug)]
struct Answer {
    address: u64,
    hash: u32,
    /// Bytes of the name, and of the name and the version.
    ends: [u8; 2],
    has_version: bool,
    text: [u8; ROOM],
}

/// Bytes of a name and a version. Longer ones, of C++ most, are looked for each time.
const ROOM: usize = 37;

impl Answer {
    fn new(hash: u32, name: &[u8], version: Option<&[u8]>, address: u64) -> Option<Self> {
        let mut text = [0; ROOM];
        let end = name.len().checked_add(version.map_or(0, <[u8]>::len))?;
        text.get_mut(..name.len())?.copy_from_slice(name);
        text.get_mut(name.len()..end)?.copy_from_slice(version.unwrap_or_default());
        let ends = [u8::try_from(name.len()).ok()?, u8::try_from(end).ok()?];
        Some(Self { address, hash, ends, has_version: version.is_some(), text })
    }

    #[inline]
    fn is_to(&self, hash: u32, name: &[u8], version: Option<&[u8]>) -> bool {
        let [middle, end] = self.ends.map(usize::from);
        self.hash == hash
            && self.text.get(..middle) == Some(name)
            && self.has_version == version.is_some()
            && version.is_none_or(|version| self.text.get(middle..end) == Some(version))
    }
}

/// For so many names there is room.
const MOST: usize = 512;

/// Numbers of answers by hash, a power of two of them.
const INDEX: usize = 2048;

/// Addresses of names. What is known stays so; where there is no room for a name more, it is looked for each time. In the order in which they were
/// asked for: those of one library stand together.
#[derive(Debug)]
pub(super) struct Answers {
    /// One more than the number of an answer; 0 for none.
    index: [AtomicU16; INDEX],
    count: AtomicUsize,
    answers: [OnceLock<Answer>; MOST],
}

impl Answers {
    pub(super) const fn new() -> Self {
        Self {
            index: [const { AtomicU16::new(0) }; INDEX],
            count: AtomicUsize::new(0),
            answers: [const { OnceLock::new() }; MOST],
        }
    }

    /// Where the symbol of this name and version is, if that is known.
    #[inline]
    pub(super) fn find(&self, hash: u32, name: &[u8], version: Option<&[u8]>) -> Option<u64> {
        let answers = places(hash).into_iter().map_while(|place| {
            let number = self.index.get(place)?.load(Ordering::Acquire).checked_sub(1)?;
            self.answers.get(usize::from(number))?.get()
        });
        let mut found = answers.filter(|answer| answer.is_to(hash, name, version));
        found.next().map(|answer| answer.address)
    }

    /// Keeps where it is.
    #[inline(never)]
    pub(super) fn add(&self, hash: u32, name: &[u8], version: Option<&[u8]>, address: u64) {
        let is_free = |place: &&AtomicU16| place.load(Ordering::Relaxed) == 0;
        let mut free = places(hash).into_iter().filter_map(|place| self.index.get(place));
        let Some(place) = free.find(is_free) else { return };
        if self.count.load(Ordering::Relaxed) >= MOST {
            return;
        }
        let Some(answer) = Answer::new(hash, name, version, address) else { return };
        // another thread may come first: its answer has the place, and this one nobody finds
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let Some(entry) = self.answers.get(number) else { return };
        if entry.set(answer).is_ok()
            && let Ok(number) = u16::try_from(number.saturating_add(1))
        {
            let _ = place.compare_exchange(0, number, Ordering::Release, Ordering::Relaxed);
        }
    }
}

/// Where the number of the answer to a hash may be.
#[inline]
fn places(hash: u32) -> [usize; 3] {
    [0, 1, 2].map(|step| (hash as usize).wrapping_add(step) & INDEX.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By name and version, not by hash alone; what there is no room for is not found, and nothing else in its place.
    #[test]
    fn by_name_and_version() {
        let answers = Answers::new();
        let behind = 7 + 2 * INDEX as u32;
        answers.add(7, b"read", Some(b"V1"), 1);
        answers.add(7, b"read", None, 2);
        answers.add(behind, b"seek", None, 3);
        answers.add(7, b"tell", None, 4);
        assert_eq!(answers.find(7, b"read", Some(b"V1")), Some(1));
        assert_eq!(answers.find(7, b"read", Some(b"V2")), None);
        assert_eq!(answers.find(7, b"rea", Some(b"dV1")), None);
        assert_eq!(answers.find(7, b"readV1", None), None);
        assert_eq!(answers.find(7, b"read", None), Some(2));
        assert_eq!(answers.find(7, b"read", Some(b"")), None);
        assert_eq!(answers.find(behind, b"seek", None), Some(3));
        assert_eq!(answers.find(7, b"seek", None), None);
        assert_eq!(answers.find(7, b"tell", None), None, "there was no room");
        assert_eq!(answers.find(6, b"read", None), None);
        let (fits, long) = (&[b'a'; ROOM - 2][..], &[b'a'; ROOM - 1][..]);
        for (hash, name, found) in [(100, fits, Some(5)), (200, long, None)] {
            answers.add(hash, name, Some(b"V1"), 5);
            assert_eq!(answers.find(hash, name, Some(b"V1")), found, "{}", name.len());
        }
    }

    /// As many as there is room for, each as it was.
    #[test]
    fn many() {
        let answers = Answers::new();
        let name = |number: usize| format!("name{number}");
        for number in 0..2 * MOST {
            answers.add(3 * number as u32, name(number).as_bytes(), None, number as u64);
        }
        for number in 0..2 * MOST {
            let found = answers.find(3 * number as u32, name(number).as_bytes(), None);
            assert_eq!(found, (number < MOST).then_some(number as u64), "{number}");
        }
    }

    #[test]
    fn a_line_of_the_cache() {
        assert!(size_of::<OnceLock<Answer>>() <= 64);
    }
}
