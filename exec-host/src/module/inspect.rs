//! What a module consists of: its symbols, its sections, how much memory they take.

use super::Module;
use crate::Host;
use crate::contents::Placed;
use crate::function::place_of;
use core::ops::Range;
use elf_core::names::{SHN_ABS, STB_LOCAL, STT_FILE, STT_SECTION, STT_TLS};
use elf_core::{Arch as _, Definition, File, Mapping, Name, SectionFlags, SegmentFlags, Symbol};

/// A symbol of a module that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleSymbol<'m> {
    /// The object that defines it, by its number.
    pub object: usize,
    /// Its name, mangled if it was so; local symbols may have one that others have, too.
    pub name: Name<'m>,
    /// Its address.
    pub address: u64,
    /// Its size in bytes, 0 if the object does not tell.
    pub size: u64,
    /// What it is (`STT_FUNC`, `STT_OBJECT` ...; gABI ch. 4, "Symbol Table").
    pub r#type: u8,
    /// Who sees it (`STB_LOCAL`, `STB_GLOBAL` ...).
    pub binding: u8,
    /// The index of its section in the object; `None` of common symbols.
    pub section: Option<u32>,
}

/// A section of one of a module's objects.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ModuleSection<'m> {
    /// The object, by its number.
    pub object: usize,
    /// The section's index in it.
    pub index: u32,
    /// Its name.
    pub name: Name<'m>,
    /// Its address; `None` if it occupies no memory: debugging information, what another object had before.
    pub address: Option<u64>,
    /// Its size in bytes: in memory it may be less than in the file, where code has become shorter.
    pub size: u64,
    /// Its flags.
    pub flags: SectionFlags,
    in_file: &'m [u8],
}

impl ModuleSymbol<'_> {
    /// Whether it is a mark of the assembler.
    fn is_mapping(&self) -> bool {
        let symbol = Symbol { info: self.binding << 4 | self.r#type, ..Symbol::default() };
        Mapping::of(Host::MACHINE, &symbol, self.name).is_some()
    }
}

impl<'m> ModuleSection<'m> {
    /// Its bytes as they are in memory, relocated, if it is there and cannot be written to: stack maps, tables, code.
    #[must_use]
    pub fn bytes(&self) -> Option<&'m [u8]> {
        let address = self.address.filter(|_| !self.flags.contains(SectionFlags::WRITE))?;
        let start = core::ptr::with_exposed_provenance::<u8>(usize::try_from(address).ok()?);
        let size = usize::try_from(self.size).ok()?;
        // SAFETY: the module has the section there, as long as `'m`, in memory that nobody writes to.
        Some(unsafe { core::slice::from_raw_parts(start, size) })
    }

    /// Its bytes as the object has them, without relocation; none of zeros (`SHT_NOBITS`).
    #[must_use]
    pub const fn in_file(&self) -> &'m [u8] {
        self.in_file
    }
}

/// How many bytes of memory a module takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleSizes {
    /// Of code, stubs included.
    pub code: u64,
    /// Of data that are not written once they are relocated: constants, the GOT, unwinding tables.
    pub read_only: u64,
    /// Of other data, zeros included.
    pub writable: u64,
    /// Of a thread's copy of thread-local variables.
    pub thread_local: u64,
}

impl<B: AsRef<[u8]>> Module<B> {
    /// All symbols that have an address, local ones too, object by object. Thread-local variables have none of their own.
    ///
    /// ```
    /// # use exec_host::{Module, Process};
    /// # #[cfg(target_arch = "x86_64")] {
    /// # let object = include_bytes!("../../../fixtures/x86_64/elftest.o");
    /// # let mut process = Process::new();
    /// let module = Module::load([&object[..]], &mut |name| process.find(name))?;
    /// let foo = module.symbols().find(|symbol| symbol.name == "foo").unwrap();
    /// assert_eq!(Some(foo.address), module.address("foo"));
    /// // a profiler's question
    /// let (symbol, offset) = module.symbol_at(foo.address + 4).unwrap();
    /// assert_eq!((symbol, offset), (foo, 4));
    /// // stack maps, tables of a compiler's own
    /// let code = module.sections().find(|section| section.name == ".text").unwrap();
    /// assert_eq!(code.bytes().unwrap().len() as u64, code.size);
    /// assert!(module.sizes().code >= foo.size);
    /// # }
    /// # Ok::<(), exec_host::Error>(())
    /// ```
    pub fn symbols(&self) -> impl Iterator<Item = ModuleSymbol<'_>> {
        let objects = self.bytes().enumerate();
        objects.flat_map(|(object, bytes)| self.symbols_of(object, bytes))
    }

    fn symbols_of<'m>(
        &'m self,
        object: usize,
        bytes: &'m [u8],
    ) -> impl Iterator<Item = ModuleSymbol<'m>> {
        let table = File::parse(bytes).ok().and_then(|file| file.symbol_table().ok().flatten());
        let globals = self.parts.globals.get(object).map(Box::as_ref).unwrap_or_default();
        let placed = self.parts.sections.get(object).map(Box::as_ref).unwrap_or_default();
        let moved = self.parts.moved.get(object).map(Box::as_ref).unwrap_or_default();
        table.into_iter().flat_map(move |table| {
            let first = table.first_global();
            let symbols = (0u32..).zip(table.symbols().iter());
            symbols.filter_map(move |(index, symbol)| {
                let section = match table.section_of(index, &symbol) {
                    Ok(Definition::Section(section)) => Some(section),
                    Ok(Definition::Common) => None,
                    _ if symbol.shndx == SHN_ABS => None,
                    _ => return None,
                };
                if matches!(symbol.r#type(), STT_SECTION | STT_FILE | STT_TLS) {
                    return None;
                }
                let start = section.map(|section| Some(find(placed, section)?.address));
                let moved = moved.get(index as usize);
                // of a section that another object had before, or that is not loaded
                if start == Some(None) {
                    return None;
                }
                let global = (index as usize).checked_sub(first).and_then(|at| globals.get(at));
                let address = match (symbol.binding(), global, start.flatten()) {
                    (STB_LOCAL, _, Some(start)) => {
                        moved.map_or(start.wrapping_add(symbol.value), |(address, _)| *address)
                    }
                    (_, Some(&address), _) if address != 0 => address,
                    _ => return None,
                };
                let name = table.name_of(&symbol).ok()?;
                let size = moved.map_or(symbol.size, |(_, size)| *size);
                Some(ModuleSymbol {
                    object,
                    name,
                    address,
                    size,
                    r#type: symbol.r#type(),
                    binding: symbol.binding(),
                    section,
                })
            })
        })
    }

    /// The symbol that `address` is in, and how many bytes behind its start: of several, the innermost. Symbols without a size reach up
    /// to the next one or the end of their section; [mapping symbols](Mapping) are none. On Arm the lowest bit of addresses in functions says whether
    /// code is Thumb's, and does not count.
    #[must_use]
    pub fn symbol_at(&self, address: u64) -> Option<(ModuleSymbol<'_>, u64)> {
        let section = self.sections().find(|section| {
            section.address.is_some_and(|start| address.wrapping_sub(start) < section.size)
        });
        let here = |symbol: &ModuleSymbol<'_>| {
            let place = |address| place_of(symbol.r#type, address);
            let offset = place(address).checked_sub(place(symbol.address))?;
            let is_near = symbol.size == 0
                && section.as_ref().is_some_and(|section| {
                    (Some(section.index), section.object) == (symbol.section, symbol.object)
                });
            (offset < symbol.size || is_near).then_some(offset)
        };
        let found = self.symbols().filter(|symbol| !symbol.name.is_empty() && !symbol.is_mapping());
        let found = found.filter_map(|symbol| Some((symbol, here(&symbol)?)));
        // the nearest, one with a size before marks
        found.min_by_key(|(symbol, offset)| (*offset, symbol.size == 0, symbol.size))
    }

    /// All sections of the objects, in memory or not.
    pub fn sections(&self) -> impl Iterator<Item = ModuleSection<'_>> {
        self.bytes().enumerate().flat_map(|(object, bytes)| {
            let placed = self.parts.sections.get(object).map(Box::as_ref).unwrap_or_default();
            let file = File::parse(bytes).ok();
            file.into_iter().flat_map(move |file| {
                let sections = (0u32..).zip(file.sections().iter()).skip(1);
                sections.filter_map(move |(index, header)| {
                    let placed = find(placed, index);
                    Some(ModuleSection {
                        object,
                        index,
                        name: file.section_name(&header).ok()?,
                        address: placed.map(|placed| placed.address),
                        size: placed.map_or(header.size, |placed| placed.size),
                        flags: header.flags,
                        in_file: file.section_data(&header).unwrap_or_default(),
                    })
                })
            })
        })
    }

    /// How much memory it takes.
    #[must_use]
    pub fn sizes(&self) -> ModuleSizes {
        let thread_local = self.parts.threads.as_ref().map_or(0, |threads| threads.size());
        let mut sizes = ModuleSizes { thread_local, ..ModuleSizes::default() };
        for (range, flags) in &self.parts.segments {
            let kind = if flags.contains(SegmentFlags::EXECUTE) {
                &mut sizes.code
            } else if flags.contains(SegmentFlags::WRITE) {
                &mut sizes.writable
            } else {
                &mut sizes.read_only
            };
            *kind = kind.saturating_add(range.end.saturating_sub(range.start));
        }
        sizes
    }

    /// The addresses that it occupies, by permission.
    pub fn segments(&self) -> impl Iterator<Item = (Range<u64>, SegmentFlags)> + '_ {
        self.parts.segments.iter().cloned()
    }
}

fn find(placed: &[Placed], section: u32) -> Option<&Placed> {
    let found = placed.binary_search_by_key(&section, |placed| placed.section).ok()?;
    placed.get(found)
}
