//! Calls `main` of a shared library: `library_work dlopen|bytes LIBRARY`, once as the dynamic loader loads it, once with everything that it
//! needs out of bytes, which is told line by line.

use exec_host::library::{LibraryLoader, NeededLibrary};
use std::ffi::{CString, c_char, c_int};
use std::path::Path;

type Main = unsafe extern "C" fn(c_int, *const *const c_char) -> c_int;

const FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
];

/// What the dynamic loader has to load itself.
fn is_of_loader(name: &str) -> bool {
    let own = ["libc.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so"];
    own.iter().any(|start| name.starts_with(start))
}

fn read(name: &str) -> Option<Vec<u8>> {
    let bytes = FOLDERS.iter().find_map(|folder| std::fs::read(Path::new(folder).join(name)).ok());
    eprintln!("LOADED {name}");
    bytes
}

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
            read(name).map(NeededLibrary::bytes)
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
