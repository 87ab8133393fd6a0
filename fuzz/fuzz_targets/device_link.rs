//! Target `device_link`: what it does is in `src/device_link.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::device_link::run(bytes));
