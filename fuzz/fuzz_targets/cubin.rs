//! Target `cubin`: what it does is in `src/cubin.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::cubin::run(bytes));
