//! Code with TLS descriptors of Arm that stays as it was compiled: each call ends in the descriptor's function, with its address.
#![cfg(all(test, feature = "alloc", feature = "thread-local"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod support;

use elf_core::names::{ELFCLASS32, EM_ARM, SHT_ARM_ATTRIBUTES};
use elf_core::{ApplyErrorKind, File, Name, SectionFlags};
use elf_layout::{ErrorKind, ExternalSymbol, HeapStorage, Options, StaticTlsBlock, ThreadLocal};
use reloc_arm::Arm;
use reloc_arm::arm::{R_ARM_THM_TLS_CALL, R_ARM_TLS_CALL, R_ARM_TLS_GOTDESC};
use support::{CODE, Object};

const BASE: u64 = 0x10_0000;
const FUNCTION: u64 = 0x7000_0000;
const DYNAMIC: u64 = 0x7100_0000;

/// `add r0, lr; lsrs r0, r0, #2; lsls r0, r0, #2; subs r0, #4; ldr r1, [r0, #4]; bx r1`
const ROUTINE: [u32; 3] = [0x0880_4470, 0x3804_0080, 0x4708_6841];

/// Four bytes of the image.
fn word(image: &[u8], at: u64) -> u32 {
    let at = (at - BASE) as usize;
    u32::from_le_bytes(image[at..at + 4].try_into().unwrap())
}

/// Where the call at `place` goes, which must be to Thumb code.
fn target(image: &[u8], place: u64, is_thumb: bool) -> u64 {
    let code = word(image, place);
    if !is_thumb {
        assert_eq!(code >> 25, 0x7d, "blx");
        let distance = ((code << 8).cast_signed() >> 6) | (code >> 23 & 2).cast_signed();
        return place.wrapping_add_signed(8 + i64::from(distance));
    }
    let (first, second) = (code & 0xffff, code >> 16);
    assert_eq!((first >> 11, second & 0xd000), (0x1e, 0xd000), "bl");
    let sign = first >> 10 & 1;
    let i = |at: u32| !(second >> at ^ sign) & 1;
    let high = sign << 24 | i(13) << 23 | i(11) << 22 | (first & 0x3ff) << 12;
    let distance = ((high | (second & 0x7ff) << 1) << 7).cast_signed() >> 7;
    place.wrapping_add_signed(4 + i64::from(distance))
}

/// What calls of two objects pass to which function: the words of the descriptors, in the order of the code.
fn asked(objects: [&[u8]; 2], block: StaticTlsBlock) -> Vec<[u32; 2]> {
    let files = objects.map(|bytes| File::parse(bytes).unwrap());
    let mut room = HeapStorage::new();
    let mut externals = |_: Name<'_>| Some(ExternalSymbol::function(0x7000_1000));
    let options = Options { thread_local: ThreadLocal::AsCompiled, ..Options::default() };
    let mut layout = room.plan::<Arm>(&files, options, &mut externals).unwrap();
    layout.set_static_tls_block(block);
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    let mut descriptors = Vec::new();
    for (object, file) in files.iter().enumerate() {
        for header in file.sections().iter() {
            let Some(records) = file.relocations(&header).unwrap() else { continue };
            let Some(at) = layout.section(object, header.info) else { continue };
            let source = file.section_data(&file.section(header.info).unwrap()).unwrap();
            for record in records.iter() {
                let (place, offset) = (BASE + at + record.offset, record.offset as usize);
                let is_thumb = match record.r#type {
                    R_ARM_TLS_CALL | R_ARM_THM_TLS_CALL => {
                        let is_thumb = record.r#type == R_ARM_THM_TLS_CALL;
                        let code = target(&image, place, is_thumb);
                        assert_eq!([0, 4, 8].map(|offset| word(&image, code + offset)), ROUTINE);
                        continue;
                    }
                    R_ARM_TLS_GOTDESC => source[offset] & 1 != 0,
                    _ => continue,
                };
                let behind = u32::from_le_bytes(source[offset..offset + 4].try_into().unwrap());
                let call = place - u64::from(behind & !1);
                let lr = call as u32 + 4 + u32::from(is_thumb);
                let descriptor = (word(&image, place).wrapping_add(lr) & !3).wrapping_sub(4);
                let at = u64::from(descriptor);
                descriptors.push([word(&image, at), word(&image, at + 4)]);
            }
        }
    }
    descriptors
}

const ARM: [&[u8]; 2] = [
    include_bytes!("../../fixtures/arm/threads-a-gcc12-O2-arm-desc.o"),
    include_bytes!("../../fixtures/arm/threads-b-gcc12-O2-arm-desc.o"),
];
const THUMB: [&[u8]; 2] = [
    include_bytes!("../../fixtures/arm/threads-a-gcc12-O2-thumb-desc.o"),
    include_bytes!("../../fixtures/arm/threads-b-gcc12-O2-thumb-desc.o"),
];

const NOWHERE: StaticTlsBlock = StaticTlsBlock {
    module: 5,
    tp_offset: None,
    descriptor: Some(FUNCTION),
    dynamic_descriptor: Some(DYNAMIC),
};

#[test]
fn descriptors_hold_offsets_where_they_are_known() {
    for objects in [ARM, THUMB] {
        let asked = asked(objects, StaticTlsBlock { tp_offset: Some(0x40), ..NOWHERE });
        assert!(asked.len() > 4);
        for [offset, function] in asked {
            assert_eq!(u64::from(function), FUNCTION);
            assert!((0x40..0x1000).contains(&offset), "{offset:#x}");
        }
    }
}

#[test]
fn descriptors_lead_to_module_and_offset_else() {
    for objects in [ARM, THUMB] {
        let asked = asked(objects, NOWHERE);
        assert!(asked.len() > 4);
        for [pair, function] in asked {
            assert_eq!(u64::from(function), DYNAMIC);
            assert!(u64::from(pair) > BASE, "{pair:#x}");
        }
    }
}

/// An object of gcc for Armv7-A, said to be for another version of the architecture (Tag_CPU_arch).
fn on(bytes: &[u8], version: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    // behind Tag_CPU_name, a text
    let at = bytes.windows(6).position(|it| it == [b'7', b'-', b'A', 0, 6, 10]).unwrap();
    bytes[at + 5] = version;
    bytes
}

/// The code that is called is Thumb code: before Armv6T2 BLX of other code does not reach as far as it may be.
#[test]
fn early_processors_have_no_such_calls() {
    let planned = |object: &[u8], version| {
        let bytes = on(object, version);
        let files = [File::parse(&bytes).unwrap()];
        let options = Options { thread_local: ThreadLocal::AsCompiled, ..Options::default() };
        let mut externals = |_: Name<'_>| Some(ExternalSymbol::thread_local(1, 0, Some(8)));
        let mut room = HeapStorage::new();
        room.plan::<Arm>(&files, options, &mut externals).map(|_| ()).map_err(|error| error.kind)
    };
    let initial = include_bytes!("../../fixtures/arm/threads-b-gcc12-O2-arm-nopic.o");
    for (version, has_calls) in [(10, true), (4, false)] {
        assert_eq!(planned(initial, version), Ok(()));
        let result = planned(ARM[1], version);
        let is_unsupported = |kind: &ErrorKind| matches!(kind, ErrorKind::Apply(error) if error.kind == ApplyErrorKind::Unsupported);
        assert_eq!(result.is_ok(), has_calls, "{version}: {result:?}");
        assert!(has_calls || result.is_err_and(|kind| is_unsupported(&kind)));
    }
}

/// Where code is larger than a call spans, the routine stands in it, too, though nobody branches to anything else.
#[test]
#[cfg_attr(not(feature = "thunks"), ignore = "needs the feature thunks")]
fn calls_arrive_in_large_code() {
    const SIZE: u64 = 40 << 20;
    let mut object = Object::new();
    (object.machine, object.class) = (EM_ARM, ELFCLASS32);
    let text = object.section(".text.first", CODE, 4, &0xebff_fffe_u32.to_le_bytes());
    object.zeros(".text.second", CODE, 4, SIZE);
    let armv7 = b"A\x11\0\0\0aeabi\0\x01\x07\0\0\0\x06\x0a";
    let attributes = object.section(".ARM.attributes", SectionFlags::empty(), 1, armv7);
    object.kind(attributes, SHT_ARM_ATTRIBUTES);
    let variable = object.undefined("variable");
    object.relocation(text, 0, R_ARM_TLS_CALL, variable, -8);
    let bytes = object.build();
    let files = [File::parse(&bytes).unwrap()];
    let options = Options { thread_local: ThreadLocal::AsCompiled, ..Options::default() };
    let mut externals = |_: Name<'_>| Some(ExternalSymbol::thread_local(1, 0, Some(8)));
    let mut room = HeapStorage::new();
    let layout = room.plan::<Arm>(&files, options, &mut externals).unwrap();
    let mut image = vec![0; layout.size() as usize];
    layout.write_zeroed(&mut image, BASE).unwrap();
    let code = target(&image, BASE + layout.section(0, text).unwrap(), false);
    assert!(code < BASE + SIZE);
    assert_eq!([0, 4, 8].map(|offset| word(&image, code + offset)), ROUTINE);
}
