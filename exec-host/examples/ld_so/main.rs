//! Compares what the dynamic loader and hoist make of a shared library: `ld_so FILE`. `cargo xtask ld-so` does so for many.

mod compare;

use std::path::Path;

fn main() {
    let path = std::env::args_os().nth(1).unwrap_or_default();
    match compare::compare(Path::new(&path)) {
        Ok(same) => {
            let compare::Same { bytes, words, thread_local, stood_for, written, different } = same;
            let count = different.len();
            println!("\nSAME {bytes} {words} {thread_local} {stood_for} {written} {count}");
            different.iter().take(5).for_each(|line| println!("DIFFERENT {line}"));
        }
        Err(why) => println!("\nREFUSED {}", why.replace('\n', " ")),
    }
    // SAFETY: ends the process; destructors of what was opened are nobody's business.
    unsafe { libc::_exit(0) }
}
