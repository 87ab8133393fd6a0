//! The lock: the system's if there is one, else one that spins.

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
    #[cfg(feature = "std")]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The value, without waiting: nobody else has it.
    #[cfg(not(feature = "std"))]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
