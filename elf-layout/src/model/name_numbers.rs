//! Names by number.

use crate::model::names::{Numbers, OwnNumbers};
use alloc::vec::Vec;
use elf_core::File;

/// Which global names of some objects are one: each name has a number. [`UndefinedSymbols`](crate::archives::UndefinedSymbols) has read all names to
/// choose members of archives, and [a layout](crate::HeapStorage::plan_numbered) that is given their numbers need not read them again.
///
/// ```
/// use elf_core::File;
/// use elf_layout::archives::UndefinedSymbols;
/// use elf_layout::{ExternalSymbol, HeapStorage, Options};
/// use reloc_x86::X86_64;
///
/// let first = include_bytes!("../../../fixtures/x86_64/pair-a-gcc12-pic.o");
/// let second = include_bytes!("../../../fixtures/x86_64/pair-b-gcc12-pic.o");
/// let files = [File::parse(first)?, File::parse(second)?];
/// let mut undefined = UndefinedSymbols::new();
/// files.iter().try_for_each(|file| undefined.add(file))?;
/// let numbers = undefined.into_numbers();
///
/// let mut storage = HeapStorage::new();
/// let mut externals = |_: elf_core::Name<'_>| Some(ExternalSymbol::new(0x20_0000));
/// let layout = storage.plan_numbered::<X86_64>(&files, &numbers, Options::default(), &mut externals)?;
/// assert_eq!(layout.files().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NameNumbers {
    /// Numbers of names: object by object, of its symbols from the first global one on.
    symbols: Vec<u32>,
    /// Sections that are COMDAT groups, object by object, and the numbers of their signatures.
    groups: Vec<(u32, u32)>,
    objects: Vec<ObjectNames>,
    /// How many names there are.
    count: u32,
    /// Whether some have versions.
    pub(crate) have_versions: bool,
    /// An object is damaged, and whoever reads it says how.
    is_damaged: bool,
}

/// Where the numbers of an object are.
#[derive(Clone, Copy, Debug)]
struct ObjectNames {
    /// Index of its first global symbol.
    first_global: u32,
    symbol_count: usize,
    /// Where its numbers start, and its groups.
    symbols: usize,
    groups: usize,
}

/// Stands for a local symbol's.
const LOCAL: u32 = u32::MAX;

impl NameNumbers {
    /// Of no objects.
    pub(crate) const fn new() -> Self {
        Self {
            symbols: Vec::new(),
            groups: Vec::new(),
            objects: Vec::new(),
            count: 0,
            have_versions: false,
            is_damaged: false,
        }
    }

    /// Begins the next object, which has so many symbols.
    pub(crate) fn begin(&mut self, symbol_count: usize) {
        let (symbols, groups) = (self.symbols.len(), self.groups.len());
        let first_global = u32::MAX;
        self.objects.push(ObjectNames { first_global, symbol_count, symbols, groups });
    }

    /// The name of global symbol `index` of the last object, which is behind all before, has this number.
    pub(crate) fn symbol(&mut self, index: u32, number: u32) {
        let Some(object) = self.objects.last_mut() else { return };
        if object.symbols == self.symbols.len() {
            object.first_global = index;
        }
        // of local symbols among them nobody asks
        let local = index.saturating_sub(object.first_global) as usize;
        self.symbols.resize(object.symbols.saturating_add(local), LOCAL);
        self.symbols.push(number);
        self.count = self.count.max(number.saturating_add(1));
    }

    /// Section `index` of the last object is a COMDAT group, and the name that is its signature has this number.
    pub(crate) fn group(&mut self, index: u32, number: u32) {
        self.groups.push((index, number));
        self.count = self.count.max(number.saturating_add(1));
    }

    /// The number of the name of a symbol of the last object that is not local.
    pub(crate) fn of_last(&self, symbol: u32) -> Option<u32> {
        let own = self.of(self.objects.len().checked_sub(1)?);
        own.number(symbol).filter(|number| *number != LOCAL)
    }

    /// The last object is damaged.
    pub(crate) const fn damaged(&mut self) {
        self.is_damaged = true;
    }

    /// How many names there are.
    pub(crate) const fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether they can be of these files.
    pub(crate) fn are_of(&self, files: &[File<'_>]) -> bool {
        let has = |(own, file): (&ObjectNames, &File<'_>)| {
            let symbols = file.symbol_table().map(|table| table.map_or(0, |table| table.len()));
            symbols.is_ok_and(|count| count == own.symbol_count)
        };
        !self.is_damaged
            && self.objects.len() == files.len()
            && self.objects.iter().zip(files).all(has)
    }
}

impl Numbers for NameNumbers {
    fn of(&self, object: usize) -> OwnNumbers<'_> {
        let Some(own) = self.objects.get(object) else { return OwnNumbers::default() };
        let next = object.checked_add(1).and_then(|next| self.objects.get(next));
        let (symbols, groups) = next
            .map_or((self.symbols.len(), self.groups.len()), |next| (next.symbols, next.groups));
        OwnNumbers {
            first_global: own.first_global,
            symbols: self.symbols.get(own.symbols..symbols).unwrap_or_default(),
            groups: self.groups.get(own.groups..groups).unwrap_or_default(),
        }
    }

    fn have_versions(&self) -> bool {
        self.have_versions
    }
}
