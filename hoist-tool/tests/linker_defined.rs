//! Symbols that linkers define, beside GNU ld and lld: between two of them stands the same, on every architecture.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use archs::with_arch;
use elf_core::File;
use elf_layout::{HeapStorage, Options};
use hoist_tool::budget::Limits;
use hoist_tool::cmd::link;
use hoist_tool::input;
use hoist_tool::objects::Objects;

/// Names of what starts and ends, in the order of the table.
const RANGES: &[(&str, &str)] = &[
    ("__start_hooks", "__stop_hooks"),
    ("__start_mixed", "__stop_mixed"),
    ("__start_notes", "__stop_notes"),
    ("__start_absent", "__stop_absent"),
    ("__preinit_array_start", "__preinit_array_end"),
    ("__init_array_start", "__init_array_end"),
    ("__fini_array_start", "__fini_array_end"),
    ("__bss_start", "_end"),
    ("__rela_iplt_start", "__rela_iplt_end"),
    ("__rel_iplt_start", "__rel_iplt_end"),
];

/// Single ones, behind those.
const EDGES: &[&str] = &[
    "_etext",
    "etext",
    "_edata",
    "edata",
    "_end",
    "end",
    "_DYNAMIC",
    "__executable_start",
    "__ehdr_start",
];

/// Names that nobody has to define.
fn is_weak(name: &str) -> bool {
    ["absent", "iplt", "_DYNAMIC"].iter().any(|part| name.contains(part))
}

/// Two sources in assembly of any machine: numbers in sections.
fn sources() -> [String; 2] {
    let section = |name: &str, flags: &str, kind: &str, link: &str, bytes: &str| {
        format!(" .section {name},\"{flags}\",%{kind}{link}\n {bytes}\n")
    };
    let number = |name: &str, flags: &str, kind: &str, number: u32| -> String {
        section(name, flags, kind, "", &format!(".balign 4\n .long {number}"))
    };
    let mut first = String::from(" .data\n .balign 8\n .globl table\ntable:\n");
    let starts = RANGES.iter().flat_map(|(start, end)| [*start, *end]).chain(EDGES.iter().copied());
    for name in starts {
        if is_weak(name) {
            first += &format!(" .weak {name}\n");
        }
        first += &format!(" .hidden {name}\n .dc.a {name}\n");
    }
    first += " .globl last\nlast: .byte 7\n";
    first += &section(".text.b", "ax", "progbits", "", ".balign 4\nb: .long 0xb0");
    first += &section(".text.a", "ax", "progbits", "", ".balign 4\na: .long 0xa0");
    first += &section("notes", "ao", "progbits", ",.text.a", ".long 0xa");
    first += &section("notes", "ao", "progbits", ",.text.b", ".long 0xb");
    first += &number("hooks", "aw", "progbits", 1);
    first += &number("mixed", "a", "progbits", 21);
    first += &section(".bss", "aw", "nobits", "", ".globl zeros\nzeros: .skip 12");
    let mut second = number("hooks", "awR", "progbits", 2);
    second += &section("hooks,unique", "awR", "progbits", "", "").replace("hooks,unique", "hooks");
    second += " .byte 3\n";
    second += &number("mixed", "aw", "progbits", 22);
    second += &section(".text.c", "ax", "progbits", "", ".balign 4\nc: .long 0xc0");
    second += &section("notes", "ao", "progbits", ",.text.c", ".long 0xc");
    for (source, base) in [(&mut first, 0x100), (&mut second, 0x200)] {
        for (name, kind) in [("init", "init_array"), ("fini", "fini_array")] {
            let array = |suffix: &str| format!(".{name}_array{suffix}");
            for (suffix, value) in [("", 9), (".00300", 3), (".65000", 7), (".200", 2)] {
                *source += &number(&array(suffix), "aw", kind, base + value);
            }
        }
        *source += " .section .note.GNU-stack,\"\",%progbits\n";
    }
    [first, second]
}

/// What a link made of the sources: between starts and ends, and relations of edges.
#[derive(Debug, PartialEq, Eq)]
struct Linked {
    ranges: Vec<Vec<u8>>,
    edges: Vec<bool>,
}

impl Linked {
    /// Reads the table of addresses. `at` gives bytes at an address, `symbol` the address of a symbol.
    fn read<'i>(width: usize, at: &dyn Fn(u64) -> &'i [u8], symbol: &dyn Fn(&str) -> u64) -> Self {
        let table = at(symbol("table"));
        let word = |number: usize| {
            let bytes = &table[number * width..][..width];
            bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let ranges = RANGES.iter().enumerate().map(|(number, (name, _))| {
            let (start, end) = (word(2 * number), word(2 * number + 1));
            match *name {
                "__bss_start" => {
                    let zeros = symbol("zeros");
                    vec![u8::from(start <= zeros && zeros + 12 <= end)]
                }
                _ if start == end => vec![],
                _ => at(start)[..(end - start) as usize].to_vec(),
            }
        });
        let edge = |number: usize| word(2 * RANGES.len() + number);
        let edges = vec![
            edge(0) == edge(1) && edge(2) == edge(3) && edge(4) == edge(5),
            edge(0) >= symbol("c_end"),
            edge(2) > symbol("last") && edge(2) <= symbol("zeros"),
            edge(4) >= symbol("zeros") + 12,
            word(6) == 0 && word(7) == 0,
            edge(6) == 0,
            edge(7) != 0 && edge(7) <= edge(0) && edge(8) != 0 && edge(8) < edge(4),
        ];
        Self { ranges: ranges.collect(), edges }
    }
}

/// What hoist makes.
fn hoist(paths: &[PathBuf], width: usize) -> Linked {
    let base = 0x10_0000;
    let inputs = input::read_all(paths, Limits::default()).expect("objects");
    let objects = Objects::gather(&inputs, &[]).expect("objects");
    let options = Options { base: Some(base), ..Options::default() };
    let image = link::link(&objects, options, base, &HashMap::new(), None).expect("an image");
    with_arch!(objects.machine(), A => {
        let mut room = HeapStorage::new();
        let layout = room.plan::<A>(objects.files(), options, &mut |_| None).expect("as before");
        let symbol = |name: &str| {
            let (object, index) = layout.find(name.into()).expect("a symbol");
            layout.symbol(object, index).expect("an address").at(base)
        };
        Linked::read(width, &|address| &image.bytes[(address - base) as usize..], &symbol)
    })
}

/// What a linker made.
fn linked(bytes: &[u8], width: usize) -> Linked {
    let file = File::parse(bytes).expect("what a linker made");
    let table = file.symbol_table().expect("symbols").expect("symbols");
    let symbol = |name: &str| {
        let (_, symbol) = table.find(name.into()).expect("a symbol");
        symbol.value
    };
    let at = |address: u64| {
        let holds = |header: &elf_core::SectionHeader| {
            header.address != 0 && (header.address..header.address + header.size).contains(&address)
        };
        let header = file.sections().iter().find(holds).expect("a section");
        &file.section_data(&header).expect("bytes")[(address - header.address) as usize..]
    };
    Linked::read(width, &at, &symbol)
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| {
        if !output.status.success() {
            println!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        output.status.success()
    })
}

#[test]
fn between_two_symbols_stands_what_linkers_have_there() {
    let folder = std::env::temp_dir().join(format!("hoist-linker-defined-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let gnu =
        |prefix: &str, options: &str| (format!("{prefix}-as {options}"), format!("{prefix}-ld"));
    let clang = "clang-19 --target=loongarch64-linux-gnu -c";
    let machines = [
        ("x86-64", gnu("x86_64-linux-gnu", ""), "elf_x86_64", 8),
        ("i386", gnu("i686-linux-gnu", ""), "elf_i386", 4),
        ("AArch64", gnu("aarch64-linux-gnu", ""), "aarch64linux", 8),
        ("Arm", gnu("arm-linux-gnueabihf", ""), "armelf_linux_eabi", 4),
        ("RISC-V", gnu("riscv64-linux-gnu", ""), "elf64lriscv", 8),
        ("RISC-V 32", gnu("riscv64-linux-gnu", "-march=rv32imac -mabi=ilp32"), "elf32lriscv", 4),
        ("LoongArch", (clang.into(), "ld.lld-22".into()), "elf64loongarch", 8),
    ];
    let mut compared = 0;
    for (machine, (assembler, linker), emulation, width) in machines {
        let mut paths = Vec::new();
        for (number, source) in sources().iter().enumerate() {
            let path = folder.join(format!("{machine}-{number}.s"));
            let end = if number == 1 { " .section .text.c\n .globl c_end\nc_end:\n" } else { "" };
            fs::write(&path, format!("{source}{end}")).expect("a source");
            let object = path.with_extension("o");
            let mut words = assembler.split_whitespace();
            let mut command = Command::new(words.next().expect("an assembler"));
            if !run(command.args(words).arg(&path).arg("-o").arg(&object)) {
                break;
            }
            paths.push(object);
        }
        if paths.len() < 2 {
            println!(
                "skipped: between_two_symbols_stands_what_linkers_have_there: needs {assembler}"
            );
            continue;
        }
        let ours = hoist(&paths, width);
        let output = folder.join("linked");
        for linker in [linker, "ld.lld".into(), "ld.lld-19".into()] {
            let mut command = Command::new(&linker);
            command.args(["-m", emulation, "-static", "-nostdlib", "-e", "0", "-o"]);
            command.arg(&output).args(&paths);
            if !is_there(&linker) {
                continue;
            }
            assert!(run(&mut command), "{machine}: {linker}");
            let theirs = linked(&fs::read(&output).expect("what a linker made"), width);
            assert_eq!(ours, theirs, "{machine}: {linker}");
            compared += 1;
        }
        assert!(ours.edges.iter().all(|edge| *edge), "{machine}: {ours:?}");
    }
    println!("{compared} links are equal");
    fs::remove_dir_all(&folder).expect("a folder");
}

fn is_there(program: impl AsRef<Path>) -> bool {
    Command::new(program.as_ref()).arg("--version").output().is_ok()
}
