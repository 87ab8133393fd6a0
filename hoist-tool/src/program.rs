//! Programs: `main` gets arguments and environment, and what it returns is the exit status.

use core::ffi::c_int;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result, bail};
use exec_host::Module;
use exec_host::program::{StartBlock, run_main, set_invocation_name};
use exec_host::symbols::{Found, Symbols as _};

/// The program, which is never unmapped: its threads may run as long as the process does.
static PROGRAM: OnceLock<Arc<Module<&'static [u8]>>> = OnceLock::new();

/// Calls this process by the program's name, before the program is loaded.
///
/// # Errors
/// A name with a NUL inside.
///
/// # Safety
/// No other thread runs.
pub(crate) unsafe fn announce(name: &OsStr) -> Result<()> {
    let name = CString::new(name.as_bytes()).context("a name with a NUL inside")?;
    // SAFETY: as the caller says.
    unsafe { set_invocation_name(&name) };
    Ok(())
}

/// Runs a program of which the objects are loaded, up to the return of `main`: the exit status, with which the process is to end. `release` is
/// called when nobody looks at the objects any more, before any code of theirs runs.
///
/// Destructors run when the process ends, however that comes about, after what the program registers with `atexit`.
///
/// # Errors
/// If there is no `main`; a word with a NUL inside.
///
/// # Safety
/// The program may run, once in this process.
pub(crate) unsafe fn run(
    module: Module<&'static [u8]>,
    name: &OsStr,
    words: &[OsString],
    release: impl FnOnce(),
) -> Result<c_int> {
    extern "C" fn finish() {
        if let Some(module) = PROGRAM.get() {
            // SAFETY: the C library calls this once; the module stays.
            unsafe { module.finish() };
        }
    }
    let texts = core::iter::once(name).chain(words.iter().map(OsString::as_os_str));
    let texts =
        texts.map(|text| CString::new(text.as_bytes()).context("an argument with a NUL inside"));
    let arguments = texts.collect::<Result<Vec<CString>>>()?;
    let (environment, auxiliary) =
        (StartBlock::environment_of_process(), StartBlock::auxiliary_of_process());
    let start = StartBlock::new(&arguments, &environment, &auxiliary);
    let module = PROGRAM.get_or_init(|| Arc::new(module));
    let shown = |name: &str| match Arc::clone(module).find(name.into()) {
        Some(Found::Kept(external, _)) => Some(external.address()),
        _ => None,
    };
    // Free Pascal's `main` is the function that its start file calls when it has told the runtime of the program's units
    if let (Some(main), Some(pascal)) = (shown("main"), shown("PASCALMAIN"))
        && main == pascal
    {
        bail!(
            "{}: `main` of Free Pascal is called by its start file (prt0.o), which begins a process: link the program, and run it by \
             `hoist exec`",
            name.display()
        );
    }
    // SAFETY: libraries find the program's functions, as they do those of an executable; nothing here comes back to its variables.
    unsafe { module.interpose() };
    release();
    // SAFETY: the function may run at any time; it is registered before the program registers anything.
    unsafe { libc::atexit(finish) };
    // SAFETY: the caller guarantees the program; what it is given is never freed.
    unsafe { run_main(module, &start) }.with_context(|| name.display().to_string())
}
