//! The atomic operations of libgcc and compiler-rt that compilers call for AArch64 (`-moutline-atomics`, on by default), because
//! only at run time is it known whether the processor has them as one instruction: `__aarch64_ldadd4_acq_rel` is operation, size in
//! bytes and order (libgcc, `config/aarch64/lse.S`).
//!
//! Those of 16 bytes, which compilers ask for `__sync_*` of `__int128` alone, are left to `libgcc.a`.

use crate::external::External;
use core::sync::atomic::{Ordering, fence};

/// Ends of names: orders of memory. The last is that of the functions `__sync_*`, a barrier for all around it.
const ORDERS: [&str; 5] = ["relax", "acq", "rel", "acq_rel", "sync"];

const fn order<const ORDER: usize>() -> Ordering {
    match ORDER {
        0 => Ordering::Relaxed,
        1 => Ordering::Acquire,
        2 => Ordering::Release,
        _ => Ordering::AcqRel,
    }
}

/// Of a comparison that fails.
const fn order_of_load<const ORDER: usize>() -> Ordering {
    match ORDER {
        0 | 2 => Ordering::Relaxed,
        _ => Ordering::Acquire,
    }
}

fn finish<const ORDER: usize>() {
    if ORDER == 4 {
        fence(Ordering::SeqCst);
    }
}

pub(super) fn find(name: &str) -> Option<External> {
    let (operation, order) = name.strip_prefix("__aarch64_")?.split_once('_')?;
    let order = ORDERS.iter().position(|known| *known == order)?;
    let (operation, size) = operation.split_at_checked(operation.len().checked_sub(1)?)?;
    let functions = match size {
        "1" => byte::functions(operation)?,
        "2" => half::functions(operation)?,
        "4" => word::functions(operation)?,
        "8" => double::functions(operation)?,
        _ => return None,
    };
    functions.get(order).map(|function| External::function(function.expose_provenance() as u64))
}

/// The functions of a size, each once for every order.
macro_rules! size {
    ($module:ident, $integer:ident, $atomic:ident) => {
        mod $module {
            use super::{finish, order, order_of_load};
            use core::sync::atomic::$atomic;

            macro_rules! each_order {
                ($function:ident) => {
                    [
                        $function::<0> as *const (),
                        $function::<1> as *const (),
                        $function::<2> as *const (),
                        $function::<3> as *const (),
                        $function::<4> as *const (),
                    ]
                };
            }

            pub(super) fn functions(operation: &str) -> Option<[*const (); 5]> {
                Some(match operation {
                    "cas" => each_order!(cas),
                    "swp" => each_order!(swp),
                    "ldadd" => each_order!(ldadd),
                    "ldclr" => each_order!(ldclr),
                    "ldeor" => each_order!(ldeor),
                    "ldset" => each_order!(ldset),
                    _ => return None,
                })
            }

            unsafe extern "C" fn cas<const ORDER: usize>(
                expected: $integer,
                desired: $integer,
                place: *mut $integer,
            ) -> $integer {
                // SAFETY: the code that calls this guarantees the place.
                let place = unsafe { $atomic::from_ptr(place) };
                let (success, failure) = (order::<ORDER>(), order_of_load::<ORDER>());
                let before = place.compare_exchange(expected, desired, success, failure);
                finish::<ORDER>();
                before.unwrap_or_else(|before| before)
            }

            macro_rules! fetch {
                ($name:ident, |$place:ident, $value:ident, $order:ident| $fetch:expr) => {
                    unsafe extern "C" fn $name<const ORDER: usize>(
                        $value: $integer,
                        place: *mut $integer,
                    ) -> $integer {
                        // SAFETY: as above.
                        let $place = unsafe { $atomic::from_ptr(place) };
                        let $order = order::<ORDER>();
                        let before = $fetch;
                        finish::<ORDER>();
                        before
                    }
                };
            }
            fetch!(swp, |place, value, order| place.swap(value, order));
            fetch!(ldadd, |place, value, order| place.fetch_add(value, order));
            fetch!(ldclr, |place, value, order| place.fetch_and(!value, order));
            fetch!(ldeor, |place, value, order| place.fetch_xor(value, order));
            fetch!(ldset, |place, value, order| place.fetch_or(value, order));
        }
    };
}
size!(byte, u8, AtomicU8);
size!(half, u16, AtomicU16);
size!(word, u32, AtomicU32);
size!(double, u64, AtomicU64);

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn names() {
        for operation in ["cas", "swp", "ldadd", "ldclr", "ldeor", "ldset"] {
            for size in [1, 2, 4, 8] {
                for order in super::ORDERS {
                    assert!(find(&format!("__aarch64_{operation}{size}_{order}")).is_some());
                }
            }
        }
        for name in ["__aarch64_cas16_acq", "__aarch64_add4_acq", "__aarch64__acq", "__aarch64_"] {
            assert!(find(name).is_none());
        }
    }
}
