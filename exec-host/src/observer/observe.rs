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
///
/// ```
/// use exec_host::observer::{Loaded, Observed, Observer};
/// use exec_host::{Loader, Process};
/// use std::sync::{Arc, Mutex};
///
/// /// Keeps the names of functions.
/// #[derive(Debug, Default)]
/// struct Names(Mutex<Vec<String>>);
///
/// impl Observer for Names {
///     fn loaded(&self, loaded: &Loaded<'_>) -> std::io::Result<Option<Observed>> {
///         let names = loaded.functions().into_iter().map(|function| function.name.to_string());
///         self.0.lock().unwrap().extend(names);
///         Ok(None)
///     }
/// }
///
/// # #[cfg(target_arch = "x86_64")] {
/// let names = Arc::new(Names::default());
/// let loader = Loader::new().observer(Arc::clone(&names));
/// let object = include_bytes!("../../../fixtures/x86_64/elftest.o");
/// let module = loader.load([&object[..]], &mut Process::new())?;
/// assert_eq!(*names.0.lock().unwrap(), ["foo"]);
/// # }
/// # Ok::<(), exec_host::Error>(())
/// ```
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
