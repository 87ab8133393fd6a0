//! What a file is, by what it begins with.

#[cfg(feature = "device-code")]
use std::{fs::File, io::Read as _, path::Path};

use elf_core::archive;

#[cfg(feature = "device-code")]
use crate::ptx::is_ptx;

/// Bytes that are enough to tell.
#[cfg(feature = "device-code")]
pub(crate) const HEAD: usize = 512;

/// How files are inside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Wheels, conda packages, zip files.
    Zip,
    Tar,
    Gzip,
    Zstd,
    Bzip2,
    /// It is no archive that is looked into as one.
    Plain,
}

const FORMS: [(&[u8], usize, Form); 6] = [
    (b"PK\x03\x04", 0, Form::Zip),
    (b"PK\x05\x06", 0, Form::Zip), // without members
    (b"\x1f\x8b\x08", 0, Form::Gzip),
    (b"\x28\xb5\x2f\xfd", 0, Form::Zstd),
    (b"BZh", 0, Form::Bzip2),
    (b"ustar", 257, Form::Tar),
];

impl Form {
    /// The form of a file that begins with `head`.
    pub(crate) fn of(head: &[u8]) -> Self {
        let is = |(magic, at, _): &&(&[u8], usize, Self)| {
            head.get(*at..).is_some_and(|rest| rest.starts_with(magic))
        };
        FORMS.iter().find(is).map_or(Self::Plain, |(.., form)| *form)
    }
}

/// Archives and compressed files that are not looked into, by what they begin with.
#[cfg(feature = "device-code")]
const OTHERS: [(&[u8], &str); 6] = [
    (b"\xfd7zXZ\0", "a file compressed by xz"),
    (b"\x04\x22\x4d\x18", "a file compressed by lz4"),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip"),
    (b"Rar!\x1a\x07", "an archive of RAR"),
    (b"\xed\xab\xee\xdb", "a package of RPM"),
    (b"!<arch>\ndebian-binary", "a package of Debian"),
];

/// Whether a file that begins so is an archive of objects.
pub(crate) fn is_archive(head: &[u8]) -> bool {
    head.starts_with(archive::MAGIC) || head.starts_with(archive::THIN_MAGIC)
}

#[cfg(all(feature = "device-code", not(target_family = "wasm")))]
impl Form {
    /// The form of a file; nothing if it is none, or cannot be read. A pipe is not opened: who opens it a second time may wait for ever.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        Some(Self::of(&head(path)?))
    }
}

/// What a file begins with, if it is one.
#[cfg(feature = "device-code")]
fn head(path: &Path) -> Option<Vec<u8>> {
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    let mut head = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

/// What a file is, if that may hold device code, and is not looked into.
#[cfg(feature = "device-code")]
pub(crate) fn not_looked_into(path: &Path) -> Option<&'static str> {
    let head = head(path)?;
    OTHERS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| *what)
}

/// What a file of NVVM (LTO-IR) begins with.
#[cfg(feature = "device-code")]
pub(crate) const NVVM: [u8; 4] = 0x7f4e_43ed_u32.to_le_bytes();

/// What a file of SPIR-V begins with (SPIR-V specification, 2.3).
#[cfg(feature = "device-code")]
pub(crate) const SPIRV: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// What a file is, if it is device code in no container, and which command is for it.
#[cfg(feature = "device-code")]
pub(crate) fn without_container(path: &Path) -> Option<&'static str> {
    match head(path)? {
        head if head.starts_with(&NVVM) => {
            Some("is LTO-IR in no container, which hoist fatbin pack makes")
        }
        head if head.starts_with(&SPIRV) => {
            Some("is SPIR-V in no container, which hoist fatbin offload pack makes")
        }
        head if is_ptx(&head) => Some("is PTX in no container: hoist fatbin ptx shows it"),
        _ => None,
    }
}

/// What files begin with that may hold device code.
#[cfg(feature = "device-code")]
const HOLDERS: [&[u8]; 10] = [
    b"\x7fELF",
    b"!<arch>\n",
    b"!<thin>\n",
    b"\x50\xed\x55\xba",
    b"\x10\xff\x10\xad",
    b"__CLANG_OFFLOAD_BUNDLE__",
    b"CCOB",
    b"MZ",
    b"\x64\x86", // COFF objects of x86-64, AArch64
    b"\x64\xaa",
];

/// Whether a file that is no archive and begins so may hold device code.
#[cfg(feature = "device-code")]
pub(crate) fn may_hold(head: &[u8]) -> bool {
    HOLDERS.iter().any(|magic| head.starts_with(magic)) || is_ptx(head.get(..HEAD).unwrap_or(head))
}

/// Whether a file that begins so is worth unpacking: it may hold device code, or files that do.
#[cfg(feature = "device-code")]
pub(crate) fn is_wanted(head: &[u8]) -> bool {
    may_hold(head) || Form::of(head) != Form::Plain
}
