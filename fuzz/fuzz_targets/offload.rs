//! Target `offload`: what it does is in `src/offload.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::offload::run(bytes));
