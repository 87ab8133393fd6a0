//! Storage for layouts from the heap.

use crate::model::name_numbers::NameNumbers;
use crate::model::names::Numbers;
use crate::plan::at_once::AtOnce;
#[cfg(feature = "parts")]
use crate::plan::scan_part::{InParts, ScanPart};
use crate::{
    Edit, Error, ExternalSymbol, Layout, ObjectSlot, Options, Requirements, SectionSlot, Storage,
    SymbolSlot,
};
use alloc::vec::Vec;
use elf_core::{Arch, File, Name};

/// Storage from the heap, for those who have one. It is kept from one layout to the next.
///
/// ```
/// use elf_core::File;
/// use elf_layout::{HeapStorage, Options};
/// use reloc_x86::X86_64;
///
/// let files = [File::parse(include_bytes!("../../fixtures/x86_64/elftest.o"))?];
/// let mut storage = HeapStorage::new();
/// let layout = storage.plan::<X86_64>(&files, Options::default(), &mut |_| None)?;
/// let mut image = vec![0; layout.size() as usize];
/// layout.write(&mut image, 0x10_0000)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct HeapStorage<'a> {
    objects: Vec<ObjectSlot<'a>>,
    sections: Vec<SectionSlot>,
    symbols: Vec<SymbolSlot>,
    names: Vec<u32>,
    edits: Vec<Edit>,
}

impl<'a> HeapStorage<'a> {
    /// No room yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            objects: Vec::new(),
            sections: Vec::new(),
            symbols: Vec::new(),
            names: Vec::new(),
            edits: Vec::new(),
        }
    }

    /// Lays out `files`, with as much storage as they need.
    ///
    /// # Errors
    /// As [`Requirements::of`] and [`Layout::plan`].
    pub fn plan<'s, A: Arch>(
        &'s mut self,
        files: &'s [File<'a>],
        options: Options,
        externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    ) -> Result<Layout<'a, 's, A>, Error> {
        self.plan_in(files, options, needed(files, None)?, externals, None)
    }

    /// The same for files of which it is known which names are one: as [`UndefinedSymbols`](crate::archives::UndefinedSymbols) has come to
    /// know it, to which all these files were [added](crate::archives::UndefinedSymbols::add), in this order. The names of damaged files,
    /// or of others than those, are read again.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_numbered<'s, A: Arch>(
        &'s mut self,
        files: &'s [File<'a>],
        numbers: &NameNumbers,
        options: Options,
        externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    ) -> Result<Layout<'a, 's, A>, Error> {
        self.plan_in(files, options, needed(files, Some(numbers))?, externals, None)
    }

    /// The same, with numbers or without, for callers with threads: `scan` is called with at most `count` parts of the
    /// objects, of about as many bytes each, and has threads [do them](ScanPart::scan) at once. Parts that it leaves out
    /// are done when it returns. For less than two parts it is not called. The layout, or the error, is that of one thread.
    ///
    /// ```
    /// use elf_core::File;
    /// use elf_layout::{ExternalSymbol, HeapStorage, Options, ScanPart};
    /// use reloc_x86::X86_64;
    /// use std::thread;
    ///
    /// let first = include_bytes!("../../fixtures/x86_64/pair-a-gcc12-pic.o");
    /// let second = include_bytes!("../../fixtures/x86_64/pair-b-gcc12-pic.o");
    /// let files = [File::parse(first)?, File::parse(second)?];
    /// let mut scan = |parts: &mut [ScanPart<'_, '_, X86_64>]| {
    ///     thread::scope(|scope| {
    ///         for part in parts {
    ///             scope.spawn(|| part.scan());
    ///         }
    ///     });
    /// };
    ///
    /// let mut storage = HeapStorage::new();
    /// let mut externals = |_: elf_core::Name<'_>| Some(ExternalSymbol::new(0x20_0000));
    /// let layout = storage.plan_in_parts(&files, None, Options::default(), &mut externals, 2, &mut scan)?;
    /// assert_eq!(layout.files().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    #[cfg(feature = "parts")]
    pub fn plan_in_parts<'s, A: Arch>(
        &'s mut self,
        files: &'s [File<'a>],
        numbers: Option<&NameNumbers>,
        options: Options,
        externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
        count: usize,
        scan: &mut dyn FnMut(&mut [ScanPart<'_, 'a, A>]),
    ) -> Result<Layout<'a, 's, A>, Error> {
        let needed = needed(files, numbers)?;
        self.plan_in(files, options, needed, externals, Some(&mut InParts { count, scan }))
    }

    fn plan_in<'s, A: Arch>(
        &'s mut self,
        files: &'s [File<'a>],
        options: Options,
        (needed, numbers): (Requirements, Option<&dyn Numbers>),
        externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
        at_once: Option<&mut dyn AtOnce<'a>>,
    ) -> Result<Layout<'a, 's, A>, Error> {
        let needed = needed.with_edits::<A>(files)?;
        fn grow<T: Clone + Default>(slots: &mut Vec<T>, needed: usize) {
            if slots.len() < needed {
                slots.resize(needed, T::default());
            }
        }
        let Self { objects, sections, symbols, names, edits } = self;
        grow(objects, needed.objects);
        grow(sections, needed.sections);
        grow(symbols, needed.symbols);
        grow(names, needed.names);
        grow(edits, needed.edits);
        let edits = edits.get_mut(..needed.edits).unwrap_or_default();
        let storage = Storage { objects, sections, symbols, names, edits };
        Layout::plan_in(files, options, storage, (needed.names, numbers), externals, at_once)
    }
}

/// What files need, and the numbers of their names if these are of them.
fn needed<'n>(
    files: &[File<'_>],
    numbers: Option<&'n NameNumbers>,
) -> Result<(Requirements, Option<&'n dyn Numbers>), Error> {
    let Some(numbers) = numbers.filter(|numbers| numbers.are_of(files)) else {
        return Ok((Requirements::of(files)?, None));
    };
    // of symbols, and of section groups
    let names = numbers.count().saturating_mul(2);
    Ok((Requirements { names, ..Requirements::without_names(files)? }, Some(numbers)))
}
