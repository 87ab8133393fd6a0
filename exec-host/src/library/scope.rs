//! Where a reference of a library is looked for: in the order of the dynamic loader (gABI ch. 8, "Shared Object Dependencies").

use super::definition::Definition;
use super::group::{Edge, Node};
use super::handle::Handle;
use super::hashes::ProcessHashes;
use super::loaded::{Held, Member, Unit, define};
use super::members::{Asked, OfLoad};
use super::plug_ins;
use super::search_list::SearchList;
use super::tables::Has;
use crate::copy_relocations;
use crate::dlsym;
use crate::external::External;
use crate::symbols::{Found, Keeper, Symbols};
use crate::threads::{Variables, exit};
use crate::unwind;
use core::cell::{Cell, OnceCell};
use core::ops::Range;
use elf_core::names::{STB_GNU_UNIQUE, STT_TLS};
use elf_core::{Name, Symbol, gnu_hash};
use elf_image::{Exports, SymbolReference};
use elf_layout::{ExternalKind, StaticTlsBlock};
use exec_core::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// A library of the load, as the others see it.
pub(crate) struct Own<'s> {
    /// What it is called: its path, if that is known, else a name.
    pub(crate) file: &'s [u8],
    pub(crate) exports: Option<&'s Exports<'s>>,
    pub(crate) bias: u64,
    /// It is asked first for what it refers to itself.
    pub(crate) is_symbolic: bool,
    /// Where threads have its variables, once they have them.
    pub(crate) block: Cell<Option<StaticTlsBlock>>,
}

impl Own<'_> {
    /// What a symbol of it is.
    pub(crate) fn define(&self, symbol: &Symbol) -> Definition {
        // most are no variables of threads
        let block = if symbol.r#type() == STT_TLS { self.block.get() } else { None };
        define(symbol, self.bias, block.as_ref())
    }
}

/// Those that are asked, in order: the program and what was opened for all; a library itself, which is first if it is symbolic; the one
/// that is opened and what it needs, breadth first; then the caller's symbols.
pub(crate) struct Scope<'s> {
    global: Option<&'static Handle>,
    hashes: Arc<ProcessHashes>,
    /// The libraries of the load, the one that is opened first.
    own: &'s [Own<'s>],
    nodes: &'s [Node],
    /// What is needed is the dynamic loader's, all of it.
    is_alone: bool,
    /// Nothing stands in for the one that is opened.
    is_first: bool,
    /// Found out as far as those before have not what is wanted: most libraries find all in the process.
    members: SearchList<Asked>,
    others: &'s mut dyn Symbols,
    pub(crate) variables: Variables,
    /// What libraries refer to, by their numbers.
    pub(crate) keepers: Vec<(usize, Keeper)>,
    /// Which libraries of the load refer to which.
    pub(crate) bound: Vec<(usize, usize)>,
    /// Symbols that all share from now on, where they are, and whose they are.
    pub(crate) shared: Vec<(Box<[u8]>, u64, usize)>,
    /// Libraries that were opened for all and may be closed: where they are, and who keeps them.
    closable: Vec<(Range<u64>, usize)>,
    /// Libraries of the process that may be asked with the program, by their numbers there, beside those that stay.
    shown: Vec<usize>,
}

/// What a reference was found to be, and whether that is the library's own.
pub(crate) enum Answer {
    Own,
    Other(Definition),
}

/// Symbols that all libraries out of bytes share by name (`STB_GNU_UNIQUE`), and who has them.
static UNIQUE: Mutex<BTreeMap<Box<[u8]>, Shared>> = Mutex::new(BTreeMap::new());

/// Where a symbol is, and who has it.
type Shared = (u64, Weak<Unit>);

/// From how many symbols on it pays to find out which libraries were opened for all.
const MANY: usize = 1024;

impl<'s> Scope<'s> {
    pub(crate) fn new(own: &'s [Own<'s>], nodes: &'s [Node], others: &'s mut dyn Symbols) -> Self {
        let is_alone = nodes.len() == 1
            && nodes
                .iter()
                .flat_map(Node::leads)
                .all(|(edge, _)| matches!(edge, Edge::Member(Member::Process(_))));
        let is_first = nodes.first().is_some_and(|node| node.stand_ins.is_empty());
        let exports = own.first().and_then(|own| own.exports);
        let hashes = ProcessHashes::current();
        let shown = hashes.shown(exports.is_some_and(|exports| exports.symbols().len() >= MANY));
        Self {
            is_alone,
            is_first,
            global: Handle::of_process(),
            hashes,
            own,
            nodes,
            members: SearchList::new(Asked::Own(0)),
            others,
            variables: Variables::default(),
            keepers: Vec::new(),
            bound: Vec::new(),
            shared: Vec::new(),
            closable: Vec::new(),
            shown,
        }
    }

    /// Whether a name that the library of this number itself defines, not as one for all, may be somebody else's: by its hash, but for the
    /// lowest bit.
    pub(crate) fn may_be_others(&self, node: usize, hash: u32) -> bool {
        node != 0 || !self.is_first || self.hashes.may_hold_shown(hash, &self.shown)
    }

    /// Who has what a reference of the library of this number wants. `own` is whether the library has a symbol of that name and version,
    /// and whether it is to be one for all.
    pub(crate) fn find(
        &mut self,
        node: usize,
        reference: SymbolReference<'_>,
        own: Option<bool>,
        is_thread_local: bool,
    ) -> Option<Answer> {
        let hash = gnu_hash(reference.name);
        if self.hashes.may_be_ours(hash)
            && let Some(function) = stands_for(reference.name)
        {
            return Some(Answer::Other(Definition::Address(function.address())));
        }
        let is_unique = own == Some(true);
        let is_symbolic = self.own.get(node).is_some_and(|own| own.is_symbolic);
        if is_symbolic && own.is_some() && !is_unique {
            return Some(Answer::Own);
        }
        let name = reference.name.as_bytes();
        // what all share goes by its name
        let version = reference.version.map(Name::as_bytes).filter(|_| !is_unique);
        let has = match is_unique {
            true => Has::Unknown,
            false => self.hashes.find(hash, name, version, &self.shown),
        };
        // who has it stays
        if let Has::At(address) = has {
            return Some(self.of_process(reference, address, is_thread_local));
        }
        // the dynamic loader takes long to say that it has not got one
        let is_asked = match is_unique {
            true => self.hashes.may_hold_shown(hash, &self.shown),
            false => has == Has::Unknown,
        };
        let global = self.global.filter(|_| is_asked);
        let global = global.and_then(|global| global.find(name, version));
        if let Some(address) = global {
            self.keep(node, address);
            return Some(self.of_process(reference, address, is_thread_local));
        }
        // the one that is opened is asked first
        if node == 0 && self.is_first && own.is_some() && !is_unique {
            return Some(Answer::Own);
        }
        let (mut first, mut local, mut is_behind) = (None, None, false);
        let graph = OfLoad { nodes: self.nodes, hashes: Arc::clone(&self.hashes) };
        let (hashes, in_process) = (Arc::clone(&self.hashes), OnceCell::new());
        let may_be_there = || *in_process.get_or_init(|| hashes.may_hold_hash(hash));
        let is_alone = self.is_alone && self.is_first;
        let mut members = core::mem::replace(&mut self.members, SearchList::empty());
        let mut of = |asked: &Asked| match asked {
            Asked::Own(_) | Asked::Held(_) if is_unique && is_behind => None,
            Asked::Own(index) if *index == node => {
                is_behind |= is_unique;
                (own.is_some() && !is_unique).then_some(Answer::Own)
            }
            Asked::Own(index) if is_unique && self.has_unique(*index, reference) => {
                is_behind = true;
                None
            }
            Asked::Held(held) if is_unique && has_unique(held, reference) => {
                is_behind = true;
                None
            }
            Asked::Own(index) => self.of_load(node, *index, reference),
            Asked::Held(held) => self.of_held(node, held, reference),
            Asked::Process(_, None) if !may_be_there() => None,
            Asked::Process(handle, number) => {
                let has = number.map(|number| graph.hashes.find_in(number, hash, name, version));
                let address = match has {
                    // what all share is the library's own unless those before it have the name, or it is shared already
                    Some(Has::At(_)) if is_unique && is_behind => return None,
                    Some(Has::At(address)) => address,
                    // it would only find what one further down has, whose turn comes
                    Some(Has::Nothing) => return None,
                    _ => handle.find(name, version)?,
                };
                first = first.or(Some(address));
                let library = match has {
                    Some(Has::At(_)) => *number,
                    _ => graph.hashes.library_at(address),
                };
                // the program was asked for the same, and has it not
                local = local.or(library.filter(|_| is_asked));
                // what one further down has is its turn then; copies of threads are nowhere
                let is_its =
                    is_thread_local || is_unique || library.is_some() && library == *number;
                is_its.then(|| self.of_process(reference, address, is_thread_local))
            }
        };
        let found = (0..usize::MAX).map_while(|number| {
            // the first is the library itself; to find out what the dynamic loader's lead to takes long
            let is_over = is_alone && members.is_at_end(number.max(1)) && !may_be_there();
            members.get(number, &graph).filter(|_| !is_over).map(&mut of)
        });
        let found = found.flatten().next();
        self.members = members;
        if let Some(local) = local {
            self.shown.retain(|number| *number != local);
        }
        if found.is_some() {
            return found;
        }
        if let Some(address) = first {
            return Some(self.of_process(reference, address, is_thread_local));
        }
        if is_unique {
            return Some(self.unique(node, reference));
        }
        match self.others.find(reference.name)? {
            Found::At(external) => Some(Answer::Other(definition_of(external))),
            Found::Kept(external, keeper) => {
                self.keepers.push((node, keeper));
                Some(Answer::Other(definition_of(external)))
            }
            _ => None,
        }
    }

    /// Keeps the library that has this address, if it was opened for all: who has opened it may close it.
    fn keep(&mut self, node: usize, address: u64) {
        let is_kept =
            self.closable.iter().any(|(range, of)| *of == node && range.contains(&address));
        if !is_kept && let Some((range, handle)) = Handle::of_closable(address) {
            self.keepers.push((node, Arc::new(handle)));
            self.closable.push((range, node));
        }
    }

    /// What another library of the load has.
    fn of_load(
        &mut self,
        node: usize,
        index: usize,
        reference: SymbolReference<'_>,
    ) -> Option<Answer> {
        let own = self.own.get(index)?;
        let (_, symbol) = own.exports?.find(reference).ok()??;
        if symbol.binding() == STB_GNU_UNIQUE {
            return Some(self.unique(node, reference));
        }
        self.bound.push((node, index));
        Some(Answer::Other(own.define(&symbol)))
    }

    /// Whether another library of the load has a symbol that is to be one for all.
    fn has_unique(&self, index: usize, reference: SymbolReference<'_>) -> bool {
        let exports = self.own.get(index).and_then(|own| own.exports);
        let found = exports.and_then(|exports| exports.find(reference).ok().flatten());
        found.is_some_and(|(_, symbol)| symbol.binding() == STB_GNU_UNIQUE)
    }

    /// What a library has that was loaded before.
    fn of_held(
        &mut self,
        node: usize,
        held: &Held,
        reference: SymbolReference<'_>,
    ) -> Option<Answer> {
        let exports = held.exports()?;
        let (definition, is_unique) = held.find(exports, reference)?;
        match unique(reference.name.as_bytes()).filter(|_| is_unique) {
            Some((address, keeper)) => {
                self.keepers.push((node, keeper));
                Some(Answer::Other(Definition::Address(address)))
            }
            None => Some(Answer::Other(definition)),
        }
    }

    /// The symbol of this name that all share: where it is known to be, else the first of the load.
    fn unique(&mut self, node: usize, reference: SymbolReference<'_>) -> Answer {
        let name = reference.name.as_bytes();
        let known = self.shared.iter().find(|(known, ..)| **known == *name);
        if let Some((_, address, owner)) = known {
            self.bound.push((node, *owner));
            return Answer::Other(Definition::Address(*address));
        }
        if let Some((address, keeper)) = unique(name) {
            self.keepers.push((node, keeper));
            return Answer::Other(Definition::Address(address));
        }
        let definitions = self.own.iter().enumerate().filter_map(|(index, own)| {
            let (_, symbol) = own.exports?.find(reference).ok()??;
            (symbol.binding() == STB_GNU_UNIQUE).then(|| (index, own.define(&symbol)))
        });
        let Some((index, definition)) = { definitions }.next() else { return Answer::Own };
        if let Definition::Address(address) = definition {
            self.shared.push((name.into(), address, index));
        }
        if index == node {
            return Answer::Own;
        }
        self.bound.push((node, index));
        Answer::Other(definition)
    }

    /// A symbol of the process at this address.
    fn of_process(
        &mut self,
        reference: SymbolReference<'_>,
        address: u64,
        is_thread_local: bool,
    ) -> Answer {
        let variable =
            is_thread_local.then(|| self.variables.find(reference.name, address)).flatten();
        Answer::Other(match variable {
            Some(variable) => definition_of(variable),
            None => Definition::Address(copy_relocations::current(address)),
        })
    }
}

/// Our function for this name: what registers for a thread's end keeps the code till then, unwinders find frames of loads, `dladdr`
/// libraries, `dlsym` what they show, `dlopen` what is in their folders, and what that gives for libraries out of bytes is a handle for
/// others.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    exit::stands_for(name)
        .or_else(|| unwind::stands_for(name))
        .or_else(|| dlsym::stands_for(name))
        .or_else(|| plug_ins::stands_for(name))
}

fn definition_of(external: External) -> Definition {
    let external = external.for_layout();
    match external.kind {
        ExternalKind::ThreadLocal { module, tp_offset } => {
            Definition::ThreadLocal { module, offset: external.address, tp_offset }
        }
        _ => Definition::Address(external.address),
    }
}

/// Whether a library that was loaded before has a symbol that is to be one for all.
fn has_unique(held: &Held, reference: SymbolReference<'_>) -> bool {
    let found = held.exports().and_then(|exports| held.find(exports, reference));
    found.is_some_and(|(_, is_unique)| is_unique)
}

/// The symbol of this name that all share, and who has it.
fn unique(name: &[u8]) -> Option<(u64, Keeper)> {
    let known = UNIQUE.lock();
    let (address, owner) = known.get(name)?;
    Some((*address, owner.upgrade()? as Keeper))
}

/// Makes symbols known that all later libraries share. Those of libraries that are gone are forgotten.
pub(crate) fn share(symbols: Vec<(Box<[u8]>, u64, usize)>, owners: &[Held]) {
    if symbols.is_empty() {
        return;
    }
    let mut known = UNIQUE.lock();
    known.retain(|_, (_, owner)| owner.strong_count() > 0);
    for (name, address, owner) in symbols {
        if let Some(owner) = owners.get(owner) {
            known.insert(name, (address, owner.downgrade()));
        }
    }
}
