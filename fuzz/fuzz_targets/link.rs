//! Target `link`: what it does is in `src/link.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::link::run(bytes));
