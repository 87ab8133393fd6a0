//! Calls `main` of a shared library: `library_work dlopen|bytes LIBRARY`, once as the dynamic loader loads it, once with everything that it
//! needs out of bytes, which is told line by line.

mod needed;

use exec_host::library::{LibraryLoader, NeededLibrary};
use needed::is_of_loader;
use std::ffi::{CString, c_char, c_int};

type Main = unsafe extern "C" fn(c_int, *const *const c_char) -> c_int;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [way, path] = &words[..] else { return Err("library_work dlopen|bytes LIBRARY".into()) };
    let argument = CString::new(path.as_str())?;
    let arguments = [argument.as_ptr(), std::ptr::null()];
    let status = if way == "dlopen" {
        // SAFETY: the user asks for the library.
        let main = unsafe {
            let handle = libc::dlopen(argument.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if handle.is_null() { handle } else { libc::dlsym(handle, c"main".as_ptr()) }
        };
        if main.is_null() {
            return Err("dlopen refuses it".into());
        }
        // SAFETY: the function has this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, Main>(main)(1, arguments.as_ptr()) }
    } else {
        let loader = LibraryLoader::new().needed(|name| {
            let name = name.to_str().filter(|name| !is_of_loader(name))?;
            let bytes = needed::read(name);
            eprintln!("LOADED {name}");
            bytes.map(NeededLibrary::bytes)
        });
        // SAFETY: the user asks for the library.
        let library = unsafe { loader.open(std::fs::read(path)?)? };
        // SAFETY: the function has this type.
        let main = unsafe { library.get::<Main>("main")? };
        // SAFETY: as above.
        let status = unsafe { main(1, arguments.as_ptr()) };
        // what it has registered for the end of the process is still to run
        std::mem::forget(library.clone());
        status
    };
    // SAFETY: ends as a program does that returns.
    unsafe { libc::exit(status) }
}
