//! A program that firmware loads and calls: its table of functions is right only if it was relocated, its counter only if it is zero.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::sync::atomic::{AtomicUsize, Ordering};

static STEPS: [fn(usize) -> usize; 3] = [twice, and_seven, squared];
static COUNTER: AtomicUsize = AtomicUsize::new(0);
static FIRST: AtomicUsize = AtomicUsize::new(5);

fn twice(value: usize) -> usize {
    value * 2
}

fn and_seven(value: usize) -> usize {
    value + 7
}

fn squared(value: usize) -> usize {
    value * value
}

/// `((value + 5) * 2 + 7)`, squared, and how often it was called before.
#[unsafe(no_mangle)]
extern "C" fn _start(value: usize) -> usize {
    let first = value + FIRST.load(Ordering::Relaxed);
    let result = black_box(&STEPS).iter().fold(first, |value, step| step(value));
    result + COUNTER.fetch_add(1, Ordering::Relaxed)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
