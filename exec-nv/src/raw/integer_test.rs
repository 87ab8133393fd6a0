//! Integers as kernels compute them in the interpreter, against this machine's processor: `integers.ptx` on four generations.

use super::float_test::{Bench, CODE, cubin};

/// What a line of the kernel makes of both operands.
type Line = (&'static str, fn(u64, u64) -> u64);

const fn words(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The lower words of both.
const fn low(x: u64, y: u64) -> (u32, u32) {
    (x as u32, y as u32)
}

const fn signed(x: u64, y: u64) -> (i128, i128) {
    (x as i64 as i128, y as i64 as i128)
}

/// As far as the kernel shifts, which is further than there are bits.
const fn by(y: u64) -> u32 {
    y as u32 & 95
}

/// Lines of the kernel, in their order.
const LINES: &[Line] = &[
    ("mul.hi.u64", |x, y| ((u128::from(x) * u128::from(y)) >> 64) as u64),
    ("mul.hi.s64", |x, y| ((signed(x, y).0 * signed(x, y).1) >> 64) as u64),
    ("mul.lo.u64", u64::wrapping_mul),
    ("mad.lo.s64", |x, y| x.wrapping_mul(y).wrapping_add(y | 1)),
    ("add.u64", u64::wrapping_add),
    ("sub.u64", u64::wrapping_sub),
    ("neg.s64", |x, _| x.wrapping_neg()),
    ("abs.s64", |x, _| (x as i64).unsigned_abs()),
    ("div.u64", |x, y| x / (y | 1)),
    ("rem.u64", |x, y| x % (y | 1)),
    ("div.s64", |x, y| (signed(x, y | 1).0 / signed(x, y | 1).1) as u64),
    ("rem.s64", |x, y| (signed(x, y | 1).0 % signed(x, y | 1).1) as u64),
    ("shl.b64", |x, y| x.checked_shl(by(y)).unwrap_or(0)),
    ("shr.u64", |x, y| x.checked_shr(by(y)).unwrap_or(0)),
    ("shr.s64", |x, y| (x as i64 >> by(y).min(63)) as u64),
    ("min.s64", |x, y| (x as i64).min(y as i64) as u64),
    ("max.u64", u64::max),
    ("setp.lt.s64", |x, y| if (x as i64) < y as i64 { x } else { y | 1 }),
    ("setp.ge.u64", |x, y| if x >= y { x } else { y | 1 }),
    ("setp.eq.s64", |x, y| if y == 0 { x } else { 3u64.wrapping_neg() }),
    ("clz.b64", |x, _| x.leading_zeros().into()),
    ("popc.b64", |x, _| x.count_ones().into()),
    ("brev.b64", |x, _| x.reverse_bits()),
    ("mul.wide.u32", |x, y| (u64::from(low(x, y).0) * u64::from(low(x, y).1)).wrapping_sub(y)),
    ("mul.wide.s32", |x, y| {
        let (a, b) = low(x, y);
        y.wrapping_sub((i64::from(a as i32) * i64::from(b as i32)) as u64)
    }),
    ("mad.hi", |x, y| {
        let (a, b) = low(x, y);
        let unsigned = ((u64::from(a) * u64::from(b)) >> 32) as u32;
        let signed = ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32;
        words(unsigned.wrapping_add(a), signed.wrapping_add(b))
    }),
    ("bfe", |x, _| words(x as u32 >> 5 & 0x7ff, ((x as i32) << 16 >> 21) as u32)),
    ("abs.s32, brev.b32", |x, _| words((x as i32).unsigned_abs(), (x as u32).reverse_bits())),
    ("div.u32, rem.u32", |x, y| {
        let (a, b) = low(x, y | 1);
        words(a / b, a % b)
    }),
    ("shf", |x, y| {
        let both = words(x as u32, y as u32);
        let right = u128::from(both) >> by(y).min(32);
        words(right as u32, ((both << (by(y) & 31)) >> 32) as u32)
    }),
];

/// Numbers at the ends of ranges, each with each, and many between.
fn rows() -> Vec<(u64, u64)> {
    let ends = [0, 1, 2, 31, 32, 63, 64, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 32];
    let ends = ends.into_iter().chain([i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX]);
    let ends: Vec<_> = ends.collect();
    let mut rows: Vec<_> = ends.iter().flat_map(|&x| ends.iter().map(move |&y| (x, y))).collect();
    // the one quotient that there is not
    rows.retain(|&(x, y)| x != 1 << 63 || y | 1 != u64::MAX);
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed ^ seed >> 29) >> (seed >> 58)
    };
    rows.extend((0..400).map(|_| (next(), next())));
    rows
}

#[test]
fn integers_are_what_the_processor_computes() {
    let rows = rows();
    let input: Vec<u8> =
        rows.iter().flat_map(|(x, y)| [x.to_le_bytes(), y.to_le_bytes()]).flatten().collect();
    for (class, sm) in CODE {
        let bench = Bench::new(class, cubin("integers", sm));
        let found = bench.run("integers", &input, rows.len(), LINES.len(), 8);
        for ((name, line), found) in LINES.iter().zip(&found) {
            for (&(x, y), found) in rows.iter().zip(found.chunks_exact(8)) {
                let found = u64::from_le_bytes(found.try_into().unwrap());
                assert_eq!(found, line(x, y), "sm_{sm}: {name} of {x:#x} and {y:#x}");
            }
        }
    }
}
