//! What this machine's own processor computes, in every rounding, with and without denormals.

use core::arch::asm;

/// Control words: rounding to the nearest, down, up, to zero; exceptions masked.
pub(super) const NEAREST: u32 = 0x1f80;
pub(super) const DOWN: u32 = 0x3f80;
pub(super) const UP: u32 = 0x5f80;
pub(super) const ZERO: u32 = 0x7f80;
/// Denormals are zeros, as operands and as results.
pub(super) const FLUSHED: u32 = 0x8040;
/// What the processor notes when a result is rounded.
const INEXACT: u32 = 0x20;

/// Whether it has what is asked of it here: products that are added to, halves.
pub(super) fn knows_all() -> bool {
    is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

macro_rules! instructions {
    ($($name:ident($($argument:ident),*): $type:ty = $text:literal;)*) => {
        $(
            /// The result, and whether it was rounded.
            pub(super) fn $name(mode: u32, $(mut $argument: $type),*) -> ($type, bool) {
                let (mut after, usual) = (0u32, NEAREST);
                // SAFETY: control word and operands are its own; the control word is as it was again.
                unsafe {
                    asm!(
                        "ldmxcsr [{mode}]", $text, "stmxcsr [{after}]", "ldmxcsr [{usual}]",
                        $($argument = inout(xmm_reg) $argument,)*
                        mode = in(reg) &raw const mode,
                        after = in(reg) &raw mut after,
                        usual = in(reg) &raw const usual,
                        options(nostack),
                    );
                }
                $(let _ = $argument;)*
                let results = [$($argument),*];
                (results[0], after & INEXACT != 0)
            }
        )*
    };
}

instructions! {
    add(a, b): f32 = "addss {a}, {b}";
    multiply(a, b): f32 = "mulss {a}, {b}";
    divide(a, b): f32 = "divss {a}, {b}";
    root(a): f32 = "sqrtss {a}, {a}";
    fused(a, b, c): f32 = "vfmadd213ss {a}, {b}, {c}";
    add_wide(a, b): f64 = "addsd {a}, {b}";
    multiply_wide(a, b): f64 = "mulsd {a}, {b}";
    divide_wide(a, b): f64 = "divsd {a}, {b}";
    root_wide(a): f64 = "sqrtsd {a}, {a}";
    fused_wide(a, b, c): f64 = "vfmadd213sd {a}, {b}, {c}";
}

/// A number of 64 bits with 32, in a rounding.
pub(super) fn narrow(mode: u32, a: f64) -> (f32, bool) {
    let mut result = a;
    let (mut after, usual) = (0u32, NEAREST);
    // SAFETY: as above.
    unsafe {
        asm!(
            "ldmxcsr [{mode}]", "cvtsd2ss {a}, {a}", "stmxcsr [{after}]", "ldmxcsr [{usual}]",
            a = inout(xmm_reg) result,
            mode = in(reg) &raw const mode,
            after = in(reg) &raw mut after,
            usual = in(reg) &raw const usual,
            options(nostack),
        );
    }
    (f32::from_bits(result.to_bits() as u32), after & INEXACT != 0)
}

/// A half, from a number that is rounded once.
pub(super) fn half(a: f32, is_to_zero: bool) -> u16 {
    let mut result = a;
    // SAFETY: registers only.
    unsafe {
        if is_to_zero {
            asm!("vcvtps2ph {a}, {a}, 3", a = inout(xmm_reg) result, options(nostack));
        } else {
            asm!("vcvtps2ph {a}, {a}, 0", a = inout(xmm_reg) result, options(nostack));
        }
    }
    result.to_bits() as u16
}

/// What a half is.
pub(super) fn of_half(bits: u16) -> f32 {
    let mut result = f32::from_bits(bits.into());
    // SAFETY: registers only.
    unsafe { asm!("vcvtph2ps {a}, {a}", a = inout(xmm_reg) result, options(nostack)) };
    result
}

/// `a * b + c` with a last bit that says that there is more: rounded once more, it is as if it had been rounded once.
pub(super) fn fused_to_odd(a: f32, b: f32, c: f32) -> f32 {
    let (wide, is_rounded) = fused_wide(ZERO, a.into(), b.into(), c.into());
    let wide = f64::from_bits(wide.to_bits() | u64::from(is_rounded));
    let (value, is_rounded) = narrow(ZERO, wide);
    f32::from_bits(value.to_bits() | u32::from(is_rounded))
}
