//! Locks: the system's if there is one, else one that spins; and one that spins always.

/// A value behind a lock that is held for a few steps, never over a call of somebody else. It is given back with a store, where
/// the system's lock has to ask whether anybody sleeps.
pub(crate) type SpinLock<T> = spin::mutex::SpinMutex<T, Relax>;

/// What to do while another thread has it: let it go on, if there is a system to ask for that.
#[cfg(feature = "std")]
type Relax = spin::Yield;
#[cfg(not(feature = "std"))]
type Relax = spin::Spin;

/// A value behind a lock.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(Inner<T>);

#[cfg(not(feature = "std"))]
type Inner<T> = spin::Mutex<T>;
#[cfg(feature = "std")]
type Inner<T> = std::sync::Mutex<T>;

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    /// Waits for the lock. Nothing that runs under one of our locks panics halfway, so that a poisoned one is as good.
    #[cfg(feature = "std")]
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits for the lock.
    #[cfg(not(feature = "std"))]
    pub(crate) fn lock(&self) -> spin::MutexGuard<'_, T> {
        self.0.lock()
    }

    /// The value, without waiting: nobody else has it.
    #[cfg(feature = "disk")]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
