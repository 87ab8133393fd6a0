//! How symbols and section groups of one name are found.

use crate::hash::NameTable;

/// The numbers that the names of an object have.
#[derive(Clone, Copy, Default)]
pub(crate) struct OwnNumbers<'n> {
    /// Index of the first symbol that is not local.
    pub(crate) first_global: u32,
    /// Those of the symbols from there on.
    pub(crate) symbols: &'n [u32],
    /// Sections that are COMDAT groups, and those of their signatures.
    pub(crate) groups: &'n [(u32, u32)],
}

impl OwnNumbers<'_> {
    /// That of a symbol which is not local.
    #[inline]
    pub(crate) fn number(&self, symbol: u32) -> Option<u32> {
        let at = symbol.checked_sub(self.first_global)?;
        self.symbols.get(at as usize).copied()
    }
}

/// Knows the numbers of names.
pub(crate) trait Numbers {
    /// Those of an object.
    fn of(&self, object: usize) -> OwnNumbers<'_>;

    /// Whether some of the names have versions.
    fn have_versions(&self) -> bool;
}

/// The names of a link: each is entered with the first symbol that has it, and with the first section group.
pub(crate) struct Names<'s, 'n> {
    pub(crate) table: NameTable<'s>,
    numbers: Option<&'n dyn Numbers>,
}

impl<'s, 'n> Names<'s, 'n> {
    /// None yet, in zeroed cells: twice as many as there are numbers, or else what [`NameTable::new`] takes.
    pub(crate) fn new(
        cells: &'s mut [u32],
        count: usize,
        numbers: Option<&'n dyn Numbers>,
    ) -> Self {
        // who has no heap has none
        let numbers = numbers.filter(|_| cfg!(feature = "alloc"));
        Self { table: NameTable::new(cells, count), numbers }
    }

    /// The numbers of an object's names, if they are known.
    pub(crate) fn known(&self, object: usize) -> Option<OwnNumbers<'n>> {
        self.numbers.map(|numbers| numbers.of(object))
    }

    /// Whether some may have versions.
    pub(crate) fn may_have_versions(&self) -> bool {
        self.numbers.is_none_or(Numbers::have_versions)
    }

    /// Enters a section group whose signature has this number, unless there is one: whether this is the first.
    pub(crate) fn is_first_group(&mut self, number: u32, id: u32) -> Option<bool> {
        let cell = self.table.len() / 2;
        let first = self.table.at_or_insert(cell.checked_add(number as usize)?, id)?;
        Some(first == id)
    }
}
