//! Calls of a grid, spread over the cores.

use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use exec_core::Error;

use super::call::{Entry, Slot};

/// Threads that help with grids.
#[derive(Debug)]
pub(super) struct Pool {
    /// The process that has the threads: a child of it has none of them.
    process: u32,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Grids that want help; `None` ends a thread.
    wanted: Mutex<VecDeque<Option<Arc<Grid>>>>,
    more: Condvar,
}

/// A grid that is being worked on.
#[derive(Debug)]
struct Grid {
    entry: Arc<Entry>,
    slots: Vec<Slot>,
    count: u32,
    /// The first index that nobody has taken. Can go beyond `count` by the number of threads at most.
    next: AtomicU32,
    progress: Mutex<Progress>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    done: u32,
    error: Option<Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// `count` threads beside the one that has a grid.
    pub(super) fn new(count: usize) -> io::Result<Self> {
        let process = std::process::id();
        let mut pool = Self { process, shared: Arc::default(), threads: Vec::new() };
        for _ in 0..count {
            let shared = Arc::clone(&pool.shared);
            pool.threads
                .push(Builder::new().name("hoist grid".into()).spawn(move || help(&shared))?);
        }
        Ok(pool)
    }

    /// Calls the function once for each index below `count`. After an error, indices that nobody has taken are left out.
    ///
    /// # Safety
    /// As [`Entry::run`], for all indices at once.
    pub(super) unsafe fn run(
        &self,
        entry: &Arc<Entry>,
        slots: &[Slot],
        count: u32,
    ) -> Result<(), Error> {
        if count == 1 || self.threads.is_empty() {
            // SAFETY: the caller guarantees the function.
            return (0..count).try_for_each(|index| unsafe { entry.run(slots, index) });
        }
        let grid = Arc::new(Grid {
            entry: Arc::clone(entry),
            slots: slots.to_vec(),
            count,
            next: AtomicU32::new(0),
            progress: Mutex::default(),
            finished: Condvar::new(),
        });
        let helpers = self.threads.len().min(count as usize - 1);
        lock(&self.shared.wanted).extend((0..helpers).map(|_| Some(Arc::clone(&grid))));
        self.shared.more.notify_all();
        grid.work();
        let mut progress = lock(&grid.progress);
        while progress.done < count {
            progress = grid.finished.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        progress.error.take().map_or(Ok(()), Err)
    }
}

/// A helper's life.
fn help(shared: &Shared) {
    loop {
        let mut wanted = lock(&shared.wanted);
        let grid = loop {
            match wanted.pop_front() {
                Some(grid) => break grid,
                None => wanted = shared.more.wait(wanted).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(wanted);
        match grid {
            Some(grid) => grid.work(),
            None => return,
        }
    }
}

impl Grid {
    /// Takes indices as long as there are any.
    fn work(&self) {
        let mut done = 0;
        loop {
            let add = |next: u32| (next < self.count).then(|| next.saturating_add(1));
            let Ok(index) = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            else {
                break;
            };
            done += 1;
            // SAFETY: `Pool::run` was called for it, and waits for it.
            if let Err(error) = unsafe { self.entry.run(&self.slots, index) } {
                let rest = self.count.saturating_sub(self.next.swap(self.count, Ordering::Relaxed));
                done += rest;
                lock(&self.progress).error.get_or_insert(error);
            }
        }
        if done > 0 {
            let mut progress = lock(&self.progress);
            progress.done += done;
            if progress.done >= self.count {
                self.finished.notify_one();
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return core::mem::forget(core::mem::take(&mut self.threads));
        }
        lock(&self.shared.wanted).extend(self.threads.iter().map(|_| None));
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
