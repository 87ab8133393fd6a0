//! Locks: the system's if there is one, else one that spins; and one that spins always. Those of the system are free when a process forks, so that
//! its child can use what they guard.

#[cfg(all(feature = "std", unix, not(miri)))]
#[expect(unsafe_code, reason = "declares functions of the C library")]
mod forks;
#[cfg(all(feature = "std", not(all(unix, not(miri)))))]
#[path = "sync/elsewhere.rs"]
mod forks;
#[cfg(feature = "std")]
mod locks;

#[cfg(feature = "std")]
pub use forks::{Held, generation, hold};
#[cfg(feature = "std")]
pub use locks::{Guard, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What to do while another thread has it: let it go on, if there is a system to ask for that.
#[cfg(feature = "std")]
type Relax = spin::Yield;
#[cfg(not(feature = "std"))]
type Relax = spin::Spin;

/// A value behind a lock that is held for a few steps, never over a call of somebody else. It is given back with a store, where
/// the system's lock has to ask whether anybody sleeps.
#[derive(Debug)]
pub(crate) struct SpinLock<T>(spin::mutex::SpinMutex<T, Relax>);

impl<T> SpinLock<T> {
    /// A lock around `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(spin::mutex::SpinMutex::new(value))
    }

    /// Waits for the lock.
    #[cfg(feature = "std")]
    pub(crate) fn lock(&self) -> Guard<spin::mutex::SpinMutexGuard<'_, T, Relax>> {
        let held = hold();
        Guard::new(self.0.lock(), held)
    }

    /// Waits for the lock.
    #[cfg(not(feature = "std"))]
    pub(crate) fn lock(&self) -> spin::mutex::SpinMutexGuard<'_, T, Relax> {
        self.0.lock()
    }

    /// The value, without waiting: nobody else has it.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A value behind a lock.
#[cfg(not(feature = "std"))]
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(spin::Mutex<T>);

#[cfg(not(feature = "std"))]
impl<T> Mutex<T> {
    /// A lock around `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(spin::Mutex::new(value))
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> spin::MutexGuard<'_, T> {
        self.0.lock()
    }
}
