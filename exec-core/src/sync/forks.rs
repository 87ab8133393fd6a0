//! What a fork waits for, so that a child never finds a lock that another thread of its parent had.
//!
//! A thread with a lock is counted, with a few others ([`SLOTS`]) that it seldom meets. A fork keeps threads that have none from taking one,
//! waits until nobody has any, and lets them go on when the child is there: locks need no order then, and none is known by its place.
//! No wait is for ever: who forks may have what a thread with a lock waits for, and then the child is as it would be without this.
//!
//! Nothing here allocates: handlers of signals unwind through loads, which takes a lock.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use core::time::Duration;
use std::thread;
use std::time::Instant;

/// How long a fork waits for threads with locks, and these for a fork.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_micros(50);

/// How many threads of a slot have locks, alone in its line of the processor's cache.
#[repr(align(64))]
struct Slot(AtomicU32);

static SLOTS: [Slot; 64] = [const { Slot(AtomicU32::new(0)) }; 64];

/// The thread that forks, or one of these.
static FORKING: AtomicUsize = AtomicUsize::new(NOT_TOLD);
const NOBODY: usize = 0;
/// The C library does not know of us.
const NOT_TOLD: usize = 1;

/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    safe fn pthread_self() -> usize;
    /// Of glibc, that of the library that this code is in: the handlers go with it. musl never unloads one.
    safe fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> core::ffi::c_int;
}

std::thread_local! {
    /// How many locks this thread has.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While this lives, no other thread forks.
#[derive(Debug)]
#[must_use]
pub struct Held {
    slot: usize,
    of_thread: PhantomData<*const ()>,
}

/// Keeps others from forking for a few steps, or a second if they take longer.
pub fn hold() -> Held {
    let this = pthread_self();
    let slot = slot_of(this);
    // who has a lock is waited for, and gets the next one at once
    if DEPTH.replace(DEPTH.get().wrapping_add(1)) == 0 {
        let count = count(slot);
        count.fetch_add(1, SeqCst);
        if FORKING.load(SeqCst) != NOBODY {
            wait(count, this);
        }
    }
    Held { slot, of_thread: PhantomData }
}

impl Drop for Held {
    fn drop(&mut self) {
        let depth = DEPTH.get().wrapping_sub(1);
        DEPTH.set(depth);
        if depth == 0 {
            count(self.slot).fetch_sub(1, SeqCst);
        }
    }
}

/// How many forks lie between the first process and this one: what other threads were about is not done by anybody after one more.
pub fn generation() -> u32 {
    GENERATION.load(SeqCst)
}

/// The slot of a thread, whose number is an address.
fn slot_of(thread: usize) -> usize {
    ((thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

fn count(slot: usize) -> &'static AtomicU32 {
    let [first, ..] = &SLOTS;
    &SLOTS.get(slot).unwrap_or(first).0
}

#[cold]
fn wait(count: &AtomicU32, this: usize) {
    let begin = Instant::now();
    loop {
        match FORKING.load(SeqCst) {
            NOBODY => return,
            NOT_TOLD => {
                // twice is as good as once
                pthread_atfork(Some(prepare), Some(in_parent), Some(in_child));
                _ = FORKING.compare_exchange(NOT_TOLD, NOBODY, SeqCst, SeqCst);
            }
            thread if thread == this || begin.elapsed() >= PATIENCE => return,
            _ => {
                count.fetch_sub(1, SeqCst);
                thread::sleep(POLL);
                count.fetch_add(1, SeqCst);
            }
        }
    }
}

extern "C" fn prepare() {
    let this = pthread_self();
    let begin = Instant::now();
    loop {
        let before = FORKING.load(SeqCst);
        if before == this {
            return;
        }
        let is_free = before == NOBODY || before == NOT_TOLD;
        if is_free && FORKING.compare_exchange(before, this, SeqCst, SeqCst).is_ok() {
            break;
        }
        if begin.elapsed() >= PATIENCE {
            return;
        }
        thread::sleep(POLL);
    }
    // what it is in the middle of itself goes on in the child
    if DEPTH.get() > 0 {
        count(slot_of(this)).fetch_sub(1, SeqCst);
    }
    let mut turns = 0_u32;
    while SLOTS.iter().any(|slot| slot.0.load(SeqCst) != 0) && begin.elapsed() < PATIENCE {
        turns = turns.saturating_add(1);
        if turns < 100 { thread::yield_now() } else { thread::sleep(POLL) }
    }
}

extern "C" fn in_parent() {
    let this = pthread_self();
    // it may have been another one's turn, or this is told twice
    if FORKING.load(SeqCst) == this {
        if DEPTH.get() > 0 {
            count(slot_of(this)).fetch_add(1, SeqCst);
        }
        FORKING.store(NOBODY, SeqCst);
    }
}

/// Only this thread is there.
extern "C" fn in_child() {
    SLOTS.iter().for_each(|slot| slot.0.store(0, SeqCst));
    count(slot_of(pthread_self())).store(u32::from(DEPTH.get() > 0), SeqCst);
    GENERATION.fetch_add(1, SeqCst);
    FORKING.store(NOBODY, SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_locks_are_waited_for_and_others_wait() {
        let held = hold();
        let other = thread::spawn(|| {
            let begin = Instant::now();
            prepare();
            let waited = begin.elapsed();
            let late = thread::spawn(|| drop(hold()));
            thread::sleep(Duration::from_millis(20));
            let is_late = !late.is_finished();
            // who forks may take locks
            drop(hold());
            in_parent();
            late.join().unwrap();
            (waited, is_late)
        });
        thread::sleep(Duration::from_millis(50));
        // with one lock comes the next
        drop(hold());
        drop(held);
        let (waited, is_late) = other.join().unwrap();
        assert!(waited >= Duration::from_millis(20), "{waited:?}");
        assert!(is_late);
    }
}
