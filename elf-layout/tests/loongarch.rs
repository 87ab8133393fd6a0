//! LoongArch code and its GOT entries: the lower part of an address is that of another entry where the symbol is a variable (laelf, GOT_PC_LO12).
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "thread-local"))]

use elf_core::{File, Name, Slot};
use elf_layout::{ExternalSymbol, HeapStorage, Options, StaticTlsBlock, ThreadLocal};
use reloc_loongarch::LoongArch64;
use reloc_loongarch::loongarch::*;

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
