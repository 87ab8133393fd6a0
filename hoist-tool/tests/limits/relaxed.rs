//! Code of RISC-V that may become shorter, next to where it no longer may: each case is a program of its own, whose code is byte for byte what
//! GNU ld and lld make of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use archs::{Architecture, with_arch};
use elf_core::names::{STB_GLOBAL, STT_NOTYPE, STT_OBJECT, STT_TLS};
use elf_core::{Arch, File, SectionHeader};
use elf_layout::{HeapStorage, Options};
use object::elf;
use object::write::{Object, Relocation, Symbol, SymbolSection};
use object::{
    BinaryFormat, Endianness, FileFlags, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope,
};

const R_RISCV_CALL_PLT: u32 = 19;
const R_RISCV_HI20: u32 = 26;
const R_RISCV_LO12_I: u32 = 27;
const R_RISCV_LO12_S: u32 = 28;
const R_RISCV_TPREL_HI20: u32 = 29;
const R_RISCV_TPREL_LO12_I: u32 = 30;
const R_RISCV_TPREL_LO12_S: u32 = 31;
const R_RISCV_TPREL_ADD: u32 = 32;
const R_RISCV_RELAX: u32 = 51;

const BASE: u64 = 0x4000_0000;
const GLOBAL_POINTER: u64 = 0x4800_0800;

/// What the code refers to.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// So far from the first instruction.
    Distance(i64),
    /// An address.
    Value(i64),
    /// So far from the global pointer.
    FromGlobalPointer(i64),
    /// So far into the block of thread-local variables, which the thread pointer points to.
    Variable(u64),
}

/// Instructions with their relocations, each with one for relaxation.
struct Sequence {
    name: &'static str,
    code: &'static [(u32, u32)],
    targets: &'static [Target],
}

use Target::{Distance, FromGlobalPointer, Value, Variable};

const SEQUENCES: &[Sequence] = &[
    Sequence {
        name: "call",
        code: &[(0x0000_0097, R_RISCV_CALL_PLT), (0x0000_80e7, 0)], // auipc ra; jalr ra
        targets: &[
            Distance(0x7fe),
            Distance(0x800),
            Distance(-0x800),
            Distance(-0x802),
            Distance(0xf_fffe),
            Distance(0x10_0000),
            Distance(-0x10_0000),
            Distance(-0x10_0002),
        ],
    },
    Sequence {
        name: "tail",
        code: &[(0x0000_0317, R_RISCV_CALL_PLT), (0x0003_0067, 0)], // auipc t1; jalr x0, t1
        targets: &[
            Distance(0x7fe),
            Distance(0x800),
            Distance(-0x800),
            Distance(-0x802),
            Distance(0xf_fffe),
            Distance(0x10_0000),
            Distance(-0x10_0000),
            Distance(-0x10_0002),
        ],
    },
    Sequence {
        name: "address",
        // lui a0; addi a0, a0; sw a1, (a0)
        code: &[
            (0x0000_0537, R_RISCV_HI20),
            (0x0005_0513, R_RISCV_LO12_I),
            (0x00b5_2023, R_RISCV_LO12_S),
        ],
        targets: &[
            Value(0x7fb),
            Value(0x7fc),
            Value(0x7ff),
            Value(0x800),
            Value(-0x800),
            Value(-0x801),
            Value(0x1_e7ff),
            Value(0x1_e800),
            Value(0x1_f7ff),
            Value(0x1_f800),
            Value(-0x2_0800),
            Value(-0x2_0801),
            Value(-0x1_f801),
            FromGlobalPointer(0x7f8),
            FromGlobalPointer(0x7fc),
            FromGlobalPointer(0x7ff),
            FromGlobalPointer(0x800),
            FromGlobalPointer(-0x800),
            FromGlobalPointer(-0x801),
        ],
    },
    Sequence {
        name: "variable",
        // lui a0; add a0, a0, tp; addi a1, a0; sw a1, (a0)
        code: &[
            (0x0000_0537, R_RISCV_TPREL_HI20),
            (0x0045_0533, R_RISCV_TPREL_ADD),
            (0x0005_0593, R_RISCV_TPREL_LO12_I),
            (0x00b5_2023, R_RISCV_TPREL_LO12_S),
        ],
        targets: &[Variable(0), Variable(0x7fc), Variable(0x7ff), Variable(0x800)],
    },
];

/// An object of a sequence.
fn object(machine: Architecture, sequence: &Sequence, target: Target) -> Vec<u8> {
    let (architecture, flags) = match machine {
        Architecture::Rv64 => (object::Architecture::Riscv64, 5),
        _ => (object::Architecture::Riscv32, 1),
    };
    let mut file = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    file.flags =
        FileFlags::Elf { os_abi: elf::OsAbi(0), abi_version: 0, e_flags: elf::FileFlags(flags) };
    let text = file.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
    let data = file.add_section(Vec::new(), b".tdata".to_vec(), SectionKind::Tls);
    let words: Vec<u8> = sequence.code.iter().flat_map(|(word, _)| word.to_le_bytes()).collect();
    file.append_section_data(text, &words, 2);
    file.append_section_data(data, &[0; 0x1000], 4);
    let mut symbol = |name: &str, value: u64, size, section, symbol_type: u8| {
        file.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size,
            kind: SymbolKind::Label,
            scope: SymbolScope::Dynamic,
            weak: false,
            section,
            flags: SymbolFlags::Elf {
                st_info: elf::SymbolInfo(STB_GLOBAL << 4 | symbol_type),
                st_other: elf::SymbolOther(0),
            },
        })
    };
    symbol("__global_pointer$", GLOBAL_POINTER, 0, SymbolSection::Absolute, STT_NOTYPE);
    let cut = |value: i64| match machine {
        Architecture::Rv64 => value.cast_unsigned(),
        _ => u64::from(value as u32),
    };
    let absolute = SymbolSection::Absolute;
    let target = match target {
        Distance(by) => symbol("target", BASE.wrapping_add_signed(by), 0, absolute, STT_NOTYPE),
        Value(value) => symbol("target", cut(value), 0, absolute, STT_NOTYPE),
        FromGlobalPointer(by) => {
            symbol("target", GLOBAL_POINTER.wrapping_add_signed(by), 1, absolute, STT_OBJECT)
        }
        Variable(value) => symbol("target", value, 1, SymbolSection::Section(data), STT_TLS),
    };
    for (at, (_, r#type)) in (0u64..).step_by(4).zip(sequence.code) {
        for r#type in [*r#type, R_RISCV_RELAX].into_iter().filter(|_| *r#type != 0) {
            let flags = RelocationFlags::Elf { r_type: elf::RelocationType(r#type) };
            let relocation = Relocation { offset: at, symbol: target, addend: 0, flags };
            file.add_relocation(text, relocation).expect("a relocation");
        }
    }
    file.write().expect("an object")
}

/// The code as hoist has it; `None` if it refuses the object.
fn ours<A: Arch>(object: &[u8]) -> Option<Vec<u8>> {
    let files = [File::parse(object).expect("an object")];
    let mut room = HeapStorage::new();
    let mut options = Options { base: Some(BASE), ..Options::default() };
    (options.global_pointer, options.executable) = (true, true);
    let mut layout = room.plan::<A>(&files, options, &mut |_| None).expect("a layout");
    layout.set_static_tls_block(layout.executable_tls_block());
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).ok()?;
    let size = layout.section_size(0, 1)?;
    Some(image[..size as usize].to_vec())
}

/// The code as a linker has it; `None` if it refuses the object.
fn theirs(machine: Architecture, linker: &str, folder: &Path) -> Option<Vec<u8>> {
    let emulation = if machine == Architecture::Rv64 { "elf64lriscv" } else { "elf32lriscv" };
    let mut command = Command::new(linker);
    command.args(["-m", emulation, "-static", "-e", "0", "-T", "script", "-o", "linked"]);
    if linker.contains("lld") {
        command.arg("--relax-gp");
    }
    let output = command.arg("object.o").current_dir(folder).output().expect("a linker");
    if !output.status.success() {
        return None;
    }
    let bytes = fs::read(folder.join("linked")).expect("a program");
    let file = File::parse(&bytes).expect("a program");
    let named = |it: &SectionHeader| file.section_name(it).is_ok_and(|name| name == ".text");
    let section = file.sections().iter().find(named).expect("the code");
    Some(file.section_data(&section).expect("the code").to_vec())
}

/// Where linkers are known to leave code as long as it is: the linker, the sequence, for which targets, and why.
type Known = (&'static str, &'static str, fn(Architecture, Target) -> bool, &'static str);

const KNOWN: &[Known] = {
    const fn is_last(_: Architecture, target: Target) -> bool {
        matches!(target, Distance(0x7fe | -0x800 | 0xf_fffe | -0x10_0000))
    }
    const fn is_last_of_gp(_: Architecture, target: Target) -> bool {
        matches!(target, FromGlobalPointer(0x7fc | 0x7ff | -0x800))
    }
    const fn is_negative(machine: Architecture, target: Target) -> bool {
        matches!((machine, target), (Architecture::Rv32, Value(..0)))
    }
    const fn is_absolute(_: Architecture, target: Target) -> bool {
        matches!(target, Value(_))
    }
    const ROOM: &str = "it leaves room for padding that may come between";
    const GNU: &str = "riscv64-linux-gnu-ld";
    &[
        (GNU, "call", is_last, ROOM),
        (GNU, "tail", is_last, ROOM),
        (GNU, "address", is_last_of_gp, ROOM),
        (GNU, "address", is_negative, "addresses of 4 bytes are not negative"),
        ("lld", "address", is_absolute, "it knows neither x0 nor c.lui"),
    ]
};

fn compare(test: &str, machine: Architecture, least: usize) {
    const LINKERS: [&str; 2] = ["riscv64-linux-gnu-ld", "ld.lld-19"];
    if LINKERS.iter().any(|it| Command::new(it).arg("--version").output().is_err()) {
        println!("skipped: {test}: needs {}", LINKERS.join(" and "));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "SECTIONS {{ .text {BASE:#x} : {{ *(.text) }} .tdata {:#x} : {{ *(.tdata) }} }}",
        BASE + 0x20_0000,
    );
    fs::write(folder.path().join("script"), script).expect("a script");
    let (mut equal, mut known, mut different) = (0, 0, Vec::new());
    for sequence in SEQUENCES {
        for &target in sequence.targets {
            let object = object(machine, sequence, target);
            fs::write(folder.path().join("object.o"), &object).expect("an object");
            let our = with_arch!(machine, A => ours::<A>(&object));
            for linker in LINKERS {
                let their = theirs(machine, linker, folder.path());
                let is_known = |(whose, name, holds, _): &&Known| {
                    linker.contains(whose) && *name == sequence.name && holds(machine, target)
                };
                if our == their {
                    equal += 1;
                } else if KNOWN.iter().any(|it| is_known(&it)) {
                    known += 1;
                } else {
                    let name = sequence.name;
                    different.push(format!("{linker} {name} {target:x?}: {our:02x?} {their:02x?}"));
                }
            }
        }
    }
    println!("{test}: {equal} equal, {known} different for known reasons");
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    assert!(equal >= least, "only {equal} are equal");
}

#[test]
fn riscv64_relaxed_at_its_limits() {
    compare("riscv64_relaxed_at_its_limits", Architecture::Rv64, 61);
}

#[test]
fn riscv32_relaxed_at_its_limits() {
    compare("riscv32_relaxed_at_its_limits", Architecture::Rv32, 56);
}
