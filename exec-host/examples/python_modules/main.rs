//! Python with its extension modules, or its interpreter too, out of bytes:
//!
//!     python_modules dlopen|modules|bytes LIBPYTHON FOLDER[:FOLDER...] PYTHON ARGUMENT...
//!
//! Runs `PYTHON ARGUMENT...` in this process. `dlopen` opens `LIBPYTHON` by the dynamic loader and leaves the modules to it; `modules` loads
//! those in each `FOLDER` and below (`lib-dynload`, `site-packages`), and what these need, out of bytes, and makes them known as built-in ones;
//! `bytes` loads `LIBPYTHON` so as well. The modules are told on standard error.

mod modules;

use modules::{Main, Modules, Needed, Python, Result};
use std::ffi::{CString, c_char, c_int};
use std::path::Path;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [way, python, folders, arguments @ ..] = &words[..] else {
        return Err(
            "python_modules dlopen|modules|bytes LIBPYTHON FOLDER[:FOLDER...] PYTHON ARGUMENT..."
                .into(),
        );
    };
    let needed = Needed::default();
    let python = if way == "bytes" {
        Python::of_bytes(Path::new(python), &needed)?
    } else {
        Python::of_loader(python)?
    };
    if way != "dlopen" {
        for folder in folders.split(':') {
            let modules = Modules::load(&python, Path::new(folder), &needed)?;
            for (module, why) in &modules.refused {
                eprintln!("REFUSED {module}: {why}");
            }
            modules.announce(&python)?;
            // what they have registered for the end of the process is still to run
            std::mem::forget(modules);
        }
    }
    // SAFETY: the function has this type.
    let main = unsafe { std::mem::transmute::<usize, Main>(python.function("Py_BytesMain")?) };
    std::mem::forget((python, needed));
    let arguments: Vec<CString> =
        arguments.iter().map(|word| CString::new(word.as_str())).collect::<Result<_, _>>()?;
    let mut pointers: Vec<*const c_char> = arguments.iter().map(|word| word.as_ptr()).collect();
    let count = c_int::try_from(pointers.len())?;
    pointers.push(std::ptr::null());
    // SAFETY: so many arguments, and a null pointer; ends as a program does that returns.
    unsafe { libc::exit(main(count, pointers.as_ptr())) }
}
