//! Picks the memory map of the machine, and makes the programs that the firmware carries: one source, linked twice.

use std::env;
use std::path::Path;
use std::process::Command;

/// Where the firmware of `bare-metal` has its maps of memory.
const MAPS: &str = "../bare-metal";

fn main() {
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let target = env::var("TARGET").unwrap_or_default();
    // where the machine has memory that the firmware leaves alone: src/protection has the same
    let (map, base) = match architecture.as_str() {
        "aarch64" => ("aarch64", "0x42100000"),
        "riscv64" => ("riscv", "0x82100000"),
        "arm" => ("mps2-an386", "0x20140000"),
        _ => ("x86_64", "0x2100000"),
    };
    // UEFI puts its applications where it wants
    let is_uefi = target.ends_with("-uefi");
    if !is_uefi {
        println!("cargo::rustc-link-arg=-T{MAPS}/link/{map}.ld");
        println!("cargo::rustc-link-arg=-L{MAPS}");
        if architecture == "x86_64" {
            // nobody would relocate it
            println!("cargo::rustc-link-arg=--no-pie");
        }
    }
    println!("cargo::rerun-if-changed={MAPS}/link");
    println!("cargo::rerun-if-changed=payload");
    // its programs are ELF files, as everywhere
    let target = if is_uefi { "x86_64-unknown-none" } else { &target };
    let relative = ["-pie", "--no-dynamic-linker", "-zpack-relative-relocs"];
    link("static-pie", target, "pie", &relative);
    link("fixed", target, "static", &[&format!("--image-base={base}")]);
}

fn link(name: &str, target: &str, model: &str, arguments: &[&str]) {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let mut command = Command::new(variable("RUSTC"));
    command.args(["--edition", "2024", "--crate-type", "bin", "--crate-name", "payload"]);
    command.args(["--target", target, "-Copt-level=s", "-Cpanic=abort"]);
    command.arg(format!("-Crelocation-model={model}"));
    if target.starts_with("x86_64") {
        command.arg("-Ccode-model=small");
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.arg(format!("-Clinker={}", linker.replace("lld-link", "ld.lld")));
    }
    for argument in arguments.iter().chain(&["-zmax-page-size=4096", "-zseparate-code"]) {
        command.arg(format!("-Clink-arg={argument}"));
    }
    command.arg("-o").arg(Path::new(&variable("OUT_DIR")).join(name)).arg("payload/main.rs");
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
}
