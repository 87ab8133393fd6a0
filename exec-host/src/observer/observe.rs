//! What an observer is.

use super::{Loaded, LoadedLibrary};
use core::any::Any;
use core::fmt;
use std::io;
use std::sync::Arc;

/// What a load leaves with an observer's friends: dropped when the module goes, after its code has run for the last time and
/// while it is still mapped.
pub type Observed = Box<dyn Any + Send + Sync>;

/// Told of what is loaded: [`Loader::observer`](crate::Loader::observer),
/// [`LibraryLoader::observer`](crate::library::LibraryLoader::observer).
pub trait Observer: fmt::Debug + Send + Sync {
    /// A load is in place, and none of its code has run. What it gives back is dropped at the unload.
    ///
    /// # Errors
    /// What the observer cannot do; the load then fails.
    fn loaded(&self, loaded: &Loaded<'_>) -> io::Result<Option<Observed>>;

    /// The same of a [library out of bytes](crate::library). Observers that do not know of them are not told.
    ///
    /// # Errors
    /// As [`loaded`](Self::loaded).
    fn library_loaded(&self, library: &LoadedLibrary<'_>) -> io::Result<Option<Observed>> {
        let _ = library;
        Ok(None)
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn loaded(&self, loaded: &Loaded<'_>) -> io::Result<Option<Observed>> {
        (**self).loaded(loaded)
    }

    fn library_loaded(&self, library: &LoadedLibrary<'_>) -> io::Result<Option<Observed>> {
        (**self).library_loaded(library)
    }
}
