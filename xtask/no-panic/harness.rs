//! What the generated roots are made with: calls whose arguments nobody knows and whose results nobody may leave out.

use core::panic::PanicInfo;

unsafe extern "C" {
    /// Nobody defines it: an image in which the panic handler is reachable does not link.
    fn a_panic_is_reachable() -> !;
    /// Stands for everything that a caller supplies.
    fn outside(what: *const ()) -> u64;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe { a_panic_is_reachable() }
}

/// A function that can be called with arguments out of memory; `Signature` only tells the arities apart.
pub trait Root<Signature> {
    /// # Safety
    /// Each of `arguments` points to an argument of its type, `result` to room for the result.
    unsafe fn call(self, arguments: *const *const (), result: *mut ());
}

macro_rules! arity {
    ($($letter:ident $at:literal),*) => {
        impl<F: FnOnce($($letter),*) -> R, R, $($letter),*> Root<fn($($letter),*) -> R> for F {
            #[inline(always)]
            unsafe fn call(self, arguments: *const *const (), result: *mut ()) {
                let _ = arguments;
                unsafe { result.cast::<R>().write(self($((*arguments.add($at)).cast::<$letter>().read()),*)) }
            }
        }
    };
}
arity!();
arity!(A 0);
arity!(A 0, B 1);
arity!(A 0, B 1, C 2);
arity!(A 0, B 1, C 2, D 3);
arity!(A 0, B 1, C 2, D 3, E 4);
arity!(A 0, B 1, C 2, D 3, E 4, G 5);

/// An entry of the image: calls what follows.
#[macro_export]
macro_rules! root {
    ($name:ident, $call:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(arguments: *const *const (), result: *mut ()) {
            unsafe { $crate::harness::Root::call($call, arguments, result) }
        }
    };
}

/// Asks for every item.
#[allow(dead_code, reason = "not every crate has iterators")]
pub fn walk<I: IntoIterator>(items: I) {
    for item in items {
        seen(item);
    }
}

/// Nobody knows what becomes of `value`.
#[allow(dead_code, reason = "as above")]
pub fn seen<T>(value: T) -> u64 {
    unsafe { outside((&raw const value).cast()) }
}

/// Answers of which nothing is known.
#[derive(Clone, Copy)]
pub struct Outside;

impl core::hash::Hasher for Outside {
    fn finish(&self) -> u64 {
        seen(self)
    }
    fn write(&mut self, bytes: &[u8]) {
        seen(bytes);
    }
}
