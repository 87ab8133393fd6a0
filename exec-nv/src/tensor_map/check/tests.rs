//! Each rule: at its limit, and one beyond it, with the words that say so.

use super::super::layout::*;
use super::*;

type Change = fn(TensorLayout) -> Result<TensorLayout, Error>;

/// 64 by 32 halves, in 4096 bytes at an even address.
fn halves() -> TensorLayout {
    TensorLayout::new(TensorType::F16, &[64, 32]).unwrap()
}

fn words(outcome: Result<(), Error>) -> String {
    outcome.map_or_else(|error| error.to_string(), |()| "ok".into())
}

#[test]
fn boxes_keep_to_the_rules() {
    let same: Change = Ok;
    let rows: &[(&[u32], Change, &str)] = &[
        (&[64, 32], same, "ok"),
        (&[256, 256], same, "ok"),
        (&[264, 32], same, "the box of dimension 0 is 264, where 1 to 256 can be"),
        (&[64, 257], same, "the box of dimension 1 is 257, where 1 to 256 can be"),
        (&[64, 0], same, "the box of dimension 1 is 0, where 1 to 256 can be"),
        (&[64], same, "1 sizes of the box, expected 2"),
        (&[60, 32], same, "a row of the box in bytes is 120, no multiple of 16"),
        (&[64, 32], |l| Ok(l.swizzle(Swizzle::B128)), "ok"),
        (
            &[72, 32],
            |l| Ok(l.swizzle(Swizzle::B128)),
            "a row of the box has 144 bytes, where 128 are swizzled",
        ),
        (
            &[64, 32],
            |l| Ok(l.swizzle(Swizzle::B64)),
            "a row of the box has 128 bytes, where 64 are swizzled",
        ),
        (&[16, 32], |l| Ok(l.swizzle(Swizzle::B32)), "ok"),
        (
            &[24, 32],
            |l| Ok(l.swizzle(Swizzle::B32)),
            "a row of the box has 48 bytes, where 32 are swizzled",
        ),
        (&[64, 32], |l| l.strides(&[120]), "the stride of dimension 1 is 120, no multiple of 16"),
        (
            &[64, 32],
            |l| l.strides(&[1 << 40]),
            "the stride of dimension 1 is 1099511627776, where 0 to 1099511627775 can be",
        ),
        (&[64, 32], |l| l.strides(&[144]), "the tensor has 4592 bytes, and the memory 4096"),
        (&[64, 32], |l| l.strides(&[]), "0 strides, expected 1"),
        (&[64, 32], |l| l.steps(&[1, 8]), "ok"),
        (&[64, 32], |l| l.steps(&[1, 9]), "the step of dimension 1 is 9, where 1 to 8 can be"),
        (&[64, 32], |l| l.steps(&[1, 0]), "the step of dimension 1 is 0, where 1 to 8 can be"),
        (&[64, 32], |l| l.steps(&[1]), "1 steps, expected 2"),
        (&[64, 32], |l| Ok(l.interleave(Interleave::B16)), "2 dimensions, where 3 to 5 can be"),
        (&[64, 32], |l| Ok(l.out_of_bounds(OutOfBounds::NanRequestZeroFma)), "ok"),
        (
            &[64, 32],
            |_| TensorLayout::new(TensorType::F16, &[]),
            "0 dimensions, where 1 to 5 can be",
        ),
        (
            &[64, 32],
            |_| TensorLayout::new(TensorType::F16, &[1; 6]),
            "6 dimensions, where 1 to 5 can be",
        ),
        (
            &[16],
            |_| TensorLayout::new(TensorType::U8, &[0]),
            "the size of dimension 0 is 0, where 1 to 2147483648 can be",
        ),
        (
            &[16],
            |_| TensorLayout::new(TensorType::U8, &[(1 << 31) + 1]),
            "the size of dimension 0 is 2147483649, where 1 to 2147483648 can be",
        ),
        (
            &[16],
            |_| TensorLayout::new(TensorType::U8, &[1 << 31]),
            "the tensor has 2147483648 bytes, and the memory 4096",
        ),
        (
            &[4, 4],
            |_| {
                Ok(TensorLayout::new(TensorType::I32, &[4, 4])?
                    .out_of_bounds(OutOfBounds::NanRequestZeroFma))
            },
            "a NaN outside of the tensor does not go with a type of integers",
        ),
        (
            &[64, 1, 1],
            |_| Ok(TensorLayout::new(TensorType::F16, &[64, 2, 2])?.interleave(Interleave::B32)),
            "an interleave of 32 bytes does not go with a swizzle of other than 32 bytes",
        ),
        (
            &[64, 1, 1],
            |_| {
                Ok(TensorLayout::new(TensorType::F16, &[64, 2, 2])?
                    .interleave(Interleave::B32)
                    .swizzle(Swizzle::B32))
            },
            "ok",
        ),
        (
            &[64, 1, 1],
            |_| {
                Ok(TensorLayout::new(TensorType::F16, &[64, 2, 2])?
                    .strides(&[144, 288])?
                    .interleave(Interleave::B32)
                    .swizzle(Swizzle::B32))
            },
            "the stride of dimension 1 is 144, no multiple of 32",
        ),
        (
            &[32],
            |_| TensorLayout::new(TensorType::U4Align8, &[63]),
            "the size of dimension 0 is 63, no multiple of 2",
        ),
        (&[32], |_| TensorLayout::new(TensorType::U4Align8, &[64]), "ok"),
        (
            &[16],
            |_| TensorLayout::new(TensorType::U4Align8, &[64]),
            "a row of the box in bytes is 8, no multiple of 16",
        ),
        (
            &[128],
            |_| TensorLayout::new(TensorType::U6Align16, &[64]),
            "the size of dimension 0 is 64, no multiple of 128",
        ),
        (&[128], |_| TensorLayout::new(TensorType::U6Align16, &[128]), "ok"),
        // gaps are in shared memory alone
        (&[128, 1], |_| TensorLayout::new(TensorType::U6Align16, &[128, 42]), "ok"),
        (
            &[128, 1],
            |_| TensorLayout::new(TensorType::U6Align16, &[128, 43]),
            "the tensor has 4128 bytes, and the memory 4096",
        ),
        (&[128, 1], |_| TensorLayout::new(TensorType::U4Align16, &[128, 64]), "ok"),
        (
            &[128, 1],
            |_| TensorLayout::new(TensorType::U4Align16, &[128, 65]),
            "the tensor has 4160 bytes, and the memory 4096",
        ),
        (
            &[64],
            |_| TensorLayout::new(TensorType::U6Align16, &[128]),
            "the box of dimension 0 is 64, where 128 to 128 can be",
        ),
        (
            &[128],
            |_| Ok(TensorLayout::new(TensorType::U6Align16, &[128])?.swizzle(Swizzle::B128Atom64)),
            "ok",
        ),
        (
            &[128],
            |_| Ok(TensorLayout::new(TensorType::U4Align16, &[128])?.swizzle(Swizzle::B128Atom64)),
            "a type with gaps does not go with this swizzle",
        ),
        (
            &[128, 1, 1],
            |_| {
                Ok(TensorLayout::new(TensorType::U6Align16, &[128, 1, 1])?
                    .interleave(Interleave::B16))
            },
            "a type of 6 bits does not go with an interleave",
        ),
    ];
    for (tile, change, expected) in rows {
        let outcome = change(halves()).and_then(|layout| tiled(90, 0x1000, 4096, &layout, tile));
        assert_eq!(words(outcome), *expected, "{tile:?}");
    }
    let map = |sm, address, available| words(tiled(sm, address, available, &halves(), &[64, 32]));
    assert_eq!(map(89, 0x1000, 4096), "tensor maps from sm_90 on, and the device is sm_89");
    assert_eq!(map(90, 0x1008, 4096), "the address is 4104, no multiple of 16");
    assert_eq!(map(100, 0x1010, 4096), "ok");
    assert_eq!(map(100, 0x1010, 4095), "the tensor has 4096 bytes, and the memory 4095");
    let packed = TensorLayout::new(TensorType::U4Align16, &[128]).unwrap();
    assert_eq!(
        words(tiled(100, 0x1010, 128, &packed, &[128])),
        "the address is 4112, no multiple of 32"
    );
}

#[test]
fn columns_keep_to_the_rules() {
    // 16 channels, 8 wide, 4 images
    let images = TensorLayout::new(TensorType::F32, &[16, 8, 4]).unwrap();
    let area = |lower, upper, channels, pixels| {
        let area = Im2colBox { lower: &[lower], upper: &[upper], channels, pixels };
        words(im2col(90, 0, 2048, &images, &area))
    };
    assert_eq!(area(-1, 1, 16, 1024), "ok");
    assert_eq!(area(-0x8000, 0x7fff, 256, 1), "ok");
    assert_eq!(
        area(-0x8001, 0, 1, 1),
        "the lower corner of dimension 1 is -32769, where -32768 to 32767 can be"
    );
    assert_eq!(
        area(0, 0x8000, 1, 1),
        "the upper corner of dimension 1 is 32768, where -32768 to 32767 can be"
    );
    assert_eq!(
        area(4, -4, 1, 1),
        format!("the box of dimension 1 is 0, where 1 to {} can be", i64::MAX)
    );
    assert_eq!(area(0, 0, 257, 1), "the number of channels is 257, where 1 to 256 can be");
    assert_eq!(area(0, 0, 0, 1), "the number of channels is 0, where 1 to 256 can be");
    assert_eq!(area(0, 0, 1, 1025), "the number of pixels is 1025, where 1 to 1024 can be");
    let swizzled = images.swizzle(Swizzle::B32);
    let area = Im2colBox { lower: &[0], upper: &[0], channels: 16, pixels: 1 };
    assert_eq!(
        words(im2col(90, 0, 2048, &swizzled, &area)),
        "a row of the box has 64 bytes, where 32 are swizzled"
    );
    let flat = TensorLayout::new(TensorType::F32, &[16, 8]).unwrap();
    assert_eq!(words(im2col(90, 0, 2048, &flat, &area)), "2 dimensions, where 3 to 5 can be");
    for (sizes, most, beyond) in [
        (&[16, 8, 8, 1][..], 127, "-129, where -128 to 127"),
        (&[16, 2, 2, 2, 1], 15, "-17, where -16 to 15"),
    ] {
        let layout = TensorLayout::new(TensorType::U8, sizes).unwrap();
        let (inside, outside) = (vec![most; sizes.len() - 2], vec![-most - 2; sizes.len() - 2]);
        let area = |lower, upper| {
            let area = Im2colBox { lower, upper, channels: 1, pixels: 1 };
            words(im2col(90, 0, 4096, &layout, &area))
        };
        let lowest = vec![-most - 1; sizes.len() - 2];
        assert_eq!(area(&lowest, &inside), "ok");
        assert_eq!(
            area(&outside, &inside),
            format!("the lower corner of dimension 1 is {beyond} can be")
        );
        assert_eq!(
            area(&[0], &inside),
            format!("1 numbers of the lower corner, expected {}", sizes.len() - 2)
        );
    }
}

#[test]
fn columns_along_the_width_keep_to_the_rules() {
    // 32 channels, 8 wide, 4 images
    let images = TensorLayout::new(TensorType::F32, &[32, 8, 4]).unwrap().swizzle(Swizzle::B128);
    let wide = |layout: &TensorLayout, lower, upper, channels, pixels| {
        let area = Im2colWideBox { lower, upper, channels, pixels };
        words(im2col_wide(100, 0, 1 << 16, layout, &area))
    };
    let area = |lower, upper, channels, pixels| wide(&images, lower, upper, channels, pixels);
    assert_eq!(area(-0x8000, 0x7fff, 32, Some(1024)), "ok");
    assert_eq!(area(-1, 1, 1, None), "ok");
    assert_eq!(area(0, 0, 1, Some(0)), "the number of pixels is 0, where 1 to 1024 can be");
    assert_eq!(area(0, 0, 33, None), "a row of the box has 132 bytes, where 128 are swizzled");
    assert_eq!(area(0, 0, 257, None), "the number of channels is 257, where 1 to 256 can be");
    assert_eq!(
        area(-0x8001, 0, 1, None),
        "the lower corner of dimension 1 is -32769, where -32768 to 32767 can be"
    );
    assert!(area(5, -3, 1, None).starts_with("the box of dimension 1 is 0, where 1 to "));
    let older = Im2colWideBox { lower: 0, upper: 0, channels: 1, pixels: None };
    assert_eq!(
        words(im2col_wide(90, 0, 1 << 16, &images, &older)),
        "columns along the width from sm_100 on, and the device is sm_90"
    );
    // in images of more dimensions the corners go no less far
    let volumes = TensorLayout::new(TensorType::U8, &[64, 8, 8, 8, 1]).unwrap();
    assert_eq!(wide(&volumes.swizzle(Swizzle::B64), -0x8000, 0, 64, None), "ok");
    let row = TensorLayout::new(TensorType::F32, &[32, 8]).unwrap().swizzle(Swizzle::B128);
    assert_eq!(wide(&row, 0, 0, 1, None), "2 dimensions, where 3 to 5 can be");
    let refused = "does not go with";
    for (swizzle, halves, four, six) in [
        (Swizzle::None, false, false, false),
        (Swizzle::B32, false, false, false),
        (Swizzle::B64, true, false, true),
        (Swizzle::B128, true, true, true),
        (Swizzle::B128Atom32, true, true, true),
        (Swizzle::B128Atom32Flip8, false, false, false),
        (Swizzle::B128Atom64, false, false, false),
    ] {
        for (kind, channels, can) in [
            (TensorType::F16, 32, halves),
            (TensorType::U4Align16, 128, four),
            (TensorType::U6Align16, 128, six),
        ] {
            let layout = TensorLayout::new(kind, &[128, 8, 4]).unwrap().swizzle(swizzle);
            let outcome = wide(&layout, 0, 0, channels, None);
            assert_eq!(!outcome.contains(refused), can, "{swizzle:?} {kind:?}: {outcome}");
        }
    }
}
