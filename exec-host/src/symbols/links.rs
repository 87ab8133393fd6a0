//! What a load has asked for: addresses, what keeps them, and objects that have to join it.

use super::{Found, Keeper, Symbols};
use crate::external::External;
use crate::threads::exit as thread_exit;
use crate::{exit, processor};
use elf_core::names::STB_WEAK;
use elf_core::{File, Name};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The link between a load and its source of symbols.
pub(crate) struct Links<'s> {
    symbols: &'s mut dyn Symbols,
    keepers: BTreeMap<usize, Keeper>,
    /// Address of data that code may have to reach by itself.
    near: Option<u64>,
    /// Objects given for names since the last [`join`](Self::join).
    given: HashMap<Box<[u8]>, Arc<[u8]>>,
    /// Names that an object was given for.
    joined: HashSet<Box<[u8]>>,
    /// Where the objects are that have joined.
    members: HashSet<usize>,
    /// Names that an object was given for, but nobody insists on.
    weak: HashSet<Box<[u8]>>,
    /// The load is for this process.
    is_to_process: bool,
    /// The load may register what is to be done when threads or the process end.
    registers: bool,
}

impl<'s> Links<'s> {
    pub(crate) fn new(symbols: &'s mut dyn Symbols) -> Self {
        Self {
            symbols,
            keepers: BTreeMap::new(),
            near: None,
            given: HashMap::new(),
            joined: HashSet::new(),
            members: HashSet::new(),
            weak: HashSet::new(),
            is_to_process: false,
            registers: false,
        }
    }

    /// The same for a load into this process.
    pub(crate) fn to_process(symbols: &'s mut dyn Symbols) -> Self {
        Self { is_to_process: true, ..Self::new(symbols) }
    }

    /// Whether the load is for this process.
    pub(crate) const fn are_to_process(&self) -> bool {
        self.is_to_process
    }

    /// Whether the load may register what is to be done when threads or the process end.
    pub(crate) const fn registers(&self) -> bool {
        self.registers
    }

    /// What a layout asks for.
    pub(crate) fn find(&mut self, name: Name<'_>) -> Option<External> {
        if !self.is_to_process {
            return self.find_in_source(name);
        }
        if let Some(own) = thread_exit::stands_for(name) {
            self.registers = true;
            return Some(own);
        }
        if let Some(found) = self.find_in_source(name) {
            return Some(found);
        }
        let own = exit::find(name);
        self.registers |= own.is_some();
        own.or_else(|| processor::find(name))
    }

    fn find_in_source(&mut self, name: Name<'_>) -> Option<External> {
        let is_weak = self.weak.contains(name.as_bytes());
        let found = if self.joined.contains(name.as_bytes()) {
            // it joined and did not define it
            None
        } else if is_weak {
            self.symbols.find_weak(name)
        } else {
            self.symbols.find(name)
        };
        let external = match found? {
            Found::At(external) => external,
            Found::Kept(external, keeper) => {
                self.keepers.entry(Arc::as_ptr(&keeper).cast::<()>().addr()).or_insert(keeper);
                external
            }
            Found::Object(_) if is_weak => return None,
            Found::Object(bytes) => {
                self.given.insert(name.as_bytes().into(), bytes);
                return None;
            }
        };
        if external.is_unknown() {
            self.near.get_or_insert(external.address());
        }
        Some(external)
    }

    /// Adds the objects given for what `files` insist on to `objects`. If it says so, the load has to be laid out again with them,
    /// or because what was given is not wanted.
    pub(crate) fn join(&mut self, files: &[File<'_>], objects: &mut Vec<Arc<[u8]>>) -> bool {
        if self.given.is_empty() {
            return false;
        }
        for file in files {
            let Ok(Some(table)) = file.symbol_table() else { continue };
            for symbol in table.symbols().iter().skip(table.first_global()) {
                if !symbol.is_undefined() || symbol.binding() == STB_WEAK {
                    continue;
                }
                let Ok(name) = table.name_of(&symbol) else { continue };
                let Some((name, bytes)) = self.given.remove_entry(name.as_bytes()) else {
                    continue;
                };
                self.joined.insert(name);
                if self.members.insert(Arc::as_ptr(&bytes).cast::<()>().addr()) {
                    objects.push(bytes);
                }
            }
        }
        self.weak.extend(self.given.drain().map(|(name, _)| name));
        true
    }

    /// Where data of others are that the load asked for.
    pub(crate) const fn near(&self) -> Option<u64> {
        self.near
    }

    /// What has to live as long as the load.
    pub(crate) fn into_keepers(self) -> Vec<Keeper> {
        self.keepers.into_values().collect()
    }
}
