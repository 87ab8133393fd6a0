//! Where sections, zeros and common symbols go.
#![cfg(test)]

mod support;

use elf_core::names::*;
use elf_core::{SectionFlags, SegmentFlags};
use elf_layout::{ErrorKind, ImageMode, Options, SymbolAddress, Target2, ThreadLocal};
use proptest::prelude::*;
use reloc_x86::x86_64::*;
use support::{
    BASE, CODE, Object, READ, WRITE, half, image, image_error, laid_out, nobody, placement, plan,
    process, refused, word,
};

const PACKED: Options = Options { mode: ImageMode::Packed { section_alignment: 128 }, ..BASELESS };
const BASELESS: Options = Options {
    mode: ImageMode::Segments { page_size: 4096 },
    base: None,
    thread_local: ThreadLocal::LocalExec,
    indirect_functions: false,
    relax: true,
    global_pointer: false,
    executable: false,
    replaceable_functions: false,
    spread: 0,
    hidden_externals: false,
    target2: Target2::ByProcessor,
};

#[test]
fn segments_by_permission_on_pages_of_their_own() {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[1; 24]);
    let text = object.section(".text", CODE, 16, &[2; 100]);
    let zeros = object.zeros(".bss", WRITE, 32, 0x3000);
    let constants = object.section(".rodata", READ, 1, &[3; 5]);
    let debug = object.section(".debug", SectionFlags::empty(), 1, &[4; 50]);
    let left_out = object.section(".out", CODE | SectionFlags::EXCLUDE, 1, &[5; 50]);
    let both = object.section(".both", WRITE | CODE, 1, &[6]);
    laid_out(&[&object], |layout| {
        let offset = |section| layout.section(0, section);
        assert_eq!(
            [text, constants, data, zeros, both].map(offset),
            [0, 0x1000, 0x2000, 0x2020, 0x6000].map(Some)
        );
        assert_eq!([debug, left_out, 0, 99].map(offset), [None; 4]);
        assert_eq!(layout.section(1, text), None);
        let segments: Vec<_> =
            layout.segments().map(|at| (at.offset, at.size, at.flags.bits())).collect();
        let (r, w, x) =
            (SegmentFlags::READ.bits(), SegmentFlags::WRITE.bits(), SegmentFlags::EXECUTE.bits());
        assert_eq!(
            segments,
            [(0, 100, r | x), (0x1000, 5, r), (0x2000, 0x3020, r | w), (0x6000, 1, r | w | x)]
        );
        assert_eq!((layout.size(), layout.alignment()), (0x6001, 4096));
        let image = image(layout).unwrap();
        assert_eq!(image[0x2000..0x2018], [1; 24]);
        assert!(image[0x2020..0x5020].iter().all(|byte| *byte == 0), "zeros are written");
        assert_eq!(image[100..0x1000], [0; 0xf9c], "padding as well");
    });
}

/// Segments apart from each other, in room that others have parts of.
#[test]
fn segments_where_the_caller_has_room() {
    let mut object = Object::new();
    let text = object.section(".text", CODE, 16, &[0; 32]);
    let constants = object.section(".rodata", READ, 8, &[7; 24]);
    let data = object.section(".data", WRITE, 32, &[0; 16]);
    let zeros = object.zeros(".bss", WRITE, 8, 8);
    let (variable, constant) = (object.local("v", zeros, 4), object.local("c", constants, 8));
    object.relocation(text, 4, R_X86_64_PC32, variable, 0);
    object.relocation(data, 8, R_X86_64_64, constant, 1);
    let bytes = [object.build()];
    let mode = ImageMode::Segments { page_size: 16 };
    // as far as the last one's end
    let options = Options { mode, spread: 0xf_ffb8, ..Options::default() };
    plan(&bytes, options, &mut nobody, |layout| {
        let mut layout = layout.unwrap();
        assert_eq!((layout.alignment(), layout.segments().count()), (32, 3));
        let mut places = [0x4_0020, 0x20, 0xf_ffa0].into_iter();
        layout.place_segments(|_| places.next()).unwrap();
        let offset = |section| layout.section(0, section).unwrap();
        assert_eq!(
            [text, constants, data, zeros].map(offset),
            [0x4_0020, 0x20, 0xf_ffa0, 0xf_ffb0]
        );
        assert_eq!(layout.size(), 0xf_ffb8);
        let image = image(&layout).unwrap();
        let place = 0x4_0024u64;
        assert_eq!(place.wrapping_add_signed(half(&image, place)), 0xf_ffb4);
        assert_eq!(word(&image, 0xf_ffa8), BASE + 0x29);
        assert_eq!(image[0x20..0x38], [7; 24]);
        for refused in [None, Some(8), Some(0x10_0000), Some(u64::MAX - 31)] {
            let error = layout.place_segments(|_| refused).unwrap_err();
            assert_eq!(error.kind, ErrorKind::TooLarge, "{refused:?}");
        }
    });
}

#[test]
fn packed_is_one_blob_in_file_order() {
    let mut object = Object::new();
    let sections = [
        object.section("a", WRITE, 1, &[1; 3]),
        object.section("b", CODE, 256, &[2; 3]),
        object.zeros("c", WRITE, 4, 130),
        object.section("d", READ, 1, &[]),
        object.section("e", READ | THREAD_LOCAL, 1, &[3; 3]),
    ];
    object.common("common", 8, 16);
    let bytes = [object.build()];
    plan(&bytes, PACKED, &mut nobody, |layout| {
        let layout = layout.unwrap();
        placement::check(&layout, &PACKED);
        let offsets = sections.map(|section| layout.section(0, section).unwrap());
        assert_eq!(offsets, [0, 256, 384, 640, 640]);
        assert_eq!(layout.segments().count(), 1);
        assert_eq!((layout.size(), layout.alignment()), (656 + 8, 256));
    });
}

/// To which thread-local sections are as others in a packed image, if there are any.
const THREAD_LOCAL: SectionFlags =
    if cfg!(feature = "thread-local") { SectionFlags::TLS } else { SectionFlags::empty() };

/// An image with a section of its own address, at this base.
fn fixed(base: Option<u64>) -> Options {
    Options { base, ..Options::default() }
}

#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn addresses_that_sections_carry() {
    let mut object = Object::new();
    let late = object.section("late", WRITE, 4, &[1; 16]);
    let early = object.section("early", CODE, 4, &[2; 16]);
    let after = object.section("after", READ, 4, &[3; 16]);
    let free = object.section("free", CODE, 4, &[4; 16]);
    object.at(late, 0x8010);
    object.at(early, 0x8000);
    object.at(after, 0x9020);
    let bytes = [object.build()];
    for (base, start) in [(None, 0), (Some(0x7000), 0x7000), (Some(0x8000), 0x8000)] {
        let options = fixed(base);
        plan(&bytes, options, &mut nobody, |layout| {
            let layout = layout.unwrap();
            placement::check(&layout, &options);
            let offsets = [late, early, after, free].map(|at| layout.section(0, at).unwrap());
            assert_eq!(offsets.map(|at| at + start), [0x8010, 0x8000, 0x9020, 0xa000]);
            let list: Vec<_> = layout
                .fixed_sections()
                .map(|at| {
                    (at.section, at.segment.offset + start, at.segment.size, at.segment.flags)
                })
                .collect();
            let r = SegmentFlags::READ;
            assert_eq!(
                list,
                [
                    (early, 0x8000, 16, r | SegmentFlags::EXECUTE),
                    (late, 0x8010, 16, r | SegmentFlags::WRITE),
                    (after, 0x9020, 16, r),
                ]
            );
            let mut image = vec![0; layout.size() as usize];
            let place = base.unwrap_or(BASE);
            layout.write(&mut image, place).unwrap();
            assert_eq!(image[offsets[0] as usize..][..16], [1; 16]);
            if base.is_some() {
                let error = layout.write(&mut image, place + 0x1000).unwrap_err();
                assert_eq!(error.kind, ErrorKind::Base { base: place + 0x1000, alignment: 4096 });
            }
        });
    }
    let error = refused(&[&object], fixed(Some(0x8001)));
    assert_eq!((error.section, error.kind), (early, ErrorKind::Overlap { address: 0x8000 }));
}

/// Whether sections at these addresses, of these sizes, are refused, in this order.
fn overlap(sections: &[(u64, usize)]) -> bool {
    let mut object = Object::new();
    for (address, size) in sections {
        let section = object.section("s", READ, 1, &vec![0; *size]);
        object.at(section, *address);
    }
    let bytes = [object.build()];
    plan(&bytes, Options::default(), &mut nobody, |layout| match layout {
        Ok(layout) => {
            placement::check(&layout, &Options::default());
            false
        }
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Overlap { .. }), "{error}");
            true
        }
    })
}

#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn overlaps_are_found_in_every_order() {
    let apart = [(0x100, 0x10), (0x110, 0x20), (0x200, 1)];
    let cross = [(0x100, 0x10), (0x10f, 0x20), (0x200, 1)];
    let around = [(0x100, 0x200), (0x110, 0x20), (0x400, 1)];
    let same = [(0x100, 1), (0x100, 1), (0x80, 1)];
    // what is empty overlaps nothing
    let empty = [(0x100, 0x10), (0x100, 0), (0x110, 0)];
    let inside = [(0x100, 0x200), (0x180, 0), (0x400, 1)];
    let hidden = [(0x100, 0x200), (0x180, 0), (0x190, 1)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let sorted = |list: [(u64, usize); 3]| overlap(&order.map(|at| list[at]));
        assert!(!sorted(apart), "{order:?}");
        assert!(!sorted(empty) && !sorted(inside), "{order:?}");
        assert!(sorted(cross) && sorted(around) && sorted(same) && sorted(hidden), "{order:?}");
    }
}

#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn addresses_across_objects() {
    let one = |address| {
        let mut object = Object::new();
        let section = object.section("s", READ, 1, &[1; 32]);
        object.at(section, address);
        object
    };
    laid_out(&[&one(0x2000), &one(0x1fe0), &one(0x2020)], |layout| {
        let order: Vec<_> = layout.fixed_sections().map(|at| at.object).collect();
        assert_eq!(order, [1, 0, 2]);
    });
    let error = refused(&[&one(0x2000), &one(0x201f)], Options::default());
    assert!(matches!(error.kind, ErrorKind::Overlap { .. }), "{error}");
}

#[test]
fn common_symbols_merge_size_and_alignment() {
    let sizes = [(8, 4), (64, 1), (16, 256)];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let objects = order.map(|at| {
            let (size, alignment) = sizes[at];
            let mut object = Object::new();
            object.zeros(".bss", WRITE, 1, 3);
            object.common("shared", size, alignment);
            object.common(&format!("own{at}"), 1, 1);
            object
        });
        laid_out(&objects.each_ref(), |layout| {
            let places = [0, 1, 2].map(|object| layout.symbol(object, 1).unwrap());
            assert!(places.iter().all(|place| *place == places[0]), "one place for all");
            let SymbolAddress::Image(offset) = places[0] else { panic!("in the image") };
            assert_eq!(offset % 256, 0);
            let biggest = order.iter().position(|at| *at == 1).unwrap();
            assert_eq!(layout.definition(0, 1), Some((biggest, 1)));
            assert_eq!(layout.segments().count(), 1);
            assert!(layout.segments().all(|at| at.size >= 9 + 64 + 3));
        });
    }
}

/// Zeros that are behind all else may be out of reach of code as it becomes when the GOT is left out; functions that are behind stubs are
/// no such room.
#[test]
#[cfg_attr(not(feature = "relax"), ignore = "needs the feature relax")]
fn common_symbols_take_room_from_reach() {
    for (size, entries) in [(1 << 20, 0), (3 << 30, 1)] {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 1, &[0x48, 0x8b, 0x05, 0, 0, 0, 0]);
        let data = object.section(".data", WRITE, 8, &[0; 8]);
        object.common("room", size, 8);
        let symbol = object.global("symbol", data, 0);
        object.relocation(text, 3, R_X86_64_REX_GOTPCRELX, symbol, -4);
        laid_out(&[&object], |layout| assert_eq!(layout.got_entries().count(), entries));
    }
    let mut object = Object::new();
    let text = object.section(".text", CODE, 1, &[0x48, 0x8b, 0x05, 0, 0, 0, 0]);
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let far = object.zeros(".text.far", CODE, 16, 128 << 20);
    for number in 0..32 {
        let name = format!("function{number}");
        object.symbol(&name, STB_GLOBAL, STT_FUNC, support::Place::In(far), 127 << 20, 8);
    }
    let symbol = object.global("symbol", data, 0);
    object.relocation(text, 3, R_X86_64_REX_GOTPCRELX, symbol, -4);
    let replaceable_functions = cfg!(feature = "indirect-functions");
    let options = Options { replaceable_functions, ..Options::default() };
    plan(&[object.build()], options, &mut nobody, |layout| {
        assert_eq!(layout.unwrap().got_entries().count(), 0);
    });
}

#[test]
fn local_and_large_common_symbols() {
    let mut object = Object::new();
    object.symbol("a", STB_LOCAL, STT_OBJECT, support::Place::Common, 8, 8);
    let large = support::Place::Reserved(SHN_X86_64_LCOMMON);
    object.symbol("b", STB_GLOBAL, STT_OBJECT, large, 64, 100);
    object.common("c", 0, 0);
    laid_out(&[&object], |layout| {
        let places = [1, 2, 3].map(|symbol| layout.symbol(0, symbol).unwrap());
        assert_eq!(places, [0, 64, 164].map(SymbolAddress::Image));
        assert_eq!(layout.size(), 164);
    });
}

#[test]
fn nothing_at_all() {
    plan(&[], Options::default(), &mut nobody, |layout| {
        let layout = layout.unwrap();
        assert_eq!((layout.size(), layout.segments().count(), layout.limit()), (0, 0, None));
        layout.write(&mut [], 0).unwrap();
    });
    laid_out(&[&Object::new()], |layout| assert_eq!(layout.size(), 0));
}

#[test]
#[cfg_attr(not(feature = "thread-local"), ignore = "needs the feature thread-local")]
fn thread_local_zeros_occupy_no_memory() {
    let mut object = Object::new();
    let tls = SectionFlags::TLS;
    let values = object.section(".tdata", WRITE | tls, 8, &[1; 8]);
    let zeros = object.zeros(".tbss", WRITE | tls, 8, 0x1000);
    let data = object.section(".data", WRITE, 8, &[2; 8]);
    laid_out(&[&object], |layout| {
        let offsets = [values, zeros, data].map(|at| layout.section(0, at).unwrap());
        assert_eq!(offsets, [0, 8, 0x1000]);
        assert_eq!(layout.size(), 0x1008);
    });
    // nor can anything be written to them
    let symbol = object.local("here", data, 0);
    object.relocation(zeros, 0xff8, R_X86_64_64, symbol, 0);
    laid_out(&[&object], |layout| {
        let error = image_error(layout);
        assert_eq!(
            error.to_string(),
            format!(
                "object 0: section {zeros}: R_X86_64_64 at offset 0xff8: outside the section of 0x0 bytes"
            )
        );
    });
}

#[test]
#[cfg_attr(not(feature = "thread-local"), ignore = "needs the feature thread-local")]
fn thread_local_zeros_are_aligned_as_the_block() {
    let mut object = Object::new();
    let code = object.section(".text", CODE, 4, &[0xc3; 4]);
    let values = object.section(".tdata", WRITE | SectionFlags::TLS, 0x1_0000, &[]);
    let zeros = object.zeros(".tbss", WRITE | SectionFlags::TLS, 4, 0x10);
    laid_out(&[&object], |layout| {
        let offsets = [code, values, zeros].map(|at| layout.section(0, at).unwrap());
        assert_eq!(offsets[1], offsets[2]);
        assert_eq!(offsets[1] % 0x1_0000, 0);
        let block = layout.tls_block().unwrap();
        assert_eq!((block.offset, block.size, block.alignment), (offsets[1], 0x10, 0x1_0000));
    });
}

/// What a section of a random object is like.
#[derive(Clone, Debug)]
struct Random {
    flags: usize,
    zeros: bool,
    alignment: u32,
    size: u16,
    address: Option<u16>,
    /// Kind and target of a relocation.
    relocation: (usize, usize),
}

const FLAGS: [SectionFlags; 9] = [
    READ,
    WRITE,
    CODE,
    CODE.union(WRITE),
    SectionFlags::empty(),
    READ.union(SectionFlags::X86_64_LARGE),
    WRITE.union(SectionFlags::X86_64_LARGE),
    WRITE.union(SectionFlags::TLS),
    CODE.union(SectionFlags::EXCLUDE),
];

/// Kinds that ask for addresses, GOT entries, stubs and the GOT itself.
const KINDS: [u32; 7] = [
    R_X86_64_64,
    R_X86_64_PC64,
    R_X86_64_GOTPCREL,
    R_X86_64_PLT32,
    R_X86_64_GOTOFF64,
    R_X86_64_GOTPCRELX,
    R_X86_64_NONE,
];

fn random() -> impl Strategy<Value = Random> {
    let address = prop_oneof![9 => Just(None), 1 => any::<u16>().prop_map(Some)];
    let relocation = (0..KINDS.len(), 0..6usize);
    (0..FLAGS.len(), any::<bool>(), 0..11u32, 0..700u16, address, relocation).prop_map(
        |(flags, zeros, alignment, size, address, relocation)| Random {
            flags,
            zeros,
            alignment,
            size,
            address,
            relocation,
        },
    )
}

/// An object with symbols of every sort, of which some are other objects' as well.
fn object(number: usize, sections: &[Random], commons: &[(u16, u32)]) -> Object {
    let mut object = Object::new();
    let mut targets = vec![
        object.undefined("far"),
        object.undefined("near"),
        object.undefined_weak("nobody"),
        object.undefined("_GLOBAL_OFFSET_TABLE_"),
        object.undefined("__dso_handle"),
        object.common("common", 24, 8),
    ];
    // these have sections of one name stand together
    if commons.len() % 2 == 1 {
        let names = ["__start_bytes", "__stop_zeros", "__init_array_end"];
        targets.extend(names.map(|name| object.undefined_weak(name)));
        targets.extend(["_end", "_edata", "__ehdr_start"].map(|name| object.undefined_weak(name)));
    }
    for (at, (size, alignment)) in commons.iter().enumerate() {
        let name = format!("common{at}");
        targets.push(object.common(&name, (*size).into(), 1 << alignment));
    }
    for (at, random) in sections.iter().enumerate() {
        let (flags, alignment) = (FLAGS[random.flags], 1u64 << random.alignment);
        let section = if random.zeros {
            object.zeros("zeros", flags, alignment, random.size.into())
        } else {
            object.section("bytes", flags, alignment, &vec![at as u8 | 0x80; random.size.into()])
        };
        if let Some(address) = random.address {
            object.at(section, u64::from(address) + 1);
        }
        object.weak(&format!("weak{at}"), section, 0);
        object.global(&format!("strong{number}.{at}"), section, 0);
        if !random.zeros && random.size >= 16 {
            let (kind, target) = random.relocation;
            object.relocation(section, 4, KINDS[kind], targets[target % targets.len()], 0);
        }
    }
    object
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Sections never overlap, are aligned, and are in a segment of their permission; bytes arrive where the layout says.
    #[test]
    fn any_objects(
        objects in prop::collection::vec(
            (prop::collection::vec(random(), 0..14), prop::collection::vec((0..300u16, 0..10u32), 0..4)), 1..4),
        packed in prop::option::of(0..10u32),
        page in 6..17u32,
    ) {
        let mode = match packed {
            Some(bits) => ImageMode::Packed { section_alignment: 1 << bits },
            None => ImageMode::Segments { page_size: 1 << page },
        };
        let options = Options { mode, ..Options::default() };
        let objects: Vec<_> = objects.iter().enumerate()
            .map(|(number, (sections, commons))| object(number, sections, commons).build())
            .collect();
        plan(&objects, options, &mut process, |layout| {
            let layout = match layout {
                Ok(layout) => layout,
                Err(error) => {
                    let expected = match error.kind {
                        ErrorKind::Elf(error) => match error.kind {
                            elf_core::ErrorKind::FeatureOff("addresses") => !cfg!(feature = "addresses"),
                            elf_core::ErrorKind::FeatureOff("thread-local") => !cfg!(feature = "thread-local"),
                            _ => false,
                        },
                        kind => matches!(kind, ErrorKind::Overlap { .. }),
                    };
                    prop_assert!(expected, "{error}");
                    return Ok(());
                }
            };
            placement::check(&layout, &options);
            let base = BASE.next_multiple_of(layout.alignment());
            let mut image = vec![0x11; layout.size() as usize + 3];
            layout.write(&mut image, base).unwrap();
            prop_assert_eq!(&image[layout.size() as usize..], [0x11; 3]);
            for (number, file) in layout.files().iter().enumerate() {
                for (index, header) in (0u32..).zip(file.sections()) {
                    let Some(offset) = layout.section(number, index) else { continue };
                    if header.r#type == SHT_PROGBITS {
                        let data = file.section_data(&header).unwrap();
                        let place = &image[offset as usize..][..data.len()];
                        let kept = |at: usize| !(4..12).contains(&at);
                        prop_assert!((0..data.len()).all(|at| !kept(at) || place[at] == data[at]));
                    } else if header.r#type == SHT_NOBITS && !header.flags.contains(SectionFlags::TLS) {
                        let place = &image[offset as usize..][..header.size as usize];
                        prop_assert!(place.iter().all(|byte| *byte == 0));
                    }
                }
            }
            Ok(())
        })?;
    }
}
