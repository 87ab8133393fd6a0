//! `hoist disasm` of Arm and RISC-V beside llvm-objdump: every instruction of every fixture.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

mod fixtures;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use hoist_tool::cmd::disasm;
use hoist_tool::input::Input;

const OBJDUMP: &str = "llvm-objdump-19";

/// An instruction as both write it: the mnemonic, and operands without spaces, with decimal numbers.
type Instruction = (String, Vec<String>);

/// Instructions by section and offset.
type Listing = BTreeMap<(String, u64), Instruction>;

/// A word without what only one of them writes.
fn word(word: &str) -> String {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, word),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    };
    number.map_or_else(|| word.to_owned(), |number: i64| (sign * number).to_string())
}

/// The text of an instruction, without its last operand where that is a target.
fn instruction(text: &str, target: bool) -> Instruction {
    let (mnemonic, rest) = text.trim().split_once([' ', '\t']).unwrap_or((text.trim(), ""));
    let rest: String = rest.chars().filter(|it| !it.is_whitespace() && *it != '#').collect();
    // brackets are words of their own
    let rest = ["[", "]", "(", ")", "{", "}", "!"]
        .iter()
        .fold(rest, |rest, it| rest.replace(it, &format!(",{it},")));
    let mut operands: Vec<String> = rest.split(',').filter(|it| !it.is_empty()).map(word).collect();
    if target {
        operands.pop();
    }
    (mnemonic.to_owned(), operands)
}

/// What hoist writes.
fn ours(path: &Path, bytes: Vec<u8>, targets: &Listing) -> Option<Listing> {
    let input = Input::of(path, bytes);
    let mut listing = Listing::new();
    for part in input.parts().ok()? {
        let mut text = Vec::new();
        disasm::disasm(&part, None, &mut text).ok()?;
        let mut section = String::new();
        for line in String::from_utf8(text).expect("text").lines() {
            if let Some((_, name)) = line.split_once(": section ") {
                name.clone_into(&mut section);
            }
            let Some((at, rest)) = line.trim_start().split_once("  ") else { continue };
            let Ok(at) = u64::from_str_radix(at, 16) else { continue };
            // bytes take three columns each, up to eight of them
            let Some(text) = rest.get(24..) else { continue };
            let text = text.split("  ; ").next().unwrap_or_default();
            let key = (section.clone(), at);
            let is_target = targets
                .get(&key)
                .is_some_and(|(_, operands)| operands.last().is_some_and(|it| it == "<>"));
            let mut instruction = instruction(text, is_target);
            if is_target {
                instruction.1.push(String::from("<>"));
            }
            listing.insert(key, instruction);
        }
    }
    Some(listing)
}

/// What llvm-objdump writes: `<>` for a target.
fn theirs(path: &Path, comment: char, more: &[&str]) -> Listing {
    let output = Command::new(OBJDUMP)
        .args(["-d", "--no-show-raw-insn", "--no-print-imm-hex"])
        .args(more)
        .arg(path)
        .output()
        .expect("llvm-objdump");
    let mut listing = Listing::new();
    let mut section = String::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(name) = line.strip_prefix("Disassembly of section ") {
            name.trim_end_matches(':').clone_into(&mut section);
        }
        let Some((at, text)) = line.trim_start().split_once(':') else { continue };
        let Ok(at) = u64::from_str_radix(at, 16) else { continue };
        let text = text.split(comment).next().unwrap_or_default();
        let (text, target) = match text.split_once(" <") {
            Some((text, _)) => (text, true),
            None => (text, false),
        };
        let mut instruction = instruction(text, target);
        if target {
            instruction.1.push(String::from("<>"));
        }
        if !instruction.0.is_empty() {
            listing.insert((section.clone(), at), instruction);
        }
    }
    listing
}

/// Instructions that are alike, and of those that are not how many of each mnemonic, with an example.
struct Comparison {
    equal: usize,
    different: BTreeMap<String, (usize, String)>,
}

/// Compares the fixtures of some folders. Data are left out: their words mean what relocations say.
fn beside_llvm(
    folders: &[&str],
    comment: char,
    canonical: impl Fn(Instruction) -> Instruction,
) -> Comparison {
    let mut found = Comparison { equal: 0, different: BTreeMap::new() };
    for (path, bytes) in fixtures::all() {
        let folder = path.parent().and_then(Path::to_str).expect("a folder");
        // of libraries without symbols, LLVM does not ask the dynamic ones what is Thumb code
        if !folders.contains(&folder) || path.extension().is_some_and(|end| end == "so") {
            continue;
        }
        let path = fixtures::folder().join(path);
        let theirs = theirs(&path, comment, &[]);
        let Some(ours) = ours(&path, bytes, &theirs) else { panic!("{}", path.display()) };
        for (key, theirs) in theirs {
            let ours = ours.get(&key).cloned();
            // within a word of data nothing starts
            let is_data = |it: &Instruction| it.0 == ".word" || it.0 == ".byte";
            if ours.as_ref().is_none_or(is_data) {
                continue;
            }
            let (theirs, ours) = (canonical(theirs), ours.map(&canonical));
            if ours.as_ref() == Some(&theirs) {
                found.equal += 1;
                continue;
            }
            let text = || format!("{} {key:x?}: {ours:?}, {theirs:?}", path.display());
            found.different.entry(theirs.0.clone()).or_insert_with(|| (0, text())).0 += 1;
        }
    }
    println!("{} instructions alike", found.equal);
    for (mnemonic, (count, example)) in &found.different {
        println!("  {count} {mnemonic}: {example}");
    }
    found
}

fn has_objdump(test: &str) -> bool {
    let has = Command::new(OBJDUMP).arg("--version").output().is_ok();
    if !has {
        println!("skipped: {test}: needs {OBJDUMP}");
    }
    has
}

/// An instruction of RISC-V as LLVM 19 writes it.
fn without_aliases((mnemonic, operands): Instruction) -> Instruction {
    match (mnemonic.as_str(), operands.as_slice()) {
        ("zext.b", [to, from]) => {
            (String::from("andi"), vec![to.clone(), from.clone(), String::from("255")])
        }
        _ => (mnemonic, operands),
    }
}

#[test]
fn riscv_is_as_llvm_writes_it() {
    if !has_objdump("riscv_is_as_llvm_writes_it") {
        return;
    }
    let found = beside_llvm(&["riscv64", "riscv32"], '#', without_aliases);
    assert!(found.equal > 6000 && found.different.is_empty(), "{}", found.equal);
}

/// Instructions of extensions, those of 64 bits behind the others, and those that stand for others where there are stores of double precision.
const EXTENSIONS: [&str; 3] = [
    "sh1add a0, a1, a2; sh2add t0, t1, t2; sh3add s0, s1, s2; andn a0, a1, a2; orn a3, a4, a5; xnor a6, a7, s3
     max s4, s5, s6; maxu s7, s8, s9; min s10, s11, t3; minu t4, t5, t6; rol a0, a1, a2; ror a0, a1, ra
     clmul a0, a1, a2; clmulr a0, a1, a2; clmulh a0, a1, a2; bclr a0, a1, a2; bext a0, a1, a2
     binv a0, a1, a2; bset a0, a1, a2; pack a0, a1, a2; packh a0, a1, a2; xperm4 a0, a1, a2
     xperm8 a0, a1, a2; czero.eqz a0, a1, a2; czero.nez a0, a1, a2; clz a0, a1; ctz a0, a1; cpop a0, a1
     sext.b a0, a1; sext.h a0, a1; zext.h a0, a1; orc.b a0, a1; brev8 a0, a1; rev8 a0, a1
     rori a0, a1, 1; rori a0, a1, 31; bclri a0, a1, 5; bexti a0, a1, 31; binvi a0, a1, 0; bseti a0, a1, 7
     cbo.inval (a0); cbo.clean (t6); cbo.flush (a1); cbo.zero (s0); wrs.nto; wrs.sto
     c.lbu a0, 0(a1); c.lbu a2, 1(a3); c.lbu a4, 2(a5); c.lbu s0, 3(s1); c.lhu a0, 0(a1); c.lhu a0, 2(a1)
     c.lh a0, 0(a1); c.lh a0, 2(a1); c.sb a0, 1(a1); c.sb a0, 2(a1); c.sh a0, 0(a1); c.sh a0, 2(a1)
     c.zext.b a0; c.sext.b s0; c.zext.h a5; c.sext.h a1; c.not a2; c.mul a3, s1",
    "add.uw a0, a1, a2; sh1add.uw a0, a1, a2; sh2add.uw a0, a1, a2; sh3add.uw a0, a1, a2; rolw a0, a1, a2
     rorw a0, a1, a2; packw a0, a1, a2; clzw a0, a1; ctzw a0, a1; cpopw a0, a1; rori a0, a1, 63
     bseti a0, a1, 63; roriw a0, a1, 31; slli.uw a0, a1, 33; c.zext.w a0",
    "cm.push {ra}, -16; cm.push {ra, s0}, -32; cm.push {ra, s0-s1}, -64; cm.pop {ra, s0-s5}, 80
     cm.popret {ra, s0-s11}, 112; cm.popretz {ra, s0-s9}, 112; cm.mva01s s1, s7; cm.mvsa01 s0, s1
     cm.jt 0; cm.jt 31; cm.jalt 32; cm.jalt 255",
];

#[test]
fn riscv_extensions_are_as_llvm_writes_them() {
    const ASSEMBLER: &str = "llvm-mc-19";
    let test = "riscv_extensions_are_as_llvm_writes_them";
    if !has_objdump(test) {
        return;
    }
    if Command::new(ASSEMBLER).arg("--version").output().is_err() {
        println!("skipped: {test}: needs {ASSEMBLER}");
        return;
    }
    let [both, only_64, tables] = EXTENSIONS;
    let folder = tempfile::tempdir().expect("a folder");
    let of_all = "+m,+zba,+zbb,+zbc,+zbs,+zbkb,+zbkx,+zicond,+zicbom,+zicboz,+zawrs,+zcb";
    let mut compared = 0;
    for (machine, source, more) in [
        ("riscv32", both, ""),
        ("riscv64", both, ""),
        ("riscv64", only_64, ""),
        ("riscv64", tables, ",+zcmp,+zcmt"),
        (
            "riscv32",
            "cm.push {ra, s0-s2}, -16; cm.pop {ra, s0-s11}, 112; cm.jalt 77",
            ",+zcmp,+zcmt",
        ),
    ] {
        let features = format!("--mattr={of_all}{more}");
        let (text, path) = (folder.path().join("code.s"), folder.path().join("code.o"));
        fs::write(&text, source.replace(';', "\n") + "\n").expect("a source");
        let arguments = ["-riscv-add-build-attributes", "-filetype=obj", &features];
        let mut assembler = Command::new(ASSEMBLER);
        let output = assembler.arg(format!("--triple={machine}")).args(arguments);
        let output = output.arg(&text).arg("-o").arg(&path).output().expect("an assembler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs = theirs(&path, '#', &[&features]);
        let ours = ours(&path, fs::read(&path).expect("an object"), &theirs).expect("code");
        let ours = ours.into_iter().map(|(at, it)| (at, without_aliases(it))).collect::<Listing>();
        compared += theirs.len();
        assert_eq!(ours, theirs, "{machine}");
    }
    println!("{compared} instructions alike");
    assert!(compared > 150, "{compared}");
}

#[test]
fn what_refers_to_unknown_instructions_is_shown() {
    use object::write::{Object, Relocation, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolKind, SymbolScope};
    for (machine, code, r#type, name) in [
        // flh fa0, 0(a0); vldr s0, [r0]; the last word is no instruction of AArch64
        (Architecture::Riscv64, 0x0005_1507u32, 27, "R_RISCV_LO12_I x"),
        (Architecture::Arm, 0xed90_0a00, 81, "R_ARM_LDC_SB_G0 x"),
        (Architecture::Aarch64, 0xffff_ffff, 277, "R_AARCH64_ADD_ABS_LO12_NC x"),
    ] {
        let mut file = Object::new(BinaryFormat::Elf, machine, Endianness::Little);
        let text = file.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        file.append_section_data(text, &code.to_le_bytes(), 4);
        let symbol = file.add_symbol(Symbol {
            name: b"x".to_vec(),
            value: 0,
            size: 0,
            kind: SymbolKind::Unknown,
            scope: SymbolScope::Dynamic,
            weak: false,
            section: SymbolSection::Undefined,
            flags: object::SymbolFlags::None,
        });
        let flags = object::RelocationFlags::Elf { r_type: object::elf::RelocationType(r#type) };
        let relocation = Relocation { offset: 0, symbol, addend: 0, flags };
        file.add_relocation(text, relocation).expect("a relocation");
        let input = Input::of(Path::new("code.o"), file.write().expect("an object"));
        let mut shown = Vec::new();
        for part in input.parts().expect("an object") {
            disasm::disasm(&part, None, &mut shown).expect("code");
        }
        let shown = String::from_utf8(shown).expect("text");
        assert!(shown.contains(name), "{machine:?}: {shown}");
    }
}

/// An instruction in the words that both have for it, of several that the ABI's assemblers take.
fn in_common_words((mnemonic, operands): Instruction) -> Instruction {
    let mnemonic = mnemonic.trim_end_matches(".w").replace("movw", "mov");
    let mnemonic = mnemonic.replace("stmia", "stm").replace("ldmia", "ldm");
    let name = |operand: &String| match operand.as_str() {
        "sb" => String::from("r9"),
        "fp" => String::from("r11"),
        "ip" => String::from("r12"),
        _ => match operand.parse::<i64>() {
            // a word of 32 bits, with its sign or without
            Ok(number) => (number as i32).to_string(),
            Err(_) => operand.clone(),
        },
    };
    let mut operands: Vec<String> = operands.iter().map(name).collect();
    let words: Vec<&str> = operands.iter().map(String::as_str).collect();
    let instruction = |mnemonic: &str, operands: &[&str]| {
        (mnemonic.to_owned(), operands.iter().map(|it| (*it).to_owned()).collect())
    };
    match (mnemonic.as_str(), words.as_slice()) {
        ("ldr", [register, "[", "sp", "]", "4"]) => instruction("pop", &["{", register, "}"]),
        ("str", [register, "[", "sp", "-4", "]", "!"]) => {
            instruction("push", &["{", register, "}"])
        }
        ("adr", [to, "pc", number]) => instruction("add", &[to, "pc", number]),
        // in the PLT: a constant that is rotated says by how much
        ("add", [to, "pc", "0", _]) => instruction("add", &[to, "pc", "0"]),
        ("mov" | "movs", [to, from, shift]) => {
            let (shift, count) = shift.split_at(shift.len().min(3));
            let flags = mnemonic.trim_start_matches("mov");
            instruction(&format!("{shift}{flags}"), &[to, from, count])
        }
        ("add" | "sub" | "adds" | "subs", [to, from, _]) if to == from => {
            operands.remove(1);
            (mnemonic, operands)
        }
        // names of C++ have operands of their own
        (_, words) if words.contains(&"<>") => instruction(&mnemonic, &["<>"]),
        ("dmb", ["11"]) => instruction("dmb", &["ish"]),
        _ => (mnemonic, operands),
    }
}

/// What yaxpeax-arm does not know (floating point, some of the rest), and `adr` before its place, which is `sub` in its words.
const UNKNOWN: &[&str] = &["<unknown>", "v", "uxtb", "nop", "mrc", "adr"];

#[test]
fn arm_is_as_llvm_writes_it() {
    if !has_objdump("arm_is_as_llvm_writes_it") {
        return;
    }
    let mut found = beside_llvm(&["arm", "arm-v4t"], '@', in_common_words);
    found.different.retain(|mnemonic, _| !UNKNOWN.iter().any(|known| mnemonic.starts_with(known)));
    assert!(found.equal > 4400 && found.different.is_empty(), "{}", found.equal);
}

/// No word of A32 code, of those of which there are too many to try all.
#[test]
fn no_word_panics() {
    let path = fixtures::folder().join("arm/call.o");
    let mut bytes = std::fs::read(&path).expect("a fixture");
    let input = Input::of(&path, bytes.clone());
    let parts = input.parts().expect("an object");
    let file = elf_core::File::parse(parts[0].bytes).expect("an object");
    let named = |section: &elf_core::SectionHeader| {
        file.section_name(section).is_ok_and(|name| name == ".text")
    };
    let text = file.sections().iter().find(named).expect("code");
    let start = text.offset as usize;
    for round in 0..2000u32 {
        for at in 0..text.size as u32 / 4 {
            // all values of the upper half, and 15 for the register of every second word
            let word = (round << 16 | round << 20 | at << 8).wrapping_mul(0x9e37_79b1)
                | ((at & 1) * 0xf0d0);
            bytes[start + 4 * at as usize..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let input = Input::of(&path, bytes.clone());
        for part in input.parts().expect("an object") {
            disasm::disasm(&part, None, &mut std::io::sink()).expect("code");
        }
    }
}
