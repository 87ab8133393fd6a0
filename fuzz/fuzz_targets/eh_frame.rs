//! Target `eh_frame`: what it does is in `src/eh_frame.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::eh_frame::run(bytes));
