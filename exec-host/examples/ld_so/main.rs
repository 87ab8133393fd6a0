//! Compares what the dynamic loader and hoist make of shared libraries: `ld_so FILE...`, each in a process of its own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a program for those who test")]

mod compare;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn one(path: &Path) {
    match compare::compare(path) {
        Ok(same) => {
            let compare::Same { bytes, words, thread_local, stood_for, different } = same;
            println!("\nSAME {bytes} {words} {thread_local} {stood_for} {}", different.len());
            different.iter().take(5).for_each(|line| println!("DIFFERENT {line}"));
        }
        Err(why) => println!("\nREFUSED {}", why.replace('\n', " ")),
    }
    // destructors of what was opened are nobody's business
    std::process::abort();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = &arguments[..]
        && flag == "--one"
    {
        one(Path::new(path));
    }
    let files: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    let (next, totals) = (AtomicUsize::new(0), Mutex::new([0usize; 9]));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let output = Command::new(std::env::current_exe().unwrap())
                        .arg("--one")
                        .arg(path)
                        .env("LD_LIBRARY_PATH", path.parent().unwrap_or(Path::new("/")))
                        .output()
                        .unwrap();
                    let text = String::from_utf8_lossy(&output.stdout).into_owned();
                    let lines: Vec<&str> = text.lines().collect();
                    let same = lines.iter().find_map(|line| line.strip_prefix("SAME "));
                    let why = lines.iter().find_map(|line| line.strip_prefix("REFUSED "));
                    let mut totals = totals.lock().unwrap();
                    totals[0] += 1;
                    if let Some(same) = same {
                        let numbers: Vec<usize> =
                            same.split(' ').map(|word| word.parse().unwrap()).collect();
                        totals[1] += 1;
                        totals[2..7].iter_mut().zip(&numbers).for_each(|(sum, one)| *sum += one);
                        for line in lines.iter().filter(|line| line.starts_with("DIFFERENT")) {
                            println!("{}: {line}", path.display());
                        }
                    } else if let Some(why) = why {
                        totals[if why.starts_with("ld.so") { 7 } else { 8 }] += 1;
                        println!("{}: {why}", path.display());
                    } else {
                        println!("{}: {}", path.display(), output.status);
                    }
                }
            });
        }
    });
    let [files, same, bytes, words, thread_local, stood_for, different, loader, hoist] =
        *totals.lock().unwrap();
    println!(
        "{files} files, {same} compared: {bytes} bytes, {words} relocated words, of which {thread_local} of thread-local variables and \
         {stood_for} of functions that hoist has its own of; \
         {different} differences; refused: {loader} by ld.so, {hoist} by hoist, {} crashed",
        files - same - loader - hoist
    );
}
