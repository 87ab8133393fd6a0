//! A library that was loaded out of bytes, all that belongs to it, and who keeps it.

use super::at_exit::{Coming, Ends};
use super::definition::Definition;
use super::described::Described;
use super::handle::Handle;
use super::library_file::LibraryFile;
use crate::machine::resolver;
use crate::memory::Mapping;
use crate::observer::{LoadedFunction, LoadedLibrary, Observed};
use crate::start;
use crate::symbols::Keeper;
use crate::threads::{Threads, exit};
use crate::unwind::Unwinding;
use core::ops::{Deref, Range};
use core::sync::atomic::{AtomicBool, Ordering};
use elf_core::names::{SHN_ABS, STB_GNU_UNIQUE, STT_GNU_IFUNC, STT_TLS};
use elf_core::{Name, Symbol};
use elf_image::{Exports, SymbolReference};
use elf_layout::StaticTlsBlock;
use exec_core::sync::{Mutex, OnceLock};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// One that a library needs.
#[derive(Clone)]
pub(crate) enum Member {
    /// Of the dynamic loader.
    Process(Arc<Handle>),
    /// Loaded out of bytes.
    Loaded(Held),
}

impl Member {
    /// Whether both are one library.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Process(one), Self::Process(other)) => one.is(other),
            (Self::Loaded(one), Self::Loaded(other)) => one.is(other),
            _ => false,
        }
    }
}

/// What a library needs.
pub(crate) enum Link {
    Member(Member),
    /// One that goes with it, by its place in the unit.
    Inside(usize),
}

/// What a library needs, in order, and in which order it goes.
#[derive(Default)]
pub(crate) struct NeededLibraries {
    /// Each with whether it is asked before the library itself.
    pub(crate) all: Vec<(Link, bool)>,
    pub(crate) last: Vec<usize>,
}

impl Drop for NeededLibraries {
    fn drop(&mut self) {
        for index in &self.last {
            if let Some((link, _)) = self.all.get_mut(*index) {
                *link = Link::Inside(0);
            }
        }
    }
}

/// What a library consists of, in the order in which it goes.
pub(crate) struct Loaded {
    pub(crate) content: Arc<LibraryFile>,
    /// The name that others need it by (`DT_SONAME`).
    pub(crate) name: Box<[u8]>,
    /// The folder that it is said to be in.
    pub(crate) folder: Option<PathBuf>,
    /// What is added to addresses of the file.
    pub(crate) bias: u64,
    pub(crate) code: Vec<Range<u64>>,
    /// Destructors, in the order to call them, once constructors have begun to run.
    pub(crate) finalize: OnceLock<Vec<u64>>,
    #[expect(dead_code, reason = "dropped before the memory")]
    pub(crate) observed: Vec<Observed>,
    #[expect(dead_code, reason = "dropped before the memory")]
    pub(crate) unwinding: Unwinding,
    #[expect(dead_code, reason = "dropped before the memory")]
    pub(crate) described: Described,
    pub(crate) memory: Mapping,
    /// Bytes of its pages: the memory may be larger.
    pub(crate) size: u64,
    pub(crate) threads: Option<Threads>,
    /// Arguments of TLS descriptors: module and offset.
    #[expect(dead_code, clippy::vec_box, reason = "the code has their addresses, which stay")]
    pub(crate) pairs: Vec<Box<[usize; 2]>>,
    /// What it needs, dropped behind it.
    pub(crate) links: NeededLibraries,
    /// What else its code refers to.
    pub(crate) keepers: Vec<Keeper>,
}

impl core::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = elf_core::Name(&self.name);
        f.debug_struct("Library")
            .field("name", &name)
            .field("bias", &self.bias)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// The symbols that it shows.
    pub(crate) fn exports(&self) -> Option<&Exports<'_>> {
        self.content.exports()
    }

    /// What a symbol of it is. Its relocations are done: resolvers may be called.
    pub(crate) fn definition(&self, symbol: &Symbol) -> Definition {
        let block = self.threads.as_ref().map(Threads::static_tls_block);
        match define(symbol, self.bias, block.as_ref()) {
            Definition::Indirect(resolver) if self.is_code(resolver) => {
                // SAFETY: who opened the library guarantees its code; the address is in it, as was checked.
                Definition::Address(unsafe { resolver::call(resolver) })
            }
            Definition::Indirect(_) => Definition::Address(0),
            definition => definition,
        }
    }

    /// The symbol that a reference means.
    pub(crate) fn find(
        &self,
        exports: &Exports<'_>,
        reference: SymbolReference<'_>,
    ) -> Option<(Definition, bool)> {
        let (_, symbol) = exports.find(reference).ok()??;
        Some((self.definition(&symbol), symbol.binding() == STB_GNU_UNIQUE))
    }

    /// Its functions, by rising address.
    pub(crate) fn functions(&self) -> Vec<LoadedFunction<'_>> {
        let file = self.content.bytes();
        let shown = self.exports().map(Exports::symbols);
        LoadedLibrary::new(file, Name(&self.name), self.bias, &self.code, &self.memory, shown)
            .functions()
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }
}

/// Libraries each of which keeps all others, directly or by way of others: one library, where none needs itself.
pub(crate) struct Unit {
    first: Loaded,
    others: Vec<Loaded>,
    /// In which order their destructors are called.
    last: Vec<usize>,
    coming: Coming,
    /// The libraries that were opened with them, the one that they were loaded for first.
    scopes: Mutex<Vec<Weak<Unit>>>,
    /// Their destructors have been called.
    is_over: AtomicBool,
}

/// A library of a unit, which keeps all of that.
#[derive(Clone)]
pub(crate) struct Held {
    unit: Arc<Unit>,
    index: usize,
}

impl Unit {
    /// The libraries, each of which keeps the unit.
    pub(crate) fn hold(first: Loaded, others: Vec<Loaded>, last: Vec<usize>) -> Vec<Held> {
        let (coming, is_over) = (Coming::default(), AtomicBool::new(false));
        let scopes = Mutex::default();
        let unit = Arc::new(Self { first, others, last, coming, scopes, is_over });
        let all = 0..=unit.others.len();
        all.map(|index| Held { unit: Arc::clone(&unit), index }).collect()
    }

    fn get(&self, index: usize) -> &Loaded {
        let other = index.checked_sub(1).and_then(|index| self.others.get(index));
        other.unwrap_or(&self.first)
    }
}

impl Ends for Unit {
    fn kept(&self) -> Vec<*const ()> {
        let all = || core::iter::once(&self.first).chain(&self.others);
        let needed =
            all().flat_map(|library| &library.links.all).filter_map(|(link, _)| match link {
                Link::Member(Member::Loaded(held)) => Some(Arc::as_ptr(&held.unit).cast::<()>()),
                _ => None,
            });
        let others = all().flat_map(|library| &library.keepers);
        needed.chain(others.map(|keeper| Arc::as_ptr(keeper).cast::<()>())).collect()
    }

    fn finalize(&self) {
        if self.is_over.swap(true, Ordering::AcqRel) {
            return;
        }
        for index in &self.last {
            if let Some(functions) = self.get(*index).finalize.get() {
                // SAFETY: who opened the library guaranteed its destructors, and nobody uses its code any more, or the process ends.
                unsafe { start::of_process().call(functions) };
            }
        }
    }
}

impl Deref for Held {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        self.unit.get(self.index)
    }
}

impl core::fmt::Debug for Held {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(f)
    }
}

impl Held {
    /// Whether both are one library.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.unit, &other.unit) && self.index == other.index
    }

    /// Has its destructors run when the process ends, at the latest.
    pub(crate) fn end_with_process(&self) {
        self.unit.coming.enter(self.downgrade());
    }

    /// Whether nothing that it needs is asked before it.
    pub(crate) fn is_first(&self) -> bool {
        !self.links.all.iter().any(|(_, is_before)| *is_before)
    }

    /// What keeps the library.
    pub(crate) fn keeper(&self) -> Keeper {
        Arc::clone(&self.unit) as Keeper
    }

    /// The library that this code is of.
    pub(crate) fn of_code(address: u64) -> Option<Self> {
        let unit = exit::keeper_of(address)?.downcast::<Unit>().ok()?;
        let mut all = 0..=unit.others.len();
        let index = all.find(|index| unit.get(*index).is_code(address))?;
        Some(Self { unit, index })
    }

    /// The one that was opened of those that go together, if they are there.
    pub(crate) fn first_of(unit: &Weak<Unit>) -> Option<Self> {
        Some(Self { unit: unit.upgrade()?, index: 0 })
    }

    /// The libraries that were opened with this one and are there, the one that it was loaded for first.
    pub(crate) fn scopes(&self) -> Vec<Self> {
        let scopes = self.unit.scopes.lock();
        scopes.iter().filter_map(Self::first_of).collect()
    }

    /// Says that it is in the scope of a library that is opened, and all out of bytes that it needs.
    pub(crate) fn enter_scope(&self, opened: &Self) {
        let opened = opened.downgrade();
        let (mut all, mut known) = (vec![self.clone()], Vec::<*const Unit>::new());
        while let Some(library) = all.pop() {
            let unit = Arc::as_ptr(&library.unit);
            if known.contains(&unit) {
                continue;
            }
            known.push(unit);
            let mut scopes = library.unit.scopes.lock();
            // what it was loaded for is the first, there or not
            let mut index = 0usize;
            scopes.retain(|scope| {
                index = index.saturating_add(1);
                index == 1 || scope.strong_count() > 0
            });
            if !scopes.iter().any(|scope| scope.ptr_eq(&opened)) {
                scopes.push(opened.clone());
            }
            drop(scopes);
            let members = || core::iter::once(&library.unit.first).chain(&library.unit.others);
            let links = members().flat_map(|library| &library.links.all);
            all.extend(links.filter_map(|(link, _)| match link {
                Link::Member(Member::Loaded(held)) => Some(held.clone()),
                _ => None,
            }));
        }
    }

    /// What keeps nothing, and knows whether the library is there.
    pub(crate) fn downgrade(&self) -> Weak<Unit> {
        Arc::downgrade(&self.unit)
    }

    /// What the library needs, in order, and whether it is asked before it.
    pub(crate) fn leads(&self) -> Vec<(Member, bool)> {
        let member = |(link, is_before): &(Link, bool)| match link {
            Link::Member(member) => (member.clone(), *is_before),
            Link::Inside(index) => {
                let unit = Arc::clone(&self.unit);
                (Member::Loaded(Self { unit, index: *index }), *is_before)
            }
        };
        self.links.all.iter().map(member).collect()
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.finalize();
    }
}

/// What a defined symbol is in an image with this bias, whose threads have this block.
pub(crate) fn define(symbol: &Symbol, bias: u64, block: Option<&StaticTlsBlock>) -> Definition {
    match symbol.r#type() {
        STT_TLS => in_block(symbol.value, block),
        _ if symbol.shndx == SHN_ABS => Definition::Address(symbol.value),
        STT_GNU_IFUNC => Definition::Indirect(symbol.value.wrapping_add(bias)),
        _ => Definition::Address(symbol.value.wrapping_add(bias)),
    }
}

/// A variable at an offset of a library's block.
pub(crate) fn in_block(offset: u64, block: Option<&StaticTlsBlock>) -> Definition {
    let tp_offset = block.and_then(|block| block.tp_offset);
    let tp_offset = tp_offset.map(|start| start.wrapping_add_unsigned(offset));
    let module = block.map_or(0, |block| block.module);
    Definition::ThreadLocal { module, offset, tp_offset }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        exit::leave(&self.memory.ranges());
    }
}
