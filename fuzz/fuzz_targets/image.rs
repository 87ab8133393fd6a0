//! Target `image`: what it does is in `src/image.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hoist_fuzz::image::run(bytes));
