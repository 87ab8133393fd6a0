//! Code that uses thread-local variables, as linkers leave it in executables. `links/transitions.py` asked them.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "links/code.rs"]
mod code;

use elf_core::Arch as _;
use elf_core::tls::TpOffsets;
use reloc_x86::{I386, X86_64};

/// GNU ld looks at the code, lld at most of it only: what GNU ld refuses is refused, but for calls that go where no PLT is needed any more.
/// lld alone is as we are with `lea` for an addition, where GNU ld adds, and with registers of APX, which GNU ld was not asked about.
#[test]
fn code_is_as_linkers_leave_it() {
    let offsets = |_: &str| TpOffsets::new(-20, -64);
    let kinds = [X86_64::KINDS, I386::KINDS];
    let counts = code::compare(include_str!("links/transitions.txt"), &kinds, offsets);
    assert_eq!(counts, (128, 55, 17, 27));
}
