//! How long a library takes from bytes to callable, and from its file, beside `dlopen` of that: `load_speed LIBRARY [TIMES [HOW]]`, all three
//! or only `dlopen`, `bytes` or `file`. Constructors of the library run every time.

use exec_host::library::LibraryLoader;
use std::ffi::CString;
use std::time::{Duration, Instant};

/// Address space and memory of this process, in pages.
fn pages() -> String {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_ascii_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn shortest_and_median(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    (at(0), at(times.len() / 2))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("load_speed LIBRARY [TIMES [HOW]]")?;
    let times: usize = words.next().map_or(Ok(100), |word| word.parse())?;
    let only = words.next();
    let count = |how: &str| if only.as_deref().is_none_or(|only| only == how) { times } else { 0 };
    let bytes: &'static [u8] = std::fs::read(&path)?.leak();
    // what it needs stays, so that it alone is measured
    // SAFETY: the user asks for the library.
    let first = unsafe { LibraryLoader::new().open(bytes)? };
    let name = CString::new(path.as_str())?;
    let mut loader = Vec::new();
    for _ in 0..count("dlopen") {
        let start = Instant::now();
        // SAFETY: as above.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        loader.push(start.elapsed());
        if handle.is_null() {
            return Err("dlopen refuses".into());
        }
        // SAFETY: it is open.
        unsafe { libc::dlclose(handle) };
    }
    let (before, mut files, mut ours) = (pages(), Vec::new(), Vec::new());
    for _ in 0..count("file") {
        let start = Instant::now();
        // SAFETY: as above; nobody writes to the file.
        let library = unsafe { LibraryLoader::new().open_file(&path)? };
        files.push(start.elapsed());
        drop(library);
    }
    for _ in 0..count("bytes") {
        let start = Instant::now();
        // SAFETY: as above.
        let library = unsafe { LibraryLoader::new().open(bytes)? };
        ours.push(start.elapsed());
        drop(library);
    }
    let after = pages();
    drop(first);
    let [loader, bytes, file] = [loader, ours, files].map(shortest_and_median);
    println!("{path}: shortest and median of dlopen {loader:?}, bytes {bytes:?}, file {file:?}");
    println!("pages before {times} loads of each: {before}, after: {after}");
    Ok(())
}
