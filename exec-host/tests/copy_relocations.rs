//! Variables of libraries, moved for code that takes them to be near.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use core::ffi::{c_char, c_int};
use exec_host::{Loader, Process};
use std::process::Command;

const SOURCE: &str = "
extern int optind;
int getopt(int, char *const *, const char *);
static const char *const text = \"needs a low address\";
int index_now(void) { return optind; }
void set_index(int value) { optind = value; }
int *index_at(void) { return &optind; }
int next_option(int count, char *const *words) { return getopt(count, words, \"ab\"); }
";

/// The object of [`SOURCE`].
fn compiled(model: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (source, object) = (folder.path().join("s.c"), folder.path().join("s.o"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut command = Command::new("cc");
    let command = command.args([model, "-O1", "-c", "-o"]).arg(&object).arg(&source);
    command.status().is_ok_and(|status| status.success()).then(|| std::fs::read(object).unwrap())
}

#[test]
fn libraries_follow() {
    let (Some(fixed), Some(free)) = (compiled("-fno-pic"), compiled("-fPIC")) else {
        println!("skipped: libraries_follow: needs cc");
        return;
    };
    let refused = Loader::new().load([&fixed], Process::new()).unwrap_err();
    assert!(refused.to_string().contains("R_X86_64_PC32"), "{refused}");

    let mut process = Process::new();
    // SAFETY: nobody else in this process asks for options.
    unsafe { process.copy_relocations(true) };
    let low = Loader::new().load([&fixed], &mut process).unwrap();
    let high = Loader::new().load([&free], Process::new()).unwrap();
    // SAFETY: the functions have these types.
    unsafe {
        let at = low.get::<unsafe extern "C" fn() -> *mut c_int>("index_at").unwrap();
        assert!((at().addr() as u64) < 1 << 31);
        assert_eq!(at(), high.get::<unsafe extern "C" fn() -> *mut c_int>("index_at").unwrap()());
        let now = low.get::<unsafe extern "C" fn() -> c_int>("index_now").unwrap();
        assert_eq!(now(), 1);
        // the library's own function sees what is set here, and the other way round
        low.get::<unsafe extern "C" fn(c_int)>("set_index").unwrap()(2);
        let words = [c"program".as_ptr(), c"-a".as_ptr(), c"-b".as_ptr()];
        type Next = unsafe extern "C" fn(c_int, *const *const c_char) -> c_int;
        let next = high.get::<Next>("next_option").unwrap();
        assert_eq!((next(3, words.as_ptr()), now()), (c_int::from(b'b'), 3));
    }
    drop(low);
    // it stays where it is: a later load finds it there
    let again = Loader::new().load([&fixed], Process::new()).unwrap();
    // SAFETY: as above.
    unsafe { assert_eq!(again.get::<unsafe extern "C" fn() -> c_int>("index_now").unwrap()(), 3) };
}
