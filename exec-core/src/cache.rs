//! Where compilers' output is kept.

use alloc::vec::Vec;

use crate::error::CacheError;
use crate::key::Key;

/// What a cache may be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// Nothing: everything is compiled.
    Off,
    /// Images are taken from it; what is missing is compiled and not kept.
    ReadOnly,
    /// Images are taken from it; what is missing is compiled and kept.
    #[default]
    ReadWrite,
    /// Images are taken from it; what is missing is an error.
    Required,
}

/// What a cache has for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The image, with the content that was put in.
    Hit(Vec<u8>),
    /// Nothing.
    Miss,
    /// Something, but not what was put in. It is not there any more, unless the cache is for reading only.
    Damaged,
}

/// Keeps images by key.
pub trait Cache: Send + Sync {
    /// What it may be used for.
    fn mode(&self) -> CacheMode;

    /// What it has for `key`.
    ///
    /// # Errors
    /// [`CacheError::Read`].
    fn get(&self, key: &Key) -> Result<Lookup, CacheError>;

    /// Keeps an image, in place of what it has for `key`.
    ///
    /// # Errors
    /// [`CacheError`]; what was kept before is still there.
    fn put(&self, key: &Key, image: &[u8]) -> Result<(), CacheError>;
}

/// No cache: everything is compiled.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCache;

impl Cache for NoCache {
    fn mode(&self) -> CacheMode {
        CacheMode::Off
    }

    fn get(&self, _key: &Key) -> Result<Lookup, CacheError> {
        Ok(Lookup::Miss)
    }

    fn put(&self, _key: &Key, _image: &[u8]) -> Result<(), CacheError> {
        Err(CacheError::ReadOnly)
    }
}
