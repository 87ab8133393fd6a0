//! What a program asks a library for by name, beside `dlsym` and `dlvsym` of the same library.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use core::ffi::c_void;
use exec_host::library::Library;
use std::ffi::{CString, c_char, c_int, c_long};
use std::path::Path;
use system::libraries::{Libraries, wide};

/// What a function of ours gives.
fn ours(library: &Library, name: &str, version: Option<&str>) -> Option<i64> {
    let address = match version {
        None => library.function(name),
        Some(version) => library.function_version(name, version),
    };
    let address = core::ptr::with_exposed_provenance::<()>(address.ok()? as usize);
    // SAFETY: the tests' functions have this type.
    let function = unsafe { core::mem::transmute::<*const (), extern "C" fn() -> c_long>(address) };
    Some(wide(function()))
}

/// The same of one that the dynamic loader has opened.
fn theirs(path: &Path, name: &str, version: Option<&str>) -> Option<i64> {
    type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
    let [path, name, version] = [path.to_str().unwrap(), name, version.unwrap_or_default()]
        .map(|text| CString::new(text).unwrap());
    // SAFETY: the tests' libraries do no harm, and names end in NUL.
    let found = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL as c_int);
        assert!(!handle.is_null());
        match version.is_empty() {
            true => libc::dlsym(handle, name.as_ptr()),
            // not every C library has it
            false => core::mem::transmute::<*mut c_void, Dlvsym>(libc::dlsym(
                libc::RTLD_DEFAULT,
                c"dlvsym".as_ptr(),
            ))(handle, name.as_ptr(), version.as_ptr()),
        }
    };
    // SAFETY: as above; the library stays.
    (!found.is_null()).then(|| unsafe {
        wide(core::mem::transmute::<*mut c_void, extern "C" fn() -> c_long>(found)())
    })
}

/// The nearest of what is needed has it, and then what that needs; whether these are out of bytes or not.
#[test]
fn needed_libraries() {
    let libraries = Libraries::new("by-name");
    let lowest = "long deep(void) { return 1; } long both(void) { return 2; } int value = 7; __thread int own = 1;";
    libraries.add("lowest", lowest, &[], &[]);
    libraries.add("middle", "long near(void) { return 3; }", &["lowest"], &[]);
    libraries.add(
        "other",
        "long both(void) { return 4; } long probe(void) { return 9; }",
        &[],
        &[],
    );
    libraries.add("top", "long probe(void) { return 5; }", &["middle", "other"], &[]);
    let path = libraries.path("top");
    let bytes = libraries.ours("top").unwrap();
    // what it needs is of the dynamic loader
    // SAFETY: the tests' libraries do no harm.
    let file = unsafe { exec_host::library::LibraryLoader::new().open_file(&path) }.unwrap();
    for name in ["probe", "near", "both", "deep", "missing"] {
        let expected = theirs(&path, name, None);
        assert_eq!(ours(&bytes, name, None), expected, "{name}");
        assert_eq!(ours(&file, name, None), expected, "{name}");
    }
    assert_eq!(ours(&bytes, "both", None), Some(4));
    for library in [&bytes, &file] {
        assert_eq!(library.function("value").unwrap_err().to_string(), "value is not code");
        let value =
            core::ptr::with_exposed_provenance::<c_int>(library.address("value").unwrap() as usize);
        // SAFETY: the variable of the source, which stays as long as the library.
        assert_eq!(unsafe { value.read() }, 7);
        assert_eq!(library.address("own"), None, "of threads");
        assert!(library.function("getpid").is_ok() && library.shows("probe"));
        assert!(!library.shows("near") && !library.shows("getpid"));
        let missing = library.function("missing").unwrap_err().to_string();
        assert_eq!(missing, "neither the library nor what it needs defines missing");
    }
}

/// A library and one without versions that it needs; musl has no versions.
#[cfg(not(target_env = "musl"))]
#[test]
fn versions() {
    let libraries = Libraries::new("by-version");
    libraries.add("plain", "long unversioned(void) { return 30; }", &[], &[]);
    let script = libraries.folder.path().join("versions");
    std::fs::write(&script, "V1 { global: *; }; V2 { } V1;").unwrap();
    let script = format!("-Wl,--version-script={}", script.display());
    let source = r#"
        long one(void) { return 10; } long two(void) { return 20; } long only(void) { return 11; }
        __asm__(".symver one, which@V1"); __asm__(".symver two, which@@V2");"#;
    libraries.add("many", source, &["plain"], &[&script]);
    let (path, library) = (libraries.path("many"), libraries.ours("many").unwrap());
    for (name, version) in [
        ("which", None),
        ("which", Some("V1")),
        ("which", Some("V2")),
        ("which", Some("V3")),
        ("only", Some("V1")),
        ("only", Some("V2")),
        ("missing", Some("V1")),
        ("unversioned", None),
        ("unversioned", Some("V1")),
    ] {
        let found = ours(&library, name, version);
        assert_eq!(found, theirs(&path, name, version), "{name} {version:?}");
    }
    assert_eq!(ours(&library, "which", Some("V1")), Some(10));
    assert_eq!(ours(&library, "which", None), Some(20));
    // SAFETY: the type of the source.
    let typed = unsafe { library.get_version::<unsafe extern "C" fn() -> c_long>("which", "V1") };
    // SAFETY: as above.
    assert_eq!(wide(unsafe { typed.unwrap()() }), 10);
}
