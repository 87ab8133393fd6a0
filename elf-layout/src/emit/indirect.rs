//! Indirect functions (`STT_GNU_IFUNC`): their address is that of a stub (an entry of `.iplt`), which jumps where a function of the
//! objects, the resolver, says. The resolver runs once the image is there, and its answer is stored in the GOT entry of the stub (of `.igot.plt`).

use crate::emit::resolve::Symbols;
use crate::model::layout::Layout;
use crate::model::owner::owner;
use crate::model::storage::{SymbolSlot, SymbolState};
use elf_core::Arch;

/// An indirect function: its resolver returns its address (`STT_GNU_IFUNC`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectFunction {
    /// The object that defines it.
    pub object: usize,
    /// The symbol's index there.
    pub symbol: u32,
    /// The resolver, in bytes from the start of the image. It returns the function's address.
    pub resolver: u64,
    /// The GOT entry that takes the address, in bytes from the start of the image.
    pub entry: u64,
}

/// A function that may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplaceableFunction {
    /// The object that defines it.
    pub object: usize,
    /// The symbol's index there.
    pub symbol: u32,
    /// The function itself, in bytes from the start of the image.
    pub function: u64,
    /// The GOT entry that holds its address, in bytes from the start of the image. Nothing else uses it.
    pub entry: u64,
}

impl<A: Arch> Layout<'_, '_, A> {
    /// The indirect functions, in the order in which they are to be resolved: after the image is written, before anything else in it
    /// runs.
    pub fn indirect_functions(&self) -> impl Iterator<Item = IndirectFunction> + '_ {
        let symbols = Symbols::new(self, 0, 0..self.symbols.len(), 0);
        self.defined_as(SymbolState::Indirect).filter_map(move |(id, slot)| {
            let (object, symbol) = owner(self.objects, id)?;
            let (resolver, entry) = (symbols.stub_target(slot), symbols.stub_entry(slot));
            Some(IndirectFunction { object, symbol, resolver, entry })
        })
    }

    /// The functions that may be replaced, by storing the address of another one in their entry: none unless
    /// [`Options::replaceable_functions`](crate::Options::replaceable_functions) asks for them.
    pub fn replaceable_functions(&self) -> impl Iterator<Item = ReplaceableFunction> + '_ {
        let symbols = Symbols::new(self, 0, 0..self.symbols.len(), 0);
        self.defined_as(SymbolState::Replaceable).filter_map(move |(id, slot)| {
            let (object, symbol) = owner(self.objects, id)?;
            let (function, entry) = (symbols.stub_target(slot), symbols.stub_entry(slot));
            Some(ReplaceableFunction { object, symbol, function, entry })
        })
    }

    /// The symbols that are defined in this state, with their numbers.
    fn defined_as(&self, state: SymbolState) -> impl Iterator<Item = (u32, &SymbolSlot)> {
        let definitions = self.found.indirect.then(|| self.special_definitions());
        definitions.into_iter().flatten().filter(move |(_, slot)| slot.state == state)
    }
}
