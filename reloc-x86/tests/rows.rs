//! Every row of both tables, and the ends of common ranges by hand.

#[cfg(test)]
mod table;

use elf_core::{ApplyError, Arch, Query, Record, Role, SectionMut, Slot, StubRelocation, apply};
use reloc_x86::{I386, X86_64};

#[test]
fn x86_64_applications() {
    table::applications::<X86_64>(&|_| 0);
}

#[test]
fn x86_64_limits() {
    table::limits::<X86_64>();
}

#[test]
fn x86_64_addends() {
    table::addends::<X86_64>();
}

#[test]
fn x86_64_refusals() {
    table::refusals::<X86_64>();
}

#[test]
fn i386_applications() {
    table::applications::<I386>(&|_| 0);
}

#[test]
fn i386_limits() {
    table::limits::<I386>();
}

#[test]
fn i386_addends() {
    table::addends::<I386>();
}

#[test]
fn i386_refusals() {
    table::refusals::<I386>();
}

/// The word at `place` after a relocation with this answer to any question; the place is filled with ones before.
fn word<A: Arch>(r#type: u32, place: u64, answer: u64, addend: i64) -> Result<u64, ApplyError> {
    let mut bytes = [0xff; 8];
    let mut section = SectionMut { bytes: &mut bytes, address: place, big_endian: false };
    let record = Record { offset: 0, symbol: 1, r#type, addend: Some(addend) };
    apply::<A>(&record, &mut section, &|_: &Query| Some(answer))?;
    Ok(u64::from_le_bytes(bytes))
}

#[test]
fn x86_64_ends() {
    let place = 0x1_0000_0000;
    // PC32: two GiB down, two GiB less a byte up
    assert_eq!(word::<X86_64>(2, place, place - (1 << 31), 0), Ok(0xffff_ffff_8000_0000));
    assert_eq!(word::<X86_64>(2, place, place + (1 << 31) - 1, 0), Ok(0xffff_ffff_7fff_ffff));
    assert!(word::<X86_64>(2, place, place - (1 << 31) - 1, 0).is_err());
    assert!(word::<X86_64>(2, place, place + (1 << 31), 0).is_err());
    assert_eq!(word::<X86_64>(2, place, place + (1 << 31), -4), Ok(0xffff_ffff_7fff_fffc));
    // 32 is unsigned, 32S signed
    assert_eq!(word::<X86_64>(10, 0, 0xffff_ffff, 0), Ok(u64::MAX));
    assert!(word::<X86_64>(10, 0, 0x1_0000_0000, 0).is_err());
    assert!(word::<X86_64>(10, 0, 0, -1).is_err());
    assert_eq!(word::<X86_64>(11, 0, 0x7fff_ffff, 0), Ok(0xffff_ffff_7fff_ffff));
    assert!(word::<X86_64>(11, 0, 0x8000_0000, 0).is_err());
    assert_eq!(word::<X86_64>(11, 0, 0xffff_ffff_8000_0000, 0), Ok(0xffff_ffff_8000_0000));
    // 16 and 8 are either
    assert_eq!(word::<X86_64>(12, 0, 0xffff, 0), Ok(u64::MAX));
    assert!(word::<X86_64>(12, 0, 0x1_0000, 0).is_err());
    assert_eq!(word::<X86_64>(14, 0, 0, -0x80), Ok(0xffff_ffff_ffff_ff80));
    assert!(word::<X86_64>(14, 0, 0, -0x81).is_err());
    // 64 is modulo 2^64
    assert_eq!(word::<X86_64>(1, 0, u64::MAX, 2), Ok(1));
}

#[test]
fn i386_ends() {
    // modulo 2^32, whatever is above
    assert_eq!(word::<I386>(1, 0, 0xffff_ffff, 2), Ok(0xffff_ffff_0000_0001));
    assert_eq!(word::<I386>(2, 0xffff_f000, 0x1000, -4), Ok(0xffff_ffff_0000_1ffc));
    // PC16 may wrap: 17 bits
    assert_eq!(word::<I386>(21, 0xffff, 0, 0), Ok(0xffff_ffff_ffff_0001));
    assert_eq!(word::<I386>(21, 0x1_0000, 0, 0), Ok(0xffff_ffff_ffff_0000));
    assert!(word::<I386>(21, 0x1_0001, 0, 0).is_err());
    assert_eq!(word::<I386>(21, 0, 0xffff, 0), Ok(u64::MAX));
    assert!(word::<I386>(21, 0, 0x1_0000, 0).is_err());
    // PC8
    assert_eq!(word::<I386>(23, 0x80, 0, 0), Ok(0xffff_ffff_ffff_ff80));
    assert!(word::<I386>(23, 0x81, 0, 0).is_err());
}

#[test]
fn i386_got32_asks_the_instruction() {
    let answers = |query: &Query| match query.role {
        Role::Got(Slot::Address) => Some(0x3010),
        Role::GotBase => Some(0x3000),
        _ => None,
    };
    // movl symbol@GOT(%ebx), %eax; movl symbol@GOT, %eax; jmp *symbol@GOT; .long symbol@GOT
    for (modrm, expected) in
        [(&[0x8b, 0x83][..], 0x10), (&[0x8b, 0x05], 0x3010), (&[0xff, 0x25], 0x3010), (&[], 0x10)]
    {
        for r#type in [3, 43] {
            let mut bytes = [modrm, &[0; 4]].concat();
            let mut section = SectionMut { bytes: &mut bytes, address: 0x1000, big_endian: false };
            let record = Record { offset: modrm.len() as u64, symbol: 1, r#type, addend: None };
            assert_eq!(apply::<I386>(&record, &mut section, &answers), Ok(()));
            assert_eq!(bytes, [modrm, &u32::to_le_bytes(expected)].concat());
        }
    }
}

#[test]
fn stubs_jump_through_the_got_entry() {
    fn stub<A: Arch>(address: u64) -> Vec<u8> {
        let [stub] = A::STUBS else { panic!("one stub") };
        let mut bytes = stub.code.to_vec();
        for relocation in stub.relocations {
            let StubRelocation { offset, r#type, addend, .. } = *relocation;
            let mut section = SectionMut { bytes: &mut bytes, address, big_endian: false };
            let record = Record { offset, symbol: 1, r#type, addend: Some(addend) };
            let entry =
                |query: &Query| (query.role == Role::Got(Slot::Address)).then_some(0x40_3018);
            assert_eq!(apply::<A>(&record, &mut section, &entry), Ok(()));
        }
        bytes
    }
    // jmp *0x2012(%rip), jmp *0x403018
    assert_eq!(stub::<X86_64>(0x40_1000), [0xff, 0x25, 0x12, 0x20, 0, 0, 0xcc, 0xcc]);
    assert_eq!(stub::<I386>(0x40_1000), [0xff, 0x25, 0x18, 0x30, 0x40, 0, 0xcc, 0xcc]);
}
