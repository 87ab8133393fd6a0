//! `.text` of an object, linked by hoist and by a linker.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use archs::{Architecture, with_arch};
use elf_core::names::EM_ARM;
use elf_core::{Arch, File, SectionHeader};
use elf_layout::{HeapStorage, Options};

use crate::cases::base;

/// Bytes from the start of `.text` to the GOT, if there is one.
pub(crate) const GOT: u64 = 0x1_0000;

/// `.text` as hoist has it; `None` if it refuses the object.
pub(crate) fn ours(machine: Architecture, object: &[u8]) -> Option<Vec<u8>> {
    with_arch!(machine, A => linked::<A>(object))
}

fn linked<A: Arch>(object: &[u8]) -> Option<Vec<u8>> {
    let base = base(A::ADDRESS_SIZE);
    let files = [File::parse(object).unwrap()];
    let mut room = HeapStorage::new();
    let options = Options { base: Some(base), relax: false, ..Options::default() };
    let mut layout = room.plan::<A>(&files, options, &mut |_| None).expect("a layout");
    layout.set_static_tls_block(layout.executable_tls_block());
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, base).ok()?;
    assert_eq!(layout.section(0, 1), Some(0), "the code is at the start");
    let (got, got_size) = layout.got();
    assert!(got_size == 0 || got == GOT || A::MACHINE != EM_ARM, "{got:#x}");
    let size = files[0].section(1).unwrap().size as usize;
    Some(image[..size].to_vec())
}

/// `.text` as a linker has it, or the places that it complains about.
pub(crate) enum Linked {
    Text(Vec<u8>),
    Refused(BTreeSet<usize>),
    Unknown,
}

pub(crate) fn theirs(machine: Architecture, linker: &str, object: &[u8], folder: &Path) -> Linked {
    let (emulation, base) = match machine {
        Architecture::Arm => ("armelf_linux_eabi", base(4)),
        Architecture::Rv64 => ("elf64lriscv", base(8)),
        Architecture::Rv32 => ("elf32lriscv", base(4)),
        _ => ("elf64loongarch", base(8)),
    };
    let script = format!(
        "SECTIONS {{ .text {base:#x} : {{ *(.text) }} .got {:#x} : {{ *(.got) *(.got.plt) }} .tdata {:#x} : {{ *(.tdata) }} \
         .data {:#x} : {{ *(.data) }} /DISCARD/ : {{ *(.ARM.exidx*) }} }}",
        base + GOT,
        base + 0x10_0000,
        base + 0x20_0000,
    );
    fs::write(folder.join("script"), script).unwrap();
    fs::write(folder.join("object.o"), object).unwrap();
    let _ = fs::remove_file(folder.join("linked"));
    let mut command = Command::new(linker);
    command.args(["-m", emulation, "-static", "--no-relax", "-e", "0", "-T", "script"]);
    command.args(["-o", "linked", "object.o"]);
    if linker.contains("lld") {
        command.arg("--error-limit=0");
    } else {
        // without it ten errors are told, and no more
        command.arg("--verbose");
    }
    let output = command.env("LC_ALL", "C").current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let unknown = ["unknown relocation", "unsupported relocation", "cannot read addend"];
    let is_unknown = unknown.iter().any(|it| text.contains(it));
    // GNU ld 2.40 crashes of SET_ULEB128
    if is_unknown || output.status.code().is_none() {
        return Linked::Unknown;
    }
    if output.status.success() {
        let bytes = fs::read(folder.join("linked")).unwrap();
        let file = File::parse(&bytes).unwrap();
        let mut sections = file.sections().iter();
        let named = |it: &SectionHeader| file.section_name(it).unwrap() == ".text";
        let section = sections.find(named).unwrap();
        return Linked::Text(file.section_data(&section).unwrap().to_vec());
    }
    let places = text.split(".text+0x").skip(1).filter_map(|rest| {
        let end = rest.find(|one: char| !one.is_ascii_hexdigit())?;
        usize::from_str_radix(&rest[..end], 16).ok()
    });
    let places: BTreeSet<usize> = places.collect();
    assert!(!places.is_empty(), "{linker}: {text}");
    Linked::Refused(places)
}
