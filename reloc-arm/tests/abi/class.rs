//! Instructions and data, read as a processor reads them, and the number that AAELF32 has for X in each.

/// What is in the place, and how much of X.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Data8,
    Data16,
    Data32,
    Data31,
    /// ADD or SUB: group, and whether it is the last.
    Alu(u32, bool),
    /// Of a word or byte, of a halfword or two words, of a coprocessor: groups before it.
    Ldr(u32),
    Ldrs(u32),
    Ldc(u32),
    /// Whether X has to fit 16 bits.
    Movw(bool),
    Movt,
    Branch24,
    ThumbMovw(bool),
    ThumbMovt,
    ThumbBranch24,
    ThumbBranch19,
    ThumbAdr,
    ThumbLdr,
    /// LDR with a positive offset.
    ThumbLdrUp,
    Ldr5,
    Literal8,
    Branch11,
    Branch8,
    Branch6,
    /// Byte of X.
    Byte(u32),
}
use Class::*;

impl Class {
    /// Instructions of the class with all sorts of addends, the first upper where there are two halfwords.
    pub(crate) const fn words(self) -> &'static [u32] {
        match self {
            Data8 => &[0, 0x7f, 0xf0],
            Data16 => &[0, 0x7fff, 0xfff8],
            Data32 => &[0, 4, 0xffff_fff8],
            Data31 => &[0x8000_0000, 8, 0x7fff_fff8],
            Alu(..) => &[0xe28f_0000, 0xe24f_0008, 0xe28f_0fff, 0xe240_14ff],
            Ldr(_) => &[0xe59f_0000, 0xe51f_0008, 0xe5cf_0fff, 0xe500_0fff],
            Ldrs(_) => &[0xe1df_00b0, 0xe15f_00b8, 0xe1cf_0fdf, 0xe140_0fff],
            Ldc(_) => &[0xed9f_0b00, 0xed1f_0b02, 0xed9f_0bff, 0xed00_01ff],
            Movw(_) => &[0xe300_0000, 0xe307_0fff, 0xe30f_0ff8],
            Movt => &[0xe340_0000, 0xe347_0fff, 0xe34f_0ff8],
            Branch24 => &[0xeaff_fffe, 0x0a00_0000, 0xea7f_ffff],
            ThumbMovw(_) => &[0xf240_0000, 0xf647_70ff, 0xf64f_70f8],
            ThumbMovt => &[0xf2c0_0000, 0xf6c7_70ff, 0xf6cf_70f8],
            ThumbBranch24 => &[0xf7ff_fffe, 0xf000_f800, 0xf3ff_d7ff],
            ThumbBranch19 => &[0xf43f_affe, 0xf000_8000, 0xf03f_afff],
            ThumbAdr => &[0xf20f_0000, 0xf2af_0004, 0xf60f_70ff, 0xf6af_70ff],
            ThumbLdr => &[0xf8df_0000, 0xf85f_0004, 0xf8df_0fff, 0xf81f_0fff],
            ThumbLdrUp => &[0xf8d0_0000, 0xf8d0_0fff],
            Ldr5 => &[0x6800, 0x6fc0],
            Literal8 => &[0x48ff, 0x4800],
            Branch11 => &[0xe7fe, 0xe000],
            Branch8 => &[0xd0fe, 0xd000],
            Branch6 => &[0xb3f0, 0xb100],
            Byte(_) => &[0x3000, 0x30ff],
        }
    }

    pub(crate) const fn size(self) -> usize {
        match self {
            Data8 => 1,
            Data16 | Ldr5 | Literal8 | Branch11 | Branch8 | Branch6 | Byte(_) => 2,
            _ => 4,
        }
    }

    /// The number in an instruction, and the bits that it does not depend on.
    pub(crate) fn read(self, word: u32) -> (i64, u32) {
        let bits = |low: u32, width: u32| word >> low & ((1u64 << width) - 1) as u32;
        let either = |up: bool, size: u32| if up { i64::from(size) } else { -i64::from(size) };
        let up = bits(23, 1) != 0;
        match self {
            Data8 => (signed(word, 8), 0),
            Data16 => (signed(word, 16), 0),
            Data32 => (signed(word, 32), 0),
            Data31 => (signed(word, 31), word & 1 << 31),
            Alu(..) => {
                let size = bits(0, 8).rotate_right(2 * bits(8, 4));
                assert!(matches!(bits(21, 4), 0b0100 | 0b0010) && bits(25, 3) == 1, "{word:#x}");
                (either(bits(21, 4) == 0b0100, size), word & !0x01e0_0fff)
            }
            Ldr(_) => (either(up, bits(0, 12)), word & !0x0080_0fff),
            Ldrs(_) => (either(up, bits(8, 4) << 4 | bits(0, 4)), word & !0x0080_0f0f),
            Ldc(_) => (either(up, bits(0, 8) << 2), word & !0x0080_00ff),
            Movw(_) | Movt => (signed(bits(16, 4) << 12 | bits(0, 12), 16), word & !0xf_0fff),
            Branch24 => (signed(bits(0, 24) << 2, 26), word & !0xff_ffff),
            ThumbMovw(_) | ThumbMovt => {
                let held = bits(16, 4) << 12 | bits(26, 1) << 11 | bits(12, 3) << 8 | bits(0, 8);
                (signed(held, 16), word & !0x040f_70ff)
            }
            ThumbBranch24 => {
                let sign = bits(26, 1);
                let [i1, i2] = [13, 11].map(|at| 1 ^ bits(at, 1) ^ sign);
                let upper = sign << 24 | i1 << 23 | i2 << 22;
                (signed(upper | bits(16, 10) << 12 | bits(0, 11) << 1, 25), word & !0x07ff_2fff)
            }
            ThumbBranch19 => {
                let upper = bits(26, 1) << 20 | bits(11, 1) << 19 | bits(13, 1) << 18;
                (signed(upper | bits(16, 6) << 12 | bits(0, 11) << 1, 21), word & !0x043f_2fff)
            }
            ThumbAdr => {
                let size = bits(26, 1) << 11 | bits(12, 3) << 8 | bits(0, 8);
                (either(bits(21, 3) != 0b101, size), word & !0x04a0_70ff)
            }
            ThumbLdr => (either(up, bits(0, 12)), word & !0x0080_0fff),
            ThumbLdrUp => (bits(0, 12).into(), word & !0xfff),
            Ldr5 => ((bits(6, 5) << 2).into(), word & !0x7c0),
            Literal8 => ((bits(0, 8) << 2).into(), word & !0xff),
            Branch11 => (signed(bits(0, 11) << 1, 12), word & !0x7ff),
            Branch8 => (signed(bits(0, 8) << 1, 9), word & !0xff),
            Branch6 => ((bits(9, 1) << 6 | bits(3, 5) << 1).into(), word & !0x2f8),
            Byte(_) => (bits(0, 8).into(), word & !0xff),
        }
    }

    /// The addend of a REL relocation.
    pub(crate) fn addend(self, word: u32) -> i64 {
        let held = self.read(word).0;
        match self {
            Branch6 => ((held + 4) & 0x7f) - 4,
            Literal8 => ((held + 4) & 0x3ff) - 4,
            // numbers of 32 bits with a sign
            _ => i64::from(held as i32),
        }
    }

    /// The number that the instruction has for X; nothing if that overflows.
    pub(crate) fn result(self, x: i32) -> Option<i64> {
        let (size, wide) = (x.unsigned_abs(), i64::from(x));
        let either = |size: u32| if x < 0 { -i64::from(size) } else { size.into() };
        let within = |least: i64, most: i64| (least..=most).contains(&wide).then_some(wide);
        let even = |wide: i64| (wide & 1 == 0).then_some(wide);
        match self {
            Data8 => within(-128, 255).map(|it| signed(it as u32, 8)),
            Data16 => within(-32768, 65535).map(|it| signed(it as u32, 16)),
            Data32 => Some(wide),
            Data31 => within(-(1 << 30), (1 << 30) - 1),
            Alu(group, is_last) => {
                let (mask, rest) = group_of(residual(size, group));
                (!is_last || rest == 0).then(|| either(mask))
            }
            Ldr(groups) => Some(residual(size, groups)).filter(|it| *it <= 0xfff).map(either),
            Ldrs(groups) => Some(residual(size, groups)).filter(|it| *it <= 0xff).map(either),
            Ldc(groups) => {
                Some(residual(size, groups)).filter(|it| *it <= 0x3fc && it & 3 == 0).map(either)
            }
            Movw(checked) | ThumbMovw(checked) => {
                (!checked || (0..=0xffff).contains(&x)).then(|| signed(x as u32 & 0xffff, 16))
            }
            Movt | ThumbMovt => Some(wide >> 16),
            Branch24 => within(-(1 << 25), (1 << 25) - 1).filter(|it| it & 3 == 0),
            ThumbBranch24 => within(-(1 << 24), (1 << 24) - 1).and_then(even),
            ThumbBranch19 => within(-(1 << 20), (1 << 20) - 1).and_then(even),
            ThumbAdr | ThumbLdr => within(-0xfff, 0xfff),
            ThumbLdrUp => within(0, 0xfff),
            Ldr5 => within(0, 0x7c).filter(|it| it & 3 == 0),
            Literal8 => within(0, 0x3fc).filter(|it| it & 3 == 0),
            Branch11 => within(-(1 << 11), (1 << 11) - 1).and_then(even),
            Branch8 => within(-(1 << 8), (1 << 8) - 1).and_then(even),
            Branch6 => within(0, 0x7e).and_then(even),
            Byte(byte) => Some((x as u32 >> (8 * byte) & 0xff).into()),
        }
    }
}

fn signed(word: u32, bits: u32) -> i64 {
    i64::from((word << (32 - bits)) as i32 >> (32 - bits))
}

/// Gn and Yn+1 for Yn.
fn group_of(y: u32) -> (u32, u32) {
    let mut k = 0;
    while y != 0 && (255u64 << (2 * k)) & (1 << y.ilog2()) == 0 {
        k += 1;
    }
    let mask = y & (255u64 << (2 * k)) as u32;
    (mask, y & !mask)
}

/// Yn.
fn residual(x: u32, n: u32) -> u32 {
    (0..n).fold(x, |y, _| group_of(y).1)
}
