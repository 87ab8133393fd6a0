//! What a source of symbols is, and several of them in a row.

use super::archive::ArchiveSource;
use super::shared_bytes::SharedBytes;
use crate::external::External;
use core::any::Any;
use core::fmt;
use elf_core::Name;
use elf_layout::archives::Undefined;
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
    Object(SharedBytes),
    /// A member of this archive defines it, which will be loaded likewise: the one that linkers take, in their order.
    Member(ArchiveSource),
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(external) => f.debug_tuple("At").field(external).finish(),
            Self::Kept(external, _) => {
                f.debug_tuple("Kept").field(external).finish_non_exhaustive()
            }
            Self::Object(bytes) => f.debug_tuple("Object").field(&bytes.len()).finish(),
            Self::Member(archive) => f.debug_tuple("Member").field(archive).finish(),
        }
    }
}

impl From<External> for Found {
    fn from(external: External) -> Self {
        Self::At(external)
    }
}

/// A source of symbols: [`Process`](crate::Process), an earlier [`Module`](crate::Module) in an [`Arc`], an [`ArchiveSource`],
/// a closure
/// ([`from_fn`]), and several of them one after the other ([`or`](Self::or), or a `Vec` of one sort).
pub trait Symbols {
    /// What it has of this name. A name for which an object or a member was given is not asked for again by the same load.
    fn find(&mut self, name: Name<'_>) -> Option<Found>;

    /// The same for a name that is asked for weakly only. Linkers take no member out of an archive for it.
    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        self.find(name)
    }

    /// An object or member with data of this name that are not common, for a name that a load has as a common symbol only
    /// (`SHN_COMMON`, gABI ch. 4, "Symbol Table"). Linkers take such a member out of an archive, and nothing else.
    fn find_data(&mut self, name: Name<'_>) -> Option<Found> {
        let _ = name;
        None
    }

    /// Whether it may ever find an [object](Found::Object) or a [member](Found::Member). A load asks such a source for all that its
    /// objects miss before anything is laid out; of one that says no, it never takes an object.
    fn has_objects(&self) -> bool {
        true
    }

    /// Moves the variable of this name to where code without `-fPIC` reaches it, below `limit` if there is one: whether it did,
    /// and will now [find](Self::find) it elsewhere. [`Process::copy_relocations`](crate::Process::copy_relocations) says who does.
    fn copy_relocate(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
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

    fn find_data(&mut self, name: Name<'_>) -> Option<Found> {
        self.first.find_data(name).or_else(|| self.next.find_data(name))
    }

    fn has_objects(&self) -> bool {
        self.first.has_objects() || self.next.has_objects()
    }

    fn copy_relocate(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        match self.first.find(name) {
            Some(_) => self.first.copy_relocate(name, limit),
            None => self.next.copy_relocate(name, limit),
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

    fn has_objects(&self) -> bool {
        false
    }
}

impl Symbols for ArchiveSource {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        self.index().definer(name, Undefined::Missing, None)?;
        Some(Found::Member(Self::clone(self)))
    }

    fn find_weak(&mut self, _: Name<'_>) -> Option<Found> {
        None
    }

    fn find_data(&mut self, name: Name<'_>) -> Option<Found> {
        self.index().definer(name, Undefined::Common, None)?;
        Some(Found::Member(Self::clone(self)))
    }
}

/// Nothing but what the objects define themselves.
impl Symbols for () {
    fn find(&mut self, _: Name<'_>) -> Option<Found> {
        None
    }

    fn has_objects(&self) -> bool {
        false
    }
}

/// Passes on what is asked to what a pointer leads to.
macro_rules! through {
    ($($pointer:ty),*) => {$(
        impl<S: Symbols + ?Sized> Symbols for $pointer {
            fn find(&mut self, name: Name<'_>) -> Option<Found> {
                (**self).find(name)
            }

            fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
                (**self).find_weak(name)
            }

            fn find_data(&mut self, name: Name<'_>) -> Option<Found> {
                (**self).find_data(name)
            }

            fn has_objects(&self) -> bool {
                (**self).has_objects()
            }

            fn copy_relocate(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
                (**self).copy_relocate(name, limit)
            }
        }
    )*};
}

through!(&mut S, Box<S>);

/// The first is asked first.
impl<S: Symbols> Symbols for Vec<S> {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        self.iter_mut().find_map(|source| source.find(name))
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        self.iter_mut().find_map(|source| source.find_weak(name))
    }

    fn find_data(&mut self, name: Name<'_>) -> Option<Found> {
        self.iter_mut().find_map(|source| source.find_data(name))
    }

    fn has_objects(&self) -> bool {
        self.iter().any(Symbols::has_objects)
    }

    fn copy_relocate(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        let found = self.iter_mut().find_map(|source| source.find(name).map(|_| source));
        found.is_some_and(|source| source.copy_relocate(name, limit))
    }
}
