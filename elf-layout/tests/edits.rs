//! Code that becomes shorter in a layout: where that leaves everything else, and what is refused.
#![cfg(test)]
#![cfg(all(feature = "edits", feature = "relax", feature = "thread-local"))]

use elf_core::names::{EM_RISCV, SHT_RISCV_ATTRIBUTES, STB_GLOBAL, STT_TLS};
use elf_core::{ApplyErrorKind, File, Name, Role, SectionFlags};
use elf_layout::{
    Error, ErrorKind, ExternalSymbol, ImageMode, Layout, Options, Requirements, StaticTlsBlock,
    ThreadLocal,
};
use reloc_riscv::Rv64;
use reloc_riscv::riscv::*;

mod support;
use support::{CODE, Object, Place, WRITE, with_edits};

const RELAX: &[u8] = include_bytes!("../../fixtures/riscv64/relax.o");
const BASE: u64 = 0x40_0000;

/// Where `outside` is, and what is absolute.
fn outside(name: Name<'_>) -> Option<ExternalSymbol> {
    Some(ExternalSymbol::new(match name.to_str()? {
        "outside" => BASE + 0x8000,
        "zero" => 16,
        "minus" => (-16_i64).cast_unsigned(),
        "page" => 0x1_2000,
        "last_page" => 0x7f_f000,
        _ => return None,
    }))
}

fn options() -> Options {
    Options { base: Some(BASE), executable: true, ..Options::default() }
}

/// Lays out an object with room for so many edits.
fn laid_out<R>(
    bytes: &[u8],
    options: Options,
    room: usize,
    f: impl FnOnce(Result<Layout<'_, '_, Rv64>, Error>) -> R,
) -> R {
    with_edits(bytes, options, room, outside, f)
}

/// The same with the fixture.
fn with_room<R>(
    options: Options,
    room: usize,
    f: impl FnOnce(Result<Layout<'_, '_, Rv64>, Error>) -> R,
) -> R {
    laid_out(RELAX, options, room, f)
}

fn needed() -> usize {
    let files = [File::parse(RELAX).unwrap()];
    Requirements::of(&files).unwrap().with_edits::<Rv64>(&files).unwrap().edits
}

#[test]
fn room_is_counted() {
    assert_eq!(Requirements::of(&[File::parse(RELAX).unwrap()]).unwrap().edits, 0);
    with_room(options(), needed(), |layout| assert!(layout.is_ok()));
    let few = with_room(options(), 3, |layout| layout.err().unwrap());
    assert_eq!(few.kind, ErrorKind::Storage { what: "edits", needed: 4 });
}

#[test]
fn without_room_padding_that_is_too_long_is_refused() {
    let error = with_room(options(), 0, |layout| {
        let mut layout = layout.unwrap();
        layout.set_static_tls_block(layout.executable_tls_block());
        layout.write(&mut vec![0; layout.size() as usize], BASE).unwrap_err()
    });
    let ErrorKind::Apply(error) = error.kind else { panic!("{error}") };
    assert!(matches!(error.kind, ApplyErrorKind::Misaligned { .. }), "{error}");
}

/// Without room all code stays as long as it is, and as it was compiled.
#[test]
fn without_room_code_stays_as_compiled() {
    let object = include_bytes!("../../fixtures/riscv64/relax-gnu.o");
    let code = |room, relax| {
        let options = Options { relax, global_pointer: true, ..options() };
        laid_out(object, options, room, |layout| {
            let layout = layout.unwrap();
            let mut image = vec![0; layout.size() as usize];
            layout.write(&mut image, BASE).unwrap();
            image.truncate(layout.section_size(0, 2).unwrap() as usize);
            image
        })
    };
    assert_eq!(code(0, true), code(0, false));
    assert!(code(20, true).len() < code(0, true).len());
}

#[test]
fn everything_follows() {
    let file = File::parse(RELAX).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let index = |wanted: &str| {
        (0u32..)
            .zip(table.symbols())
            .find(|(_, it)| table.name_of(it).unwrap() == wanted)
            .unwrap()
            .0
    };
    let text =
        (0u32..).zip(file.sections()).find(|(_, it)| it.flags.contains(SectionFlags::EXECINSTR));
    let (text, header) = text.unwrap();
    let sizes = |layout: &Layout<'_, '_, Rv64>| {
        let [first, last] =
            ["first", "last"].map(|name| layout.symbol_size(0, index(name)).unwrap());
        (layout.section_size(0, text).unwrap(), first, last)
    };
    let [first, last] = ["first", "last"].map(|name| table.get(index(name)).unwrap());
    let as_long = with_room(options(), 0, |layout| sizes(&layout.unwrap()));
    assert_eq!(as_long, (header.size, first.size, last.size));
    for options in [
        options(),
        Options { relax: false, ..options() },
        Options { base: None, ..options() },
        Options { mode: ImageMode::Packed { section_alignment: 1 }, ..options() },
    ] {
        with_room(options, needed(), |layout| {
            let layout = layout.unwrap();
            let (size, first_size, last_size) = sizes(&layout);
            assert!(size < header.size && first_size < first.size && last_size <= last.size);
            let at =
                |offset| layout.place(0, text, offset).unwrap() - layout.place(0, text, 0).unwrap();
            assert_eq!(at(header.size), size, "the end");
            assert_eq!(at(last.value + last.size) - at(last.value), last_size);
            let address = |it| layout.symbol(0, it).unwrap().at(BASE);
            assert_eq!(address(index("last")), BASE + layout.place(0, text, last.value).unwrap());
            // what .p2align asked for
            assert_eq!(address(index("threads")) % 64, 0);
        });
    }
}

#[test]
fn no_other_thread_area_than_that_of_executables() {
    let descriptors = include_bytes!("../../fixtures/riscv64/relax-lld-descriptors.o");
    for object in [RELAX, descriptors] {
        laid_out(object, options(), 128, |layout| {
            let mut layout = layout.unwrap();
            let mut image = vec![0; layout.size() as usize];
            layout.set_static_tls_block(StaticTlsBlock {
                tp_offset: Some(0x10_0000),
                ..layout.executable_tls_block()
            });
            let error = layout.write(&mut image, BASE).unwrap_err();
            assert!(
                matches!(error.kind, ErrorKind::Apply(it) if it.kind == ApplyErrorKind::Sequence),
                "{error}"
            );
            layout.set_static_tls_block(layout.executable_tls_block());
            layout.write(&mut image, BASE).unwrap();
        });
    }
}

/// Code that goes by descriptors goes by them in an executable, too, if it is to stay as it was compiled.
#[test]
fn descriptors_as_compiled_stay() {
    let bytes = include_bytes!("../../fixtures/riscv64/relax-lld-descriptors.o");
    let as_compiled = Options { thread_local: ThreadLocal::AsCompiled, ..options() };
    laid_out(bytes, as_compiled, 128, |layout| {
        let mut layout = layout.unwrap();
        layout.set_static_tls_block(StaticTlsBlock {
            descriptor: Some(BASE),
            ..layout.executable_tls_block()
        });
        layout.write(&mut vec![0; layout.size() as usize], BASE).unwrap();
    });
}

#[test]
fn damaged_records_are_refused_or_right() {
    // every place, type and addend of the relocations of the code, by one bit
    let file = File::parse(RELAX).unwrap();
    let table = file.sections().iter().find(|it| it.info != 0 && it.size > 0).unwrap();
    let range = table.offset as usize..(table.offset + table.size) as usize;
    let mut written = 0;
    for (at, bit) in range.step_by(3).zip((0..8).cycle()) {
        let mut damaged = RELAX.to_vec();
        damaged[at] ^= 1 << bit;
        if File::parse(&damaged).is_err() {
            continue;
        }
        laid_out(&damaged, options(), needed() + 8, |layout| {
            let Ok(mut layout) = layout else { return };
            layout.set_static_tls_block(layout.executable_tls_block());
            let mut image = vec![0; layout.size() as usize];
            written += u32::from(layout.write(&mut image, BASE).is_ok());
        });
    }
    assert!(written > 50, "{written}");
}

/// The fixture with its relocations of code changed: place, type and symbol.
fn changed(change: impl Fn(&mut u64, &mut u32, &mut u32)) -> Vec<u8> {
    let file = File::parse(RELAX).unwrap();
    let table = file.sections().iter().find(|it| it.info != 0 && it.size > 0).unwrap();
    let range = table.offset as usize..(table.offset + table.size) as usize;
    let mut bytes = RELAX.to_vec();
    for row in bytes[range].as_chunks_mut::<24>().0 {
        let word = |at: usize| u32::from_le_bytes(row[at..at + 4].try_into().unwrap());
        let (mut place, mut r#type, mut symbol) = (word(0).into(), word(8), word(12));
        change(&mut place, &mut r#type, &mut symbol);
        row[..8].copy_from_slice(&place.to_le_bytes());
        row[8..12].copy_from_slice(&r#type.to_le_bytes());
        row[12..16].copy_from_slice(&symbol.to_le_bytes());
    }
    bytes
}

/// The fixture with `__global_pointer$` so many bytes from `small`.
fn with_global_pointer(mut bytes: Vec<u8>, distance: i64) -> Vec<u8> {
    let file = File::parse(RELAX).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let header = file.section(table.section()).unwrap();
    let named = |wanted: &str| {
        let mut symbols = (0usize..).zip(table.symbols());
        symbols.find(|(_, it)| table.name_of(it).unwrap() == wanted).unwrap()
    };
    let value = named("small").1.value.wrapping_add_signed(distance);
    let at = header.offset as usize + 24 * named("__global_pointer$").0 + 8;
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// Size of the function that reaches `small`, laid out so.
fn size_of_middle(bytes: &[u8], options: Options) -> u64 {
    laid_out(bytes, options, needed(), |layout| {
        let layout = layout.unwrap();
        let (object, symbol) = layout.find("middle".into()).unwrap();
        layout.symbol_size(object, symbol).unwrap()
    })
}

#[test]
fn all_of_a_variable_is_near_the_global_pointer() {
    for base in [Some(BASE), None] {
        let from_gp = Options { global_pointer: true, base, ..options() };
        let size = |distance, options| {
            size_of_middle(&with_global_pointer(RELAX.to_vec(), distance), options)
        };
        let whole = size(-0x7f0, from_gp);
        assert_eq!(whole, size(0x400, from_gp), "{base:?}: all 16 bytes are in reach");
        // another access may be to what is not, and counts from what `lui` gives
        assert_eq!(size(-0x7f8, from_gp), whole + 8, "{base:?}: 8 of 16 bytes are");
        assert_eq!(size(0x400, Options { global_pointer: false, ..from_gp }), whole + 8);
        // the last of its attributes is a text, of which there is enough
        let mut shadow = with_global_pointer(RELAX.to_vec(), 0x400);
        let file = File::parse(RELAX).unwrap();
        let header = file.sections().iter().find(|it| it.r#type == SHT_RISCV_ATTRIBUTES).unwrap();
        let end = (header.offset + header.size) as usize;
        for (usage, size) in [(0, whole), (1, whole), (2, whole + 8), (3, whole + 8)] {
            shadow[end - 3..end].copy_from_slice(&[0, 16, usage]);
            assert_eq!(size_of_middle(&shadow, from_gp), size, "Tag_RISCV_x3_reg_usage {usage}");
        }
    }
}

/// What a write of the changed fixture is refused for.
fn refusal(bytes: &[u8]) -> (u64, ApplyErrorKind) {
    let options = Options { global_pointer: true, ..options() };
    laid_out(bytes, options, needed(), |layout| {
        let mut layout = layout.unwrap();
        layout.set_static_tls_block(layout.executable_tls_block());
        let error = layout.write(&mut vec![0; layout.size() as usize], BASE).unwrap_err();
        let ErrorKind::Apply(error) = error.kind else { panic!("{error}") };
        (error.offset, error.kind)
    })
}

#[test]
fn code_that_is_gone_is_not_written() {
    // a lower part in the middle of a call that becomes shorter
    let bytes = changed(|place, _, _| {
        if *place == 0x8a {
            *place = 0x14;
        }
    });
    assert_eq!(refusal(&bytes), (0x14, ApplyErrorKind::Sequence));
    // a branch there
    let bytes = changed(|place, _, _| {
        if *place == 0x2a {
            *place = 0x14;
        }
    });
    assert_eq!(refusal(&bytes), (0x14, ApplyErrorKind::Sequence));
    // an upper part near the global pointer is gone, a lower part of it must stay
    let file = File::parse(RELAX).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let mut symbols = (0u32..).zip(table.symbols());
    let small = symbols.find(|(_, it)| table.name_of(it).unwrap() == "small").unwrap().0;
    let bytes = changed(|place, r#type, symbol| match (*place, *r#type) {
        (0x7e, R_RISCV_PCREL_HI20) => *symbol = small,
        (0x82, R_RISCV_RELAX) => *r#type = R_RISCV_NONE,
        _ => {}
    });
    assert_eq!(refusal(&bytes), (0x82, ApplyErrorKind::Sequence));
}

/// What is wrong is told by where it is in the file, whatever has gone before it.
#[test]
fn errors_name_places_of_the_file() {
    let file = File::parse(RELAX).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let mut symbols = (0u32..).zip(table.symbols());
    let big = symbols.find(|(_, it)| table.name_of(it).unwrap() == "big").unwrap().0;
    // bnez and beqz behind calls that become shorter, to what is farther than 256 bytes
    for wrong in [0x2a, 0x2c] {
        let bytes = changed(|place, _, symbol| {
            if *place == wrong {
                *symbol = big;
            }
        });
        let (place, kind) = refusal(&bytes);
        assert_eq!(place, wrong);
        assert!(matches!(kind, ApplyErrorKind::Overflow { .. }), "{kind:?}");
    }
}

/// The same of code that becomes local exec, behind a call that becomes shorter.
#[test]
fn errors_of_thread_local_code_name_places_of_the_file() {
    // tail; auipc a0, 0; ld a1, 0(a0); addi a0, a0, 0; jalr t0, a1; ret
    let code: [u32; 7] =
        [0x0000_0317, 0x0003_0067, 0x0517, 0x0005_3583, 0x0005_0513, 0x0005_82e7, 0x8067];
    let mut object = Object::new();
    object.machine = EM_RISCV;
    let text = object.section(".text", CODE, 4, &code.map(u32::to_le_bytes).concat());
    let data = object.section(".tdata", WRITE | SectionFlags::TLS, 8, &[0; 8]);
    let variable = object.symbol("variable", STB_GLOBAL, STT_TLS, Place::In(data), 0, 8);
    let (high, end) = (object.local("high", text, 8), object.global("end", text, 24));
    for (place, kind, symbol) in [
        (0, R_RISCV_CALL_PLT, end),
        (0, R_RISCV_RELAX, end),
        (8, R_RISCV_TLSDESC_HI20, variable),
        (12, R_RISCV_TLSDESC_LOAD_LO12, high),
        (16, R_RISCV_TLSDESC_ADD_LO12, high),
        (20, R_RISCV_TLSDESC_CALL, high),
    ] {
        object.relocation(text, place, kind, symbol, 0);
    }
    let error = laid_out(&object.build(), options(), 8, |layout| {
        let layout = layout.unwrap();
        assert_eq!(layout.section_size(0, text), Some(24));
        layout.write(&mut vec![0; layout.size() as usize], BASE).unwrap_err()
    });
    let ErrorKind::Apply(error) = error.kind else { panic!("{error}") };
    assert_eq!((error.offset, error.kind), (8, ApplyErrorKind::Unresolved(Role::TpOffset)));
}

/// Sections that stand together end where their code does, which is shorter then.
#[test]
#[cfg(feature = "linker-defined")]
fn ends_of_code_that_stands_together_follow() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    // tail; ret
    let code = [0x0000_0317_u32, 0x0003_0067, 0x8067].map(u32::to_le_bytes).concat();
    let sections = [0; 2].map(|_| object.section("codes", CODE, 4, &code));
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let first = object.global("first", sections[0], 0);
    for section in sections {
        object.relocation(section, 0, R_RISCV_CALL_PLT, first, 0);
        object.relocation(section, 0, R_RISCV_RELAX, first, 0);
    }
    let (start, stop) = (object.undefined("__start_codes"), object.undefined("__stop_codes"));
    object.relocation(data, 0, R_RISCV_64, stop, 0);
    let [start, stop] = [start, stop].map(|it| object.index(it));
    laid_out(&object.build(), options(), 8, |layout| {
        let layout = layout.unwrap();
        assert_eq!(sections.map(|it| layout.section_size(0, it)), [Some(8); 2]);
        let [start, stop] = [start, stop].map(|it| layout.symbol(0, it).unwrap().at(0));
        assert_eq!((start, stop), (layout.section(0, sections[0]).unwrap(), start + 16));
    });
}

/// Where the image ends is not known while code becomes shorter: what computes it stays as long as it is.
#[test]
#[cfg(feature = "linker-defined")]
fn code_that_computes_an_edge_stays() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    // lui a0, 0; addi a0, a0, 0
    let text = object.section(".text", CODE, 4, &[0x37, 5, 0, 0, 0x13, 5, 5, 0]);
    let end = object.undefined("_end");
    for (place, kind) in [(0, R_RISCV_HI20), (4, R_RISCV_LO12_I)] {
        object.relocation(text, place, kind, end, 0);
        object.relocation(text, place, R_RISCV_RELAX, end, 0);
    }
    // near address 0 the upper part of what is known goes
    let options = Options { base: Some(0), ..options() };
    laid_out(&object.build(), options, 8, |layout| {
        let layout = layout.unwrap();
        assert_eq!(layout.section_size(0, text), Some(8));
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, 0).unwrap();
        let code = &image[layout.section(0, text).unwrap() as usize..];
        let word = |at: usize| i32::from_le_bytes(code[at..at + 4].try_into().unwrap());
        let found = i64::from(word(0) & !0xfff) + i64::from(word(4) >> 20);
        assert_eq!(found, layout.size() as i64);
    });
}
