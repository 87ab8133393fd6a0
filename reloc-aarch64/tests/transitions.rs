//! Code that uses thread-local variables, as linkers leave it in executables.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "../../reloc-x86/tests/links/code.rs"]
mod code;

use elf_core::Arch as _;
use elf_core::tls::TpOffsets;
use reloc_aarch64::Aarch64;

/// lld knows descriptors and initial exec of the small code model alone.
#[test]
fn code_is_as_linkers_leave_it() {
    let offsets = |name: &str| TpOffsets::new(if name == "y" { 0x12_3450 } else { 60 }, 16);
    let text = include_str!("links/transitions.txt");
    assert_eq!(code::compare(text, &[Aarch64::KINDS], offsets), (22, 0, 0, 0));
}
