//! Target `archive`: what it does is in `src/archive.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::archive::run(bytes));
