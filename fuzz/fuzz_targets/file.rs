//! Target `file`: what it does is in `src/file.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::file::run(bytes));
