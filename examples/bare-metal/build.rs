//! Picks the memory map of the machine and the objects for it, and damages a copy of one.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use elf_core::File;
use elf_core::names::{SHT_REL, SHT_RELA};

/// Of a target: its memory map in `link/`, and what the names of its objects in `fixtures/` are made of.
const TARGETS: &[(&str, &str, &str, &str)] = &[
    ("aarch64-unknown-none", "aarch64", "aarch64", ""),
    ("riscv32imac-unknown-none-elf", "riscv", "riscv32", ""),
    ("riscv64gc-unknown-none-elf", "riscv", "riscv64", ""),
    ("thumbv6m-none-eabi", "microbit", "arm", "-m0"),
    ("thumbv7em-none-eabihf", "mps2-an386", "arm", "-m4"),
    ("thumbv8m.main-none-eabi", "mps2-an505", "arm", "-m33"),
    ("x86_64-unknown-none", "x86_64", "x86_64", ""),
];

fn main() -> Result<(), Box<dyn Error>> {
    let target = env::var("TARGET")?;
    let known = TARGETS.iter().find(|(name, ..)| *name == target);
    let (_, map, folder, processor) = known.ok_or(format!("no machine for {target}"))?;
    // The linker runs in the folder of the manifest.
    println!("cargo::rustc-link-arg=-Tlink/{map}.ld");
    if target.starts_with("x86_64") {
        // nobody would relocate it
        println!("cargo::rustc-link-arg=--no-pie");
    }
    println!("cargo::rerun-if-changed=link");

    let fixtures = fs::canonicalize("../../fixtures")?.join(folder);
    let object = |which: &str| fixtures.join(format!("firmware-{which}{processor}.o"));
    let damaged = Path::new(&env::var("OUT_DIR")?).join("damaged.o");
    fs::write(&damaged, damage(fs::read(object("a"))?)?)?;
    for (variable, path) in [("FIRST", &object("a")), ("SECOND", &object("b")), ("DAMAGED", &damaged)] {
        println!("cargo::rustc-env={variable}={}", path.display());
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Ok(())
}

/// The object, whose first relocation is of a type that there is not.
fn damage(mut bytes: Vec<u8>) -> Result<Vec<u8>, Box<dyn Error>> {
    let file = File::parse(&bytes)?;
    let is_table = |kind| kind == SHT_REL || kind == SHT_RELA;
    let table = file.sections().iter().find(|section| is_table(section.r#type) && section.size > 0);
    let table = table.ok_or("no relocations")?;
    // the type is in the low bits of r_info, behind r_offset
    let r_info = table.offset + if file.encoding().is_64() { 8 } else { 4 };
    *bytes.get_mut(usize::try_from(r_info)?).ok_or("cut off")? = 0xff;
    Ok(bytes)
}
