//! Locks of the system that a fork waits for.

use super::forks::{Held, hold};
use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// [`std::sync::Mutex`], which no other thread has when this one forks. Nothing that runs under one of our locks panics halfway, so that a
/// poisoned one is as good.
#[derive(Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// [`std::sync::RwLock`], in the same way.
#[derive(Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

/// [`std::sync::OnceLock`], which no other thread initializes when this one forks.
#[derive(Clone)]
pub struct OnceLock<T>(std::sync::OnceLock<T>);

/// What is dropped first comes first.
#[derive(Debug)]
#[must_use]
pub struct Guard<G> {
    guard: G,
    _held: Held,
}

/// What [`Mutex::lock`] gives.
pub type MutexGuard<'m, T> = Guard<std::sync::MutexGuard<'m, T>>;
/// What [`RwLock::read`] gives.
pub type RwLockReadGuard<'l, T> = Guard<std::sync::RwLockReadGuard<'l, T>>;
/// What [`RwLock::write`] gives.
pub type RwLockWriteGuard<'l, T> = Guard<std::sync::RwLockWriteGuard<'l, T>>;

impl<G> Guard<G> {
    pub(super) const fn new(guard: G, held: Held) -> Self {
        Self { guard, _held: held }
    }
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = hold();
        Guard::new(self.0.lock().unwrap_or_else(PoisonError::into_inner), held)
    }

    /// The value, without waiting: nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, which has no lock any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }

    /// Waits until nobody writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let held = hold();
        Guard::new(self.0.read().unwrap_or_else(PoisonError::into_inner), held)
    }

    /// Waits until nobody else has the lock.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let held = hold();
        Guard::new(self.0.write().unwrap_or_else(PoisonError::into_inner), held)
    }
}

impl<T> OnceLock<T> {
    /// One without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self(std::sync::OnceLock::new())
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value, which the first who asks makes.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.0.get() {
            Some(value) => value,
            None => {
                let _held = hold();
                self.0.get_or_init(make)
            }
        }
    }

    /// Takes a value.
    ///
    /// # Errors
    /// The value, if there is one.
    pub fn set(&self, value: T) -> Result<(), T> {
        let _held = hold();
        self.0.set(value)
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
