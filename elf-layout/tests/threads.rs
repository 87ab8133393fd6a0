//! Thread-local variables: what code that stays as it was compiled finds in the GOT, and what becomes local exec counts from (Drepper, "ELF
//! Handling For Thread-Local Storage", variant II).
#![cfg(test)]
#![cfg(feature = "thread-local")]

mod support;

use elf_core::names::*;
use elf_core::{ApplyErrorKind, Name, Role, SectionFlags, Slot};
use elf_layout::{
    Error, ErrorKind, ExternalSymbol, Layout, Options, StaticTlsBlock, SymbolAddress, ThreadLocal,
    TlsBlock,
};
use reloc_x86::X86_64;
use reloc_x86::x86_64::{
    R_X86_64_64, R_X86_64_DTPOFF32, R_X86_64_DTPOFF64, R_X86_64_GOTPC32_TLSDESC, R_X86_64_GOTTPOFF,
    R_X86_64_PLT32, R_X86_64_SIZE64, R_X86_64_TLSDESC_CALL, R_X86_64_TLSGD, R_X86_64_TLSLD,
    R_X86_64_TPOFF64,
};
use support::{BASE, CODE, Object, Place, WRITE, half, laid_out, nobody, plan, word};

const TLS: SectionFlags = WRITE.union(SectionFlags::TLS);
fn as_compiled() -> Options {
    Options { thread_local: ThreadLocal::AsCompiled, ..Options::default() }
}

/// Where threads have the block.
const AT: StaticTlsBlock = StaticTlsBlock {
    module: 5,
    tp_offset: Some(-0x400),
    descriptor: Some(0x7700),
    dynamic_descriptor: Some(0x7800),
};
/// The same, where every thread has it elsewhere.
const ANYWHERE: StaticTlsBlock = StaticTlsBlock { tp_offset: None, ..AT };

/// Variables of two objects: 12 bytes with values, of which `own` are the last 8, 20 of zeros behind them on a multiple of 32, of which
/// `zero` are the last 4.
fn variables() -> Object {
    let mut object = Object::new();
    let values = object.section(".tdata", TLS, 8, &[7; 12]);
    let zeros = object.zeros(".tbss", TLS, 32, 20);
    object.symbol("own", STB_GLOBAL, STT_TLS, Place::In(values), 4, 8);
    object.symbol("zero", STB_GLOBAL, STT_TLS, Place::In(zeros), 16, 4);
    object
}

/// Offsets of these in the block.
const OWN: u64 = 4;
const ZERO: u64 = 48;

/// Where module 9 has its variable.
fn answer(name: Name<'_>) -> Option<ExternalSymbol> {
    match name.to_str()? {
        "theirs" => Some(ExternalSymbol::thread_local(9, 0x30, Some(-0x50))),
        "dynamic" => Some(ExternalSymbol::thread_local(9, 0x34, None)),
        _ => None,
    }
}

/// An object whose code has these relocations, 8 bytes each, of symbols that it does not define.
fn asks(relocations: &[(u32, &str)]) -> Object {
    let mut object = Object::new();
    let text = object.section(".text", CODE, 8, &vec![0; 8 * relocations.len()]);
    for (&(kind, name), at) in relocations.iter().zip((0..).step_by(8)) {
        let symbol = match name {
            "weak" => object.undefined_weak(name),
            _ => object.undefined(name),
        };
        object.relocation(text, at, kind, symbol, 0);
    }
    object
}

/// Lays out code that asks for variables, and them; writes the image for a block.
fn written<R>(
    relocations: &[(u32, &str)],
    block: StaticTlsBlock,
    f: impl FnOnce(&Layout<'_, '_, X86_64>, Result<&[u8], Error>) -> R,
) -> R {
    let objects = [asks(relocations).build(), variables().build()];
    plan(&objects, as_compiled(), &mut answer, |layout| {
        let mut layout = layout.unwrap();
        layout.set_static_tls_block(block);
        let mut image = vec![0; layout.size() as usize];
        let result = layout.write(&mut image, BASE);
        f(&layout, result.map(|()| image.as_slice()))
    })
}

/// The two words at what the code counts to from each place; those behind the image are 0.
fn entries<const N: usize>(relocations: &[(u32, &str); N], block: StaticTlsBlock) -> [[u64; 2]; N] {
    written(relocations, block, |_, image| {
        let mut image = image.unwrap().to_vec();
        image.extend([0; 8]);
        core::array::from_fn(|at| {
            let place = 8 * at as u64;
            let entry = place.wrapping_add_signed(half(&image, place));
            [word(&image, entry), word(&image, entry + 8)]
        })
    })
}

#[test]
fn values_in_place() {
    let names = ["own", "zero", "_TLS_MODULE_BASE_", "weak", "theirs"];
    let offsets = names.map(|name| (R_X86_64_TPOFF64, name));
    written(&offsets, AT, |_, image| {
        let image = image.unwrap();
        let found: Vec<i64> = (0..5).map(|at| word(image, 8 * at).cast_signed()).collect();
        // what nobody defines is 0, which no code that asks first comes to use
        assert_eq!(found, [-0x3fc, -0x3d0, -0x400, 0, -0x50]);
    });
    let in_block = ["own", "zero", "_TLS_MODULE_BASE_", "weak"].map(|it| (R_X86_64_DTPOFF64, it));
    written(&in_block, ANYWHERE, |layout, image| {
        let image = image.unwrap();
        let found: Vec<u64> = (0..4).map(|at| word(image, 8 * at)).collect();
        assert_eq!(found, [OWN, ZERO, 0, 0]);
        assert_eq!([1, 2].map(|symbol| layout.variable(1, symbol)), [Some(OWN), Some(ZERO)]);
        assert_eq!(layout.variable(0, 3), None, "the block is none");
    });
    written(&[(R_X86_64_SIZE64, "own"), (R_X86_64_SIZE64, "zero")], ANYWHERE, |_, image| {
        assert_eq!([0, 8].map(|at| word(image.unwrap(), at)), [8, 4]);
    });
}

#[test]
fn entries_hold_what_code_was_compiled_for() {
    let initial = ["own", "zero", "theirs", "weak"].map(|it| (R_X86_64_GOTTPOFF, it));
    assert_eq!(
        entries(&initial, AT).map(|[word, _]| word.cast_signed()),
        [-0x3fc, -0x3d0, -0x50, 0]
    );
    let general = ["own", "zero", "theirs", "dynamic"].map(|it| (R_X86_64_TLSGD, it));
    for block in [AT, ANYWHERE] {
        let found = entries(&general, block);
        assert_eq!(found, [[5, OWN], [5, ZERO], [9, 0x30], [9, 0x34]]);
    }
    // the module has one pair for all, and it stands first
    let local = [(R_X86_64_TLSLD, "own"), (R_X86_64_TLSLD, "zero"), (R_X86_64_TLSGD, "own")];
    assert_eq!(entries(&local, ANYWHERE), [[5, 0], [5, 0], [5, OWN]]);
    written(&local, ANYWHERE, |layout, _| {
        let entries: Vec<_> = layout.got_entries().map(|it| (it.content, it.offset)).collect();
        let start = layout.got().0;
        assert_eq!(entries, [(Slot::TlsLd, start), (Slot::TlsGd, start + 16)]);
        assert_eq!(layout.got().1, 32);
    });
}

#[test]
fn descriptors_hold_function_and_argument() {
    let asked = ["own", "zero", "theirs"].map(|it| (R_X86_64_GOTPC32_TLSDESC, it));
    let found = entries(&asked, AT);
    let words = [-0x3fc, -0x3d0, -0x50].map(|it: i64| [0x7700, it.cast_unsigned()]);
    assert_eq!(found, words);
    // without an offset that is the same everywhere the argument leads to module and offset
    let asked = ["own", "dynamic"].map(|it| (R_X86_64_GOTPC32_TLSDESC, it));
    written(&asked, ANYWHERE, |_, image| {
        let image = image.unwrap();
        for (place, pair) in [(0u64, [5, OWN]), (8, [9, 0x34])] {
            let entry = place.wrapping_add_signed(half(image, place));
            assert_eq!(word(image, entry), 0x7800);
            let argument = word(image, entry + 8) - BASE;
            assert_eq!([0, 8].map(|at| word(image, argument + at)), pair);
        }
    });
}

/// All entries of one symbol stand apart.
#[test]
fn one_symbol_in_every_way() {
    let kinds = [R_X86_64_GOTTPOFF, R_X86_64_TLSGD, R_X86_64_GOTPC32_TLSDESC, R_X86_64_TLSGD];
    let all = kinds.map(|kind| (kind, "own"));
    let offset = (-0x3fc_i64).cast_unsigned();
    let [initial, general, descriptor, again] = entries(&all, AT);
    assert_eq!((initial[0], general, descriptor), (offset, [5, OWN], [0x7700, offset]));
    assert_eq!(again, general);
    written(&all, AT, |layout, _| {
        assert_eq!((layout.got_entries().count(), layout.got().1), (3, 8 + 16 + 16));
    });
}

#[test]
fn what_nobody_knows_is_refused() {
    for (kind, name, block, role) in [
        (R_X86_64_TPOFF64, "own", ANYWHERE, Role::TpOffset),
        (R_X86_64_TPOFF64, "dynamic", AT, Role::TpOffset),
        (R_X86_64_GOTTPOFF, "own", ANYWHERE, Role::Got(Slot::TpOffset)),
        (R_X86_64_GOTTPOFF, "dynamic", AT, Role::Got(Slot::TpOffset)),
        (R_X86_64_DTPOFF64, "theirs", AT, Role::DtpOffset),
        (
            R_X86_64_GOTPC32_TLSDESC,
            "own",
            StaticTlsBlock { dynamic_descriptor: None, ..ANYWHERE },
            Role::Got(Slot::TlsDesc),
        ),
    ] {
        let kind = written(&[(kind, name)], block, |_, image| image.unwrap_err().kind);
        let ErrorKind::Apply(error) = kind else { panic!("{kind:?}") };
        assert_eq!(error.kind, ApplyErrorKind::Unresolved(role), "{name}");
    }
}

#[test]
fn the_block_is_that_of_the_abi() {
    let mut object = variables();
    object.section(".data", WRITE, 8, &[9; 8]);
    let objects = [object.build()];
    plan(&objects, as_compiled(), &mut nobody, |layout| {
        let layout = layout.unwrap();
        let offset = layout.section(0, 1).unwrap();
        let block = TlsBlock { offset, file_size: 12, size: 52, alignment: 32 };
        assert_eq!(layout.tls_block(), Some(block));
        // variant II: the block ends at the thread pointer, and is aligned
        let executable = layout.executable_tls_block();
        assert_eq!((executable.module, executable.tp_offset), (1, Some(-64)));
        assert_eq!((executable.descriptor, executable.dynamic_descriptor), (None, None));
        assert_eq!(layout.symbol(0, 1), None, "every thread has its own");
        let mut image = vec![0x33; layout.size() as usize];
        layout.write_tls_block(&mut image, BASE).unwrap();
        let (values, rest) = image.split_at(12);
        assert!(values.iter().all(|it| *it == 7) && rest.iter().all(|it| *it == 0x33));
    });
    laid_out(&[&Object::new()], |layout| assert_eq!(layout.tls_block(), None));
    // code asks for the block of no variables
    let objects = [asks(&[(R_X86_64_DTPOFF64, "_TLS_MODULE_BASE_")]).build()];
    plan(&objects, as_compiled(), &mut nobody, |layout| {
        assert_eq!(layout.unwrap().tls_block().map(|it| it.size), Some(0));
    });
}

/// What stands in a section of variables is one, whatever its type: sections themselves are meant by local symbols.
#[test]
fn sections_of_variables() {
    for r#type in [STT_SECTION, STT_NOTYPE, STT_OBJECT] {
        let mut object = variables();
        let text = object.section(".text", CODE, 8, &[0; 16]);
        for (section, at) in [(1, 0), (2, 8)] {
            let symbol = object.symbol("", STB_LOCAL, r#type, Place::In(section), 0, 0);
            object.relocation(text, at, R_X86_64_TPOFF64, symbol, 4);
        }
        plan(&[object.build()], as_compiled(), &mut nobody, |layout| {
            let mut layout = layout.unwrap();
            layout.set_static_tls_block(AT);
            let mut image = vec![0; layout.size() as usize];
            layout.write(&mut image, BASE).unwrap();
            let at = layout.section(0, text).unwrap();
            let found = [0, 8].map(|it| word(&image, at + it).cast_signed());
            assert_eq!(found, [-0x3fc, -0x3dc], "{type}");
        });
    }
}

/// Code of initial exec becomes local exec, and needs no entry: `mov x@gottpoff(%rip), %rax` is `mov $x@tpoff, %rax` then.
#[test]
#[cfg_attr(not(feature = "relax"), ignore = "needs the feature relax")]
fn initial_exec_becomes_local_exec() {
    let initial = |names: &[&str]| {
        let mut object = Object::new();
        for name in names {
            let text = object.section(".text", CODE, 1, &[0x48, 0x8b, 0x05, 0, 0, 0, 0]);
            let symbol = match *name {
                "weak" => object.undefined_weak(name),
                _ => object.undefined(name),
            };
            object.relocation(text, 3, R_X86_64_GOTTPOFF, symbol, -4);
        }
        [object.build(), variables().build()]
    };
    let objects = initial(&["own", "theirs", "weak"]);
    plan(&objects, Options::default(), &mut answer, |layout| {
        let mut layout = layout.unwrap();
        assert_eq!(layout.got_entries().count(), 0);
        layout.set_static_tls_block(AT);
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).unwrap();
        for (section, offset) in [(1, -0x3fc), (2, -0x50), (3, 0)] {
            let at = layout.section(0, section).unwrap();
            assert_eq!(image[at as usize..][..3], [0x48, 0xc7, 0xc0], "{section}");
            assert_eq!(half(&image, at + 3), offset, "{section}");
        }
    });
    // that of which the offset is not the same everywhere stays as it is
    plan(&initial(&["own", "dynamic"]), Options::default(), &mut answer, |layout| {
        let entries: Vec<_> = layout.unwrap().got_entries().collect();
        assert_eq!(entries.len(), 1);
        assert_eq!((entries[0].content, entries[0].symbol), (Slot::TpOffset, 2));
    });
}

/// Code that asks for the block once has 0 for it, and the variables count from the thread pointer: `mov $0, %rax` and
/// `lea own@tpoff(%rax), %rax` (as GNU ld has it).
#[test]
#[cfg_attr(not(feature = "relax"), ignore = "needs the feature relax")]
fn local_dynamic_becomes_local_exec() {
    let mut object = Object::new();
    let asking = [0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xff, 0x10, 0x48, 0x8d, 0x80, 0, 0, 0, 0];
    let text = object.section(".text", CODE, 1, &asking);
    let [base, own] = ["_TLS_MODULE_BASE_", "own"].map(|name| object.undefined(name));
    object.relocation(text, 3, R_X86_64_GOTPC32_TLSDESC, base, -4);
    object.relocation(text, 7, R_X86_64_TLSDESC_CALL, base, 0);
    object.relocation(text, 12, R_X86_64_DTPOFF32, own, 0);
    plan(&[object.build(), variables().build()], Options::default(), &mut nobody, |layout| {
        let mut layout = layout.unwrap();
        assert_eq!(layout.got_entries().count(), 0);
        layout.set_static_tls_block(AT);
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).unwrap();
        assert_eq!(image[..9], [0x48, 0xc7, 0xc0, 0, 0, 0, 0, 0x66, 0x90]);
        assert_eq!((&image[9..12], half(&image, 12)), ([0x48, 0x8d, 0x80].as_slice(), -0x3fc));
    });
}

/// Code of general dynamic becomes local exec with the call that the next relocation is for, where the ABI has it and nowhere else.
#[test]
#[cfg_attr(not(feature = "relax"), ignore = "needs the feature relax")]
fn general_dynamic_goes_with_its_call() {
    for call in [Some(12), Some(11), None] {
        let mut object = Object::new();
        // data16 lea own@tlsgd(%rip), %rdi; data16 data16 rex.w call __tls_get_addr
        let asking = [0x66, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0];
        let text = object.section(".text", CODE, 1, &asking);
        let [own, function] = ["own", "__tls_get_addr"].map(|name| object.undefined(name));
        object.relocation(text, 4, R_X86_64_TLSGD, own, -4);
        if let Some(place) = call {
            object.relocation(text, place, R_X86_64_PLT32, function, -4);
        }
        let objects = [object.build(), variables().build()];
        let mut outside = |_: Name<'_>| Some(ExternalSymbol::function(BASE));
        plan(&objects, Options::default(), &mut outside, |layout| {
            let mut layout = layout.unwrap();
            layout.set_static_tls_block(AT);
            let mut image = vec![0; layout.size() as usize];
            let written = layout.write(&mut image, BASE).map_err(|error| error.kind);
            if call == Some(12) {
                // mov %fs:0, %rax; lea own@tpoff(%rax), %rax
                assert_eq!(image[..12], [0x64, 0x48, 0x8b, 4, 37, 0, 0, 0, 0, 0x48, 0x8d, 0x80]);
                assert_eq!((written, half(&image, 12)), (Ok(()), -0x3fc));
            } else {
                let Err(ErrorKind::Apply(error)) = written else { panic!("{written:?}") };
                assert_eq!((error.offset, error.kind), (4, ApplyErrorKind::Sequence));
            }
        });
    }
}

/// An address is not asked of a variable, nor a variable's offset of anything else.
#[test]
fn addresses_of_symbols_beside_variables() {
    let mut object = variables();
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let symbol = object.global("data", data, 0);
    object.relocation(data, 0, R_X86_64_64, symbol, 0);
    laid_out(&[&object], |layout| {
        let data = layout.section(0, data).unwrap();
        let index = object.index(symbol);
        assert_eq!(layout.symbol(0, index), Some(SymbolAddress::Image(data)));
        assert_eq!(layout.variable(0, index), None);
    });
}
