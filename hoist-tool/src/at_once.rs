//! Work of several processors at once.

use std::thread;

/// Has up to `most` threads do `work`, this one among them, no more than there are processors. It ends when all have ended: each takes
/// piece after piece.
pub fn on_processors(most: usize, work: impl Fn() + Sync) {
    // to ask for the processors takes longer than a small piece of work
    let count = match most {
        0 | 1 => 1,
        _ => thread::available_parallelism().map_or(1, usize::from).min(most),
    };
    thread::scope(|scope| {
        for _ in 1..count {
            // who cannot be had leaves the work to the others
            let _ = thread::Builder::new().spawn_scoped(scope, &work);
        }
        work();
    });
}
