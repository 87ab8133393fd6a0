//! Where a reference of a library is looked for: in the order of the dynamic loader (gABI ch. 8, "Shared Object Dependencies").

use super::definition::Definition;
use super::handle::{self, Handle};
use super::hashes::ProcessHashes;
use super::loaded::{Loaded, Member};
use crate::copy_relocations;
use crate::external::External;
use crate::symbols::{Found, Keeper, Symbols};
use crate::threads::{Variables, exit};
use crate::unwind;
use core::cell::OnceCell;
use core::ops::Range;
use elf_core::Name;
use elf_image::{Exports, SymbolReference};
use elf_layout::ExternalKind;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Those that are asked, in order: the program and what was opened for all; the library itself, which is first if it is symbolic; what it
/// needs, breadth first; then the caller's symbols.
pub(crate) struct Scope<'s> {
    global: Option<&'static Handle>,
    hashes: Arc<ProcessHashes>,
    needed: &'s Needed,
    /// Found out when somebody before them has not what is wanted: most libraries find all in the process.
    members: OnceCell<Vec<Asked<'s>>>,
    others: &'s mut dyn Symbols,
    pub(crate) variables: Variables,
    pub(crate) keepers: Vec<Keeper>,
    pub(crate) is_symbolic: bool,
}

/// One of those that are asked.
struct Asked<'s> {
    member: &'s Member,
    exports: Option<Exports<'s>>,
    /// Where a library of the dynamic loader is: it is asked for itself, and answers for those that it needs, too.
    extent: Range<u64>,
}

/// What a reference was found to be, and whether that is the library's own.
pub(crate) enum Answer {
    Own,
    Other(Definition),
}

/// Symbols that all libraries out of bytes share by name (`STB_GNU_UNIQUE`), and who has them.
static UNIQUE: Mutex<BTreeMap<Box<[u8]>, Shared>> = Mutex::new(BTreeMap::new());

/// Where a symbol is, and who has it.
type Shared = (u64, Weak<Loaded>);

/// What a library needs, in order, and all that these need.
pub(crate) struct Needed {
    direct: Vec<Member>,
    all: OnceCell<Vec<Member>>,
}

impl Needed {
    pub(crate) const fn new(direct: Vec<Member>) -> Self {
        Self { direct, all: OnceCell::new() }
    }

    /// What the library needs itself.
    pub(crate) fn into_direct(self) -> Vec<Member> {
        self.direct
    }

    fn all(&self) -> &[Member] {
        self.all.get_or_init(|| breadth_first(&self.direct))
    }
}

/// All that the members need, breadth first, each once.
fn breadth_first(direct: &[Member]) -> Vec<Member> {
    let mut all: Vec<Member> = Vec::new();
    let mut next = direct.to_vec();
    while !next.is_empty() {
        let mut deeper = Vec::new();
        for member in next {
            let is_known = all.iter().any(|known| match (known, &member) {
                (Member::Loaded(known), Member::Loaded(member)) => Arc::ptr_eq(known, member),
                (Member::Process(known), Member::Process(member)) => known.is(member),
                _ => false,
            });
            if is_known {
                continue;
            }
            match &member {
                Member::Loaded(loaded) => deeper.extend(loaded.needed.iter().cloned()),
                Member::Process(handle) => {
                    deeper.extend(handle.needed().into_iter().map(Arc::new).map(Member::Process));
                }
            }
            all.push(member);
        }
        next = deeper;
    }
    all
}

impl<'s> Asked<'s> {
    /// Those of a library, in order.
    fn of(needed: &'s Needed) -> Vec<Self> {
        let extents = handle::extents();
        let asked = |member: &'s Member| match member {
            Member::Loaded(loaded) => Self { member, exports: loaded.exports(), extent: 0..0 },
            Member::Process(handle) => {
                let bias = handle.bias();
                let found = extents.iter().find(|(known, _)| Some(*known) == bias);
                let extent = found.map_or(0..0, |(_, extent)| extent.clone());
                Self { member, exports: None, extent }
            }
        };
        needed.all().iter().map(asked).collect()
    }
}

impl<'s> Scope<'s> {
    pub(crate) fn new(needed: &'s Needed, others: &'s mut dyn Symbols, is_symbolic: bool) -> Self {
        Self {
            global: Handle::of_process(),
            hashes: ProcessHashes::current(),
            needed,
            members: OnceCell::new(),
            others,
            variables: Variables::default(),
            keepers: Vec::new(),
            is_symbolic,
        }
    }

    /// Whether a name that the library itself defines, not as one for all, may be somebody else's: by its hash, but for the lowest bit.
    pub(crate) fn may_be_others(&self, hash: u32) -> bool {
        self.hashes.may_hold_hash(hash)
    }

    /// Who has what a reference wants. `own` is the library's symbol of that name and version, if it has one, and whether it is to be
    /// one for all.
    pub(crate) fn find(
        &mut self,
        reference: SymbolReference<'_>,
        own: Option<bool>,
        is_thread_local: bool,
    ) -> Option<Answer> {
        let in_process = self.hashes.may_hold(reference.name);
        if let Some(function) = stands_for(reference.name).filter(|_| in_process) {
            return Some(Answer::Other(Definition::Address(function.address())));
        }
        let is_unique = own == Some(true);
        if self.is_symbolic && own.is_some() && !is_unique {
            return Some(Answer::Own);
        }
        let name = reference.name.as_bytes();
        // what all share goes by its name
        let version = reference.version.map(Name::as_bytes).filter(|_| !is_unique);
        let global = self.global.filter(|_| in_process);
        let global = global.and_then(|global| global.find(name, version));
        if let Some(address) = global {
            return Some(self.of_process(reference, address, is_thread_local));
        }
        if own.is_some() && !is_unique {
            return Some(Answer::Own);
        }
        let mut first = None;
        let needed = self.needed;
        let members = self.members.get_or_init(|| Asked::of(needed));
        for Asked { member, exports, extent } in members {
            match member {
                Member::Process(_) if !in_process => {}
                Member::Process(handle) => {
                    let Some(address) = handle.find(name, version) else { continue };
                    first = first.or(Some(address));
                    // what one further down has is its turn then; copies of threads are nowhere
                    if is_thread_local || is_unique || extent.contains(&address) {
                        return Some(self.of_process(reference, address, is_thread_local));
                    }
                }
                Member::Loaded(loaded) if !is_unique => {
                    let exports = exports.as_ref();
                    if let Some((definition, _)) = exports.and_then(|it| loaded.find(it, reference))
                    {
                        return Some(Answer::Other(definition));
                    }
                }
                Member::Loaded(_) => {}
            }
        }
        if let Some(address) = first {
            return Some(self.of_process(reference, address, is_thread_local));
        }
        if is_unique {
            return Some(match unique(name) {
                Some((address, keeper)) => {
                    self.keepers.push(keeper);
                    Answer::Other(Definition::Address(address))
                }
                None => Answer::Own,
            });
        }
        match self.others.find(reference.name)? {
            Found::At(external) => Some(Answer::Other(definition_of(external))),
            Found::Kept(external, keeper) => {
                self.keepers.push(keeper);
                Some(Answer::Other(definition_of(external)))
            }
            _ => None,
        }
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

/// Our function for this name: what registers for a thread's end keeps the code till then, and unwinders find frames of loads.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    exit::stands_for(name).or_else(|| unwind::stands_for(name))
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

/// The symbol of this name that all share, and who has it.
fn unique(name: &[u8]) -> Option<(u64, Keeper)> {
    let known = UNIQUE.lock().unwrap_or_else(PoisonError::into_inner);
    let (address, owner) = known.get(name)?;
    Some((*address, owner.upgrade()? as Keeper))
}

/// Makes symbols known that all later libraries share. Those of libraries that are gone are forgotten.
pub(crate) fn share(symbols: Vec<(Box<[u8]>, u64)>, owner: &Arc<Loaded>) {
    if symbols.is_empty() {
        return;
    }
    let mut known = UNIQUE.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|_, (_, owner)| owner.strong_count() > 0);
    for (name, address) in symbols {
        known.insert(name, (address, Arc::downgrade(owner)));
    }
}
