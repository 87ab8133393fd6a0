//! How far long work is: on standard error, if that is a terminal, once it takes longer than a second.

use core::time::Duration;
use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long work takes before it is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is drawn, so that people see that it goes on.
const TICK: Duration = Duration::from_millis(100);

/// Work that goes on until this is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Waits until the work is to be shown; ends when nobody can send any more.
    waiting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Work on so many bytes.
    #[must_use]
    pub fn of_bytes(total: u64) -> Self {
        Self::new(Some(total), "{spinner} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}")
    }

    /// Work of which nobody knows how much it is.
    fn of_unknown(what: &'static str) -> Self {
        let progress = Self::new(None, "{spinner} {msg}, {elapsed}");
        progress.bar.set_message(what);
        progress
    }

    fn new(total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let shown = bar.clone();
        let start = || {
            let (sender, receiver) = mpsc::channel();
            let wait = move || {
                if receiver.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(TICK);
                }
            };
            Some((sender, thread::Builder::new().spawn(wait).ok()?))
        };
        let waiting = if io::stderr().is_terminal() { start() } else { None };
        Self { bar, waiting }
    }

    /// So many bytes more are done.
    pub fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Does what may print.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.waiting.take() {
            drop(sender);
            let _ = thread.join();
        }
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}

/// Does work that may be long, and says what it is.
pub fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let progress = Progress::of_unknown(what);
    let done = work();
    drop(progress);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_and_nothing_stays() {
        let mut count = 0;
        let done = during("counting", || {
            count += 1;
            count
        });
        assert_eq!(done, 1);
        let progress = Progress::of_bytes(10);
        progress.advance(20);
        assert_eq!(progress.aside(|| 7), 7);
        let bar = progress.bar.clone();
        drop(progress);
        assert!(bar.is_finished());
    }
}
