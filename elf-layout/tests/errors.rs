//! Every reason to refuse: what is said, of which section of which object.
#![cfg(test)]

mod support;

use elf_core::names::*;
use elf_core::{File, Name, SectionFlags};
use elf_layout::{
    Error, ErrorKind, ExternalSymbol, ImageMode, Layout, ObjectSlot, Options, Requirements,
    SectionSlot, Storage, SymbolSlot,
};
use reloc_arm::Arm;
use reloc_riscv::Rv64;
use reloc_riscv::riscv::{R_RISCV_SET_ULEB128, R_RISCV_SUB_ULEB128};
use reloc_x86::x86_64::{
    R_X86_64_64, R_X86_64_GOTTPOFF, R_X86_64_PC32, R_X86_64_RELATIVE, R_X86_64_TPOFF32,
};
use reloc_x86::{I386, X86_64};
use support::{
    BASE, CODE, Object, Place, READ, WRITE, image_error, laid_out, nobody, plan, refused,
    refused_by,
};

/// An object whose data refer to a symbol.
fn refers(make: impl FnOnce(&mut Object, u32) -> usize) -> Object {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 16]);
    let symbol = make(&mut object, data);
    object.relocation(data, 8, R_X86_64_64, symbol, 0);
    object
}

/// In FDPIC, functions are descriptors, and every module has its own R9.
#[test]
#[cfg_attr(not(feature = "default"), ignore = "needs the feature default")]
fn objects_for_fdpic() {
    let mut bytes = include_bytes!("../../fixtures/arm/pair-b.o").to_vec();
    bytes[7] = ELFOSABI_ARM_FDPIC;
    let what = "e_ident[EI_OSABI] (ELFOSABI_ARM_FDPIC)";
    let kind = elf_core::ErrorKind::Invalid { what, value: 65 };
    assert_eq!(refused_by::<Arm>(&bytes).kind, ErrorKind::Elf(elf_core::Error { at: 7, kind }));
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "needs the feature default")]
fn files_of_another_kind() {
    let mut object = refers(|object, data| object.global("symbol", data, 0));
    let fine = object.build();
    object.machine = EM_AARCH64;
    let error = refused_by::<X86_64>(&object.build());
    assert_eq!(error.to_string(), "object 0: machine 183, expected 62");
    object.machine = EM_386;
    assert_eq!(refused_by::<I386>(&object.build()).kind, ErrorKind::Class);
    let x32 = include_bytes!("../../fixtures/forms/x32.o");
    let error = refused_by::<X86_64>(x32);
    assert_eq!(error.to_string(), "object 0: 32 or 64 bits: not those of the machine");
    object.machine = EM_X86_64;
    object.r#type = ET_EXEC;
    let other = object.build();
    let error = plan(&[fine, other], Options::default(), &mut nobody, |layout| {
        layout.map(|_| ()).unwrap_err()
    });
    assert_eq!(error.to_string(), "object 1: file type 2 is not relocatable");
}

#[test]
fn damaged_tables() {
    // the symbol table's names are no names
    let mut object = refers(|object, data| object.global("symbol", data, 0));
    object.r#type = ET_REL;
    let mut bytes = object.build();
    let file = File::parse(&bytes).unwrap();
    let table = file.symbol_table().unwrap().unwrap().section();
    let headers = file.header().section_headers;
    let field = (headers + u64::from(table) * 64 + 40) as usize; // sh_link
    bytes[field..field + 4].copy_from_slice(&1u32.to_le_bytes());
    let files = [File::parse(&bytes).unwrap()];
    let error = Requirements::of(&files).unwrap_err();
    assert_eq!(
        error.to_string(),
        "object 0: a section of type 0x1 at offset 0x40 is no string table"
    );
    let error = refused(&[&refers(|_, _| 1234)], Options::default());
    assert_eq!((error.object, error.section), (0, 2), "the relocations' own section");
    assert_eq!(
        error.to_string(),
        "object 0: section 2: no symbol 1234 in a table of 1, at offset 0x50"
    );
    // the number behind the last is no symbol of the next object
    let error = refused(&[&refers(|_, _| 1), &Object::new()], Options::default());
    assert!(error.to_string().contains("no symbol 1 in a table of 1"), "{error}");
    let symbol =
        |place| refers(|object, _| object.symbol("s", STB_GLOBAL, STT_OBJECT, place, 0, 0));
    let error = refused(&[&symbol(Place::Reserved(0xff20))], Options::default());
    assert_eq!(error.to_string(), "object 0: section 3: st_shndx is 0xff20 at offset 0x0");
    let error = refused(&[&symbol(Place::In(99))], Options::default());
    assert!(error.to_string().contains("an index names section 99 of 6"), "{error}");
    // the number behind the last is no section of the next object
    let error = refused(&[&symbol(Place::In(6)), &Object::new()], Options::default());
    assert!(error.to_string().contains("an index names section 6 of 6"), "{error}");
    let error = refused(&[&symbol(Place::Reserved(SHN_XINDEX))], Options::default());
    assert!(error.to_string().contains("st_shndx is 0xffff"), "{error}");
}

#[test]
fn relocations_of_another_symbol_table() {
    let mut object = refers(|object, data| object.global("symbol", data, 0));
    object.link(1, 4);
    let error = refused(&[&object], Options::default());
    assert_eq!(
        error.to_string(),
        "object 0: section 2: relocations mean section 4, not the symbol table"
    );
}

/// The number behind the last is no section of the next object.
#[test]
fn relocations_of_no_section() {
    let object = refers(|object, data| object.global("symbol", data, 0));
    for number in [6u32, 77] {
        let mut bytes = object.build();
        let file = File::parse(&bytes).unwrap();
        let at = (file.header().section_headers + 2 * 64 + 44) as usize; // sh_info
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        let objects = [bytes, Object::new().build()];
        let error = plan(&objects, Options::default(), &mut nobody, |layout| layout.err().unwrap());
        assert_eq!((error.object, error.section), (0, 2));
        assert!(error.to_string().contains(&format!("names section {number} of 6")), "{error}");
    }
}

#[test]
fn symbols_that_cannot_be_used() {
    let error = refused(&[&refers(|object, _| object.undefined("nobody"))], Options::default());
    assert_eq!(
        error.to_string(),
        "object 0: section 1: R_X86_64_64 at offset 0x8: symbol 1 is undefined"
    );
    assert_eq!(
        error.kind,
        ErrorKind::Undefined { symbol: 1, offset: 8, r#type: R_X86_64_64, name: "R_X86_64_64" }
    );
    let object = refers(|object, _| {
        let debug = object.section(".debug", SectionFlags::empty(), 1, &[0; 4]);
        object.global("debug", debug, 0)
    });
    let error = refused(&[&object], Options::default());
    assert_eq!(
        error.to_string(),
        "object 0: section 1: R_X86_64_64 at offset 0x8: symbol 1 is in a section that is not loaded"
    );
    let object =
        refers(|object, data| object.symbol("f", STB_GLOBAL, STT_GNU_IFUNC, Place::In(data), 0, 0));
    let error = refused(&[&object], Options::default());
    assert_eq!(
        error.to_string(),
        "object 0: section 1: R_X86_64_64 at offset 0x8: symbol 1 is an indirect function"
    );
    // a relocation of a section that is not loaded asks for nothing
    let mut object = Object::new();
    let debug = object.section(".debug", SectionFlags::empty(), 1, &[0; 16]);
    let symbol = object.undefined("nobody");
    object.relocation(debug, 8, R_X86_64_64, symbol, 0);
    laid_out(&[&object], |layout| assert_eq!(layout.size(), 0));
}

#[test]
fn relocations_that_cannot_be_applied() {
    let of_kind = |kind: u32, offset: u64, addend: i64| {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 8, &[0; 16]);
        let symbol = object.local("symbol", text, 0);
        object.relocation(text, offset, kind, symbol, addend);
        object
    };
    let message = |object: &Object| laid_out(&[object], |layout| image_error(layout).to_string());
    assert_eq!(
        refused(&[&of_kind(4711, 0, 0)], Options::default()).to_string(),
        "object 0: section 1: relocation type 4711 at offset 0x0: unknown type"
    );
    assert_eq!(
        message(&of_kind(R_X86_64_64, 9, 0)),
        "object 0: section 1: R_X86_64_64 at offset 0x9: outside the section of 0x10 bytes"
    );
    assert_eq!(
        message(&of_kind(R_X86_64_PC32, 0, 1 << 31)),
        "object 0: section 1: R_X86_64_PC32 at offset 0x0: value 2147483648 (0x80000000) is not in -2147483648..=2147483647"
    );
    assert_eq!(
        message(&of_kind(R_X86_64_RELATIVE, 0, 0)),
        "object 0: section 1: R_X86_64_RELATIVE at offset 0x0: only a dynamic loader resolves this type"
    );
}

/// A difference of what nobody defines, although its other half is there.
#[test]
fn differences_of_undefined_symbols() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    let data = object.section(".data", READ, 1, &[0x80, 0]);
    let (here, nobody) = (object.local("here", data, 0), object.undefined("nobody"));
    object.relocation(data, 0, R_RISCV_SET_ULEB128, nobody, 0);
    object.relocation(data, 0, R_RISCV_SUB_ULEB128, here, 0);
    let error = refused_by::<Rv64>(&object.build());
    assert_eq!(
        error.to_string(),
        "object 0: section 1: R_RISCV_SET_ULEB128 at offset 0x0: symbol 2 is undefined"
    );
}

/// Nobody says where threads have their variables.
#[test]
#[cfg_attr(
    not(all(feature = "thread-local", feature = "relax")),
    ignore = "needs the features thread-local, relax"
)]
fn variables_without_an_area() {
    let mut object = Object::new();
    let text = object.section(".text", CODE, 8, &[0x48, 0x8b, 0x05, 0, 0, 0, 0, 0]);
    let zeros = object.zeros(".tbss", WRITE | SectionFlags::TLS, 4, 4);
    let symbol = object.symbol("t", STB_GLOBAL, STT_TLS, Place::In(zeros), 0, 4);
    object.relocation(text, 3, R_X86_64_GOTTPOFF, symbol, -4);
    assert_eq!(
        laid_out(&[&object], |layout| image_error(layout).to_string()),
        "object 0: section 1: R_X86_64_GOTTPOFF at offset 0x3: no thread pointer offset for symbol 1"
    );
}

/// What is thread-local is asked for as such, and nothing else is.
#[test]
#[cfg_attr(not(feature = "thread-local"), ignore = "needs the feature thread-local")]
fn variables_and_other_symbols() {
    let of = |kind, is_variable| {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 8, &[0; 16]);
        let zeros = object.zeros(".tbss", WRITE | SectionFlags::TLS, 4, 4);
        let place = Place::In(if is_variable { zeros } else { text });
        let symbol =
            object.symbol("s", STB_GLOBAL, if is_variable { STT_TLS } else { 0 }, place, 0, 4);
        object.relocation(text, 4, kind, symbol, 0);
        refused(&[&object], Options::default()).to_string()
    };
    let mut object = Object::new();
    let text = object.section(".text", CODE, 8, &[0; 16]);
    let comment = object.section(".comment", SectionFlags::empty(), 1, &[0; 4]);
    let symbol = object.symbol("s", STB_GLOBAL, STT_TLS, Place::In(comment), 0, 4);
    object.relocation(text, 4, R_X86_64_TPOFF32, symbol, 0);
    let error = refused(&[&object], Options::default());
    assert!(matches!(error.kind, ErrorKind::NotLoaded { symbol: 1, .. }), "{error}");
    if cfg!(feature = "indirect-functions") {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 8, &[0; 16]);
        let place = Place::In(text);
        let symbol = object.symbol("f", STB_GLOBAL, STT_GNU_IFUNC, place, 0, 4);
        object.relocation(text, 4, R_X86_64_TPOFF32, symbol, 0);
        for indirect_functions in [false, true] {
            let options = Options { indirect_functions, ..Options::default() };
            let error = refused(&[&object], options);
            assert!(matches!(error.kind, ErrorKind::NotThreadLocal { symbol: 1, .. }), "{error}");
        }
    }
    assert_eq!(
        of(R_X86_64_TPOFF32, false),
        "object 0: section 1: R_X86_64_TPOFF32 at offset 0x4: symbol 1 is not thread-local"
    );
    assert_eq!(
        of(R_X86_64_PC32, true),
        "object 0: section 1: R_X86_64_PC32 at offset 0x4: symbol 1 is thread-local"
    );
}

/// What is left out is named, before anything is written.
#[test]
fn what_features_leave_out() {
    let check = |feature,
                 is_on: bool,
                 objects: &[&Object],
                 options,
                 externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>| {
        let objects: Vec<_> = objects.iter().map(|object| object.build()).collect();
        plan(&objects, options, externals, |layout| match layout {
            Ok(_) => assert!(is_on, "{feature}"),
            Err(Error { kind: ErrorKind::Elf(error), .. }) => {
                assert!(!is_on, "{feature}: {error}");
                assert_eq!(error.kind, elf_core::ErrorKind::FeatureOff(feature));
            }
            Err(error) => panic!("{feature}: {error}"),
        });
    };
    // the section
    let mut object = Object::new();
    object.zeros(".tbss", WRITE | SectionFlags::TLS, 4, 4);
    let is_on = cfg!(feature = "thread-local");
    check("thread-local", is_on, &[&object], Options::default(), &mut nobody);
    // a relocation, for a variable of the caller's
    let mut object = Object::new();
    let text = object.section(".text", CODE, 8, &[0x48, 0x8b, 0x05, 0, 0, 0, 0, 0]);
    let symbol = object.undefined("errno");
    object.relocation(text, 3, R_X86_64_GOTTPOFF, symbol, -4);
    let mut errno = |_: Name<'_>| Some(ExternalSymbol::thread_local(1, 0, Some(-64)));
    check("thread-local", is_on, &[&object], Options::default(), &mut errno);
    // its one address is asked for, which it has not
    let object = refers(|object, _| object.undefined("errno"));
    plan(&[object.build()], Options::default(), &mut errno, |layout| {
        assert_eq!(
            layout.unwrap_err().to_string(),
            "object 0: section 1: R_X86_64_64 at offset 0x8: symbol 1 is thread-local"
        );
    });
    // stubs that the caller wants
    let options = Options { replaceable_functions: true, ..Options::default() };
    let is_on = cfg!(feature = "indirect-functions");
    check("indirect-functions", is_on, &[&Object::new()], options, &mut nobody);
    // those that the object has
    let object =
        refers(|object, data| object.symbol("f", STB_GLOBAL, STT_GNU_IFUNC, Place::In(data), 0, 0));
    let options = Options { indirect_functions: true, ..Options::default() };
    if !is_on {
        let error = refused(&[&object], options);
        assert!(matches!(error.kind, ErrorKind::Indirect { symbol: 1, offset: 8, .. }), "{error}");
    }
}

/// Resolvers are code of the objects.
#[test]
#[cfg_attr(not(feature = "indirect-functions"), ignore = "needs the feature indirect-functions")]
fn resolvers_that_are_no_code() {
    let options = Options { indirect_functions: true, ..Options::default() };
    for (place, value) in [(Place::In(2), 0), (Place::In(1), 16), (Place::Absolute, 0x1000)] {
        let mut object = Object::new();
        object.section(".text", CODE, 16, &[0xc3; 16]);
        object.section(".data", WRITE, 8, &[0; 8]);
        object.symbol("chosen", STB_GLOBAL, STT_GNU_IFUNC, place, value, 0);
        plan(&[object.build()], options, &mut nobody, |layout| match place {
            // an absolute symbol has no type that means anything
            Place::Absolute => assert!(layout.is_ok_and(|it| it.indirect_functions().count() == 0)),
            _ => assert_eq!(
                layout.unwrap_err().to_string(),
                "object 0: the resolver of the indirect function 1 is not code of the objects"
            ),
        });
    }
}

#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn alignments_and_sizes() {
    let section = |alignment: u64, size: u64| {
        let mut object = Object::new();
        object.section("first", WRITE, 1, &[1]);
        object.zeros("s", WRITE, alignment, size);
        object
    };
    let error = refused(&[&section(24, 8)], Options::default());
    assert_eq!(error.to_string(), "object 0: section 2: alignment 0x18 is no power of two");
    laid_out(&[&section(0, 8)], |layout| assert_eq!(layout.section(0, 2), Some(1)));
    for (alignment, size) in [(1, u64::MAX), (1 << 63, 1 << 63), (1, i64::MAX as u64), (1, 1 << 63)]
    {
        let error = refused(&[&section(alignment, size)], Options::default());
        assert_eq!(error.kind, ErrorKind::TooLarge, "{alignment:#x} {size:#x}");
        assert!(error.to_string().ends_with("does not fit the address space"));
    }
    let mut object = Object::new();
    object.common("common", u64::MAX, 8);
    object.common("other", 16, 8);
    assert_eq!(refused(&[&object], Options::default()).kind, ErrorKind::TooLarge);
    let mut object = Object::new();
    let section = object.zeros("s", READ, 1, 16);
    object.at(section, u64::MAX - 15);
    assert_eq!(refused(&[&object], Options::default()).kind, ErrorKind::TooLarge);
    let options = Options { base: Some(u64::MAX - 0x1000), ..Options::default() };
    laid_out_at(&object, options);
}

/// At a base high enough the section is inside.
fn laid_out_at(object: &Object, options: Options) {
    plan(&[object.build()], options, &mut nobody, |layout| {
        let layout = layout.unwrap();
        assert_eq!(layout.section(0, 1), Some(0x1000 - 15));
    });
}

#[test]
fn storage_that_is_too_small() {
    let object = refers(|object, data| object.global("symbol", data, 0)).build();
    let other = refers(|object, _| object.undefined("symbol")).build();
    let files = [File::parse(&object).unwrap(), File::parse(&other).unwrap()];
    let needed = Requirements::of(&files).unwrap();
    assert_eq!(needed, Requirements { objects: 2, sections: 12, symbols: 4, names: 4, edits: 0 });
    assert_eq!(Requirements::of(&files[..1]).unwrap().names, 0, "nobody to share with");
    let try_with = |have: Requirements| {
        let mut objects = vec![ObjectSlot::default(); have.objects];
        let mut sections = vec![SectionSlot::default(); have.sections];
        let mut symbols = vec![SymbolSlot::default(); have.symbols];
        let mut names = vec![0; have.names];
        let storage = Storage {
            objects: &mut objects,
            sections: &mut sections,
            symbols: &mut symbols,
            names: &mut names,
            edits: &mut [],
        };
        let layout = Layout::<X86_64>::plan(&files, Options::default(), storage, &mut nobody);
        layout.map(|layout| layout.size())
    };
    let more = Requirements { objects: 9, sections: 90, symbols: 99, names: 1001, edits: 0 };
    assert_eq!(try_with(needed), try_with(more), "more does no harm");
    for (less, what, count) in [
        (Requirements { objects: 1, ..needed }, "objects", 2),
        (Requirements { sections: 11, ..needed }, "sections", 12),
        (Requirements { symbols: 0, ..needed }, "symbols", 4),
        (Requirements { names: 3, ..needed }, "names", 4),
    ] {
        let error = try_with(less).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Storage { what, needed: count });
        assert_eq!(
            error.to_string(),
            format!("object 0: storage for {what} is too small: {count} needed")
        );
    }
}

#[test]
fn images_that_do_not_fit() {
    let object = refers(|object, data| object.global("symbol", data, 0));
    laid_out(&[&object], |layout| {
        let mut image = [0x33; 15];
        for length in [0, 15] {
            let error = layout.write(&mut image[..length], BASE).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Image { found: length as u64, needed: 16 });
        }
        let error = layout.write_zeroed(&mut image, BASE).unwrap_err();
        assert_eq!(error.to_string(), "object 0: image of 0xf bytes is too small: 0x10 needed");
        let mut image = [0x33; 16];
        for base in [1, 8, 0x800, u64::MAX, u64::MAX - 15, 0xffff_ffff_ffff_f001] {
            let error = layout.write(&mut image, base).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Base { base, alignment: 4096 });
        }
        assert_eq!(image, [0x33; 16], "nothing was written");
        let error = layout.write(&mut image, 0x800).unwrap_err();
        assert_eq!(
            error.to_string(),
            "object 0: image cannot be at 0x800, with an alignment of 0x1000"
        );
        layout.write(&mut image, u64::MAX - 0xfff).unwrap();
    });
    let mut aligned = Object::new();
    aligned.zeros("s", WRITE, 1 << 20, 16);
    laid_out(&[&aligned], |layout| {
        let mut image = [0; 16];
        assert!(layout.write(&mut image, 1 << 19).is_err());
        layout.write(&mut image, 3 << 20).unwrap();
    });
}

/// Addresses of 32 bits end at 4 GiB.
#[test]
#[cfg_attr(not(feature = "default"), ignore = "needs the feature default")]
fn images_above_four_gib() {
    let bytes = include_bytes!("../../fixtures/i386/absolute.o");
    let files = [File::parse(bytes).unwrap()];
    let (mut objects, mut sections) = ([ObjectSlot::default(); 1], [SectionSlot::default(); 32]);
    let mut symbols = [SymbolSlot::default(); 64];
    let storage = Storage {
        objects: &mut objects,
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut [],
        edits: &mut [],
    };
    let options =
        Options { mode: ImageMode::Packed { section_alignment: 1 }, ..Options::default() };
    let layout = Layout::<I386>::plan(&files, options, storage, &mut nobody).unwrap();
    let mut image = vec![0; layout.size() as usize];
    let high = (1 << 32) - layout.alignment();
    for base in [1 << 32, high] {
        let fits = base + layout.size() <= 1 << 32;
        assert_eq!(layout.write(&mut image, base).is_ok(), fits, "{base:#x}");
    }
    let low = ((1u64 << 32) - layout.size()) & !(layout.alignment() - 1);
    layout.write(&mut image, low).unwrap();
}
