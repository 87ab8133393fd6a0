//! `.note.nv.tkinfo`, `.note.nv.cuinfo` and `.note.nv.cuver`: who made the file, for what, with which command line.

use crate::error::{Error, ErrorKind};
use crate::target::Toolkit;
use elf_core::{Name, StringTable};

/// A note of a cubin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CubinNote<'a> {
    /// The tool that made the file (type 2000, `.note.nv.tkinfo`). A linker writes its own, then those of its inputs.
    Tool(Tool<'a>),
    /// What the code is for (type 1000, `.note.nv.cuinfo`, or `.note.nv.cuver` of toolkits 12.8 and 12.9).
    Cuda {
        /// Version of the note: 2, or 1 for `.note.nv.cuver`.
        version: u16,
        /// Number of the virtual architecture.
        virtual_sm: u16,
        /// The toolkit; `.note.nv.cuver` does not say.
        toolkit: Option<Toolkit>,
    },
    /// Another note.
    Other {
        /// Who wrote it.
        owner: Name<'a>,
        /// Its type.
        r#type: u32,
        /// What it says.
        description: &'a [u8],
    },
}

/// A tool and its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Version of the note: 2. Toolkits 12.8 and 12.9 put their own version there: see [`toolkit`](Self::toolkit).
    pub version: u32,
    /// Name of the object file; often empty.
    pub object: Name<'a>,
    /// Name of the tool.
    pub name: Name<'a>,
    /// Its version, as it prints it.
    pub release: Name<'a>,
    /// The build it is from.
    pub branch: Name<'a>,
    /// Its command line.
    pub arguments: Name<'a>,
}

impl<'a> Tool<'a> {
    fn parse(description: &'a [u8]) -> Option<Self> {
        let (head, table) = description.split_first_chunk::<24>()?;
        let [version, object, name, release, branch, arguments] = words(head)?;
        let strings = StringTable::new(table, 0);
        let text = |offset| strings.get(offset).ok();
        Some(Self {
            version,
            object: text(object)?,
            name: text(name)?,
            release: text(release)?,
            branch: text(branch)?,
            arguments: text(arguments)?,
        })
    }

    /// The toolkit, where the note gives that in place of its own version: with `.note.nv.cuver`.
    #[must_use]
    pub const fn toolkit(&self) -> Option<Toolkit> {
        if self.version >= 100 { Some(Toolkit(self.version)) } else { None }
    }

    /// The architecture that the command line names with `-arch`, as it stands there: `sm_100f`.
    #[must_use]
    pub fn architecture(&self) -> Option<&'a [u8]> {
        let mut words =
            self.arguments.as_bytes().split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            if word == b"-arch" {
                return words.next();
            }
        }
        None
    }
}

impl<'a> CubinNote<'a> {
    fn read(owner: &'a [u8], r#type: u32, description: &'a [u8]) -> Self {
        let owner = Name(owner.split(|&byte| byte == 0).next().unwrap_or(owner));
        let other = Self::Other { owner, r#type, description };
        if owner != "NVIDIA Corp" {
            return other;
        }
        match (r#type, description) {
            (2000, _) => Tool::parse(description).map_or(other, Self::Tool),
            (1000, &[v0, v1, s0, s1, ref rest @ ..]) => {
                let version = u16::from_le_bytes([v0, v1]);
                let toolkit = match (version, rest) {
                    (2, &[t0, t1, ..]) => Some(Toolkit(u16::from_le_bytes([t0, t1]).into())),
                    _ => None,
                };
                Self::Cuda { version, virtual_sm: u16::from_le_bytes([s0, s1]), toolkit }
            }
            _ => other,
        }
    }
}

/// The notes of one section in order. A damaged one is the last: its error, then the end.
#[derive(Clone, Debug, Default)]
pub struct CubinNotes<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> CubinNotes<'a> {
    /// The notes in `bytes`, which are at file offset `at`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], at: u64) -> Self {
        Self { rest: bytes, at }
    }

    fn split(bytes: &'a [u8]) -> Result<(CubinNote<'a>, &'a [u8]), u64> {
        const HEAD: u64 = 12;
        let Some((head, rest)) = bytes.split_first_chunk::<12>() else { return Err(HEAD) };
        let Some([owner, description, r#type]) = words(head) else { return Err(HEAD) };
        // both are padded to 4 bytes; the last one need not be
        let padded = |size: u32| u64::from(size).saturating_add(3) & !3;
        let needed = HEAD.saturating_add(padded(owner)).saturating_add(description.into());
        let parts =
            usize::try_from(padded(owner)).ok().and_then(|size| rest.split_at_checked(size));
        let Some((name, rest)) = parts else { return Err(needed) };
        let name = usize::try_from(owner).ok().and_then(|size| name.get(..size)).unwrap_or(name);
        let size = usize::try_from(description).ok();
        let Some(text) = size.and_then(|size| rest.get(..size)) else { return Err(needed) };
        let rest = usize::try_from(padded(description))
            .ok()
            .and_then(|size| rest.get(size..))
            .unwrap_or(&[]);
        Ok((CubinNote::read(name, r#type, text), rest))
    }
}

impl<'a> Iterator for CubinNotes<'a> {
    type Item = Result<CubinNote<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = core::mem::take(&mut self.rest); // stays empty after an error: fused
        if bytes.is_empty() {
            return None;
        }
        let (at, left) = (self.at, bytes.len() as u64);
        Some(match Self::split(bytes) {
            Ok((note, rest)) => {
                self.at = at.saturating_add(left.saturating_sub(rest.len() as u64));
                self.rest = rest;
                Ok(note)
            }
            Err(needed) => Err(Error::new(at, ErrorKind::Truncated { what: "note", needed, left })),
        })
    }
}

impl core::iter::FusedIterator for CubinNotes<'_> {}

/// The little-endian words of four bytes that `bytes` are.
fn words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let words: &[[u8; 4]; N] = bytes.as_chunks().0.as_array()?;
    Some(words.map(u32::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn note(r#type: u32, description: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [12, description.len() as u32, r#type] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(b"NVIDIA Corp\0");
        bytes.extend(description);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_tool_and_its_command_line() {
        let mut description = Vec::new();
        for word in [2u32, 0, 1, 7, 11, 13] {
            description.extend(word.to_le_bytes());
        }
        description.extend(b"\0ptxas\0rel\0b\0-arch sm_100f -m 64 \0");
        let mut bytes = note(2000, &description);
        bytes.extend(note(1000, &[2, 0, 100, 0, 135, 0, 0, 0]));
        let notes: Vec<_> = CubinNotes::new(&bytes, 0).map(Result::unwrap).collect();
        let [CubinNote::Tool(tool), cuda] = notes[..] else { panic!("{notes:?}") };
        assert_eq!((tool.name, tool.release), (Name(b"ptxas"), Name(b"rel")));
        assert_eq!(tool.architecture(), Some(&b"sm_100f"[..]));
        assert_eq!(
            cuda,
            CubinNote::Cuda { version: 2, virtual_sm: 100, toolkit: Some(Toolkit(135)) }
        );
    }

    #[test]
    fn every_truncation_is_an_error_once() {
        let bytes = note(7, &[1, 2, 3, 4]);
        for end in 1..bytes.len() {
            let results: Vec<_> = CubinNotes::new(&bytes[..end], 0).collect();
            assert!(matches!(results[..], [Err(_)]), "{end}");
        }
    }
}
