//! Arm code in layouts: where branches arrive and in which state, read as a processor reads it; T of pointers; the base of a segment.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "default"))]
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod support;

use elf_core::names::{
    ELFCLASS32, EM_ARM, SHN_ABS, SHN_UNDEF, STB_GLOBAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
};
use elf_core::{File, Name, SymbolTable};
use elf_layout::{ExternalKind, ExternalSymbol, HeapStorage, Layout, Options};
use reloc_arm::Arm;
use reloc_arm::arm::*;
use support::{CODE, Object, Place};

const BASE: u64 = 0x1000_0000;
const NEAR: u64 = 0x1004_0000;
const FAR: u64 = 0x7000_0000;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../fixtures/arm/", $name, ".o")).as_slice()
    };
}

/// The image, read by a processor.
struct Image(Vec<u8>);

impl Image {
    fn half(&self, address: u64) -> u32 {
        let at = (address - BASE) as usize;
        u16::from_le_bytes(self.0[at..at + 2].try_into().unwrap()).into()
    }

    fn word(&self, address: u64) -> u32 {
        self.half(address) | self.half(address + 2) << 16
    }

    /// Where the Arm branch at `place` goes, with T.
    fn arm_branch(&self, place: u64) -> u64 {
        let code = self.word(place);
        assert_eq!(code >> 25 & 0b111, 0b101, "{code:x} is no branch");
        let offset = i64::from((code << 8).cast_signed() >> 6);
        let target = place.wrapping_add_signed(8 + offset) & 0xffff_ffff;
        // BLX to an immediate has no condition
        if code >> 28 == 0xf { (target + u64::from(code >> 23 & 2)) | 1 } else { target }
    }

    /// Where the Thumb branch at `place` goes, with T.
    fn thumb_branch(&self, place: u64) -> u64 {
        let (first, second) = (self.half(place), self.half(place + 2));
        let signed =
            |value: u32, bits: u32| i64::from((value << (32 - bits)).cast_signed() >> (32 - bits));
        match first >> 11 {
            0b11100 => (place.wrapping_add_signed(4 + signed(first << 1 & 0xfff, 12))) | 1,
            0b11010 | 0b11011 => place.wrapping_add_signed(4 + signed(first << 1 & 0x1ff, 9)) | 1,
            0b11110 => {
                let sign = first >> 10 & 1;
                let bit = |at: u32| second >> at & 1;
                if second & 0xd000 == 0x8000 {
                    let high = sign << 20 | bit(11) << 19 | bit(13) << 18 | (first & 0x3f) << 12;
                    let offset = signed(high | (second & 0x7ff) << 1, 21);
                    return place.wrapping_add_signed(4 + offset) | 1;
                }
                let high = sign << 24 | (1 ^ bit(13) ^ sign) << 23 | (1 ^ bit(11) ^ sign) << 22;
                let low = (first & 0x3ff) << 12 | (second & 0x7ff) << 1;
                let offset = signed(high | low, 25);
                match second & 0xd000 {
                    0x9000 | 0xd000 => place.wrapping_add_signed(4 + offset) | 1,
                    0xc000 => ((place + 4) & !3).wrapping_add_signed(offset),
                    _ => panic!("{first:x} {second:x} at {place:x} is no branch"),
                }
            }
            _ => panic!("{first:x} at {place:x} is no branch"),
        }
    }

    /// Where a stub leads that is entered so.
    fn behind_stub(&self, target: u64) -> u64 {
        let at = target & !1;
        let word = |offset| self.word(at + offset);
        let (base, offset, is_thumb) = match [word(0), word(4)] {
            // push {r0}; ldr r0, 0f; add r0, pc; ldr r0, [r0]
            [0x4803_b401, 0x6800_4478] => (8, 16, true),
            // ldr.w ip, 0f; add ip, pc; ldr.w pc, [ip]
            [0xc008_f8df, 0xf8dc_44fc] => (8, 12, true),
            // ldr ip, 0f; ldr ip, [pc, ip]
            [0xe59f_c004, 0xe79f_c00c] => (12, 12, false),
            other => panic!("{other:x?} at {at:x} is no stub"),
        };
        assert_eq!(target & 1 != 0, is_thumb, "the stub at {at:x} is entered in its state");
        self.word(u64::from(word(offset).wrapping_add(at as u32 + base))).into()
    }
}

/// The address of a symbol as pointers have it, and whether its bit 0 is its state: by the file that defines it, or who answers for it.
fn pointer(
    layout: &Layout<'_, '_, Arm>,
    tables: &[SymbolTable<'_>],
    (object, symbol): (usize, u32),
    outside: ExternalSymbol,
) -> (u64, bool) {
    let (owner, index) = layout.definition(object, symbol).unwrap();
    let found = tables[owner].get(index).unwrap();
    let at = layout.symbol(owner, index).unwrap().at(BASE);
    let is_function = matches!(found.r#type(), STT_FUNC | STT_GNU_IFUNC);
    if found.is_undefined() {
        return (at, outside.kind == ExternalKind::Function || at & 1 != 0);
    }
    assert!(!is_function || at & 1 == found.value & 1, "T of symbol {index} of object {owner}");
    (at, is_function)
}

const ARM_BRANCHES: [u32; 4] = [R_ARM_CALL, R_ARM_JUMP24, R_ARM_PC24, R_ARM_PLT32];

/// Checks all branches of these objects. Gives how many go directly, and by way of a stub.
fn arrive(objects: &[&[u8]], outside: ExternalSymbol) -> [usize; 2] {
    let files: Vec<_> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let tables: Vec<_> = files.iter().map(|file| file.symbol_table().unwrap().unwrap()).collect();
    let mut room = HeapStorage::new();
    let mut externals = |_: Name<'_>| Some(outside);
    let options = Options { indirect_functions: true, ..Options::default() };
    let mut layout = room.plan::<Arm>(&files, options, &mut externals).unwrap();
    layout.set_static_tls_block(layout.executable_tls_block());
    let mut image = vec![0; layout.size() as usize];
    if let Err(error) = layout.write(&mut image, BASE) {
        // there is no stub that Thumb code could take to what may be code of either state
        assert_eq!(outside, ExternalSymbol::new(FAR), "{error}");
        return [0, 0];
    }
    assert!(layout.answers().all(|answer| answer == outside.address), "with their state");
    let image = Image(image);
    let mut counts = [0, 0];
    for (object, file) in files.iter().enumerate() {
        for header in file.sections().iter() {
            let Some(records) = file.relocations(&header).unwrap() else { continue };
            let Some(at) = layout.section(object, header.info) else { continue };
            for record in records.iter() {
                let place = BASE + at + record.offset;
                let target = match record.r#type {
                    kind if ARM_BRANCHES.contains(&kind) => image.arm_branch(place),
                    R_ARM_THM_CALL | R_ARM_THM_JUMP24 | R_ARM_THM_JUMP19 => {
                        image.thumb_branch(place)
                    }
                    _ => continue,
                };
                let id = (object, record.symbol);
                let (expected, has_state) = pointer(&layout, &tables, id, outside);
                let is_stub = layout.stubs().any(|stub| BASE + stub.offset == target & !1);
                // an indirect function is its stub
                let is_behind = is_stub && target != expected;
                let found = if is_behind { image.behind_stub(target) } else { target };
                counts[usize::from(is_stub)] += 1;
                // code stays in its state where that of the target is unknown
                let own = u64::from(!ARM_BRANCHES.contains(&record.r#type));
                let state = if has_state || is_behind { expected & 1 } else { own };
                assert_eq!(found, expected & !1 | state, "{id:?} from {place:x}: {record:?}");
            }
        }
    }
    counts
}

#[test]
fn branches_arrive_in_the_state_of_the_target() {
    let sets: &[&[&[u8]]] = &[
        &[fixture!("pair-a"), fixture!("pair-b")],
        &[fixture!("pair-a-gcc12"), fixture!("pair-b-gcc12-thumb")],
        &[fixture!("pair-a-gcc12-thumb"), fixture!("pair-b-gcc12")],
        &[fixture!("pair-a-gcc12-thumb"), fixture!("pair-b-gcc12-thumb")],
        &[fixture!("library")],
        &[fixture!("models-clang19-O2-v5")],
        &[fixture!("lifetime")],
        &[fixture!("lifetime-last")],
        &[fixture!("indirect-gcc12")],
        // what both call has stubs of both states
        &[fixture!("threads-cpp"), fixture!("threads-second")],
        &[fixture!("threads-a-gcc12-O2-arm-nopic"), fixture!("threads-b-gcc12-O2-arm-nopic")],
    ];
    let mut total = [0, 0];
    for objects in sets {
        for address in [NEAR, NEAR | 1, FAR, FAR | 1] {
            for outside in [ExternalSymbol::function(address), ExternalSymbol::new(address)] {
                let counts = arrive(objects, outside);
                total = [total[0] + counts[0], total[1] + counts[1]];
            }
        }
    }
    assert!(total[0] > 100 && total[1] > 100, "{total:?}");
}

/// The fixture that counts from segments, with another symbol `table` and other relocations of its last two words, which hold this
/// addend.
fn with_table(value: u32, info: u8, shndx: u16, r#type: u32, addend: u32) -> Vec<u8> {
    let mut bytes = SEGMENTS.to_vec();
    let file = File::parse(SEGMENTS).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let at = file.section(table.section()).unwrap().offset as usize + 4 * 16;
    bytes[at + 4..at + 8].copy_from_slice(&value.to_le_bytes());
    bytes[at + 12] = info;
    bytes[at + 14..at + 16].copy_from_slice(&shndx.to_le_bytes());
    let named = |name: &str| {
        file.sections().iter().find(|it| file.section_name(it).unwrap() == name).unwrap()
    };
    let (records, data) = (named(".rel.data").offset as usize, named(".data").offset as usize);
    for row in [records, records + 8] {
        bytes[row + 4..row + 8].copy_from_slice(&(4 << 8 | r#type).to_le_bytes());
    }
    for word in [data + 0x40, data + 0x44] {
        bytes[word..word + 4].copy_from_slice(&addend.to_le_bytes());
    }
    // of the code nothing is relocated
    let code = named(".rel.text").offset as usize;
    for row in 0..4 {
        bytes[code + 8 * row + 4] = R_ARM_NONE as u8;
    }
    bytes
}

const SEGMENTS: &[u8] = fixture!("relocations-lld");

/// What is no function and has no T may be code of either state: there is no stub for it that Thumb code could take.
#[test]
fn stubs_of_labels() {
    let stubs = |kind, code: u32, r#type, outside| {
        let mut object = Object::new();
        (object.machine, object.class) = (EM_ARM, ELFCLASS32);
        let text = object.section(".text", CODE, 4, &[code, 0].map(u32::to_le_bytes).concat());
        let place = if outside == OWN { Place::In(text) } else { Place::Undefined };
        let label = object.symbol("label", STB_GLOBAL, r#type, place, 4, 0);
        object.relocation(text, 0, kind, label, if kind == R_ARM_THM_CALL { -4 } else { -8 });
        let bytes = object.build();
        let files = [File::parse(&bytes).unwrap()];
        let mut room = HeapStorage::new();
        let mut externals = |_: Name<'_>| Some(outside);
        let layout = room.plan::<Arm>(&files, Options::default(), &mut externals).unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).ok().map(|()| layout.stubs().count())
    };
    // the object's own, which is Arm code if it is a function: processors without BLX need a stub for that
    const OWN: ExternalSymbol = ExternalSymbol::new(4);
    for (r#type, outside, from_thumb, from_arm) in [
        (STT_NOTYPE, ExternalSymbol::new(FAR), None, Some(1)),
        (STT_NOTYPE, ExternalSymbol::new(FAR | 1), Some(1), Some(1)),
        (STT_NOTYPE, ExternalSymbol::function(FAR), Some(1), Some(1)),
        (STT_NOTYPE, ExternalSymbol::function(FAR | 1), Some(1), Some(1)),
        (STT_NOTYPE, OWN, Some(0), Some(0)),
        (STT_FUNC, OWN, Some(1), Some(0)),
    ] {
        let from = |kind, code| stubs(kind, code, r#type, outside);
        assert_eq!(from(R_ARM_THM_CALL, 0xf800_f000), from_thumb, "{type} {outside:?}");
        assert_eq!(from(R_ARM_CALL, 0xeb00_0000), from_arm, "{type} {outside:?}");
    }
}

/// T is or-ed into what counts from functions, once A is added; of all else bit 0 is a part of the address.
#[test]
fn states_in_words() {
    let (function, label) = (STB_GLOBAL << 4 | STT_FUNC, STB_GLOBAL << 4);
    let unused = ExternalSymbol::new(0);
    for (info, shndx, value, outside, addend, expected) in [
        (label, SHN_ABS, 0x40, unused, 0, 0x40),
        (label, SHN_ABS, 0x41, unused, 1, 0x42),
        (function, SHN_ABS, 0x40, unused, 4, 0x44),
        (function, SHN_ABS, 0x41, unused, 4, 0x45),
        (function, SHN_ABS, 0x41, unused, 1, 0x41),
        (label, SHN_UNDEF, 0, ExternalSymbol::new(0x8001), 1, 0x8002),
        (label, SHN_UNDEF, 0, ExternalSymbol::function(0x8001), 4, 0x8005),
        (label, SHN_UNDEF, 0, ExternalSymbol::function(0x8001), 1, 0x8001),
        (label, SHN_UNDEF, 0, ExternalSymbol::function(0x8001), 3, 0x8003),
        (label, SHN_UNDEF, 0, ExternalSymbol::function(0x8000), 4, 0x8004),
        (label, SHN_UNDEF, 0, ExternalSymbol::function(0x8000), 1, 0x8001),
    ] {
        let bytes = with_table(value, info, shndx, R_ARM_ABS32, addend);
        let files = [File::parse(&bytes).unwrap()];
        let mut room = HeapStorage::new();
        let mut externals = |_: Name<'_>| Some(outside);
        let layout = room.plan::<Arm>(&files, Options::default(), &mut externals).unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).unwrap();
        let data = BASE + layout.section(0, 4).unwrap();
        assert_eq!(Image(image).word(data + 0x40), expected, "{value:#x} {outside:?} {addend}");
    }
}

/// B(S) is the start of the segment that has the symbol.
#[test]
fn segments_are_counted_from() {
    let files = [File::parse(SEGMENTS).unwrap()];
    let mut room = HeapStorage::new();
    let layout = room.plan::<Arm>(&files, Options::default(), &mut |_| None).unwrap();
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    let image = Image(image);
    let (text, data) = (layout.section(0, 2).unwrap(), layout.section(0, 4).unwrap());
    assert!(data > text && layout.segments().any(|segment| segment.offset == data));
    // the 64 bytes before `table` are the segment's first
    let words = [0x40, 0x44].map(|at| image.word(BASE + data + at));
    assert_eq!(words, [0x40, 0x44]);
    // movw r0, #64; movt r0, #0, in both states
    let code = [0, 4, 12, 16].map(|at| image.word(BASE + text + at));
    assert_eq!(code, [0xe300_0040, 0xe340_0000, 0x0040_f240, 0x0000_f2c0]);
}

/// Functions behind stubs keep their state: in the entry that their stub jumps through.
#[test]
#[cfg_attr(not(feature = "indirect-functions"), ignore = "needs the feature indirect-functions")]
fn functions_behind_stubs_keep_their_state() {
    for (objects, states) in [
        ([fixture!("pair-a-gcc12"), fixture!("pair-b-gcc12")], [0, 0]),
        ([fixture!("pair-a-gcc12-thumb"), fixture!("pair-b-gcc12")], [1, 0]),
        ([fixture!("pair-a-gcc12"), fixture!("pair-b-gcc12-thumb")], [0, 1]),
    ] {
        let files = objects.map(|bytes| File::parse(bytes).unwrap());
        let mut room = HeapStorage::new();
        let mut externals = |_: Name<'_>| Some(ExternalSymbol::function(FAR));
        let options = Options { replaceable_functions: true, ..Options::default() };
        let layout = room.plan::<Arm>(&files, options, &mut externals).unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).unwrap();
        let image = Image(image);
        let mut counts = [0, 0];
        for function in layout.replaceable_functions() {
            let state = states[function.object];
            assert_eq!(function.function & 1, state);
            assert_eq!(u64::from(image.word(BASE + function.entry)), BASE + function.function);
            let stub = layout.symbol(function.object, function.symbol).unwrap().at(BASE);
            assert_eq!(image.behind_stub(stub), BASE + function.function);
            counts[function.object] += 1;
        }
        assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    }
}
