//! How long a library takes from its file, and from bytes, to callable, beside `dlopen` of the same file, in turns:
//! `load_speed LIBRARY [TIMES [FUNCTION [fresh]]]`.
//!
//! Of each way the shortest and the median time of opening, of a first call of FUNCTION, which takes nothing (looked up by its name), and of closing;
//! and that of all three together. What the library needs is there before. `now` is immediate binding, `lazy` is `RTLD_LAZY`. With `fresh`, each
//! load is in a process of its own, for libraries that stay once they are open; memory that such a process takes is had from the machine before.
//! Constructors of the library run every time.

mod floor;

use elf_core::File;
use elf_core::names::DT_NEEDED;
use exec_host::library::LibraryLoader;
use std::error::Error;
use std::ffi::CString;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How a library is opened, and whether lazily. A floor is the least that can be done, which calls nothing.
const WAYS: [(&str, bool); 7] = [
    ("dlopen", false),
    ("file", false),
    ("bytes", false),
    ("dlopen", true),
    ("file", true),
    ("file's floor", false),
    ("bytes' floor", false),
];

/// How long opening, a first call and closing took.
type Times = [Duration; 3];

type Function = unsafe extern "C" fn() -> usize;

/// What is loaded.
struct Subject {
    path: String,
    name: CString,
    function: Option<String>,
}

impl Subject {
    /// Opens the library, calls its function and closes it.
    fn open(
        &self,
        (way, is_lazy): (&str, bool),
        bytes: &'static [u8],
    ) -> Result<Times, Box<dyn Error>> {
        if way == "dlopen" {
            return self.open_by_loader(is_lazy);
        }
        if way.ends_with("floor") {
            let start = Instant::now();
            let pages = floor::load(&self.path, way.starts_with("bytes").then_some(bytes))?;
            let (opened, start) = (start.elapsed(), Instant::now());
            drop(pages);
            return Ok([opened, Duration::ZERO, start.elapsed()]);
        }
        let loader = LibraryLoader::new();
        let start = Instant::now();
        let loader = if is_lazy { loader.lazy() } else { loader };
        let library = if way == "file" {
            // SAFETY: the user asks for the library; nobody writes to the file.
            unsafe { loader.open_file(&self.path)? }
        } else {
            // SAFETY: as above.
            unsafe { loader.open(bytes)? }
        };
        let opened = start.elapsed();
        let start = Instant::now();
        if let Some(function) = &self.function {
            // SAFETY: the user says that it takes nothing.
            unsafe { library.get::<Function>(function)?() };
        }
        let called = start.elapsed();
        let start = Instant::now();
        drop(library);
        Ok([opened, called, start.elapsed()])
    }

    fn open_by_loader(&self, is_lazy: bool) -> Result<Times, Box<dyn Error>> {
        let binding = if is_lazy { libc::RTLD_LAZY } else { libc::RTLD_NOW };
        let start = Instant::now();
        // SAFETY: the user asks for the library.
        let handle = unsafe { libc::dlopen(self.name.as_ptr(), binding | libc::RTLD_LOCAL) };
        let opened = start.elapsed();
        if handle.is_null() {
            return Err("dlopen refuses".into());
        }
        let start = Instant::now();
        if let Some(function) = &self.function {
            let function = CString::new(function.as_str())?;
            // SAFETY: the library is open.
            let address = unsafe { libc::dlsym(handle, function.as_ptr()) };
            if address.is_null() {
                return Err("dlopen's library has no such function".into());
            }
            // SAFETY: the user says that it takes nothing.
            unsafe { core::mem::transmute::<*mut libc::c_void, Function>(address)() };
        }
        let called = start.elapsed();
        let start = Instant::now();
        // SAFETY: it is open.
        unsafe { libc::dlclose(handle) };
        Ok([opened, called, start.elapsed()])
    }

    /// Has what the library needs loaded, so that it alone is measured.
    fn open_needed(&self, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
        let Some(dynamic) = File::parse_segments(bytes)?.dynamic_by_segment()? else {
            return Ok(());
        };
        for name in dynamic.texts(DT_NEEDED) {
            let name = CString::new(name?.as_bytes())?;
            // SAFETY: the user asks for what needs it.
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        }
        Ok(())
    }

    /// A load of a process of its own, which says how long it took.
    fn open_fresh(&self, number: usize) -> Result<Times, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["once", &self.path, &number.to_string()]).args(&self.function);
        let output = command.output()?;
        let words = String::from_utf8(output.stdout)?;
        let mut times = words.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || {
            let time = times.next().ok_or("a process says nothing")??;
            Ok::<_, Box<dyn Error>>(Duration::from_nanos(time))
        };
        Ok([next()?, next()?, next()?])
    }
}

/// Takes so many bytes of memory and gives them back: a virtual machine gets them from its host when they are first touched.
fn warm(bytes: usize) {
    const PAGE: usize = 4096;
    let mut memory = vec![0u8; bytes];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
}

/// Address space and memory of this process, in pages.
fn pages() -> String {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_ascii_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// The load of a process that was started for it.
fn once(path: String, number: &str, function: Option<String>) -> Result<(), Box<dyn Error>> {
    let subject = Subject { name: CString::new(path.as_str())?, path, function };
    let way = *WAYS.get(number.parse::<usize>()?).ok_or("there is no such way")?;
    let bytes = std::fs::read(&subject.path)?;
    subject.open_needed(&bytes)?;
    // what is not asked for does not take memory
    let bytes: &'static [u8] =
        if way.0.starts_with("bytes") { bytes.leak() } else { Default::default() };
    let times = subject.open(way, bytes)?;
    println!("{}", times.map(|time| time.as_nanos().to_string()).join(" "));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("load_speed LIBRARY [TIMES [FUNCTION [fresh]]]")?;
    if path == "once" {
        let (path, way) = words.next().zip(words.next()).ok_or("once LIBRARY WAY [FUNCTION]")?;
        return once(path, &way, words.next());
    }
    let times: usize = words.next().map_or(Ok(100), |word| word.parse())?;
    let function = words.next().filter(|function| function != "-");
    let is_fresh = words.next().is_some();
    if !Path::new(&path).is_file() {
        return Err("there is no such file".into());
    }
    let subject = Subject { name: CString::new(path.as_str())?, path, function };
    let bytes: &'static [u8] = std::fs::read(&subject.path)?.leak();
    subject.open_needed(bytes)?;
    let mut all: [Vec<Times>; WAYS.len()] = Default::default();
    let before = pages();
    for _ in 0..times {
        for (number, (way, found)) in WAYS.into_iter().zip(&mut all).enumerate() {
            found.push(if is_fresh {
                warm(bytes.len().saturating_mul(3));
                subject.open_fresh(number)?
            } else {
                subject.open(way, bytes)?
            });
        }
    }
    println!("{}, {times} times: shortest (median) in us", subject.path);
    println!("{:<17} {:>17} {:>17} {:>17} {:>17}", "", "open", "first call", "close", "all three");
    for ((way, is_lazy), found) in WAYS.into_iter().zip(&all) {
        let column = |of: &dyn Fn(&Times) -> Duration| {
            let mut times: Vec<f64> = found.iter().map(|it| of(it).as_secs_f64() * 1e6).collect();
            times.sort_by(f64::total_cmp);
            let at = |index: usize| times.get(index).copied().unwrap_or_default();
            format!("{:.1} ({:.1})", at(0), at(times.len() / 2))
        };
        let sum = |[open, call, close]: &Times| *open + *call + *close;
        let columns: [&dyn Fn(&Times) -> Duration; 4] =
            [&|[open, ..]| *open, &|[_, call, _]| *call, &|[.., close]| *close, &sum];
        let columns = columns.map(|of| format!("{:>17}", column(of))).join(" ");
        println!("{:<17} {columns}", format!("{way} {}", if is_lazy { "lazy" } else { "now" }));
    }
    println!("pages before: {before}, after: {}", pages());
    Ok(())
}
