//! Work of several processors at once.

use std::sync::OnceLock;
use std::thread;

use exec_core::threads::on_threads;

/// How many processors there are for this process.
pub fn processors() -> usize {
    // is asked several times, and each reads files of control groups
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Has up to `most` threads do `each` with the items, no more than there are processors. Gives whether all have succeeded.
pub fn on_processors<T>(
    most: usize,
    items: impl Iterator<Item = T> + Send,
    each: impl Fn(T) -> bool + Sync,
) -> bool {
    // to ask for the processors takes longer than a small piece of work
    let count = match most {
        0 | 1 => 1,
        _ => processors().min(most),
    };
    let ((), is_done) = on_threads(count, items, each, || ());
    is_done
}
