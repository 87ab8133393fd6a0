//! Dynamic sections that are not what is loaded, and symbols that a file does not define itself.
#![cfg(test)]

use elf_core::names::{PT_DYNAMIC, PT_LOAD, STT_TLS};
use elf_core::{Arch, File, ProgramHeader, Query, Resolve as _, Role};
use elf_image::{AddressKind, ErrorKind, Image};
use reloc_x86::X86_64;

const SHARED: &[u8] = include_bytes!("../../fixtures/x86_64/libshared.so");
const BASE: u64 = 0x7000_0000;
// where a program header of 64 bits has these
const OFFSET: usize = 8;
const ADDRESS: usize = 16;
const FILE_SIZE: usize = 32;

fn parse(bytes: &[u8]) -> Image<'_> {
    Image::parse(File::parse(bytes).unwrap(), AddressKind::Virtual).unwrap()
}

/// A loader goes by addresses: a dynamic section that is another in the file than in the image would leave it as it is, or relocate
/// what is not there.
#[test]
fn the_dynamic_section_is_in_the_image() {
    let file = File::parse(SHARED).unwrap();
    let headers = usize::try_from(file.header().program_headers).unwrap();
    let (number, segment) =
        (0..).zip(file.segments()).find(|(_, it)| it.r#type == PT_DYNAMIC).unwrap();
    let at = headers + 56 * number;
    let holds = |it: &ProgramHeader| {
        it.r#type == PT_LOAD && segment.address.wrapping_sub(it.address) < it.file_size
    };
    let holder = headers + 56 * file.segments().iter().position(|it| holds(&it)).unwrap();
    let inside = segment.address - file.segments().iter().find(holds).unwrap().address;
    for (place, value) in [
        (at + OFFSET, segment.offset + 16),
        (at + ADDRESS, segment.address + 16),
        (at + ADDRESS, 0x2000),
        (at + FILE_SIZE, 0x1000),
        (holder + FILE_SIZE, inside + 16),
    ] {
        let mut bytes = SHARED.to_vec();
        bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
        // all that is not loaded is behind the sections' names
        bytes.resize(bytes.len() + 0x2000, 0);
        let image = parse(&bytes);
        let error = image.dynamic().unwrap_err();
        assert_eq!(error.segment, Some(u32::try_from(number).unwrap()), "{value:#x}: {error}");
        assert!(matches!(error.kind, ErrorKind::Outside { .. }), "{error}");
        let mut memory = vec![0; usize::try_from(image.size()).unwrap()];
        image.write(&mut memory).unwrap();
        let before = memory.clone();
        let symbols = |_: &Query| Some(BASE);
        assert_eq!(image.relocate::<X86_64>(&mut memory, BASE, &symbols), Err(error));
        assert_eq!(image.relocate_relative::<X86_64>(&mut memory, BASE), Err(error));
        assert!(before == memory);
    }
}

/// A variable that nobody defines has no offset in the block of the file itself.
#[test]
fn variables_of_others() {
    let bytes = include_bytes!("../../fixtures/x86_64/libdynamic.so");
    let image = parse(bytes);
    let own = image.own_symbols::<X86_64>(BASE).unwrap();
    let symbols = image.exports().unwrap().unwrap().symbols();
    let (mut defined, mut undefined) = (0, 0);
    for (index, symbol) in (0..).zip(symbols.symbols()).filter(|(_, it)| it.r#type() == STT_TLS) {
        let kind = elf_core::find(X86_64::KINDS, 18).unwrap();
        for role in [Role::TlsModule, Role::DtpOffset, Role::TpOffset] {
            let query = Query { role, symbol: index, place: 0, addend: 0, kind };
            assert_eq!(own.resolve(&query).is_none(), symbol.is_undefined());
        }
        *if symbol.is_undefined() { &mut undefined } else { &mut defined } += 1;
    }
    assert!(defined != 0 && undefined != 0, "{defined} {undefined}");
}
