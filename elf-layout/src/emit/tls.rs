//! The block of thread-local variables, and where threads have it.

use crate::model::layout::Layout;
use crate::model::storage::SymbolState;
use crate::model::tls::{StaticTlsBlock, TlsBlock, block, executable_block};
use elf_core::Arch;

impl<A: Arch> Layout<'_, '_, A> {
    /// The initial values of the objects' thread-local variables, if there are any, or code asks for their block.
    ///
    /// The executor gives every thread a copy, and says [where](Self::set_static_tls_block) before it writes the image.
    #[must_use]
    pub fn tls_block(&self) -> Option<TlsBlock> {
        let block = block(&self.spans);
        (block.size > 0 || self.found.threads).then_some(block)
    }

    /// Says where threads have their copies of the block. Without, relocations that need to know are refused.
    pub const fn set_static_tls_block(&mut self, block: StaticTlsBlock) {
        self.static_tls_block = Some(block);
    }

    /// The block that an executable has which consists of these objects: module 1, at the TP offset that the ABI gives.
    #[must_use]
    pub fn executable_tls_block(&self) -> StaticTlsBlock {
        let tp_offset = executable_block::<A>(&self.spans);
        StaticTlsBlock { module: 1, tp_offset, ..StaticTlsBlock::default() }
    }

    /// Offset in the block of thread-local variable `symbol` of object `object`; `None` if no object defines it, or it is none.
    #[must_use]
    pub fn variable(&self, object: usize, symbol: u32) -> Option<u64> {
        let slot = self.slot(object, symbol)?;
        if slot.state == SymbolState::ThreadLocal { self.block_offset(slot) } else { None }
    }
}
