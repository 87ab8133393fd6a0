//! What names were found to be that libraries of the process have which stay: load after load asks for the same few.

use core::array::from_fn;
use exec_core::sync::OnceLock;

/// What a name was found to be.
#[derive(Debug)]
struct Answer {
    hash: u32,
    name: Box<[u8]>,
    version: Option<Box<[u8]>>,
    address: u64,
}

impl Answer {
    #[inline]
    fn is_to(&self, hash: u32, name: &[u8], version: Option<&[u8]>) -> bool {
        self.hash == hash && *self.name == *name && self.version.as_deref() == version
    }
}

/// For so many names there is room, a power of two.
const ROOM: usize = 1024;

/// Addresses of names, by hash. What is known stays so; where there is no room for a name more, it is looked for each time.
#[derive(Debug)]
pub(super) struct Answers([OnceLock<Answer>; ROOM]);

impl Answers {
    pub(super) const fn new() -> Self {
        Self([const { OnceLock::new() }; ROOM])
    }

    /// Where the symbol of this name and version is, if that is known.
    #[inline]
    pub(super) fn find(&self, hash: u32, name: &[u8], version: Option<&[u8]>) -> Option<u64> {
        let places = places(hash).into_iter().map_while(|place| self.0.get(place)?.get());
        let mut found = places.filter(|answer| answer.is_to(hash, name, version));
        found.next().map(|answer| answer.address)
    }

    /// Keeps where it is.
    #[inline(never)]
    pub(super) fn add(&self, hash: u32, name: &[u8], version: Option<&[u8]>, address: u64) {
        let mut free = places(hash).into_iter().filter_map(|place| self.0.get(place));
        if let Some(place) = free.find(|place| place.get().is_none()) {
            let (name, version) = (name.into(), version.map(Into::into));
            // another thread may have been here first
            let _ = place.set(Answer { hash, name, version, address });
        }
    }
}

/// Where the answer to a hash may be.
#[inline]
fn places(hash: u32) -> [usize; 3] {
    from_fn(|step| (hash as usize).wrapping_add(step) & ROOM.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By name and version, not by hash alone; what there is no room for is not found, and nothing else in its place.
    #[test]
    fn by_name_and_version() {
        let answers = Answers::new();
        answers.add(7, b"read", Some(b"V1"), 1);
        answers.add(7, b"read", None, 2);
        answers.add(7 + 2 * ROOM as u32, b"seek", None, 3);
        answers.add(7, b"tell", None, 4);
        assert_eq!(answers.find(7, b"read", Some(b"V1")), Some(1));
        assert_eq!(answers.find(7, b"read", Some(b"V2")), None);
        assert_eq!(answers.find(7, b"read", None), Some(2));
        assert_eq!(answers.find(7 + 2 * ROOM as u32, b"seek", None), Some(3));
        assert_eq!(answers.find(7, b"seek", None), None);
        assert_eq!(answers.find(7, b"tell", None), None, "there was no room");
        assert_eq!(answers.find(6, b"read", None), None);
    }
}
