//! Picks the memory map of the machine, and makes the programs that the firmware carries: one source, linked twice.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // The linker runs in the folder of the manifest.
    println!("cargo::rustc-link-arg=-Tlink/{architecture}.ld");
    println!("cargo::rerun-if-changed=link");
    println!("cargo::rerun-if-changed=payload");
    // where the machine has memory that the firmware leaves alone
    let base = if architecture == "aarch64" { "0x44000000" } else { "0x84000000" };
    let relative = ["-pie", "--no-dynamic-linker", "-zpack-relative-relocs"];
    link("static-pie", "pie", &relative);
    link("fixed", "static", &[&format!("--image-base={base}")]);
}

fn link(name: &str, model: &str, arguments: &[&str]) {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let mut command = Command::new(variable("RUSTC"));
    command.args(["--edition", "2024", "--crate-type", "bin", "--crate-name", "payload"]);
    command.args(["--target", &variable("TARGET"), "-Copt-level=s", "-Cpanic=abort"]);
    command.arg(format!("-Crelocation-model={model}"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.arg(format!("-Clinker={linker}"));
    }
    for argument in arguments.iter().chain(&["-zmax-page-size=4096"]) {
        command.arg(format!("-Clink-arg={argument}"));
    }
    command.arg("-o").arg(Path::new(&variable("OUT_DIR")).join(name)).arg("payload/main.rs");
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
}
