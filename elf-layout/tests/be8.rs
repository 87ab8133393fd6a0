//! Big-endian Arm with little-endian code: what is turned around, and what is refused.
#![cfg(all(test, feature = "alloc", feature = "thread-local"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use elf_core::names::EF_ARM_BE8;
use elf_core::{Definition, ErrorKind as ElfError, File, Name};
use elf_layout::{
    CodeMark, Error, ErrorKind, ExternalSymbol, HeapStorage, ImageMode, Layout, Options,
};
use reloc_arm::Arm;

const THUMB: &[u8] = include_bytes!("../../fixtures/arm-be8/pair-b.o");
const ARM: &[u8] = include_bytes!("../../fixtures/arm-be8/pair-a.o");
const MODELS: &[u8] = include_bytes!("../../fixtures/arm-be8/models-gcc12-O2-arm.o");
const EARLY: &[u8] = include_bytes!("../../fixtures/arm/call-big-endian.o");
const LITTLE: &[u8] = include_bytes!("../../fixtures/arm/call.o");

const BASE: u64 = 0x10_0000;

/// What comes of objects whose undefined symbols are far away.
fn laid_out<T>(objects: &[&[u8]], act: impl FnOnce(&Layout<'_, '_, Arm>) -> T) -> Result<T, Error> {
    let files: Vec<File<'_>> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let mut room = HeapStorage::new();
    let mut externals = |_: Name<'_>| Some(ExternalSymbol::new(0x7000_0000));
    Ok(act(&room.plan::<Arm>(&files, Options::default(), &mut externals)?))
}

fn be8(objects: &[&[u8]]) -> Result<Vec<u8>, Error> {
    laid_out(objects, |layout| {
        let mut image = vec![0xaa; layout.size() as usize];
        layout.write_be8(&mut image, BASE, &mut [CodeMark::default(); 32])?;
        Ok(image)
    })?
}

#[test]
fn early_processors_have_both() {
    let (image, turned) = laid_out(&[EARLY], |layout| {
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).unwrap();
        (image, be8(&[EARLY]).unwrap())
    })
    .unwrap();
    // `ldr r4, [pc, ..]`, the first instruction
    let word = |image: &[u8]| u32::from_be_bytes(*image.first_chunk().unwrap());
    assert_eq!(word(&image) >> 16, 0xe59f);
    assert_eq!(word(&image).swap_bytes(), word(&turned));
    // words that code loads stay as they are
    let (code, pool) = (u32::from_be_bytes([0, 0x0f, 0, 5]), &[0, 0x0f, 0, 5]);
    assert_eq!(code, 0x000f_0005);
    let count = |image: &[u8]| image.windows(4).filter(|word| word == pool).count();
    assert!(count(&image) > 0);
    assert_eq!(count(&image), count(&turned));
}

/// Bit 0 of a pointer to Thumb code is set, however the address is asked for.
#[test]
fn addresses_of_thumb_code() {
    let mut thumb = 0;
    let object = include_bytes!("../../fixtures/arm/pair-a-gcc12-thumb.o");
    laid_out(&[object], |layout| {
        let addresses: Vec<_> = layout.addresses(0, 0, BASE).collect();
        for (index, address) in (0u32..).zip(addresses) {
            let one = layout.symbol(0, index).map(|symbol| symbol.at(BASE));
            assert!(one.is_none() || address == one, "symbol {index}");
            thumb += address.unwrap_or(0) & 1;
        }
    })
    .unwrap();
    assert!(thumb > 5, "{thumb} functions");
}

/// Code that counts to a weak symbol which nobody defines is near address 0.
#[test]
fn what_counts_to_nothing_is_near_it() {
    let objects: [&[u8]; 2] = [
        include_bytes!("../../fixtures/riscv64/pair-a-gcc12.o"),
        include_bytes!("../../fixtures/riscv64/pair-b.o"),
    ];
    let files = objects.map(|bytes| File::parse(bytes).unwrap());
    let mut room = HeapStorage::new();
    let layout = room.plan::<reloc_riscv::Rv64>(&files, Options::default(), &mut |_| None).unwrap();
    assert_eq!(layout.limit(), Some(1 << 31));
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, (1 << 31) - 0x10_0000).unwrap();
    assert!(layout.write(&mut image, 1 << 32).is_err());
}

#[test]
fn later_ones_have_one() {
    let refused = laid_out(&[THUMB], |layout| {
        let mut image = vec![0xaa; layout.size() as usize];
        let error = layout.write(&mut image, BASE);
        assert!(image.iter().all(|byte| *byte == 0xaa));
        (error, layout.write_zeroed(&mut image, BASE))
    });
    let error = Error { object: 0, section: 0, kind: ErrorKind::CodeOrder };
    assert_eq!(refused, Ok((Err(error), Err(error))));
    assert!(be8(&[ARM, THUMB]).is_ok());
    assert_eq!(be8(&[LITTLE]), Err(error));
}

#[test]
fn orders_do_not_mix() {
    let refused = laid_out(&[EARLY, LITTLE], |_| ()).unwrap_err();
    assert_eq!(refused, Error { object: 1, section: 0, kind: ErrorKind::ByteOrder });
    let refused = laid_out(&[LITTLE, EARLY], |_| ()).unwrap_err();
    assert_eq!(refused, Error { object: 1, section: 0, kind: ErrorKind::ByteOrder });
}

#[test]
fn marks_are_counted_first() {
    let refused = laid_out(&[ARM], |layout| {
        let mut image = vec![0xaa; layout.size() as usize];
        let result = layout.write_be8(&mut image, BASE, &mut [CodeMark::default(); 2]);
        assert!(image.iter().all(|byte| *byte == 0xaa));
        result
    });
    let needed = File::parse(ARM).unwrap().sections().len();
    let kind = ErrorKind::Storage { what: "marks", needed };
    assert_eq!(refused, Ok(Err(Error { object: 0, section: 0, kind })));
    let written = laid_out(&[ARM], |layout| {
        let mut image = vec![0; layout.size() as usize];
        layout.write_be8(&mut image, BASE, &mut vec![CodeMark::default(); needed])
    });
    assert_eq!(written, Ok(Ok(())));
}

/// Where `st_value` of the mapping symbols of section 1 lies in the file, and what it is.
fn marks_of(bytes: &[u8]) -> Vec<(usize, u64)> {
    let file = File::parse(bytes).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let start = file.section(table.section()).unwrap().offset as usize;
    let symbols = (0u32..).zip(table.symbols());
    let marks = symbols.filter(|(index, symbol)| {
        let name = table.name_of(symbol).unwrap();
        table.section_of(*index, symbol) == Ok(Definition::Section(1))
            && name.as_bytes().starts_with(b"$")
    });
    marks.map(|(index, symbol)| (start + 16 * index as usize + 4, symbol.value)).collect()
}

#[test]
fn mapping_symbols_stand_in_order() {
    let marks = marks_of(MODELS);
    let [(first, _), .., (_, last)] = marks[..] else { panic!("{marks:?}") };
    let mut bytes = MODELS.to_vec();
    bytes[first..first + 4].copy_from_slice(&(last as u32 + 4).to_be_bytes());
    let error = be8(&[&bytes]).unwrap_err();
    let ErrorKind::Elf(kind) = error.kind else { panic!("{error:?}") };
    assert_eq!((error.object, error.section), (0, 1));
    assert!(matches!(kind.kind, ElfError::Invalid { what: "order of mapping symbols", .. }));
    // one beyond the end says nothing
    let (place, _) = marks[marks.len() - 1];
    let mut bytes = MODELS.to_vec();
    bytes[place..place + 4].copy_from_slice(&[0xff; 4]);
    assert!(be8(&[&bytes]).is_ok());
}

/// The same sources were compiled for little-endian machines: of them the code is the same, and words that it loads are turned.
#[test]
fn code_is_that_of_little_endian_machines() {
    let thumb = include_bytes!("../../fixtures/arm-be8/models-gcc12-O2-thumb.o");
    let little_thumb = include_bytes!("../../fixtures/arm/models-gcc12-O2-thumb-pic.o");
    let little_arm = include_bytes!("../../fixtures/arm/pair-a-gcc12.o");
    let pairs: [[&[u8]; 2]; 2] = [[ARM, little_arm], [thumb, little_thumb]];
    for [big, little] in pairs {
        let written = laid_out(&[little], |layout| {
            let mut image = vec![0; layout.size() as usize];
            layout.write(&mut image, BASE).map(|()| image)
        });
        let images = [(big, be8(&[big]).unwrap()), (little, written.unwrap().unwrap())];
        let [big, little] = images.map(|(object, image)| {
            let code = |layout: &Layout<'_, '_, Arm>| {
                let (start, size) = (layout.section(0, 1), layout.section_size(0, 1));
                image[start.unwrap() as usize..][..size.unwrap() as usize].to_vec()
            };
            laid_out(&[object], code).unwrap()
        });
        assert_eq!(big.len(), little.len());
        for (big, little) in big.chunks(4).zip(little.chunks(4)) {
            assert!(big == little || big.iter().rev().eq(little), "{big:x?} for {little:x?}");
        }
    }
}

/// What `__ehdr_start` means tells which code it is (AAELF32, `EF_ARM_BE8`).
#[test]
#[cfg_attr(not(feature = "linker-defined"), ignore = "needs the feature linker-defined")]
fn the_header_says_so() {
    const NAME: &[u8; 14] = b"add_to_shared\0";
    let name = ARM.windows(NAME.len()).position(|bytes| bytes == NAME).unwrap();
    let mut bytes = ARM.to_vec();
    bytes[name..name + NAME.len()].copy_from_slice(b"__ehdr_start\0\0");
    let files = [File::parse(&bytes).unwrap()];
    let own = files[0].header().flags;
    let mut room = HeapStorage::new();
    let mut externals =
        |name: Name<'_>| (name != "__ehdr_start").then_some(ExternalSymbol::new(BASE + 0x1_0000));
    let layout = room.plan::<Arm>(&files, Options::default(), &mut externals).unwrap();
    let mut image = vec![0; layout.size() as usize];
    layout.write_be8(&mut image, BASE, &mut [CodeMark::default(); 32]).unwrap();
    let start = image.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    let flags = u32::from_be_bytes(*image[start + 36..].first_chunk().unwrap());
    assert_eq!((own & EF_ARM_BE8, flags), (0, own | EF_ARM_BE8));
}

#[test]
fn stubs_are_code() {
    let options = Options { mode: ImageMode::Segments { page_size: 4096 }, ..Options::default() };
    let files = [File::parse(THUMB).unwrap()];
    let mut room = HeapStorage::new();
    // too far for any branch
    let mut externals = |_: Name<'_>| Some(ExternalSymbol::new(0x7000_0001));
    let layout = room.plan::<Arm>(&files, options, &mut externals).unwrap();
    let mut image = vec![0; layout.size() as usize];
    layout.write_be8(&mut image, BASE, &mut [CodeMark::default(); 32]).unwrap();
    let stubs: Vec<_> = layout.stubs().collect();
    assert!(!stubs.is_empty());
    for stub in stubs {
        let code = &image[stub.offset as usize..][..stub.size as usize];
        // ldr.w ip, [pc, #8]; add ip, pc; ldr.w pc, [ip]; nop
        assert_eq!(code[..12], *b"\xdf\xf8\x08\xc0\xfc\x44\xdc\xf8\x00\xf0\x00\xbf");
        let entry = u32::from_be_bytes(*code[12..].first_chunk().unwrap());
        let entry = stub.offset as u32 + 8 + entry;
        assert_eq!(image[entry as usize..][..4], 0x7000_0001u32.to_be_bytes());
    }
}
