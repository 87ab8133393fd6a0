//! What a file is, by what it begins with.

#[cfg(all(feature = "device-code", not(target_family = "wasm")))]
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

/// Whether a file that begins so is an archive of objects.
pub(crate) fn is_archive(head: &[u8]) -> bool {
    head.starts_with(archive::MAGIC) || head.starts_with(archive::THIN_MAGIC)
}

#[cfg(all(feature = "device-code", not(target_family = "wasm")))]
impl Form {
    /// The form of a file; nothing if it is none, or cannot be read. A pipe is not opened: who opens it a second time may wait for ever.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
        let mut head = Vec::new();
        file.take(HEAD as u64).read_to_end(&mut head).ok()?;
        Some(Self::of(&head))
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
