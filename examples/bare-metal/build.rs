//! Picks the memory map of the machine.

fn main() {
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // The linker runs in the folder of the manifest.
    println!("cargo::rustc-link-arg=-Tlink/{architecture}.ld");
    println!("cargo::rerun-if-changed=link");
}
