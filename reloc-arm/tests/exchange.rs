//! BL of Thumb code that goes to Arm code, read as a processor reads it (Arm ARM, "BL, BLX (immediate)", T2).

#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test")]

use elf_core::{Query, Record, Resolve, SectionMut, SymbolAttributes, apply};
use reloc_arm::Arm;
use reloc_arm::arm::R_ARM_THM_CALL;
use reloc_arm::attributes::{BLX, J1J2, SHORT_BRANCHES, THUMB2};

struct ToArm {
    address: u32,
    processor: u32,
}

impl Resolve for ToArm {
    fn resolve(&self, _: &Query) -> Option<u64> {
        Some(self.address.into())
    }

    fn attributes(&self, _: &Query) -> SymbolAttributes {
        SymbolAttributes::new(false, 0).function(true).on(self.processor)
    }
}

/// Where the branch at `place` goes, which was BL, if it can go to Arm code there.
fn goes(place: u32, symbol: &ToArm) -> Option<u32> {
    let mut code = [0x00, 0xf0, 0x00, 0xf8];
    let record = Record { offset: 0, symbol: 1, r#type: R_ARM_THM_CALL, addend: Some(-4) };
    let address = place.into();
    let mut section = SectionMut { bytes: &mut code, address, big_endian: false };
    apply::<Arm>(&record, &mut section, symbol).ok()?;
    let [first, second] = [[code[0], code[1]], [code[2], code[3]]].map(u16::from_le_bytes);
    let [first, second] = [first, second].map(u32::from);
    assert_eq!((first >> 11, second & 0xd001), (0b11110, 0xc000), "{first:x} {second:x}");
    let sign = first >> 10 & 1;
    let [j1, j2] = [13, 11].map(|bit| second >> bit & 1);
    let [i1, i2] = [j1, j2].map(|bit| 1 ^ bit ^ sign);
    let high = sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3ff) << 12;
    let distance = (high | (second >> 1 & 0x3ff) << 2) << 7;
    let distance = distance.cast_signed() >> 7;
    Some((place.wrapping_add(4) & !3).wrapping_add_signed(distance))
}

#[test]
fn calls_of_thumb_code_change_to_arm_code() {
    let processor = BLX | J1J2 | THUMB2;
    let mut counts = (0, 0);
    for place in [0x0200_0000u32, 0x0200_0002] {
        for bit in 2..31 {
            for distance in [1i32 << bit, -(1 << bit), 0x5555_5554 >> (30 - bit) & !3] {
                for by in [-4, 0, 4] {
                    let distance = distance.wrapping_add(by);
                    let base = place.wrapping_add(4) & !3;
                    let address = base.wrapping_add_signed(distance);
                    // X of the ABI counts from the place, where the branch counts from a multiple of 4: both must be in reach
                    let x = address.wrapping_sub(4).wrapping_sub(place).cast_signed();
                    let reach = -0x100_0000..0x100_0000;
                    let is_near = reach.contains(&x) && reach.contains(&distance);
                    let found = goes(place, &ToArm { address, processor });
                    assert_eq!(found, Some(address).filter(|_| is_near), "{place:#x} {address:#x}");
                    *if is_near { &mut counts.0 } else { &mut counts.1 } += 1;
                }
            }
        }
    }
    assert!(counts.0 > 100 && counts.1 > 50, "{counts:?}");
    // before Armv6T2 two bits were always set
    let processor = BLX | SHORT_BRANCHES;
    for (distance, fits) in
        [(0x3f_fffc, true), (0x40_0000, false), (-0x40_0000, true), (-0x40_0004, false)]
    {
        let address = 0x0200_0004u32.wrapping_add_signed(distance);
        let found = goes(0x0200_0000, &ToArm { address, processor });
        assert_eq!(found, Some(address).filter(|_| fits), "{distance:#x}");
    }
}
