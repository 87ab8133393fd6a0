//! A program that firmware loads and calls: its table of functions is right only if it was relocated, its counter only if it is zero.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

static STEPS: [fn(u64) -> u64; 3] = [twice, and_seven, squared];
static COUNTER: AtomicU64 = AtomicU64::new(0);
static FIRST: AtomicU64 = AtomicU64::new(5);

fn twice(value: u64) -> u64 {
    value * 2
}

fn and_seven(value: u64) -> u64 {
    value + 7
}

fn squared(value: u64) -> u64 {
    value * value
}

/// `((value + 5) * 2 + 7)`, squared, and how often it was called before.
#[unsafe(no_mangle)]
extern "C" fn _start(value: u64) -> u64 {
    let first = value + FIRST.load(Ordering::Relaxed);
    let result = black_box(&STEPS).iter().fold(first, |value, step| step(value));
    result + COUNTER.fetch_add(1, Ordering::Relaxed)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
