//! Symbols with versions (`.symver`), answered as linkers do.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::symbols::{ArchiveSource, Symbols};
use exec_host::{Loader, Module, Process};
use std::sync::Arc;
use system::compile;

const DEFINES: &str = "
    __asm__(\".symver bar_old, bar@V0\");
    __asm__(\".symver bar_new, bar@@V1\");
    int bar_old(void) { return 10; }
    int bar_new(void) { return 11; }";

const ASKS: &str = "
    int bar(void), bar0(void), bar1(void);
    __asm__(\".symver bar0, bar@V0\");
    __asm__(\".symver bar1, bar@V1\");
    int plain(void) { return bar(); }
    int zero(void) { return bar0(); }
    int one(void) { return bar1(); }";

/// Compiles, or tells that the test is skipped.
macro_rules! object {
    ($test:literal, $source:expr) => {
        match compile("cc", &["-O1", "-fPIC"], $source) {
            Some(compiled) => compiled.bytes,
            None => {
                println!("skipped: {}: needs cc", $test);
                return;
            }
        }
    };
}

fn check(module: &Module<Vec<u8>>) {
    // SAFETY: all functions that are called here have this type.
    let call = |name| unsafe { module.get::<unsafe extern "C" fn() -> i32>(name).unwrap()() };
    assert_eq!([call("plain"), call("zero"), call("one")], [11, 10, 11]);
}

#[test]
fn versions_across_objects_archives_and_modules() {
    let defines = object!("versions_across_objects_archives_and_modules", DEFINES);
    let asks = object!("", ASKS);
    let one = object!("", &format!("{DEFINES}\n{ASKS}"));
    let load = |objects: Vec<Vec<u8>>, symbols: &mut dyn Symbols| {
        Loader::new().load(objects, symbols).unwrap()
    };
    check(&load(vec![defines.clone(), asks.clone()], &mut ()));
    check(&load(vec![asks.clone(), defines.clone()], &mut ()));
    check(&load(vec![one], &mut ()));
    let folder = tempfile::tempdir().unwrap();
    let (member, archive) = (folder.path().join("bar.o"), folder.path().join("libbar.a"));
    std::fs::write(&member, &defines).unwrap();
    let made = std::process::Command::new("ar").arg("rc").arg(&archive).arg(&member).status();
    if made.is_ok_and(|status| status.success()) {
        let mut archive = ArchiveSource::open(&archive).unwrap();
        check(&load(vec![asks.clone()], &mut archive));
    } else {
        println!("skipped: versions_across_objects_archives_and_modules: needs ar");
    }
    let mut earlier = Arc::new(load(vec![defines], &mut ()));
    assert!(earlier.address("bar").is_some());
    check(&load(vec![asks], &mut earlier));
}

// musl has no versions
#[cfg(target_env = "gnu")]
#[test]
fn libraries_are_asked_for_the_version() {
    if cfg!(not(all(target_arch = "x86_64", target_env = "gnu"))) {
        println!("skipped: libraries_are_asked_for_the_version: needs glibc of x86-64");
        return;
    }
    let source = |version: &str| {
        format!(
            "void *copy(void *, const void *, unsigned long);
             __asm__(\".symver copy, memcpy@{version}\");
             void *which(void) {{ return (void *)copy; }}"
        )
    };
    let old = object!("libraries_are_asked_for_the_version", &source("GLIBC_2.2.5"));
    let new = object!("", &source("GLIBC_2.14"));
    let none = object!("", &source("GLIBC_7.7"));
    let which = |object: Vec<u8>| {
        let module = Loader::new().load([object], Process::new()).unwrap();
        // SAFETY: that is its type.
        unsafe { module.get::<unsafe extern "C" fn() -> u64>("which").unwrap()() }
    };
    let (old, new) = (which(old), which(new));
    // SAFETY: asks the dynamic loader.
    let asked = |version: &core::ffi::CStr| unsafe {
        libc::dlvsym(libc::RTLD_DEFAULT, c"memcpy".as_ptr(), version.as_ptr()).addr() as u64
    };
    assert_eq!((old, new), (asked(c"GLIBC_2.2.5"), asked(c"GLIBC_2.14")));
    let error = Loader::new().load([none], Process::new()).unwrap_err();
    assert!(error.to_string().contains("memcpy@GLIBC_7.7"), "{error}");
}
