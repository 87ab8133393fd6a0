//! Damaged files: whatever is cut off or changed, the commands say what is wrong, and never panic.
//!
//! `HOIST_TRUNCATIONS=all cargo test --release -p hoist-tool --test damaged` cuts every fixture to every length.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

mod fixtures;

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use elf_layout::Options;
use hoist_tool::cmd::show::Selection;
use hoist_tool::cmd::{disasm, layout, link, show};
use hoist_tool::input::Input;
use hoist_tool::objects::Objects;

/// Every subcommand that only reads, on these bytes: how many of them succeeded.
fn everything(path: &Path, bytes: Vec<u8>) -> usize {
    let input = Input::of(path, bytes);
    let mut done = 0;
    if let Ok(parts) = input.parts() {
        for part in &parts {
            done += usize::from(
                show::show(part, "damaged", Selection::default(), false, &mut io::sink()).is_ok(),
            );
            done += usize::from(
                show::show(part, "damaged", Selection::default(), true, &mut io::sink()).is_ok(),
            );
            done += usize::from(disasm::disasm(part, None, &mut io::sink()).is_ok());
        }
    }
    let base = 0x40_0000;
    if let Ok(objects) = Objects::gather(std::slice::from_ref(&input), &["is_odd", "main"]) {
        done += usize::from(layout::layout(&objects, Options::default()).is_ok());
        let options = Options { base: Some(base), ..Options::default() };
        done += usize::from(link::link(&objects, options, base, &HashMap::new(), None).is_ok());
    }
    done
}

/// Runs `case` for all numbers below `count`, on all processors; fails with the names of those that panicked.
fn no_panic(
    count: usize,
    name: impl Fn(usize) -> String + Sync,
    case: impl Fn(usize) -> usize + Sync,
) -> usize {
    let (done, panicked) = (Mutex::new(0), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (done, panicked, name, case) = (&done, &panicked, &name, &case);
            scope.spawn(move || {
                for number in (thread..count).step_by(threads) {
                    match catch_unwind(AssertUnwindSafe(|| case(number))) {
                        Ok(succeeded) => *done.lock().expect("no panic here") += succeeded,
                        Err(_) => panicked.lock().expect("no panic here").push(name(number)),
                    }
                }
            });
        }
    });
    let panicked = panicked.into_inner().expect("no panic here");
    assert!(
        panicked.is_empty(),
        "{} panicked: {:?}",
        panicked.len(),
        &panicked[..panicked.len().min(10)]
    );
    done.into_inner().expect("no panic here")
}

/// What overflows in silence would pass as no panic.
#[test]
fn overflow_is_a_panic_here() {
    let sum = catch_unwind(|| std::hint::black_box(u8::MAX) + std::hint::black_box(1));
    assert!(sum.is_err(), "these tests want a profile with overflow checks");
}

/// Every length is tried by `elf-core` itself; here, of each fixture, those that leave another remainder.
#[test]
fn truncations_of_every_fixture() {
    let fixtures = fixtures::all();
    let apart = if std::env::var_os("HOIST_TRUNCATIONS").is_some() { 1 } else { 19 };
    let cases: Vec<(usize, usize)> = fixtures
        .iter()
        .enumerate()
        .flat_map(|(file, (_, bytes))| {
            (file % apart..bytes.len()).step_by(apart).map(move |size| (file, size))
        })
        .collect();
    let name = |case: usize| {
        format!("{} cut to {} bytes", fixtures[cases[case].0].0.display(), cases[case].1)
    };
    let done = no_panic(cases.len(), name, |case| {
        let (file, size) = cases[case];
        let (path, bytes) = &fixtures[file];
        everything(path, bytes[..size].to_vec())
    });
    println!("{} truncations of {} files, {done} commands succeeded", cases.len(), fixtures.len());
}

#[test]
fn ten_thousand_changed_bytes() {
    let fixtures = fixtures::all();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize
    };
    let cases: Vec<(usize, usize, u8)> = (0..10_000)
        .map(|_| {
            let file = random() % fixtures.len();
            let at = random() % fixtures[file].1.len();
            let byte = random() as u8;
            (file, at, byte)
        })
        .collect();
    let name = |case: usize| {
        let (file, at, byte) = cases[case];
        format!("{} with {byte:#x} at {at:#x}", fixtures[file].0.display())
    };
    let done = no_panic(cases.len(), name, |case| {
        let (file, at, byte) = cases[case];
        let (path, mut bytes) = fixtures[file].clone();
        bytes[at] = byte;
        everything(&path, bytes)
    });
    println!("{} changes of {} files, {done} commands succeeded", cases.len(), fixtures.len());
    assert!(done > cases.len(), "most changes leave files that can be read");
}
