//! Where symbols come from that no object of a load defines.
//!
//! ```
//! use exec_host::symbols::{Symbols as _, from_fn};
//! use exec_host::{External, Loader, Process};
//! use std::sync::Arc;
//!
//! # #[cfg(target_arch = "x86_64")] {
//! extern "C" fn own() {}
//!
//! let loader = Loader::new();
//! let first = include_bytes!("../../fixtures/x86_64/elftest.o");
//! let first = Arc::new(loader.load([&first[..]], Process::new())?);
//! // asked in this order: an earlier load, the program itself, the libraries of the process
//! let ours = from_fn(|name| (name == "own").then(|| External::function(own as *const () as u64)));
//! let symbols = first.or(ours).or(Process::new());
//! let second = include_bytes!("../../fixtures/x86_64/pair-b-gcc12-pic.o");
//! assert!(loader.load([&second[..]], symbols).is_err(), "it wants what pair-a has");
//! # }
//! # Ok::<(), exec_host::Error>(())
//! ```

mod archive;
mod data;
mod exports;
mod links;

pub use archive::Archive;
pub use data::keep_data;
pub(crate) use exports::Exports;
pub(crate) use links::Links;

use crate::Module;
use crate::external::External;
use core::any::Any;
use core::fmt;
use elf_core::Name;
use std::sync::Arc;

/// What must not go while code is loaded that refers to it: an earlier module, a library.
pub type Keeper = Arc<dyn Any + Send + Sync>;

/// What a source knows of a name.
#[derive(Clone)]
#[non_exhaustive]
pub enum Found {
    /// It is in memory, longer than the code that asks for it.
    At(External),
    /// It is in memory as long as the keeper lives, which the module that asks for it takes care of.
    Kept(External, Keeper),
    /// An object defines it, which will be loaded together with those that ask for it.
    Object(Arc<[u8]>),
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(external) => f.debug_tuple("At").field(external).finish(),
            Self::Kept(external, _) => {
                f.debug_tuple("Kept").field(external).finish_non_exhaustive()
            }
            Self::Object(bytes) => f.debug_tuple("Object").field(&bytes.len()).finish(),
        }
    }
}

impl From<External> for Found {
    fn from(external: External) -> Self {
        Self::At(external)
    }
}

/// A source of symbols: [`Process`](crate::Process), an earlier [`Module`] in an [`Arc`], an [`Archive`], a closure
/// ([`from_fn`]), and several of them one after the other ([`or`](Self::or), or a `Vec` of one sort).
pub trait Symbols {
    /// What it has of this name. A load asks once a name; a name for which an object was given is not asked for again.
    fn find(&mut self, name: Name<'_>) -> Option<Found>;

    /// The same for a name that is asked for weakly only. Linkers take no member out of an archive for it.
    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        self.find(name)
    }

    /// Moves the variable of this name to where code without `-fPIC` reaches it, below `limit` if there is one: whether it did,
    /// and will now [find](Self::find) it elsewhere. [`Process::moves_variables`](crate::Process::moves_variables) says who does.
    fn bring_near(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        let _ = (name, limit);
        false
    }

    /// This source, then `next` for what it does not have.
    fn or<S: Symbols>(self, next: S) -> Or<Self, S>
    where
        Self: Sized,
    {
        Or { first: self, next }
    }
}

/// One source, then another: [`Symbols::or`].
#[derive(Clone, Copy, Debug)]
pub struct Or<A, B> {
    first: A,
    next: B,
}

impl<A: Symbols, B: Symbols> Symbols for Or<A, B> {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        self.first.find(name).or_else(|| self.next.find(name))
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        self.first.find_weak(name).or_else(|| self.next.find_weak(name))
    }

    fn bring_near(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        match self.first.find(name) {
            Some(_) => self.first.bring_near(name, limit),
            None => self.next.bring_near(name, limit),
        }
    }
}

/// Asks a closure.
pub const fn from_fn<F: FnMut(Name<'_>) -> Option<External>>(find: F) -> FromFn<F> {
    FromFn(find)
}

/// A closure as a source: [`from_fn`].
#[derive(Clone, Copy)]
pub struct FromFn<F>(F);

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}

impl<F: FnMut(Name<'_>) -> Option<External>> Symbols for FromFn<F> {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        (self.0)(name).map(Found::At)
    }
}

/// Nothing but what the objects define themselves.
impl Symbols for () {
    fn find(&mut self, _: Name<'_>) -> Option<Found> {
        None
    }
}

/// What other components see of the module: its global symbols that are not hidden (gABI ch. 5, "Symbol Visibility"). Who
/// uses one keeps the module.
impl<B: AsRef<[u8]> + Send + Sync + 'static> Symbols for Arc<Module<B>> {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        let external = self.exports().get(name)?;
        Some(Found::Kept(external, Self::clone(self) as Keeper))
    }
}

impl<S: Symbols + ?Sized> Symbols for &mut S {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        (**self).find(name)
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        (**self).find_weak(name)
    }

    fn bring_near(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        (**self).bring_near(name, limit)
    }
}

impl<S: Symbols + ?Sized> Symbols for Box<S> {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        (**self).find(name)
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        (**self).find_weak(name)
    }

    fn bring_near(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        (**self).bring_near(name, limit)
    }
}

/// The first is asked first.
impl<S: Symbols> Symbols for Vec<S> {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        self.iter_mut().find_map(|source| source.find(name))
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        self.iter_mut().find_map(|source| source.find_weak(name))
    }

    fn bring_near(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        let found = self.iter_mut().find_map(|source| source.find(name).map(|_| source));
        found.is_some_and(|source| source.bring_near(name, limit))
    }
}
