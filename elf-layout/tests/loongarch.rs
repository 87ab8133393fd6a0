//! LoongArch code whose instructions say what a relocation is of: the lower part of an address is that of another entry where the symbol
//! is a variable (laelf, GOT_PC_LO12), the upper part of 64 bits goes with three others.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "thread-local"))]

use elf_core::names::EM_LOONGARCH;
use elf_core::{File, Name, Slot};
use elf_layout::{ExternalSymbol, HeapStorage, Options, StaticTlsBlock, ThreadLocal};
use reloc_loongarch::LoongArch64;
use reloc_loongarch::loongarch::*;

mod support;
use support::{CODE, Object, WRITE};

const BASE: u64 = 0x1_2345_6000;

/// Checks which entries two objects load, and how many.
fn loads(objects: [&[u8]; 2]) -> usize {
    let files = objects.map(|bytes| File::parse(bytes).unwrap());
    let mut room = HeapStorage::new();
    let options =
        Options { thread_local: ThreadLocal::AsCompiled, relax: false, ..Options::default() };
    let mut externals = |_: Name<'_>| Some(ExternalSymbol::function(BASE + 0x10_0000));
    let mut layout = room.plan::<LoongArch64>(&files, options, &mut externals).unwrap();
    layout.set_static_tls_block(StaticTlsBlock {
        module: 3,
        tp_offset: Some(0x40),
        ..StaticTlsBlock::default()
    });
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    let entries: Vec<_> = layout.got_entries().collect();
    let mut count = 0;
    for (object, file) in files.iter().enumerate() {
        for header in file.sections().iter() {
            let Some(records) = file.relocations(&header).unwrap() else { continue };
            let Some(at) = layout.section(object, header.info) else { continue };
            let code = |offset: u64| {
                let at = (at + offset) as usize;
                u32::from_le_bytes(image[at..at + 4].try_into().unwrap())
            };
            let records: Vec<_> = records.iter().collect();
            for record in &records {
                let content = match record.r#type {
                    R_LARCH_TLS_GD_PC_HI20 | R_LARCH_TLS_LD_PC_HI20 => Slot::TlsGd,
                    R_LARCH_TLS_IE_PC_HI20 => Slot::TpOffset,
                    R_LARCH_GOT_PC_HI20 => Slot::Address,
                    _ => continue,
                };
                let is_low = |kind| matches!(kind, R_LARCH_GOT_PC_LO12 | R_LARCH_TLS_IE_PC_LO12);
                let low = records.iter().find(|it| {
                    it.offset > record.offset && it.symbol == record.symbol && is_low(it.r#type)
                });
                let low = low.unwrap();
                // pcalau12i and addi.d or ld.d
                let pages = i64::from((code(record.offset) << 7).cast_signed() >> 12) << 12;
                let rest = i64::from((code(low.offset) << 10).cast_signed() >> 20);
                let page = (BASE + at + record.offset) & !0xfff;
                let address = page.wrapping_add_signed(pages).wrapping_add_signed(rest);
                let entry = entries.iter().find(|it| BASE + it.offset == address).unwrap();
                assert_eq!(entry.content, content, "{record:?}");
                assert_eq!(
                    Some((entry.object, entry.symbol)),
                    layout.definition(object, record.symbol)
                );
                count += 1;
            }
        }
    }
    count
}

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../fixtures/loongarch64/", $name, ".o"))
    };
}

#[test]
fn lower_parts_are_of_the_entry_of_the_upper() {
    let general =
        [fixture!("threads-a-clang19-O2-pic").as_slice(), fixture!("threads-b-clang19-O2-pic")];
    let initial = [
        fixture!("threads-a-clang19-O2-initial").as_slice(),
        fixture!("threads-b-clang19-O2-initial"),
    ];
    let addresses = [fixture!("models-clang19-O2-pic").as_slice(), fixture!("pair-b")];
    assert_eq!([general, initial].map(loads), [19, 19]);
    assert!(loads(addresses) > 0);
}

/// Addresses of 64 bits stay as long as they are, and calls around them become shorter.
#[test]
#[cfg_attr(
    not(all(feature = "edits", feature = "relax")),
    ignore = "needs the features edits and relax"
)]
fn what_makes_64_bits_stays_among_what_goes() {
    // pcaddu18i t8, 0; jr t8
    const TAIL: [u32; 2] = [0x1e00_0014, 0x4c00_0280];
    // pcalau12i a0, 0; addi.d a1, zero, 0; lu32i.d a1, 0; lu52i.d a1, a1, 0; add.d a0, a0, a1
    const WIDE: [u32; 5] = [0x1a00_0004, 0x02c0_0005, 0x1600_0005, 0x0300_00a5, 0x0010_9484];
    const RET: u32 = 0x4c00_0020;
    for is_last in [false, true] {
        let second = if is_last { &[][..] } else { &TAIL };
        let code = [&TAIL[..], &WIDE, second, &[RET]].concat();
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut object = Object::new();
        object.machine = EM_LOONGARCH;
        let text = object.section(".text", CODE, 4, &bytes);
        let data = object.section(".data", WRITE, 8, &[0; 16]);
        let end = object.global("end", text, bytes.len() as u64 - 4);
        let variable = object.global("variable", data, 8);
        let calls = if is_last { &[0][..] } else { &[0, 28] };
        let mut relocations: Vec<_> = calls
            .iter()
            .flat_map(|at| [(*at, R_LARCH_CALL36, end), (*at, R_LARCH_RELAX, end)])
            .chain([
                (8, R_LARCH_PCALA_HI20, variable),
                (12, R_LARCH_PCALA_LO12, variable),
                (16, R_LARCH_PCALA64_LO20, variable),
                (20, R_LARCH_PCALA64_HI12, variable),
            ])
            .collect();
        relocations.sort_by_key(|it| it.0);
        for (place, kind, symbol) in relocations {
            object.relocation(text, place, kind, symbol, 0);
        }
        let object_bytes = object.build();
        let files = [File::parse(&object_bytes).unwrap()];
        let mut room = HeapStorage::new();
        let layout = room.plan::<LoongArch64>(&files, Options::default(), &mut |_| None).unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).unwrap();
        let words: Vec<u32> =
            image.as_chunks().0.iter().map(|it| u32::from_le_bytes(*it)).collect();
        let at = |symbol| layout.symbol(0, object.index(symbol)).unwrap().at(BASE);
        // b end
        let jump = |from: usize| 0x5000_0000 | ((at(end) - BASE) as u32 / 4 - from as u32) << 10;
        assert_eq!(at(end) - BASE, if is_last { 24 } else { 28 });
        assert_eq!(words[0], jump(0));
        assert!(is_last || words[6] == jump(6));
        assert_eq!(words[if is_last { 6 } else { 7 }], RET);
        let field = |at: usize, low: u32, bits: u32| {
            i64::from((words[at] << (32 - low - bits)).cast_signed() >> (32 - bits))
        };
        let page = ((BASE + 4) & !0xfff).wrapping_add_signed(field(1, 5, 20) << 12);
        let low = i64::from(field(2, 10, 12) as u32);
        let rest = field(4, 10, 12) << 52 | (field(3, 5, 20) & 0xf_ffff) << 32 | low;
        assert_eq!(page.wrapping_add_signed(rest), at(variable));
    }
}
