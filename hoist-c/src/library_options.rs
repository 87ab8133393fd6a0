//! What a library is loaded with.

use crate::error::c_string;
use core::ffi::CStr;
use exec_host::library::{LibraryLoader, NeededLibrary};
use exec_host::observer::Observer;
use std::path::PathBuf;
use std::sync::Arc;

/// Who is asked for libraries that are needed.
pub(crate) type Needed = Arc<dyn Fn(&CStr) -> Option<NeededLibrary> + Send + Sync>;

/// What a load is given beside the file and sources of symbols.
#[derive(Clone, Default)]
pub(crate) struct LibraryOptions {
    pub(crate) is_lazy: bool,
    /// 0 where the size of the file is to say it.
    pub(crate) limit: u64,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) needed: Option<Needed>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
}

impl LibraryOptions {
    /// A loader with these options.
    pub(crate) fn loader<'s>(&self) -> LibraryLoader<'s> {
        let mut loader = LibraryLoader::new();
        if self.is_lazy {
            loader = loader.lazy();
        }
        if self.limit != 0 {
            loader = loader.limit(self.limit);
        }
        if let Some(folder) = &self.folder {
            loader = loader.origin(folder);
        }
        if let Some(needed) = self.needed.clone() {
            loader = loader.needed(move |name| needed(&c_string(name.as_bytes())));
        }
        for observer in &self.observers {
            loader = loader.observer(Arc::clone(observer));
        }
        loader
    }
}
