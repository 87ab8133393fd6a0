//! What was read of the members of an archive, for those that are taken: they are not looked into again.

use super::meaning::{Global, Meaning};
use super::table::Hash;
use crate::plan::groups::{is_comdat, signature};
use alloc::vec::Vec;
use elf_core::{Error, ErrorKind, File, Name, SymbolTable};

/// What was read of all members.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    globals: Vec<ReadGlobal>,
    groups: Vec<ReadGroup>,
    members: Vec<End>,
}

/// A symbol that other objects see.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadGlobal {
    /// Where the member has the name.
    start: usize,
    length: u32,
    pub(super) hash: Hash,
    /// Index of the symbol.
    pub(super) index: u32,
    pub(super) meaning: Meaning,
}

/// A section that is a COMDAT group.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadGroup {
    /// Its index.
    pub(super) section: u32,
    /// The global symbol whose name is the signature; `None` if it is another name.
    pub(super) symbol: Option<u32>,
}

/// Where that of a member ends.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    globals: usize,
    groups: usize,
    symbol_count: usize,
    have_versions: bool,
    is_damaged: bool,
}

/// What was read of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadMember<'r> {
    pub(super) globals: &'r [ReadGlobal],
    pub(super) groups: &'r [ReadGroup],
    /// Number of its symbols.
    pub(super) symbol_count: usize,
    /// Whether some names have versions.
    pub(super) have_versions: bool,
    /// Whether some group has no signature.
    pub(super) is_damaged: bool,
}

impl ReadGlobal {
    /// The name, in the member's bytes.
    pub(super) fn name<'a>(&self, bytes: &'a [u8]) -> Name<'a> {
        let rest = bytes.get(self.start..).unwrap_or_default();
        Name(rest.get(..self.length as usize).unwrap_or_default())
    }
}

impl ReadGroup {
    /// The name that is the signature, in the member's bytes.
    pub(super) fn signature<'a>(&self, bytes: &'a [u8]) -> Option<Name<'a>> {
        let file = File::parse(bytes).ok()?;
        let (table, section) = (file.symbol_table().ok()?, file.section(self.section).ok()?);
        signature(&file, table.as_ref(), &section).ok()?
    }
}

impl Read {
    /// Adds a symbol of the next member, which has these bytes.
    ///
    /// # Errors
    /// [`ErrorKind::NamesTooLong`] for a name of 4 GiB.
    pub(super) fn global(&mut self, global: &Global<'_>, bytes: &[u8]) -> Result<(), Error> {
        let Global { index, name, hash, meaning, .. } = *global;
        let start = offset_in(bytes, name);
        let long =
            Error { at: start as u64, kind: ErrorKind::NamesTooLong { limit: u32::MAX.into() } };
        let length = u32::try_from(name.as_bytes().len()).map_err(|_| long)?;
        self.globals.push(ReadGlobal { start, length, hash, index, meaning });
        Ok(())
    }

    /// Ends the next member, once its symbols have been added.
    pub(super) fn end(&mut self, file: &File<'_>, table: &SymbolTable<'_>, have_versions: bool) {
        let start = self.members.last().map_or(0, |member| member.globals);
        let own = self.globals.get(start..).unwrap_or_default();
        let (mut is_damaged, mut next) = (false, 0u32);
        file.sections().iter().for_each(|header| {
            let section = next;
            next = section.wrapping_add(1);
            // most are named by a symbol that other objects see
            let symbol = match is_comdat(file, &header) {
                Ok(true) => own.binary_search_by_key(&header.info, |global| global.index).ok(),
                _ => None,
            };
            let symbol = symbol.and_then(|at| own.get(at)).filter(|global| global.length > 0);
            let symbol = symbol.map(|global| global.index);
            let is_group = match symbol {
                Some(_) => Ok(true),
                None => signature(file, Some(table), &header).map(|name| name.is_some()),
            };
            match is_group {
                Ok(true) => self.groups.push(ReadGroup { section, symbol }),
                Ok(false) => {}
                Err(_) => is_damaged = true,
            }
        });
        let (globals, groups) = (self.globals.len(), self.groups.len());
        let symbol_count = table.len();
        self.members.push(End { globals, groups, symbol_count, have_versions, is_damaged });
    }

    /// Has `count` members: those that have not been ended have nothing.
    pub(super) fn resize(&mut self, count: usize) {
        let (globals, groups) = (self.globals.len(), self.groups.len());
        self.members.resize(count, End { globals, groups, ..End::default() });
    }

    /// That of one member.
    pub(super) fn of(&self, member: usize) -> ReadMember<'_> {
        let before = member.checked_sub(1).and_then(|before| self.members.get(before));
        let before = before.copied().unwrap_or_default();
        let Some(own) = self.members.get(member) else { return ReadMember::default() };
        ReadMember {
            globals: self.globals.get(before.globals..own.globals).unwrap_or_default(),
            groups: self.groups.get(before.groups..own.groups).unwrap_or_default(),
            symbol_count: own.symbol_count,
            have_versions: own.have_versions,
            is_damaged: own.is_damaged,
        }
    }
}

/// Where `bytes` have a name that is part of them.
pub(super) fn offset_in(bytes: &[u8], name: Name<'_>) -> usize {
    name.as_bytes().as_ptr().addr().saturating_sub(bytes.as_ptr().addr())
}
