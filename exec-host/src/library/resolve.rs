//! What relocations of a library are told of symbols.

use super::d_runtime;
use super::definition::Definition;
use super::error::LibraryError;
use super::late::LateFunctions;
use super::loaded::in_block;
use super::scope::{Answer, Own, Scope};
use crate::Host;
use crate::machine::resolver;
use core::cell::{Cell, RefCell};
use elf_core::names::{
    STB_GNU_UNIQUE, STB_LOCAL, STB_WEAK, STV_DEFAULT, VER_NDX_GLOBAL, VER_NDX_LOCAL, VERSYM_VERSION,
};
use elf_core::{Arch as _, Kind, Name, Query, Resolve, Role, Symbol};
use elf_image::{Exports, ImageSymbols, SymbolReference};
use elf_layout::StaticTlsBlock;

/// A symbol by its index, and its address; of index 0 nothing is known.
type Known = (u32, u64);

/// The symbols of a library that is being loaded.
pub(crate) struct Resolver<'r, 's> {
    /// The library's number in the load.
    node: usize,
    own: &'r Own<'r>,
    scope: &'r RefCell<Scope<'s>>,
    /// Addresses that symbols were found to have lately, by the lower part of their indices: records of one symbol stand together.
    known: Box<[Cell<Known>]>,
    /// Names of versions, by number: those that are needed, and of others those that were asked for.
    versions: RefCell<Option<Vec<Option<Name<'r>>>>>,
    /// Addresses of others that were given out.
    pub(crate) externals: RefCell<Vec<u64>>,
    /// Arguments of TLS descriptors.
    #[expect(clippy::vec_box, reason = "code has their addresses, which stay")]
    pub(crate) pairs: RefCell<Vec<Box<[usize; 2]>>>,
    /// The symbol that was not found last, and why.
    failed: RefCell<Option<(u32, LibraryError)>>,
    /// Code of the library may be called: it is executable.
    pub(crate) is_executable: bool,
    /// Functions that nobody has yet, if they may be looked for when they are called.
    pub(crate) late: Option<LateFunctions>,
}

/// For how many versions and addresses there is room from the beginning.
const MANY: usize = 64;

/// Of how many symbols it is kept what they were found to be.
const MOST_KNOWN: usize = 1024;

impl<'r, 's> Resolver<'r, 's> {
    pub(crate) fn new(
        node: usize,
        own: &'r Own<'r>,
        scope: &'r RefCell<Scope<'s>>,
        late: Option<LateFunctions>,
    ) -> Self {
        let count = own.exports.map_or(0, |exports| exports.symbols().len());
        let count = count.min(MOST_KNOWN).next_power_of_two();
        Self {
            node,
            own,
            scope,
            known: vec![Cell::new((0, 0)); count].into(),
            versions: RefCell::default(),
            externals: RefCell::new(Vec::with_capacity(count.min(MANY))),
            pairs: RefCell::default(),
            failed: RefCell::new(None),
            is_executable: false,
            late,
        }
    }

    /// Says where threads have the library's variables.
    pub(crate) fn set_block(&self, block: Option<StaticTlsBlock>) {
        self.own.block.set(block);
    }

    /// Where threads have the library's variables, if they have them yet.
    fn block(&self) -> Option<StaticTlsBlock> {
        self.own.block.get()
    }

    /// Notes why a symbol is not found.
    fn fail<T>(&self, symbol: u32, why: LibraryError) -> Option<T> {
        *self.failed.borrow_mut() = Some((symbol, why));
        None
    }

    /// Why the symbol of this index was not found, if it is the last one that was not.
    pub(crate) fn why(&self, symbol: u32) -> Option<LibraryError> {
        let last = self.failed.borrow_mut().take();
        last.filter(|(of, _)| *of == symbol).map(|(_, why)| why)
    }

    /// Whether nothing but that nobody has it speaks against the symbol of this index.
    fn is_nobodys(&self, symbol: u32) -> bool {
        let failed = self.failed.borrow();
        let why = failed.as_ref().filter(|(of, _)| *of == symbol);
        matches!(why, None | Some((_, LibraryError::Undefined { .. })))
    }

    /// Whether the symbol of this index is an indirect function of the library itself, whose resolver can only run later.
    pub(crate) fn is_indirect(&self, symbol: u32) -> bool {
        symbol != 0 && matches!(self.definition(symbol, false), Some(Definition::Indirect(_)))
    }

    /// What the symbol of this index is.
    pub(super) fn definition(&self, index: u32, is_thread_local: bool) -> Option<Definition> {
        let last = self.known.len().saturating_sub(1);
        let known = self.known.get(usize::try_from(index).ok()? & last)?;
        let (of, address) = known.get();
        if of == index && index != 0 {
            return Some(Definition::Address(address));
        }
        let exports = self.own.exports?;
        let symbol = exports.symbols().get(index).ok()?;
        let found = self.look_up(exports, index, &symbol, is_thread_local)?;
        if let Definition::Address(address) = found {
            known.set((index, address));
        }
        Some(found)
    }

    fn look_up(
        &self,
        exports: &Exports<'r>,
        index: u32,
        symbol: &Symbol,
        is_thread_local: bool,
    ) -> Option<Definition> {
        let own = || self.own.define(symbol);
        let is_local = symbol.binding() == STB_LOCAL || symbol.visibility() != STV_DEFAULT;
        if is_local && !symbol.is_undefined() {
            return Some(own());
        }
        let is_unique = symbol.binding() == STB_GNU_UNIQUE;
        // most of the library's own: only the process is asked before it
        if !symbol.is_undefined()
            && !is_unique
            && let Some(hash) = exports.hash_of(index)
            && !self.scope.borrow().may_be_others(self.node, hash)
        {
            return Some(own());
        }
        let reference = match self.reference(exports, index, symbol) {
            Ok(reference) => reference,
            Err(error) => return self.fail(index, error.into()),
        };
        let defined = (!symbol.is_undefined()).then_some(is_unique);
        let is_thread_local = is_thread_local || symbol.r#type() == elf_core::names::STT_TLS;
        match self.scope.borrow_mut().find(self.node, reference, defined, is_thread_local) {
            Some(Answer::Own) => Some(own()),
            Some(Answer::Other(_)) if reference.name.as_bytes() == d_runtime::REGISTRY => {
                self.fail(index, d_runtime::refused())
            }
            Some(Answer::Other(definition)) => {
                if let Definition::Address(address) = definition {
                    self.externals.borrow_mut().push(address);
                }
                Some(definition)
            }
            None if symbol.binding() == STB_WEAK => Some(Definition::Address(0)),
            None => {
                let version = reference.version.map(|version| version.to_string());
                let name = reference.name.to_string();
                self.fail(index, LibraryError::Undefined { name, version })
            }
        }
    }

    /// Name and version of the symbol of this index. A file has few versions, in lists.
    fn reference(
        &self,
        exports: &Exports<'r>,
        index: u32,
        symbol: &Symbol,
    ) -> Result<SymbolReference<'r>, elf_image::Error> {
        let number = exports.version_number(index).unwrap_or(VER_NDX_LOCAL);
        if matches!(number, VER_NDX_LOCAL | VER_NDX_GLOBAL) {
            return Ok(SymbolReference { name: exports.symbols().name_of(symbol)?, version: None });
        }
        let number = usize::from(number);
        let mut versions = self.versions.borrow_mut();
        let versions = versions.get_or_insert_with(|| needed_versions(exports));
        if let Some(Some(version)) = versions.get(number) {
            let name = exports.symbols().name_of(symbol)?;
            return Ok(SymbolReference { name, version: Some(*version) });
        }
        let reference = exports.reference(index)?;
        if reference.version.is_some() {
            set(versions, number, reference.version);
        }
        Ok(reference)
    }

    /// Module, offset in its block and TP offset of a thread-local variable; of the library's block itself for
    /// no symbol.
    fn variable(&self, index: u32) -> Option<(u64, u64, Option<i64>)> {
        if index == 0 {
            let block = self.block()?;
            return Some((block.module, 0, block.tp_offset));
        }
        let definition = match self.definition(index, true)? {
            // a weak one that nobody has
            Definition::Address(0) => return Some((0, 0, Some(0))),
            Definition::Address(_) => self.in_own_block(index)?,
            definition => definition,
        };
        match definition {
            Definition::ThreadLocal { module, offset, tp_offset } => {
                Some((module, offset, tp_offset))
            }
            _ => None,
        }
    }

    /// What a local symbol stands for that is none of a variable: gold asks for the module of a section.
    fn in_own_block(&self, index: u32) -> Option<Definition> {
        let symbol = self.own.exports?.symbols().get(index).ok()?;
        let block = self.block().filter(|_| symbol.binding() == STB_LOCAL)?;
        Some(in_block(symbol.value, Some(&block)))
    }

    /// A stub for a function that nobody has, if it may be looked for when it is called.
    fn at_first_call(&self, index: u32) -> Option<u64> {
        let late = self.late.as_ref()?;
        let exports = self.own.exports?;
        let symbol = exports.symbols().get(index).ok()?;
        let reference = self.reference(exports, index, &symbol).ok()?;
        match late.add(reference, Name(self.own.file)) {
            Ok(stub) => Some(stub),
            Err(error) => self.fail(index, LibraryError::Refused { reason: error.to_string() }),
        }
    }

    /// TP offset of a variable.
    fn tp_offset(&self, index: u32) -> Option<u64> {
        let (_, _, tp_offset) = self.variable(index)?;
        if tp_offset.is_none() {
            let reason = String::from(
                "thread-local variables at one distance from the thread pointer (initial exec, DF_STATIC_TLS), \
                 of which the dynamic loader has no more room",
            );
            return self.fail(index, LibraryError::Refused { reason });
        }
        tp_offset.map(i64::cast_unsigned)
    }
}

impl Resolve for Resolver<'_, '_> {
    fn resolve(&self, query: &Query) -> Option<u64> {
        match query.role {
            Role::Address | Role::Plt if query.symbol == 0 => Some(0),
            Role::Address | Role::Plt => match self.definition(query.symbol, false) {
                Some(Definition::Address(address)) => Some(address),
                None if is_jump_slot(query.kind) && self.is_nobodys(query.symbol) => {
                    self.at_first_call(query.symbol)
                }
                Some(Definition::Indirect(code)) if self.is_executable => {
                    // SAFETY: who opens the library guarantees its code, which is executable now.
                    Some(unsafe { resolver::call(code) })
                }
                _ => None,
            },
            Role::Size => {
                let symbols = self.own.exports?.symbols();
                symbols.get(query.symbol).ok().map(|symbol| symbol.size)
            }
            Role::TlsModule => self.variable(query.symbol).map(|(module, ..)| module),
            Role::DtpOffset => {
                let (_, offset, _) = self.variable(query.symbol)?;
                Some(offset.wrapping_add_signed(Host::TLS?.dtp_bias))
            }
            Role::TpOffset => self.tp_offset(query.symbol),
            Role::TlsDescFunction => {
                let block = self.block()?;
                let (_, _, tp_offset) = self.variable(query.symbol)?;
                if tp_offset.is_some() { block.descriptor } else { block.dynamic_descriptor }
            }
            Role::TlsDescArgument => {
                let (module, offset, tp_offset) = self.variable(query.symbol)?;
                if let Some(tp_offset) = tp_offset {
                    return Some(tp_offset.wrapping_add(query.addend).cast_unsigned());
                }
                let pair = Box::new(
                    [module, offset.wrapping_add_signed(query.addend)].map(|word| word as usize),
                );
                let address = (&raw const *pair).expose_provenance() as u64;
                self.pairs.borrow_mut().push(pair);
                Some(address)
            }
            Role::Indirect if self.is_executable => {
                let code = self.own.bias.wrapping_add_signed(query.addend);
                // SAFETY: who opens the library guarantees its code, which is executable now.
                Some(unsafe { resolver::call(code) })
            }
            _ => None,
        }
    }

    #[inline]
    fn symbol_address(&self, symbol: u32) -> Option<u64> {
        match self.definition(symbol, false) {
            Some(Definition::Address(address)) if symbol != 0 => Some(address),
            _ => None,
        }
    }
}

impl ImageSymbols for Resolver<'_, '_> {}

/// Puts an item at a place of a list that grows.
fn set<T: Copy>(list: &mut Vec<Option<T>>, at: usize, item: Option<T>) {
    if list.len() <= at {
        list.resize(at.saturating_add(1), None);
    }
    if let Some(place) = list.get_mut(at) {
        *place = item;
    }
}

/// The names of the versions that a file needs, by number, up to what is damaged, but for those that it defines.
fn needed_versions<'r>(exports: &Exports<'r>) -> Vec<Option<Name<'r>>> {
    let mut names = Vec::with_capacity(MANY);
    let Some(versions) = exports.versions() else { return names };
    let needed = versions.needs().map_while(Result::ok).flat_map(|it| it.versions());
    for version in needed.map_while(Result::ok) {
        let number = usize::from(version.index & VERSYM_VERSION);
        if !matches!(names.get(number), Some(Some(_))) {
            set(&mut names, number, Some(version.name));
        }
    }
    for definition in versions.definitions() {
        let Ok(definition) = definition else { return Vec::new() };
        if let Some(place) = names.get_mut(usize::from(definition.index & VERSYM_VERSION)) {
            *place = None;
        }
    }
    names
}

/// Whether a relocation is that of a function which is called through the PLT (`R_*_JUMP_SLOT` in every psABI).
fn is_jump_slot(kind: &Kind) -> bool {
    kind.name.ends_with("_JUMP_SLOT")
}
