//! The atomic operations of libatomic and libgcc that GCC calls for RISC-V, because instructions have none of 1 and 2 bytes.
//!
//! All are sequentially consistent, whatever order is asked for. Larger ones are instructions, and those of 16 bytes are left to
//! `libatomic`.

use crate::external::External;

pub(super) fn find(name: &str) -> Option<External> {
    let (operation, size) = name.rsplit_once('_')?;
    let function = match size {
        "1" => byte::function(operation)?,
        "2" => half::function(operation)?,
        _ => return None,
    };
    Some(External::function(function.expose_provenance() as u64))
}

/// The functions of a size.
macro_rules! size {
    ($module:ident, $integer:ident, $atomic:ident) => {
        mod $module {
            use core::ffi::c_int;
            use core::sync::atomic::{Ordering::SeqCst, $atomic};

            pub(super) fn function(operation: &str) -> Option<*const ()> {
                Some(match operation {
                    "__atomic_load" => load as *const (),
                    "__atomic_store" => store as *const (),
                    "__atomic_exchange" => exchange as *const (),
                    "__atomic_compare_exchange" => compare_exchange as *const (),
                    "__atomic_fetch_add" | "__sync_fetch_and_add" => add as *const (),
                    "__atomic_fetch_sub" | "__sync_fetch_and_sub" => sub as *const (),
                    "__atomic_fetch_and" | "__sync_fetch_and_and" => and as *const (),
                    "__atomic_fetch_or" | "__sync_fetch_and_or" => or as *const (),
                    "__atomic_fetch_xor" | "__sync_fetch_and_xor" => xor as *const (),
                    "__atomic_fetch_nand" | "__sync_fetch_and_nand" => nand as *const (),
                    "__sync_val_compare_and_swap" => swap_if_equal as *const (),
                    "__sync_bool_compare_and_swap" => is_swapped as *const (),
                    _ => return None,
                })
            }

            unsafe extern "C" fn load(place: *mut $integer) -> $integer {
                // SAFETY: the code that calls this guarantees the place.
                unsafe { $atomic::from_ptr(place) }.load(SeqCst)
            }

            unsafe extern "C" fn store(place: *mut $integer, value: $integer) {
                // SAFETY: as above.
                unsafe { $atomic::from_ptr(place) }.store(value, SeqCst);
            }

            unsafe extern "C" fn swap_if_equal(
                place: *mut $integer,
                expected: $integer,
                desired: $integer,
            ) -> $integer {
                // SAFETY: as above.
                let place = unsafe { $atomic::from_ptr(place) };
                let before = place.compare_exchange(expected, desired, SeqCst, SeqCst);
                before.unwrap_or_else(|before| before)
            }

            unsafe extern "C" fn is_swapped(
                place: *mut $integer,
                expected: $integer,
                desired: $integer,
            ) -> bool {
                // SAFETY: as above.
                unsafe { swap_if_equal(place, expected, desired) == expected }
            }

            unsafe extern "C" fn compare_exchange(
                place: *mut $integer,
                expected: *mut $integer,
                desired: $integer,
                _success: c_int,
                _failure: c_int,
            ) -> bool {
                // SAFETY: as above, also for what is expected, which no other thread uses.
                unsafe {
                    let before = swap_if_equal(place, *expected, desired);
                    let is_equal = before == *expected;
                    *expected = before;
                    is_equal
                }
            }

            macro_rules! fetch {
                ($name:ident, $method:ident) => {
                    unsafe extern "C" fn $name(place: *mut $integer, value: $integer) -> $integer {
                        // SAFETY: as above.
                        unsafe { $atomic::from_ptr(place) }.$method(value, SeqCst)
                    }
                };
            }
            fetch!(exchange, swap);
            fetch!(add, fetch_add);
            fetch!(sub, fetch_sub);
            fetch!(and, fetch_and);
            fetch!(or, fetch_or);
            fetch!(xor, fetch_xor);
            fetch!(nand, fetch_nand);
        }
    };
}
size!(byte, u8, AtomicU8);
size!(half, u16, AtomicU16);

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn names() {
        for name in ["__atomic_load_1", "__atomic_compare_exchange_2", "__sync_fetch_and_nand_2"] {
            assert!(find(name).is_some());
        }
        for name in ["__atomic_load_4", "__atomic_load", "_1", "__sync_fetch_1", "load_1"] {
            assert!(find(name).is_none());
        }
    }
}
