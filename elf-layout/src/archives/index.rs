//! Which member of an archive defines a name.

use super::meaning::{Global, Meaning, MemberError, Undefined, globals, names_limit};
use super::read::{Read, ReadMember, offset_in};
use super::table::{Filter, Hash, HashTable};
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;
use elf_core::{File, Name};

/// The members of an archive, and which of them defines a name. `B` is what holds a member's bytes.
///
/// ```
/// use elf_layout::archives::{MemberIndex, Undefined};
///
/// let members = vec![&include_bytes!("../../../fixtures/x86_64/elftest.o")[..], b"a text among them"];
/// let index = MemberIndex::new(members)?;
/// assert_eq!(index.definer("foo".into(), Undefined::Missing, None), Some(0));
/// assert_eq!(index.definer("bar".into(), Undefined::Missing, None), None);
/// # Ok::<(), elf_layout::archives::MemberError>(())
/// ```
#[derive(Clone)]
pub struct MemberIndex<B> {
    members: Vec<B>,
    entries: Vec<Entry>,
    definitions: Vec<Definition>,
    /// Numbers of entries.
    table: HashTable,
    /// What that may have.
    filter: Filter,
    /// Whether a name has a default version.
    has_default: bool,
    read: Read,
}

/// A name that members define.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where the bytes of its first definer have the name.
    start: usize,
    length: usize,
    /// Numbers of its first and its last definition.
    first: u32,
    last: u32,
}

/// That a member defines a name.
#[derive(Clone, Copy, Debug)]
struct Definition {
    member: u32,
    /// As data, neither weak nor common.
    is_data: bool,
    /// Number of the next definition of the name: of a member behind this one.
    next: Option<NonZeroU32>,
}

impl<B> fmt::Debug for MemberIndex<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberIndex")
            .field("members", &self.members.len())
            .field("names", &self.entries.len())
            .finish()
    }
}

impl<B> Default for MemberIndex<B> {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            entries: Vec::new(),
            definitions: Vec::new(),
            table: HashTable::new(),
            filter: Filter::default(),
            has_default: false,
            read: Read::default(),
        }
    }
}

impl<B: AsRef<[u8]>> MemberIndex<B> {
    /// Reads the symbols of the members. Those that are no ELF files define nothing.
    ///
    /// # Errors
    /// If the symbol table of a member is damaged, or its names are longer than [`names_limit`] allows: which member.
    pub fn new(members: Vec<B>) -> Result<Self, MemberError> {
        let mut index = Self { members, ..Self::default() };
        for member in 0..index.members.len() {
            index.read(member).map_err(|error| MemberError { member, error })?;
            index.read.resize(member.saturating_add(1));
        }
        index.filter = Filter::of(&index.table);
        Ok(index)
    }

    /// Enters what a member defines.
    fn read(&mut self, member: usize) -> Result<(), elf_core::Error> {
        let Self { members, entries, definitions, table: known, has_default, read, .. } = self;
        let Some(bytes) = members.get(member).map(AsRef::as_ref) else { return Ok(()) };
        let Ok(file) = File::parse(bytes) else { return Ok(()) };
        let Some(table) = file.symbol_table()? else { return Ok(()) };
        table.check_names(names_limit(bytes.len() as u64))?;
        let member = u32::try_from(member).unwrap_or(u32::MAX);
        let mut have_versions = false;
        globals(&table, |global| {
            read.global(&global, bytes)?;
            let Global { hash, name, meaning, version, .. } = global;
            have_versions |= version.is_some();
            if matches!(meaning, Meaning::Undefined | Meaning::WeakReference) {
                return Ok(());
            }
            // a default version is what the name means without one
            let base = version.filter(|(.., is_default)| *is_default).map(|(base, ..)| base);
            *has_default |= base.is_some();
            let base = base.map(|base| (Hash::of(base), base));
            for (hash, name) in core::iter::once((hash, name)).chain(base) {
                let number = definitions.len() as u32;
                let is_data = meaning == Meaning::Data;
                definitions.push(Definition { member, is_data, next: None });
                let next = entries.len() as u32;
                let same = |other| name_of(members, entries, definitions, other) == name;
                let entry = known.find_or_insert(hash, next, same);
                if let Some(entry) = entries.get_mut(entry as usize) {
                    if let Some(last) = definitions.get_mut(entry.last as usize) {
                        last.next = NonZeroU32::new(number);
                    }
                    entry.last = number;
                } else {
                    let start = offset_in(bytes, name);
                    let length = name.as_bytes().len();
                    entries.push(Entry { start, length, first: number, last: number });
                }
            }
            Ok(())
        })?;
        read.end(&file, &table, have_versions);
        Ok(())
    }

    /// The bytes of a member, and what was read of it.
    pub(super) fn member(&self, member: usize) -> (&[u8], ReadMember<'_>) {
        let bytes = self.members.get(member).map(AsRef::as_ref).unwrap_or_default();
        (bytes, self.read.of(member))
    }

    /// All members, in order: to be taken whether needed or not (`--whole-archive` of linkers).
    #[must_use]
    pub fn members(&self) -> &[B] {
        &self.members
    }

    /// The first member behind `last` that defines a name, or the first of all if there is none: in one that is
    /// [missing](Undefined::Missing), weakly or as common, too; in one that is [common](Undefined::Common), as data that are neither.
    ///
    /// A name with a version (`NAME@VERSION`) is also what a member defines as the default one (`NAME@@VERSION`).
    #[must_use]
    pub fn definer(&self, name: Name<'_>, why: Undefined, last: Option<usize>) -> Option<usize> {
        self.definer_by(Hash::of(name), || name, why, last)
    }

    /// The same of a name that has this hash. Most names no member has, and they are not looked at.
    #[inline]
    pub(super) fn definer_by<'n>(
        &self,
        hash: Hash,
        name: impl Fn() -> Name<'n>,
        why: Undefined,
        last: Option<usize>,
    ) -> Option<usize> {
        self.definer_of(hash, &name, why, last).or_else(|| {
            let (base, version, _) = self.has_default.then(|| name().version())??;
            let default = [base.as_bytes(), b"@@", version.as_bytes()].concat();
            let default = Name(&default);
            self.definer_of(Hash::of(default), || default, why, last)
        })
    }

    #[inline]
    fn definer_of<'n>(
        &self,
        hash: Hash,
        name: impl Fn() -> Name<'n>,
        why: Undefined,
        last: Option<usize>,
    ) -> Option<usize> {
        if !self.filter.may_have(hash) {
            return None;
        }
        let same =
            |number| name_of(&self.members, &self.entries, &self.definitions, number) == name();
        let entry = self.entries.get(self.table.find(hash, same)? as usize)?;
        let next = |definition: &&Definition| self.definitions.get(definition.next?.get() as usize);
        let all = core::iter::successors(self.definitions.get(entry.first as usize), next);
        let fits = |definition: &&Definition| why == Undefined::Missing || definition.is_data;
        let mut members = all.filter(fits).map(|definition| definition.member as usize);
        let first = members.next()?;
        let is_behind = |member: &usize| last.is_none_or(|last| *member > last);
        if is_behind(&first) {
            return Some(first);
        }
        Some(members.find(is_behind).unwrap_or(first))
    }
}

/// The name of entry `number`.
fn name_of<'m, B: AsRef<[u8]>>(
    members: &'m [B],
    entries: &[Entry],
    definitions: &[Definition],
    number: u32,
) -> Name<'m> {
    let bytes = entries.get(number as usize).and_then(|entry| {
        let member = definitions.get(entry.first as usize)?.member;
        let rest = members.get(member as usize)?.as_ref().get(entry.start..)?;
        rest.get(..entry.length)
    });
    Name(bytes.unwrap_or_default())
}
