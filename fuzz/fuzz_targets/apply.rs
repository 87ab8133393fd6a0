//! Target `apply`: what it does is in `src/apply.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::apply::run(bytes));
