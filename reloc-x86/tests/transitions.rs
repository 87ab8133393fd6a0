//! Code that uses thread-local variables, as linkers leave it in executables. `links/transitions.py` asked them.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "links/code.rs"]
mod code;

use elf_core::tls::TpOffsets;
use elf_core::{Arch as _, Special, find};
use reloc_x86::i386::{R_386_TLS_GD, R_386_TLS_GOTDESC, R_386_TLS_GOTIE, R_386_TLS_LDM};
use reloc_x86::{I386, X86_64};

/// GNU ld looks at the code, lld at most of it only: what GNU ld refuses is refused, but for calls that go where no PLT is needed any more.
/// lld alone is as we are with `lea` for an addition, where GNU ld adds, and with registers of APX, which GNU ld was not asked about.
#[test]
fn code_is_as_linkers_leave_it() {
    let offsets = |_: &str| TpOffsets::new(-20, -64);
    let kinds = [X86_64::KINDS, I386::KINDS];
    let counts = code::compare(include_str!("links/transitions.txt"), &kinds, offsets);
    assert_eq!(counts, (128, 55, 17, 29));
}

/// A place where an operand would begin with a SIB byte.
#[test]
fn half_an_operand_is_left_alone() {
    for kind in [R_386_TLS_GOTIE, R_386_TLS_GOTDESC, R_386_TLS_GD, R_386_TLS_LDM] {
        let Special::Transition(transition) = find(I386::KINDS, kind).unwrap().special else {
            panic!("{kind}")
        };
        let opcodes: &[u8] = if kind == R_386_TLS_GOTIE { &[0x8b, 0x03, 0x2b] } else { &[0x8d] };
        for opcode in opcodes {
            let mut code = [*opcode, 0o204, 0, 0, 0, 0, 0xff, 0o224, 0, 0, 0, 0];
            let before = code;
            assert!((transition.rewrite)(&mut code, 2, &TpOffsets::new(-20, -64)).is_none());
            assert_eq!(code, before);
        }
    }
}
