//! The symbols of a file that needs nobody else's: a static PIE, a kernel.

use crate::error::Error;
use crate::image::Image;
use crate::relocate::ImageSymbols;
use core::marker::PhantomData;
use elf_core::names::{SHN_ABS, STB_WEAK, STT_GNU_IFUNC, STT_TLS};
use elf_core::{Arch, Query, Resolve, Role, Symbol, SymbolTable};

/// Answers with what a file defines itself, and 0 for weak symbols that it does not. Its thread-local variables are those of the
/// executable, in the block that the ABI gives that.
pub struct OwnSymbols<'a, A> {
    table: Option<SymbolTable<'a>>,
    bias: u64,
    block: Option<i64>,
    arch: PhantomData<A>,
}

// whatever the architecture's type is
impl<A> Clone for OwnSymbols<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A> Copy for OwnSymbols<'_, A> {}

impl<'a> Image<'a> {
    /// The symbols that the file defines, if its first byte is at `base`.
    ///
    /// # Errors
    /// If the dynamic symbol table is damaged, or the image cannot be there.
    pub fn own_symbols<A: Arch>(&self, base: u64) -> Result<OwnSymbols<'a, A>, Error> {
        let table = match self.dynamic()? {
            Some(dynamic) => dynamic.symbol_table()?,
            None => None,
        };
        let block = match (self.tls()?, A::TLS) {
            (Some(block), Some(tls)) => tls.variant.executable_block(block.size, block.alignment),
            _ => None,
        };
        Ok(OwnSymbols { table, bias: self.bias(base)?, block, arch: PhantomData })
    }
}

impl<A: Arch> OwnSymbols<'_, A> {
    /// The symbol, unless it is one that others define.
    fn symbol(&self, index: u32) -> Option<Symbol> {
        match index {
            0 => Some(Symbol { shndx: SHN_ABS, ..Symbol::default() }),
            index => self.table?.get(index).ok(),
        }
    }

    fn address(&self, symbol: &Symbol) -> Option<u64> {
        if symbol.is_undefined() {
            return (symbol.binding() == STB_WEAK).then_some(0);
        }
        match symbol.r#type() {
            // its address is another function's to find
            STT_GNU_IFUNC | STT_TLS => None,
            _ if symbol.shndx == SHN_ABS => Some(symbol.value),
            _ => Some(A::symbol(symbol).0.wrapping_add(self.bias)),
        }
    }
}

impl<A: Arch> Resolve for OwnSymbols<'_, A> {
    fn resolve(&self, query: &Query) -> Option<u64> {
        let symbol = self.symbol(query.symbol)?;
        let bias = A::TLS.map_or(0, |tls| tls.dtp_bias);
        let is_variable = matches!(query.role, Role::TlsModule | Role::DtpOffset | Role::TpOffset);
        match query.role {
            Role::Base => Some(self.bias),
            Role::Address | Role::Plt => self.address(&symbol),
            Role::Size => Some(symbol.size),
            _ if is_variable && symbol.is_undefined() => {
                (symbol.binding() == STB_WEAK).then_some(0)
            }
            Role::TlsModule => Some(1),
            Role::DtpOffset => Some(symbol.value.wrapping_add_signed(bias)),
            Role::TpOffset => self.block.map(|block| symbol.value.wrapping_add_signed(block)),
            _ => None,
        }
    }

    fn attributes(&self, query: &Query) -> elf_core::SymbolAttributes {
        self.symbol(query.symbol).map(|symbol| A::symbol(&symbol).1).unwrap_or_default()
    }
}

impl<A: Arch> ImageSymbols for OwnSymbols<'_, A> {}

impl<A> core::fmt::Debug for OwnSymbols<'_, A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OwnSymbols").field("bias", &self.bias).finish_non_exhaustive()
    }
}
