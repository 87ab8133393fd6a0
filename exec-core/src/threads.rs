//! What is large, done by several threads at once.

use crate::sync::Mutex;
use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Has up to `count` threads, this one among them, take `items` one after another and do `each` with them; this one does something else
/// `first`. When this returns, all is done. Gives what came of `first`, and whether `each` has succeeded with all.
///
/// A thread that cannot be had leaves its part to the others.
///
/// ```
/// use exec_core::threads::on_threads;
///
/// let mut squares = [0u64; 100];
/// let places = squares.iter_mut().zip(0u64..);
/// let each = |(place, number): (&mut u64, u64)| number.checked_mul(number).map(|it| *place = it).is_some();
/// let ((), is_done) = on_threads(2, places, each, || ());
/// assert!(is_done);
/// assert_eq!(squares[9], 81);
/// ```
///
/// # Panics
/// If `each` or `first` does.
pub fn on_threads<T, R>(
    count: usize,
    items: impl Iterator<Item = T> + Send,
    each: impl Fn(T) -> bool + Sync,
    first: impl FnOnce() -> R,
) -> (R, bool) {
    let (items, has_failed) = (Mutex::new(items), AtomicBool::new(false));
    let next = || items.lock().next();
    let work = || {
        while let Some(item) = next() {
            if !each(item) {
                has_failed.store(true, Ordering::Relaxed);
            }
        }
    };
    let found = thread::scope(|scope| {
        for _ in 1..count {
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        let found = first();
        work();
        found
    });
    (found, !has_failed.into_inner())
}
