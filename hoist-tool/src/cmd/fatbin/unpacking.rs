//! How long it takes to unpack entries, before and after a change: by so much is it longer or shorter until a program has loaded them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fatbin::RegionEntry;

use crate::number::size;

/// What was unpacked, and in what time: of one processor each, whatever the number of threads. And what was not, as only NVIDIA's tools can.
#[derive(Debug, Default)]
pub struct Unpacking {
    bytes: AtomicU64,
    /// Nanoseconds.
    before: AtomicU64,
    /// Nanoseconds.
    after: AtomicU64,
    /// Entries that are obfuscated.
    obfuscated: Mutex<Left>,
    /// Entries of NVVM that are not compressed.
    nvvm: Mutex<Left>,
    /// Entries of NVVM that NVIDIA's fatbinary has compressed.
    packed: Mutex<Left>,
}

/// Entries of a file that are not compressed here.
#[derive(Debug, Default)]
struct Left {
    count: u64,
    /// What they are stored in.
    bytes: u64,
    /// Their kinds and architectures.
    of: BTreeSet<String>,
    /// What NVIDIA's fatbinary says of them.
    refusals: BTreeSet<String>,
}

/// What a function gives, and how long this thread was on a processor for it: on a busy machine that is less than what a clock shows.
///
/// # Errors
/// Those of the function.
pub fn timed<T, E>(what: impl FnOnce() -> Result<T, E>) -> Result<(T, Duration), E> {
    let start = now();
    what().map(|done| (done, now().saturating_sub(start)))
}

#[cfg(target_os = "linux")]
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Where no clock of threads is at hand: that of the wall.
#[cfg(not(target_os = "linux"))]
fn now() -> Duration {
    use std::time::Instant;
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

impl Unpacking {
    /// Counts an entry of so many bytes when unpacked. A time of zero is that of one that is not compressed.
    pub fn add(&self, bytes: usize, before: Duration, after: Duration) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        for (sum, value) in [
            (&self.bytes, bytes as u64),
            (&self.before, nanoseconds(before)),
            (&self.after, nanoseconds(after)),
        ] {
            sum.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Adds the times of another file.
    pub fn extend(&self, other: &Self) {
        for (sum, more) in [
            (&self.bytes, &other.bytes),
            (&self.before, &other.before),
            (&self.after, &other.after),
        ] {
            sum.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Counts an entry that stays as it is: one that is obfuscated, or of NVVM, and why fatbinary has not compressed it, if it is
    /// there.
    pub fn add_left(&self, entry: RegionEntry<'_>, refusal: Option<String>) {
        let is_obfuscated = entry.obfuscation_key().is_some();
        let left = if is_obfuscated { &self.obfuscated } else { &self.nvvm };
        count(left, entry, refusal);
    }

    /// Counts an entry of NVVM that fatbinary has compressed.
    pub fn add_packed(&self, entry: RegionEntry<'_>) {
        count(&self.packed, entry, None);
    }

    /// What is said of entries of this file that are not compressed here: which, and why.
    pub fn left(&self) -> impl Iterator<Item = String> {
        const OBFUSCATED: &str = "they are obfuscated, with a key that only NVIDIA's tools use";
        const SCRAMBLED: &str = "NVVM (LTO-IR) is scrambled before it is compressed, which only NVIDIA's tools can undo: with --mode \
            fatbinary of CUDA 12.8 or later does it where it is installed (FATBINARY may name it; the Python package nvidia-cuda-nvcc has it)";
        const STAY: &str = "entries that stay as they are";
        const PACKED: &str = "entries that NVIDIA's fatbinary has compressed";
        [
            (&self.obfuscated, STAY, OBFUSCATED),
            (&self.nvvm, STAY, SCRAMBLED),
            (&self.packed, PACKED, ""),
        ]
        .into_iter()
        .filter_map(|(left, what, why)| {
            let left = left.lock().unwrap_or_else(PoisonError::into_inner);
            let of: Vec<_> = left.of.iter().map(String::as_str).collect();
            let refusals: Vec<_> = left.refusals.iter().map(String::as_str).collect();
            let why = if refusals.is_empty() { why } else { &refusals.join("; ") };
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            (left.count > 0).then(|| {
                format!(
                    "{what}: {} ({}), {} as they are stored{why}",
                    left.count,
                    of.join(", "),
                    size(left.bytes)
                )
            })
        })
    }

    /// The same, of a file by its name.
    pub fn left_of(&self, name: &str) -> impl Iterator<Item = String> {
        self.left().map(move |words| format!("{name}: {words}"))
    }

    /// What whoever loads the file should know; nothing if no entry changed.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let [bytes, before, after] =
            [&self.bytes, &self.before, &self.after].map(|sum| sum.load(Ordering::Relaxed));
        let size = size(bytes);
        let time = |nanoseconds: u64| {
            let seconds = Duration::from_nanos(nanoseconds).as_secs_f64();
            let speed = u128::from(bytes) * 1000 / u128::from(nanoseconds.max(1));
            format!("{seconds:.3} s of a processor here ({speed} MB/s)")
        };
        let what = match (bytes, before, after) {
            (0, _, _) | (_, 0, 0) => return None,
            (_, 0, after) => format!("{}; they were not compressed before", time(after)),
            (_, before, 0) => {
                return Some(format!(
                    "loading: {size} that changed are not compressed any more, and took {}",
                    time(before)
                ));
            }
            (_, before, after) => {
                let before = time(before).replacen(" of a processor here", "", 1);
                format!("{}, before in {before}", time(after))
            }
        };
        Some(format!("loading: {size} that changed unpack in {what}"))
    }
}

/// Counts an entry.
fn count(left: &Mutex<Left>, entry: RegionEntry<'_>, refusal: Option<String>) {
    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
    left.count = left.count.saturating_add(1);
    left.bytes = left.bytes.saturating_add(entry.stored_size());
    left.of.insert(format!("{} for sm_{}", entry.kind(), entry.sm()));
    left.refusals.extend(refusal);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_loading() {
        let note = |before, after| {
            let unpacking = Unpacking::default();
            let [before, after] = [before, after].map(Duration::from_millis);
            unpacking.add(500_000, before / 2, after / 2);
            unpacking.add(500_000, before / 2, after / 2);
            unpacking.note().unwrap_or_default()
        };
        assert_eq!(
            note(2, 4),
            "loading: 1.0 MB that changed unpack in 0.004 s of a processor here (250 MB/s), before in 0.002 s (500 MB/s)"
        );
        assert!(note(0, 4).ends_with("(250 MB/s); they were not compressed before"));
        assert!(note(2, 0).contains("not compressed any more"));
        assert_eq!((note(0, 0), Unpacking::default().note()), (String::new(), None));
    }
}
