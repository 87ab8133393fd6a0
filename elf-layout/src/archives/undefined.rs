//! What the objects of a link miss.

use super::index::MemberIndex;
use super::meaning::{Global, Meaning, Undefined, globals, names_limit};
use super::names::Names;
use super::read::{ReadGlobal, ReadMember};
use super::table::Hash;
use super::taken::Taken;
use crate::model::name_numbers::NameNumbers;
use crate::plan::groups::{is_comdat, signature};
use crate::plan::symbols::is_of_layout;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;
use elf_core::{File, Name, SymbolTable};

/// The global names that the objects of a link miss so far, and those that they have as common symbols only.
///
/// ```
/// use elf_core::File;
/// use elf_layout::archives::{MemberIndex, UndefinedSymbols};
///
/// let mut undefined = UndefinedSymbols::new();
/// undefined.require("foo".into()); // and `undefined.add(&file)?` for every object
/// let archive = MemberIndex::new(vec![include_bytes!("../../../fixtures/x86_64/elftest.o")])?;
/// assert_eq!(undefined.search(&archive), [0]);
/// assert_eq!(undefined.search(&archive), [], "nothing is missing any more");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct UndefinedSymbols {
    names: Names,
    /// What is known of each name.
    states: Vec<State>,
    /// Names that were undefined or common once, in the order of their first reference.
    queue: Vec<Entered>,
    /// How many have been entered there.
    entered: usize,
    numbers: NameNumbers,
    /// Numbers that names of a member may have.
    candidates: Vec<Option<u32>>,
}

/// A name that became undefined, or common.
#[derive(Clone, Copy, Debug)]
struct Entered {
    number: u32,
    hash: Hash,
    /// How many had been entered before it.
    before: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Missing,
    Weak,
    Common,
    Defined,
}

impl UndefinedSymbols {
    /// Of no objects.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            names: Names::new(),
            states: Vec::new(),
            queue: Vec::new(),
            entered: 0,
            numbers: NameNumbers::new(),
            candidates: Vec::new(),
        }
    }

    /// Makes a name missing from the start (`--undefined` of linkers).
    pub fn require(&mut self, name: Name<'_>) {
        let (hash, version) = (Hash::of(name), name.version());
        let number = self.names.number_by(hash, name);
        self.enter(number, &Global { index: 0, name, hash, meaning: Meaning::Undefined, version });
    }

    /// Enters the symbols of an object that is part of the link.
    ///
    /// # Errors
    /// If its symbols are damaged, or their names longer than [`names_limit`] allows. What was read before that is entered.
    pub fn add(&mut self, file: &File<'_>) -> Result<(), elf_core::Error> {
        let added = self.enter_all(file);
        if added.is_err() {
            self.numbers.damaged();
        }
        added
    }

    fn enter_all(&mut self, file: &File<'_>) -> Result<(), elf_core::Error> {
        let table = file.symbol_table()?;
        self.numbers.begin(table.map_or(0, |table| table.len()));
        if let Some(table) = &table {
            table.check_names(names_limit(file.bytes().len() as u64))?;
            globals(table, |global| {
                let number = self.names.number_by(global.hash, global.name);
                self.enter_global(number, &global);
                Ok(())
            })?;
        }
        self.enter_groups(file, table.as_ref());
        Ok(())
    }

    /// Enters a member of an archive that is part of the link now, as it was read.
    fn add_member(&mut self, bytes: &[u8], read: ReadMember<'_>) {
        self.numbers.begin(read.symbol_count);
        let mut candidates = core::mem::take(&mut self.candidates);
        candidates.clear();
        candidates.extend(read.globals.iter().map(|global| self.names.candidate(global.hash)));
        for (global, candidate) in read.globals.iter().zip(&candidates) {
            let &ReadGlobal { index, hash, meaning, .. } = global;
            let name = global.name(bytes);
            let version = if read.have_versions { name.version() } else { None };
            let number = self.names.number_at(*candidate, hash, name);
            self.enter_global(number, &Global { index, name, hash, meaning, version });
        }
        self.candidates = candidates;
        for group in read.groups {
            let number = group.symbol.and_then(|symbol| self.numbers.of_last(symbol));
            match number.or_else(|| Some(self.names.number(group.signature(bytes)?))) {
                Some(number) => self.numbers.group(group.section, number),
                None => self.numbers.damaged(),
            }
        }
        if read.is_damaged {
            self.numbers.damaged();
        }
    }

    /// Enters a symbol of the last object, whose name has this number.
    fn enter_global(&mut self, number: u32, global: &Global<'_>) {
        self.enter(number, global);
        self.numbers.have_versions |= global.version.is_some();
        self.numbers.symbol(global.index, number);
    }

    /// Enters the names that are signatures of COMDAT groups of the last object.
    fn enter_groups(&mut self, file: &File<'_>, symbols: Option<&SymbolTable<'_>>) {
        let Self { names, numbers, .. } = self;
        for (index, section) in (0u32..).zip(file.sections()) {
            let number = match is_comdat(file, &section) {
                // most are named by a symbol of the object that others see
                Ok(true) => numbers.of_last(section.info),
                _ => None,
            };
            if let Some(number) = number.filter(|number| !names.get(*number).is_empty()) {
                numbers.group(index, number);
                continue;
            }
            match signature(file, symbols, &section) {
                Ok(Some(name)) => numbers.group(index, names.number(name)),
                Ok(None) => {}
                // whoever lays it out says so
                Err(_) => numbers.damaged(),
            }
        }
    }

    /// Which names of the objects that were added are one, for [a layout](crate::HeapStorage::plan_numbered) of those.
    #[must_use]
    pub fn into_numbers(self) -> NameNumbers {
        self.numbers
    }

    /// Takes out of an archive the members that define what is missing here, and what those miss in turn: as linkers do where the
    /// archive stands among the objects. Gives their numbers in the order in which they join the link.
    pub fn search<B: AsRef<[u8]>>(&mut self, archive: &MemberIndex<B>) -> Vec<usize> {
        self.search_again(archive, &mut Taken::new())
    }

    /// The same for an archive of which some members are part of the link already: for archives that need each other and are searched in
    /// turn until none has more (`--start-group` of linkers). Those that join are added to `taken`. Names that the archive was asked for
    /// before, it is not asked for again.
    pub fn search_again<B: AsRef<[u8]>>(
        &mut self,
        archive: &MemberIndex<B>,
        taken: &mut Taken,
    ) -> Vec<usize> {
        let mut order = Vec::new();
        let Taken { members: taken, asked } = taken;
        let before = taken.clone();
        let find = |names: &Names, &Entered { number, hash, .. }: &_, why, last: Option<&usize>| {
            let member = archive.definer_by(hash, || names.get(number), why, last.copied());
            member.filter(|member| !before.contains(member))
        };
        let from = self.queue.partition_point(|name| name.before < *asked);
        let take = |undefined: &mut Self, member| {
            taken.insert(member);
            order.push(member);
            let (bytes, read) = archive.member(member);
            undefined.add_member(bytes, read);
            Ok::<_, Infallible>(())
        };
        let Ok(()) = self.extract_by_number(from, find, take);
        *asked = self.entered;
        order
    }

    /// Takes members of several archives, or of whatever else has objects for names.
    ///
    /// `find` says which member is taken for a name: the next one behind the last one that joined, or else the first
    /// ([`MemberIndex::definer`]). It is asked once for each name that is [missing](Undefined::Missing), and once for each that is
    /// [common](Undefined::Common). `take` [adds](Self::add) a member to the link. Members join in the order of GNU ld, which goes
    /// through an archive again and again: to the last one, the next one that is asked for, and behind the end the first one. That
    /// order is the `Ord` of `M`, and what is equal joins once.
    ///
    /// # Errors
    /// What `take` says.
    pub fn extract<M: Clone + Ord, E>(
        &mut self,
        mut find: impl FnMut(Name<'_>, Undefined, Option<&M>) -> Option<M>,
        take: impl FnMut(&mut Self, M) -> Result<(), E>,
    ) -> Result<(), E> {
        let find = |names: &Names, name: &Entered, why, last: Option<&M>| {
            find(names.get(name.number), why, last)
        };
        self.extract_by_number(0, find, take)
    }

    /// The same with names by number, for the names from `position` of the queue on.
    fn extract_by_number<M: Clone + Ord, E>(
        &mut self,
        mut position: usize,
        mut find: impl FnMut(&Names, &Entered, Undefined, Option<&M>) -> Option<M>,
        mut take: impl FnMut(&mut Self, M) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut asked_for: BTreeMap<M, Vec<(u32, Undefined)>> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        let mut last: Option<M> = None;
        loop {
            while let Some(name) = self.queue.get(position) {
                position = position.saturating_add(1);
                let number = name.number;
                let Some(why) = wanted(&self.states, number) else { continue };
                let member = find(&self.names, name, why, last.as_ref());
                if let Some(member) = member.filter(|member| !taken.contains(member)) {
                    asked_for.entry(member).or_default().push((number, why));
                }
            }
            let behind = last.as_ref().and_then(|last| asked_for.range(last..).next());
            let Some((member, _)) = behind.or_else(|| asked_for.iter().next()) else { break };
            let member = member.clone();
            let names = asked_for.remove(&member).unwrap_or_default();
            // another member may have defined them meanwhile
            if names.iter().any(|&(number, why)| wanted(&self.states, number) == Some(why)) {
                taken.insert(member.clone());
                take(self, member.clone())?;
            }
            last = Some(member);
        }
        let Self { queue, states, .. } = self;
        queue.retain(|name| wanted(states, name.number).is_some());
        Ok(())
    }

    /// Enters what a symbol of one more object means, whose name has this number.
    fn enter(&mut self, number: u32, global: &Global<'_>) {
        let Global { name, meaning, .. } = *global;
        if is_of_layout(name) {
            return;
        }
        let Some((base, version, true)) = global.version else {
            return self.mean(number, meaning);
        };
        let exact = [base.as_bytes(), b"@", version.as_bytes()].concat();
        self.enter_name(Name(&exact), meaning);
        if meaning != Meaning::Undefined {
            self.enter_name(base, meaning);
        }
    }

    /// Enters a name without a default version.
    fn enter_name(&mut self, name: Name<'_>, meaning: Meaning) {
        let number = self.names.number(name);
        if !is_of_layout(name) {
            self.mean(number, meaning);
        }
    }

    /// Brings what is known of a name together with what one more object says.
    fn mean(&mut self, number: u32, meaning: Meaning) {
        if number as usize >= self.states.len() {
            // signatures of groups have numbers, too
            self.states.resize(self.names.len(), State::Unknown);
        }
        let Some(state) = self.states.get_mut(number as usize) else { return };
        let next = match (meaning, *state) {
            (Meaning::WeakReference, state) => state,
            (Meaning::Function | Meaning::Data, _) | (_, State::Defined) => State::Defined,
            (Meaning::Common, _) | (_, State::Common) => State::Common,
            (Meaning::Weak, _) | (_, State::Weak) => State::Weak,
            (Meaning::Undefined, State::Unknown | State::Missing) => State::Missing,
        };
        let is_new = next != *state && matches!(next, State::Missing | State::Common);
        *state = next;
        if is_new {
            let hash = self.names.hash(number);
            self.queue.push(Entered { number, hash, before: self.entered });
            self.entered = self.entered.saturating_add(1);
        }
    }
}

/// Whether a definition of a name is looked for, and why.
fn wanted(states: &[State], number: u32) -> Option<Undefined> {
    match states.get(number as usize)? {
        State::Missing => Some(Undefined::Missing),
        State::Common => Some(Undefined::Common),
        State::Unknown | State::Weak | State::Defined => None,
    }
}
