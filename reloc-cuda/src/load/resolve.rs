//! What symbols are worth once a cubin has its address.

use super::Load;
use elf_core::{Definition, Query, Resolve, Role, Symbol};

/// Answers from the file, and from the caller where that does not have them.
pub(super) struct Symbols<'l, 'a, 's, F> {
    pub(super) load: &'l Load<'a, 's>,
    pub(super) base: u64,
    pub(super) answer: &'l F,
}

impl<F: Fn(&Query) -> Option<u64>> Resolve for Symbols<'_, '_, '_, F> {
    fn resolve(&self, query: &Query) -> Option<u64> {
        let own = || {
            let table = self.load.symbols?;
            let symbol = table.get(query.symbol).ok()?;
            match table.section_of(query.symbol, &symbol) {
                Ok(Definition::Section(section)) => self.in_section(query.role, section, &symbol),
                _ => None,
            }
        };
        match query.role {
            // the caller may have descriptors, and tables of unified addresses
            Role::Descriptor | Role::Unified => (self.answer)(query).or_else(own),
            _ => own().or_else(|| (self.answer)(query)),
        }
    }
}

impl<F> Symbols<'_, '_, '_, F> {
    fn in_section(&self, role: Role, section: u32, symbol: &Symbol) -> Option<u64> {
        let bank = || {
            let header = self.load.file.section(section).ok()?;
            let name = self.load.file.section_name(&header).ok()?;
            let rest = name.as_bytes().strip_prefix(b".nv.constant")?;
            let digits = rest.split(|&byte| byte == b'.').next()?;
            core::str::from_utf8(digits).ok()?.parse::<u64>().ok()
        };
        match role {
            // code reaches a bank by its number and an offset, not by an address
            Role::Address if bank().is_some() => Some(symbol.value),
            Role::Address | Role::Generic | Role::Unified | Role::Descriptor => {
                let offset = self.load.section(section)?;
                Some(self.base.wrapping_add(offset).wrapping_add(symbol.value))
            }
            Role::Bank => bank(),
            Role::Size => Some(symbol.size),
            _ => None,
        }
    }
}
