//! What a load has asked for: addresses, what keeps them, and objects that have to join it.

use super::{Found, Keeper, SharedBytes, Symbols};
use crate::error::Error;
use crate::external::External;
use crate::library::d_runtime;
use crate::threads::exit as thread_exit;
use crate::{dlsym, exit, processor, unwind};
use core::cmp::Ordering;
use elf_core::{File, Name};
use elf_layout::archives::{NameNumbers, Undefined, UndefinedSymbols};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The link between a load and its source of symbols.
pub(crate) struct LoadSymbols<'s> {
    symbols: &'s mut dyn Symbols,
    keepers: BTreeMap<usize, Keeper>,
    /// Address of data that code may have to reach by itself.
    near: Option<u64>,
    /// What the source has of the names that the objects miss, if it was asked before the layout: `None` for what nobody has, and
    /// for what an object has that has joined.
    answers: Option<HashMap<Box<[u8]>, Option<Found>>>,
    /// The load is for this process.
    is_to_process: bool,
    /// The load may register what is to be done when threads or the process end.
    registers: bool,
    /// The load looks for symbols by name when it runs.
    looks_up: bool,
    /// The load is of D, whose runtime is a library of the dynamic loader.
    is_of_d: bool,
}

impl<'s> LoadSymbols<'s> {
    pub(crate) fn new(symbols: &'s mut dyn Symbols) -> Self {
        Self {
            symbols,
            keepers: BTreeMap::new(),
            near: None,
            answers: None,
            is_to_process: false,
            registers: false,
            looks_up: false,
            is_of_d: false,
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

    /// Whether the load looks for symbols by name when it runs (`dlsym`), or for names by address (`dladdr`).
    pub(crate) const fn looks_up(&self) -> bool {
        self.looks_up
    }

    /// Fails if the load asks for what refuses it.
    ///
    /// # Errors
    /// [`Error::Linked`] of code of D.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_of_d { Err(d_runtime::refused().into()) } else { Ok(()) }
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
        if let Some(own) = unwind::stands_for(name) {
            return Some(own);
        }
        let found = self.find_in_source(name);
        self.is_of_d |= name.as_bytes() == d_runtime::REGISTRY && found.is_some();
        // a program's own function of such a name is that
        if let Some(own) = dlsym::stands_for(name).filter(|_| found.is_some()) {
            self.looks_up = true;
            return Some(own);
        }
        if let Some(own) = dlsym::opens(name).filter(|_| found.is_some()) {
            return Some(own);
        }
        if found.as_ref().is_some_and(|found| !exit::is_of_process(name, found.address())) {
            return found;
        }
        let own = exit::find(name);
        self.registers |= own.is_some();
        own.or_else(|| processor::find(name))
    }

    fn find_in_source(&mut self, name: Name<'_>) -> Option<External> {
        let answered = self.answers.as_ref().map(|answers| answers.get(name.as_bytes()));
        let found = match answered {
            Some(Some(answer)) => answer.clone(),
            // nobody insists on it
            Some(None) => self.symbols.find_weak(name),
            None => self.symbols.find(name),
        };
        let external = match found? {
            Found::At(external) => external,
            Found::Kept(external, keeper) => {
                self.keepers.entry(Arc::as_ptr(&keeper).cast::<()>().addr()).or_insert(keeper);
                external
            }
            Found::Object(_) | Found::Member(_) => return None,
        };
        if external.is_unknown() {
            self.near.get_or_insert(external.address());
        }
        Some(external)
    }

    /// The objects that the source has for what `objects` miss, for what those miss in turn, and for what is common only. Which
    /// names of all these are one comes with them.
    ///
    /// # Errors
    /// [`Error::Elf`] of an object or of one that joins, which counts behind them.
    pub(crate) fn join<'a>(
        &mut self,
        objects: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(Vec<SharedBytes>, Option<NameNumbers>), Error> {
        let mut joined = Vec::new();
        if !self.symbols.has_objects() {
            return Ok((joined, None));
        }
        let mut undefined = UndefinedSymbols::new();
        let mut count = 0usize;
        for bytes in objects {
            add(&mut undefined, count, bytes)?;
            count = count.saturating_add(1);
        }
        let mut answers = HashMap::new();
        let mut archives = Vec::new();
        let find = |name: Name<'_>, why, last: Option<&Joining>| {
            let found = match why {
                Undefined::Common => self.symbols.find_data(name),
                Undefined::Missing
                    if self.is_to_process
                        && (thread_exit::stands_for(name).is_some()
                            || unwind::stands_for(name).is_some()) =>
                {
                    return None;
                }
                Undefined::Missing => self.symbols.find(name),
            };
            let joining = match &found {
                None | Some(Found::At(_) | Found::Kept(..)) => None,
                Some(Found::Object(bytes)) => {
                    let archive = number(&mut archives, bytes.as_ptr().addr());
                    Some(Joining { archive, member: 0, bytes: bytes.clone() })
                }
                Some(Found::Member(of)) => {
                    let index = of.index();
                    let archive = number(&mut archives, Arc::as_ptr(index).addr());
                    let last = last.filter(|last| last.archive == archive).map(|last| last.member);
                    index.definer(name, why, last).and_then(|member| {
                        let bytes = index.members().get(member)?.clone();
                        Some(Joining { archive, member, bytes })
                    })
                }
            };
            if why == Undefined::Missing {
                let answer = found.filter(|_| joining.is_none());
                answers.insert(name.as_bytes().into(), answer);
            }
            joining
        };
        undefined.extract(find, |undefined, joining: Joining| {
            add(undefined, count.saturating_add(joined.len()), &joining.bytes)?;
            joined.push(joining.bytes);
            Ok::<(), Error>(())
        })?;
        self.answers = Some(answers);
        Ok((joined, Some(undefined.into_numbers())))
    }

    /// Where data of others are that the load asked for.
    pub(crate) const fn near(&self) -> Option<u64> {
        self.near
    }

    /// What has to live as long as the load, which asks for nothing more.
    pub(crate) fn take_keepers(&mut self) -> Vec<Keeper> {
        core::mem::take(&mut self.keepers).into_values().collect()
    }
}

/// An object that joins a load. Those of one archive are in its order, archives in the order in which they are needed.
#[derive(Clone)]
struct Joining {
    archive: usize,
    member: usize,
    bytes: SharedBytes,
}

impl Joining {
    const fn place(&self) -> (usize, usize) {
        (self.archive, self.member)
    }
}

impl Ord for Joining {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for Joining {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Joining {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Joining {}

/// The number of an archive among those `known`.
fn number(known: &mut Vec<usize>, archive: usize) -> usize {
    known.iter().position(|known| *known == archive).unwrap_or_else(|| {
        known.push(archive);
        known.len().saturating_sub(1)
    })
}

/// Enters the symbols of object `object` of a load.
fn add(undefined: &mut UndefinedSymbols, object: usize, bytes: &[u8]) -> Result<(), Error> {
    let added = File::parse(bytes).and_then(|file| undefined.add(&file));
    added.map_err(|error| Error::Elf { object, error })
}
