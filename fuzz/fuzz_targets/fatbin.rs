//! Target `fatbin`: what it does is in `src/fatbin.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::fatbin::run(bytes));
