//! Images that were read or written a short while ago.

use core::time::Duration;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};
use std::vec::Vec;

use crate::key::Key;

/// Images in memory, up to a bound, as long as the database is as it was.
///
/// A key says everything that an image depends on, so that one which was good stays good: that they go when the database
/// changes is for those who want to see what is on the disk.
#[derive(Debug)]
pub(super) struct Recent {
    /// Bytes that each of both halves may have.
    half: usize,
    looked: Option<Instant>,
    /// The files of the database, when they were looked at.
    files: [Option<(SystemTime, u64)>; 2],
    /// Used since `old` was put aside.
    young: HashMap<Key, Vec<u8>>,
    /// Used before; goes when there is too much.
    old: HashMap<Key, Vec<u8>>,
    /// Bytes of `young`.
    bytes: usize,
}

/// How long the files of the database are not looked at again.
const PAUSE: Duration = Duration::from_millis(1);

impl Recent {
    /// No images yet, and never more than so many bytes of them.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            half: bytes / 2,
            looked: None,
            files: [None; 2],
            young: HashMap::new(),
            old: HashMap::new(),
            bytes: 0,
        }
    }

    /// Forgets all images if the database has changed, looking at `paths` from time to time.
    pub(super) fn refresh(&mut self, paths: &[impl AsRef<Path>; 2]) {
        let now = Instant::now();
        if self.half > 0 && self.looked.is_none_or(|looked| now.duration_since(looked) >= PAUSE) {
            let files = look(paths);
            if files != self.files {
                self.clear();
            }
            (self.looked, self.files) = (Some(now), files);
        }
    }

    /// Takes the database for unchanged: what has changed it is known here.
    pub(super) fn accept(&mut self, paths: &[impl AsRef<Path>; 2]) {
        self.files = look(paths);
    }

    /// The image of a key, if it is here.
    pub(super) fn get(&mut self, key: &Key) -> Option<&[u8]> {
        if !self.young.contains_key(key) {
            let image = self.old.remove(key)?;
            self.keep(key, image);
        }
        self.young.get(key).map(Vec::as_slice)
    }

    /// Keeps an image that is good.
    pub(super) fn put(&mut self, key: &Key, image: &[u8]) {
        self.remove(key);
        // one that would drive out most others costs less to read than they do
        if image.len() <= self.half / 4 {
            self.keep(key, image.to_vec());
        }
    }

    /// Forgets an image.
    pub(super) fn remove(&mut self, key: &Key) {
        self.old.remove(key);
        if let Some(image) = self.young.remove(key) {
            self.bytes = self.bytes.saturating_sub(image.len());
        }
    }

    /// Forgets all images.
    pub(super) fn clear(&mut self) {
        (self.young, self.old, self.bytes) = Default::default();
    }

    fn keep(&mut self, key: &Key, image: Vec<u8>) {
        if self.bytes.saturating_add(image.len()) > self.half {
            self.old = core::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(image.len());
        self.young.insert(*key, image);
    }
}

/// When the files were written, and their sizes.
fn look(paths: &[impl AsRef<Path>; 2]) -> [Option<(SystemTime, u64)>; 2] {
    let look = |path: &Path| fs::metadata(path).and_then(|file| Ok((file.modified()?, file.len())));
    paths.each_ref().map(|path| look(path.as_ref()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Identity;
    use std::string::ToString as _;
    use std::vec;

    fn key(number: usize) -> Key {
        let identity = Identity { name: "", version: "", target: "", options: &[] };
        Key::of(&identity, &number.to_string())
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let half = 8000;
        let mut recent = Recent::new(2 * half);
        let size = half / 8;
        for number in 0..100 {
            recent.put(&key(number), &vec![number as u8; size]);
            assert!(recent.get(&key(0)).is_some_and(|image| image.first() == Some(&0)));
            assert!(recent.bytes <= half && recent.old.len() + recent.young.len() <= 16);
        }
        assert!(recent.get(&key(99)).is_some() && recent.get(&key(50)).is_none());
        recent.put(&key(0), &[7]);
        assert_eq!(recent.get(&key(0)), Some(&[7][..]));
        recent.put(&key(0), &vec![0; half]);
        assert!(recent.get(&key(0)).is_none());
        recent.remove(&key(99));
        assert!(recent.get(&key(99)).is_none());
        recent.clear();
        assert_eq!((recent.bytes, recent.young.len(), recent.old.len()), (0, 0, 0));
        let mut none = Recent::new(0);
        none.put(&key(0), &[1]);
        assert!(none.get(&key(0)).is_none());
    }
}
