//! What each line of `floats.ptx` gives, computed by the processor.

use super::processor::{
    DOWN, FLUSHED, NEAREST, UP, ZERO, add, add_wide, divide, divide_wide, fused, fused_to_odd,
    fused_wide, half, multiply, multiply_wide, narrow, of_half, root, root_wide,
};

/// The order of the lines: nearest, to zero, down, up.
const MODES: [u32; 4] = [NEAREST, ZERO, DOWN, UP];

fn is_flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

fn saturated(x: f32) -> f32 {
    if x.is_nan() || x.is_sign_negative() { 0.0 } else { x.min(1.0) }
}

/// The smaller or larger: of zeros the negative one is the smaller; a number before none.
macro_rules! select {
    ($a:expr, $b:expr, $is_min:expr) => {
        match ($a.is_nan(), $b.is_nan()) {
            (true, _) => $b,
            (_, true) => $a,
            _ if $a == $b => {
                if $a.is_sign_negative() == $is_min {
                    $a
                } else {
                    $b
                }
            }
            _ => {
                if ($a < $b) == $is_min {
                    $a
                } else {
                    $b
                }
            }
        }
    };
}

pub(super) fn single([a, b, c]: [f32; 3]) -> Vec<u32> {
    let mut lines = Vec::new();
    for flushed in [0, FLUSHED] {
        for mode in MODES {
            let mode = mode | flushed;
            lines.extend([add(mode, a, b).0, multiply(mode, a, b).0, fused(mode, a, b, c).0]);
        }
    }
    let fma = |a, b, c| fused(NEAREST, a, b, c).0;
    lines.extend([add(NEAREST, a, b).0, multiply(NEAREST, a, b).0, fma(a, b, c)].map(saturated));
    lines.extend([add(NEAREST, a, -b).0, fma(-a, b.abs(), c), add(NEAREST, a.abs(), -b).0]);
    let (x, y) = (is_flushed(a), is_flushed(b));
    let nan = |value: f32| if a.is_nan() || b.is_nan() { f32::NAN } else { value };
    let (least, most) = (select!(a, b, true), select!(a, b, false));
    lines.extend([least, most, select!(x, y, true), nan(most), nan(least)]);
    lines.extend([divide(NEAREST, a, b).0, divide(NEAREST, 1.0, a).0, root(NEAREST, a).0]);
    lines.push(divide(NEAREST | FLUSHED, a, b).0);
    let pi = f32::from_bits(0x4049_0fdb);
    lines.extend([add(NEAREST, a, 1.5).0, fma(a, pi, c), fma(a, b, -0.5)]);
    lines.push(multiply(NEAREST, a, f32::from_bits(0x7e80_0000)).0);
    lines.extend([a.round_ties_even(), a.trunc(), a.floor(), a.ceil()]);
    lines.extend([of_half(half(a, false)), of_half(half(a, true))]);
    lines.push(if a < b { a } else { c });
    lines.push(b.copysign(a));
    lines.into_iter().map(f32::to_bits).collect()
}

/// What holds, a bit each: eq ne lt le gt ge equ neu ltu leu gtu geu num nan.
fn mask<T: PartialOrd>(a: &T, b: &T) -> u32 {
    let order = a.partial_cmp(b);
    let is = |ordered: bool, unordered: bool| if order.is_some() { ordered } else { unordered };
    let (less, equal, greater) = (a < b, a == b, a > b);
    let ordered = [equal, less || greater, less, less || equal, greater, greater || equal];
    let holds = ordered.map(|holds| is(holds, false)).into_iter();
    let holds =
        holds.chain(ordered.map(|holds| is(holds, true))).chain([is(true, false), is(false, true)]);
    holds.enumerate().map(|(bit, holds)| u32::from(holds) << bit).sum()
}

pub(super) fn compared([a, b, c]: [f32; 3]) -> Vec<u32> {
    let with = b < c;
    let both = [a > b && with, a < b || with, (a < b) != with, a == 0.0 && !with];
    let both = both.iter().enumerate().map(|(bit, &holds)| u32::from(holds) << bit).sum();
    let mut lines = vec![mask(&a, &b), mask(&is_flushed(a), &is_flushed(b)), both];
    let whole = [a.round_ties_even(), a.trunc(), a.floor(), a.ceil()];
    lines.extend(whole.map(|whole| whole as i32 as u32));
    lines.extend(whole.map(|whole| whole as u32));
    lines.extend([a as i32 as u32, a as i16 as i32 as u32, (a as u16).into()]);
    // without the mark that makes zero of what is no number, it is the highest bit
    let wide = |value: u64| if a.is_nan() { 1 << 31 } else { value as u32 ^ (value >> 32) as u32 };
    lines.extend([wide(whole[0] as i64 as u64), wide(whole[0] as u64)]);
    let (low, high) = (a.to_bits(), b.to_bits());
    let of = |value: f64| MODES.map(|mode| narrow(mode, value).0.to_bits());
    lines.extend(of((low as i32).into()));
    lines.extend(of(low.into()));
    let long = u64::from(high) << 32 | u64::from(low);
    // two halves are exact; their sum is rounded once, to odd, and once more
    let parts = |high: f64| {
        let (sum, is_rounded) = add_wide(ZERO, high * 4_294_967_296.0, low.into());
        let sum = f64::from_bits(sum.to_bits() | u64::from(is_rounded));
        [NEAREST, ZERO].map(|mode| narrow(mode, sum).0.to_bits())
    };
    lines.extend(parts(((long as i64) >> 32) as f64));
    lines.extend(parts(f64::from(high)));
    lines.extend([f32::from(low as i16).to_bits(), f32::from(low as u16).to_bits()]);
    lines
}

fn brain(x: f32) -> u16 {
    let bits = x.to_bits();
    match x.is_nan() {
        true => 0x7fff,
        false => ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16,
    }
}

/// Halves: what is no number is 0x7fff on a GPU.
fn half_bits(x: f32) -> u16 {
    if x.is_nan() { 0x7fff } else { half(x, false) }
}

pub(super) fn pairs(row: [f32; 3]) -> Vec<u32> {
    let bits = row.map(f32::to_bits);
    let lane = |at: usize, lane: u32| of_half((bits[at] >> (16 * lane)) as u16);
    let brains = |at: usize, lane: u32| f32::from_bits(bits[at] >> (16 * lane) << 16);
    let pair = |of: &dyn Fn(u32) -> u16| u32::from(of(1)) << 16 | u32::from(of(0));
    let flushed = |x: f32| if x.abs() < 6.103_515_6e-5 { 0f32.copysign(x) } else { x };
    let small = |bits: u16| if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits };
    let sum = |lane_of: u32| half_bits(fused_to_odd(lane(0, lane_of), 1.0, lane(1, lane_of)));
    let product = |of: u32| half_bits(lane(0, of) * lane(1, of));
    let fused = |of: u32| half_bits(fused_to_odd(lane(0, of), lane(1, of), lane(2, of)));
    let positive = |bits: u16| if bits & 0x8000 != 0 && bits & 0x7fff <= 0x7f80 { 0 } else { bits };
    let positive_half =
        |bits: u16| if bits & 0x8000 != 0 && bits & 0x7fff <= 0x7c00 { 0 } else { bits };
    let choose = |of: u32, is_min: bool| {
        let (a, b) = (lane(0, of), lane(1, of));
        half_bits(select!(a, b, is_min))
    };
    let bf = |of: u32| brain(fused_to_odd(brains(0, of), brains(1, of), brains(2, of)));
    let mut lines = vec![pair(&sum), pair(&product), pair(&fused)];
    let three = |of: u32| [0, 1, 2].map(|at| flushed(lane(at, of)));
    lines.push(pair(&|of| {
        let [a, b, _] = three(of);
        small(half_bits(fused_to_odd(a, 1.0, b)))
    }));
    lines.push(pair(&|of| {
        let [a, b, _] = three(of);
        small(half_bits(a * b))
    }));
    lines.push(pair(&|of| {
        let [a, b, c] = three(of);
        small(half_bits(fused_to_odd(a, b, c)))
    }));
    lines.push(pair(&|of| half(saturated(of_half(fused(of))), false)));
    lines.push(pair(&|of| positive_half(fused(of))));
    lines.push(pair(&|of| half_bits(fused_to_odd(lane(0, of), 1.0, -lane(1, of)))));
    lines.push(pair(&|of| choose(of, true)));
    lines.push(pair(&|of| {
        let has_nan = lane(0, of).is_nan() || lane(1, of).is_nan();
        if has_nan { 0x7fff } else { choose(of, false) }
    }));
    lines.extend([pair(&bf), pair(&|of| positive(bf(of)))]);
    // halves of different registers and places
    let mixed = half_bits(fused_to_odd(lane(0, 1), lane(1, 0), lane(1, 1)));
    lines.push((bits[1] & 0xffff) << 16 | u32::from(mixed));
    let (a, b) = (row[0], row[1]);
    let holds = [
        lane(0, 0) < lane(1, 1),
        lane(0, 1).partial_cmp(&lane(1, 0)) != Some(core::cmp::Ordering::Less),
    ];
    lines.push(u32::from(holds[0]) | u32::from(holds[1]) << 1);
    // the first operand goes to the upper half
    lines.push(u32::from(half_bits(a)) << 16 | u32::from(half_bits(b)));
    lines.push(u32::from(brain(a)) << 16 | u32::from(brain(b)));
    lines.push(pair(&|of| if lane(0, of) < lane(1, of) { 0x3c00 } else { 0 }));
    lines
}

pub(super) fn wide([x, y, z]: [f64; 3]) -> Vec<u64> {
    let mut lines = Vec::new();
    for mode in MODES {
        lines.extend([
            add_wide(mode, x, y).0,
            multiply_wide(mode, x, y).0,
            fused_wide(mode, x, y, z).0,
        ]);
    }
    let fma = |x, y, z| fused_wide(NEAREST, x, y, z).0;
    lines.extend([add_wide(NEAREST, x, -y).0, fma(-x, y.abs(), z)]);
    lines.extend([select!(x, y, true), select!(x, y, false)]);
    lines.extend([
        divide_wide(NEAREST, x, y).0,
        divide_wide(NEAREST, 1.0, x).0,
        root_wide(NEAREST, x).0,
    ]);
    lines.extend([fma(x, core::f64::consts::PI, z), add_wide(NEAREST, x, 1.5).0]);
    let whole = [x.round_ties_even(), x.trunc(), x.floor(), x.ceil()];
    lines.extend(whole);
    lines.extend(MODES.map(|mode| f64::from(narrow(mode, x).0)));
    lines.push(mask(&x, &y).into());
    // what is no number is the highest bit
    lines.extend(whole.map(|whole| f64::from(if x.is_nan() { i32::MIN } else { whole as i32 })));
    lines.extend(whole.map(|whole| f64::from(if x.is_nan() { 1 << 31 } else { whole as u32 })));
    let mut lines: Vec<u64> = lines.into_iter().map(f64::to_bits).collect();
    lines.extend([x as i64 as u64, x as u64].map(|value| if x.is_nan() { 1 << 63 } else { value }));
    let bits = x.to_bits();
    let of = |high: f64| {
        let sum = |mode| add_wide(mode, high * 4_294_967_296.0, f64::from(bits as u32)).0;
        [NEAREST, UP].map(|mode| sum(mode).to_bits())
    };
    lines.extend(of(((bits as i64) >> 32) as f64));
    lines.extend(of((bits >> 32) as f64));
    lines
}

type Exact = fn(f64, f64) -> f64;
type Near = fn(f32, f32, f32, f64) -> bool;

/// Whether a result is as near as PTX promises: relative to what is exact, in units of 2^-23.
fn near(found: f32, exact: f64, units: f64) -> bool {
    let found = f64::from(found);
    if exact.is_nan() || found.is_nan() {
        return exact.is_nan() && found.is_nan();
    }
    if exact.abs() > f64::from(f32::MAX) {
        return found.abs() >= f64::from(f32::MAX) && found.signum() == exact.signum();
    }
    let least = f64::from(f32::MIN_POSITIVE);
    let slack = if exact.abs() < least { least } else { exact.abs() * units / 8_388_608.0 };
    (found - exact).abs() <= slack || found == exact
}

/// With flushed operands.
fn flushed_near(a: f32, found: f32, exact: Exact, units: f64) -> bool {
    near(found, exact(is_flushed(a).into(), 0.0), units)
}

fn is_in_turn(a: f32) -> bool {
    a.abs() <= core::f32::consts::PI
}

const fn logarithm_near(a: f32, found: f32, exact: f64) -> bool {
    let is_about_one = a >= 0.5 && a <= 2.0;
    let slack = if is_about_one { 1.6e-7 } else { exact.abs() * 1.6e-7 };
    (found as f64 - exact).abs() <= slack
}

fn logarithm(a: f32, found: f32) -> bool {
    let exact = f64::from(a).log2();
    if exact.is_finite() { logarithm_near(a, found, exact) } else { near(found, exact, 1.0) }
}

/// Each function of `approximate`: its name, what is exact, and whether a result is near enough (PTX ISA, floating-point instructions).
pub(super) const APPROXIMATE: &[(&str, Exact, Near)] = &[
    ("rcp.ftz", |a, _| 1.0 / a, |a, _, found, _| flushed_near(a, found, |a, _| 1.0 / a, 1.0)),
    (
        "rsqrt.ftz",
        |a, _| a.sqrt().recip(),
        |a, _, found, _| flushed_near(a, found, |a, _| 1.0 / a.sqrt(), 1.1),
    ),
    ("sqrt.ftz", |a, _| a.sqrt(), |a, _, found, _| flushed_near(a, found, |a, _| a.sqrt(), 2.0)),
    ("ex2.ftz", |a, _| a.exp2(), |a, _, found, _| flushed_near(a, found, |a, _| a.exp2(), 2.0)),
    ("lg2.ftz", |a, _| a.log2(), |a, _, found, _| logarithm(is_flushed(a), found)),
    (
        "sin.ftz",
        |a, _| a.sin(),
        |a, _, found, exact| !is_in_turn(a) || (f64::from(found) - exact).abs() < 7e-7,
    ),
    (
        "cos.ftz",
        |a, _| a.cos(),
        |a, _, found, exact| !is_in_turn(a) || (f64::from(found) - exact).abs() < 7e-7,
    ),
    ("tanh", |a, _| a.tanh(), |_, _, found, exact| near(found, exact, 4096.0)),
    ("rcp", |a, _| 1.0 / a, |_, _, found, exact| near(found, exact, 1.0)),
    ("rsqrt", |a, _| 1.0 / a.sqrt(), |_, _, found, exact| near(found, exact, 1.1)),
    ("sqrt", |a, _| a.sqrt(), |_, _, found, exact| near(found, exact, 2.0)),
    ("ex2", |a, _| a.exp2(), |_, _, found, exact| near(found, exact, 2.0)),
    ("lg2", |a, _| a.log2(), |a, _, found, _| logarithm(a, found)),
    (
        "sin",
        |a, _| a.sin(),
        |a, _, found, exact| !is_in_turn(a) || (f64::from(found) - exact).abs() < 7e-7,
    ),
    (
        "cos",
        |a, _| a.cos(),
        |a, _, found, exact| !is_in_turn(a) || (f64::from(found) - exact).abs() < 7e-7,
    ),
    ("div.approx", |a, b| a / b, |_, b, found, exact| !is_common(b) || near(found, exact, 4.0)),
    ("div.full", |a, b| a / b, |_, b, found, exact| !is_common(b) || near(found, exact, 4.0)),
];

/// Divisors that the approximated division promises something of: 2^-126 to 2^126.
fn is_common(b: f32) -> bool {
    b.is_normal() && b.abs() <= f32::from_bits(0x7e80_0000)
}
