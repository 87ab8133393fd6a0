//! Files that are given to linkers and loaders and are no ELF files, or no objects yet: told by their first bytes.

use core::fmt;

use crate::archive::{MAGIC, THIN_MAGIC};

mod refusal;

/// What a file is that this project does not read, or not as an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// LLVM bitcode, alone or in its wrapper (*LLVM Bitcode File Format*): what clang makes with `-flto`.
    Bitcode,
    /// An ELF file that has GCC's intermediate code and no machine code: what gcc makes with `-flto`.
    SlimLto,
    /// Commands for a linker: what `libc.so` often is.
    LinkerScript,
    /// Mach-O, for one architecture.
    MachO,
    /// Mach-O, for several architectures.
    MachOFat,
    /// An object of Windows, or a member of an import library.
    Coff,
    /// A program or library of Windows.
    Pe,
    /// WebAssembly.
    Wasm,
    /// A static library where an object is wanted.
    Archive,
}

/// Machines of COFF objects: i386, x86-64, ARM, AArch64 and its ABI for emulated code (*PE Format*, "Machine Types").
const COFF_MACHINES: [u16; 5] = [0x14c, 0x8664, 0x1c4, 0xaa64, 0xa641];

impl Foreign {
    /// What the bytes are; none if they are something else, an ELF file for instance.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| -> Option<[u8; 4]> { bytes.get(at..)?.first_chunk().copied() };
        match word(0)? {
            [b'B', b'C', 0xc0, 0xde] | [0xde, 0xc0, 0x17, 0x0b] => return Some(Self::Bitcode),
            [0xfe, 0xed, 0xfa, 0xce | 0xcf] | [0xce | 0xcf, 0xfa, 0xed, 0xfe] => {
                return Some(Self::MachO);
            }
            // Java's classes begin so, too: with a version where the number of architectures is
            [0xca, 0xfe, 0xba, 0xbe | 0xbf] if word(4)? < [0, 0, 0, 0x20] => {
                return Some(Self::MachOFat);
            }
            [0, b'a', b's', b'm'] => return Some(Self::Wasm),
            [b'M', b'Z', ..] => return Some(Self::Pe),
            // objects with many sections, and what import libraries hold
            [0, 0, 0xff, 0xff] => return Some(Self::Coff),
            _ => {}
        }
        if bytes.starts_with(MAGIC) || bytes.starts_with(THIN_MAGIC) {
            return Some(Self::Archive);
        }
        // no optional header, and a time and a table of symbols between
        let machine = word(0).map(|[low, high, ..]| u16::from_le_bytes([low, high]))?;
        if COFF_MACHINES.contains(&machine) && word(16)?.starts_with(&[0, 0]) {
            return Some(Self::Coff);
        }
        is_script(bytes).then_some(Self::LinkerScript)
    }
}

/// Whether a text begins as a linker's commands do, behind comments and blanks.
fn is_script(bytes: &[u8]) -> bool {
    const COMMANDS: [&[u8]; 9] = [
        b"GROUP",
        b"INPUT",
        b"OUTPUT_FORMAT",
        b"OUTPUT_ARCH",
        b"ENTRY",
        b"SEARCH_DIR",
        b"SECTIONS",
        b"PHDRS",
        b"VERSION",
    ];
    let mut rest = bytes.trim_ascii_start();
    while let Some(comment) = rest.strip_prefix(b"/*") {
        let Some(end) = comment.windows(2).position(|end| end == b"*/") else { return false };
        rest = comment.get(end.saturating_add(2)..).unwrap_or_default().trim_ascii_start();
    }
    COMMANDS.iter().any(|command| {
        let behind = rest.strip_prefix(*command).map(<[u8]>::trim_ascii_start);
        behind.is_some_and(|behind| matches!(behind.first(), Some(b'(' | b'{')))
    })
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bitcode => "LLVM bitcode, not an ELF file: compiled with -flto",
            Self::SlimLto => {
                "intermediate code of GCC, no machine code: compiled with -flto and without -ffat-lto-objects"
            }
            Self::LinkerScript => "a linker script, not an ELF file",
            Self::MachO => "a Mach-O file, not an ELF file",
            Self::MachOFat => "a Mach-O file for several architectures, not an ELF file",
            Self::Coff => "a COFF object, not an ELF file",
            Self::Pe => "a program or library of Windows (PE), not an ELF file",
            Self::Wasm => "a WebAssembly module, not an ELF file",
            Self::Archive => "an archive, not an ELF file",
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn first_bytes_tell() {
        let coff = b"\x64\x86\x03\0\0\0\0\0\0\x01\0\0\x05\0\0\0\0\0\0\0.text";
        for (bytes, expected) in [
            (&b"BC\xc0\xde\x35\x14"[..], Some(Foreign::Bitcode)),
            (b"\xde\xc0\x17\x0b\0\0\0\0", Some(Foreign::Bitcode)),
            (b"\xcf\xfa\xed\xfe\x07\0\0\x01", Some(Foreign::MachO)),
            (b"\xfe\xed\xfa\xce\0\0\0\x12", Some(Foreign::MachO)),
            (b"\xca\xfe\xba\xbe\0\0\0\x02", Some(Foreign::MachOFat)),
            (b"\xca\xfe\xba\xbe\0\0\0\x3d", None), // a class of Java 17
            (b"\0asm\x01\0\0\0", Some(Foreign::Wasm)),
            (b"MZ\x90\0", Some(Foreign::Pe)),
            (coff, Some(Foreign::Coff)),
            (b"\x64\x86\x03\0 text that begins like one", None),
            (b"\0\0\xff\xff\x02\0\x64\x86", Some(Foreign::Coff)),
            (b"!<arch>\n", Some(Foreign::Archive)),
            (b"/* GNU ld script\n*/\nOUTPUT_FORMAT(elf64)", Some(Foreign::LinkerScript)),
            (b"GROUP ( libgcc_s.so.1 -lgcc )", Some(Foreign::LinkerScript)),
            (b"INPUT(-lncurses)\n", Some(Foreign::LinkerScript)),
            (b"GROUPS of people", None),
            (b"/* never ends", None),
            (b"\x7fELF\x02\x01\x01\0", None),
            (b"", None),
            (b"MZ", None),
        ] {
            assert_eq!(Foreign::of(bytes), expected, "{bytes:x?}");
            for end in 0..bytes.len() {
                let _ = Foreign::of(&bytes[..end]);
            }
        }
    }
}
