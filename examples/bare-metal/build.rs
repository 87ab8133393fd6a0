//! Picks the memory map of the machine.

fn main() {
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rustc-link-arg=-T{folder}/link/{architecture}.ld");
    println!("cargo::rerun-if-changed=link");
}
