//! Target `layout`: what it does is in `src/layout.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::layout::run(bytes));
