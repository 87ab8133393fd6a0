//! What of sections and symbols says that sections stand together.

use crate::model::features::{LINKER_DEFINED, START_FILES};
#[cfg(feature = "alloc")]
use crate::model::options::Options;
#[cfg(feature = "alloc")]
use crate::model::spans::group_of;
use elf_core::names::{EM_ARM, SHT_ARM_EXIDX, SHT_FINI_ARRAY, SHT_INIT_ARRAY, SHT_PREINIT_ARRAY};
use elf_core::{File, Name, SectionFlags, SectionHeader};

/// Which sections stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gathers {
    Nothing,
    /// Those that a symbol may mean.
    Meant,
    /// Beside these the parts that start files begin and end.
    Parts,
}

/// What sections have in common that stand together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<'a> {
    pub(crate) array: Array,
    /// The name, unless an array says it.
    name: &'a [u8],
}

impl Key<'_> {
    /// Whether they are the unwinding tables of a program.
    pub(crate) fn is_frames(&self) -> bool {
        START_FILES && self.array == Array::Part && self.name == FRAMES
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Array {
    /// None: the name says what stands together.
    Named,
    /// The same of what start files begin and end.
    Part,
    Preinit,
    Init,
    Fini,
    /// The unwinding tables of Arm.
    UnwindIndex,
}

/// Unwinding tables.
pub(crate) const FRAMES: &[u8] = b".eh_frame";

/// Names that mean the start of an array; those of its end have another ending.
const STARTS: &[(&[u8], Array)] = &[
    (b"__preinit_array_", Array::Preinit),
    (b"__init_array_", Array::Init),
    (b"__fini_array_", Array::Fini),
    (b"__exidx_", Array::UnwindIndex),
];

/// What a symbol of this name means, if it is where sections start, or where they end.
pub(crate) fn meaning(name: Name<'_>) -> Option<(Key<'_>, bool)> {
    let bytes = name.as_bytes();
    let rest = bytes.strip_prefix(b"__")?;
    for (prefix, is_end) in [(&b"start_"[..], false), (b"stop_", true)] {
        if let Some(name) = rest.strip_prefix(prefix).filter(|name| is_identifier(name)) {
            return Some((Key { array: Array::Named, name }, is_end));
        }
    }
    STARTS.iter().find_map(|&(prefix, array)| {
        let is_end = match bytes.strip_prefix(prefix)? {
            b"start" => false,
            b"end" => true,
            _ => return None,
        };
        Some((Key { array, name: &[] }, is_end))
    })
}

/// Whether the name means where an array starts or ends, which may be empty.
pub(crate) fn is_of_array(name: Name<'_>) -> bool {
    meaning(name).is_some_and(|(key, _)| key.array != Array::Named)
}

/// Whether it is an array that only Arm has.
pub(crate) fn is_of_arm(name: Name<'_>) -> bool {
    meaning(name).is_some_and(|(key, _)| key.array == Array::UnwindIndex)
}

/// Whether a name means where sections of `files` start or end.
#[cfg(feature = "alloc")]
pub(crate) fn has_sections(name: Name<'_>, files: &[File<'_>]) -> bool {
    let options = Options::default();
    LINKER_DEFINED
        && meaning(name).is_some_and(|(wanted, _)| {
            files.iter().any(|file| {
                let mut sections = file.sections().iter();
                sections.any(|header| {
                    group_of(&header, &options).is_some()
                        && key(file, &header, Gathers::Meant)
                            .is_some_and(|(found, _)| found == wanted)
                })
            })
        })
}

/// Whether a section is placed behind all others.
pub(crate) fn is_gathered(file: &File<'_>, header: &SectionHeader, gathers: Gathers) -> bool {
    LINKER_DEFINED && key(file, header, gathers).is_some()
}

/// The run that a section would be part of, and its place in that: by priority and, of one priority, by name, as GNU ld sorts arrays.
pub(crate) fn key<'a>(
    file: &File<'a>,
    header: &SectionHeader,
    gathers: Gathers,
) -> Option<(Key<'a>, (u32, &'a [u8]))> {
    if gathers == Gathers::Nothing
        || header.address != 0
        || header.flags.contains(SectionFlags::TLS)
    {
        return None;
    }
    let name = file.section_name(header).ok()?.as_bytes();
    let (array, list) = match header.r#type {
        SHT_PREINIT_ARRAY => (Array::Preinit, &b".preinit_array"[..]),
        SHT_INIT_ARRAY => (Array::Init, &b".init_array"[..]),
        SHT_FINI_ARRAY => (Array::Fini, &b".fini_array"[..]),
        SHT_ARM_EXIDX if file.header().machine == EM_ARM => (Array::UnwindIndex, &b""[..]),
        _ if START_FILES && gathers == Gathers::Parts && is_part(name) => {
            return Some((Key { array: Array::Part, name }, (0, &[])));
        }
        _ if is_identifier(name) => return Some((Key { array: Array::Named, name }, (0, &[]))),
        _ => return None,
    };
    let suffix = name.strip_prefix(list).and_then(|rest| rest.strip_prefix(b"."));
    let rank = match suffix.filter(|_| array != Array::UnwindIndex) {
        None => (u32::MAX, &b""[..]),
        // what is no number comes first
        Some(suffix) => (number(suffix).map_or(0, |number| number.saturating_add(1)), name),
    };
    Some((Key { array, name: &[] }, rank))
}

fn number(digits: &[u8]) -> Option<u32> {
    let add = |number: u32, digit: &u8| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit)
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

/// Whether sections of this name are what start files begin and end.
fn is_part(name: &[u8]) -> bool {
    matches!(name, b".init" | b".fini" | b".tm_clone_table") || name == FRAMES
}

/// Whether a name can be part of one in C.
fn is_identifier(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.first().is_some_and(is_letter)
        && name.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
