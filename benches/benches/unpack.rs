//! How fast payloads are unpacked and stored: the floor of `hoist fatbin extract`.
//!
//! `cargo bench -p benches --bench unpack -- LIBRARY [FOLDER]`; with an empty folder, also what storing the same bytes as files takes.

use fatbin::{Container, RegionEntry, Search, walk};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Seconds of `work` on all numbers below `count`, each thread with a buffer of its own.
fn timed(threads: usize, count: usize, size: usize, work: impl Fn(usize, &mut [u8]) + Sync) -> f64 {
    let next = AtomicUsize::new(0);
    let mut buffers = vec![vec![1; size]; threads]; // touched
    let start = Instant::now();
    std::thread::scope(|scope| {
        for buffer in &mut buffers {
            scope.spawn(|| {
                let next = || next.fetch_add(1, Ordering::Relaxed);
                std::iter::repeat_with(next)
                    .take_while(|&index| index < count)
                    .for_each(|index| work(index, buffer));
            });
        }
    });
    start.elapsed().as_secs_f64()
}

fn unpack(entry: &RegionEntry<'_>, buffer: &mut [u8]) {
    let size = entry.unpack_size(usize::MAX).unwrap();
    entry.unpack_into(&mut buffer[..size]).unwrap();
}

fn main() {
    // cargo adds options of its own
    let mut words =
        std::env::args_os().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let fixture =
        || concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/cuda/gpu-13.0-sm_90.fatbin").into();
    let path = words.next().unwrap_or_else(fixture);
    let folder = words.next().map(PathBuf::from);
    let file = std::fs::read(path).unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    for search in [Search::Never, Search::Always] {
        let mut entries = Vec::new();
        for found in walk(&file, search) {
            if let Container::Region(region) = found.unwrap().container {
                entries.extend(region.entries().map(Result::unwrap));
            }
        }
        let size = |entry: &RegionEntry<'_>| entry.unpack_size(usize::MAX).unwrap();
        entries.sort_by_key(|entry| std::cmp::Reverse(size(entry)));
        let (most, all) = (size(&entries[0]), entries.iter().map(size).sum::<usize>());
        println!("{search:?}: {} entries, {all} bytes", entries.len());
        for threads in [1, cores] {
            let run = || timed(threads, entries.len(), most, |at, to| unpack(&entries[at], to));
            let seconds = (0..5).map(|_| run()).fold(f64::MAX, f64::min);
            println!(
                "  unpacked by {threads}: {seconds:.3} s, {:.2} GB/s",
                all as f64 / seconds / 1e9
            );
        }
        let Some(folder) = &folder else { continue };
        let store = |at: usize, from: &mut [u8]| {
            std::fs::write(name(folder, at), &from[..size(&entries[at])]).unwrap();
        };
        let run = || {
            let seconds = timed(cores, entries.len(), most, store);
            (0..entries.len()).for_each(|at| std::fs::remove_file(name(folder, at)).unwrap());
            seconds
        };
        let seconds = (0..5).map(|_| run()).fold(f64::MAX, f64::min);
        println!("  stored by {cores}: {seconds:.3} s, {:.2} GB/s", all as f64 / seconds / 1e9);
    }
}

fn name(folder: &Path, at: usize) -> PathBuf {
    folder.join(at.to_string())
}
