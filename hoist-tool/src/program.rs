//! Programs: `main` gets arguments and environment, and what it returns is the exit status.

use core::ffi::{c_char, c_int};
use core::ptr;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use exec_host::Module;

type Main = unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) -> c_int;

/// The program, which is never unmapped: its threads may run as long as the process does.
static PROGRAM: OnceLock<Module<Vec<u8>>> = OnceLock::new();

/// Runs a program of which the objects are loaded, up to the return of `main`: the exit status, with which the process is to end.
///
/// Destructors run when the process ends, however that comes about, after what the program registers with `atexit`.
///
/// # Errors
/// If there is no `main`; a word with a NUL inside.
///
/// # Safety
/// The program may run, once in this process.
pub(crate) unsafe fn run(
    module: Module<Vec<u8>>,
    name: &OsStr,
    words: &[OsString],
) -> Result<c_int> {
    extern "C" fn finish() {
        if let Some(module) = PROGRAM.get() {
            // SAFETY: the C library calls this once; the module stays.
            unsafe { module.finish() };
        }
    }
    let start = Start::new(name, words)?;
    let module = PROGRAM.get_or_init(|| module);
    // SAFETY: the function may run at any time; it is registered before the program registers anything.
    unsafe { libc::atexit(finish) };
    // SAFETY: the caller vouches for the program; what it is given is never freed.
    unsafe {
        module.initialize_as(start.count, start.words.as_ptr());
        let main = module.get::<Main>("main").context(name.display().to_string())?;
        Ok(main(start.count, start.words.as_ptr(), start.environment()))
    }
}

/// What the system hands to programs: arguments, environment and auxiliary vector, one behind the other (psABI, "Process
/// Initialization").
struct Start {
    count: c_int,
    words: &'static [*const c_char],
}

impl Start {
    fn new(name: &OsStr, arguments: &[OsString]) -> Result<Self> {
        let text = |bytes: &[u8]| {
            let text = CString::new(bytes).context("an argument with a NUL inside")?;
            Ok::<_, anyhow::Error>(text.into_raw().cast_const())
        };
        let mut words = vec![text(name.as_bytes())?];
        for word in arguments {
            words.push(text(word.as_bytes())?);
        }
        let count = c_int::try_from(words.len())?;
        words.push(ptr::null());
        for (name, value) in std::env::vars_os() {
            let mut line = name.into_vec();
            line.push(b'=');
            line.extend(value.into_vec());
            words.push(text(&line)?);
        }
        words.push(ptr::null());
        let auxiliary = std::fs::read("/proc/self/auxv").unwrap_or_default();
        let numbers = auxiliary.as_chunks().0.iter().map(|word| usize::from_ne_bytes(*word));
        words.extend(numbers.map(ptr::without_provenance));
        words.extend([ptr::null(); 2]);
        Ok(Self { count, words: Vec::leak(words) })
    }

    fn environment(&self) -> *const *const c_char {
        let first = usize::try_from(self.count).unwrap_or(0).saturating_add(1);
        self.words.get(first..).unwrap_or_default().as_ptr()
    }
}
