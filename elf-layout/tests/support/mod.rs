//! Objects made for tests, and layouts of them.

#![allow(dead_code, reason = "each test uses a part")]

#[path = "../../../fuzz/src/placement.rs"]
#[allow(unreachable_pub, reason = "it is public where the fuzz targets are")]
pub(crate) mod placement;

use elf_core::names::*;
use elf_core::{Arch, File, Name, SectionFlags};
use elf_layout::{
    Edit, Error, ExternalSymbol, Layout, ObjectSlot, Options, Requirements, SectionSlot, Storage,
    SymbolSlot,
};
use reloc_x86::X86_64;

pub(crate) const READ: SectionFlags = SectionFlags::ALLOC;
pub(crate) const WRITE: SectionFlags = READ.union(SectionFlags::WRITE);
pub(crate) const CODE: SectionFlags = READ.union(SectionFlags::EXECINSTR);

/// An x86-64 object to be.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) r#type: u16,
    pub(crate) machine: u16,
    sections: Vec<Section>,
    symbols: Vec<Symbol>,
    groups: Vec<(usize, u32, Vec<u32>)>,
}

#[derive(Clone, Debug)]
struct Section {
    name: String,
    r#type: u32,
    flags: SectionFlags,
    address: u64,
    alignment: u64,
    size: u64,
    data: Vec<u8>,
    link: Option<u32>,
    followed: u32,
    relocations: Vec<(u64, u32, usize, i64)>,
}

#[derive(Clone, Debug)]
struct Symbol {
    name: String,
    info: u8,
    visibility: u8,
    place: Place,
    value: u64,
    size: u64,
}

/// Where a symbol is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Undefined,
    Absolute,
    Common,
    In(u32),
    Reserved(u16),
}

impl Object {
    pub(crate) fn new() -> Self {
        let (sections, symbols, groups) = (Vec::new(), Vec::new(), Vec::new());
        Self { r#type: ET_REL, machine: EM_X86_64, sections, symbols, groups }
    }

    /// Adds a section with bytes; its index.
    pub(crate) fn section(
        &mut self,
        name: &str,
        flags: SectionFlags,
        alignment: u64,
        data: &[u8],
    ) -> u32 {
        self.sections.push(Section {
            name: name.into(),
            r#type: SHT_PROGBITS,
            flags,
            address: 0,
            alignment,
            size: data.len() as u64,
            data: data.to_vec(),
            link: None,
            followed: 0,
            relocations: Vec::new(),
        });
        self.sections.len() as u32
    }

    /// Adds a section of zeros; its index.
    pub(crate) fn zeros(
        &mut self,
        name: &str,
        flags: SectionFlags,
        alignment: u64,
        size: u64,
    ) -> u32 {
        let index = self.section(name, flags, alignment, &[]);
        let section = self.sections.last_mut().unwrap();
        (section.r#type, section.size) = (SHT_NOBITS, size);
        index
    }

    /// Gives a section an address of its own.
    pub(crate) fn at(&mut self, section: u32, address: u64) {
        self.sections[section as usize - 1].address = address;
    }

    /// Makes a section one of another type.
    pub(crate) fn kind(&mut self, section: u32, r#type: u32) {
        self.sections[section as usize - 1].r#type = r#type;
    }

    /// Lets a section follow another one (`SHF_LINK_ORDER`).
    pub(crate) fn follows(&mut self, section: u32, followed: u32) {
        let section = &mut self.sections[section as usize - 1];
        section.flags |= SectionFlags::LINK_ORDER;
        section.followed = followed;
    }

    /// Lets the relocations of a section mean another symbol table.
    pub(crate) fn link(&mut self, section: u32, link: u32) {
        self.sections[section as usize - 1].link = Some(link);
    }

    /// Adds a symbol; its number here. [`index`](Self::index) tells its index in the file.
    pub(crate) fn symbol(
        &mut self,
        name: &str,
        binding: u8,
        r#type: u8,
        place: Place,
        value: u64,
        size: u64,
    ) -> usize {
        let info = binding << 4 | r#type;
        self.symbols.push(Symbol { name: name.into(), info, visibility: 0, place, value, size });
        self.symbols.len() - 1
    }

    /// Makes a symbol one of another visibility.
    pub(crate) fn visibility(&mut self, symbol: usize, visibility: u8) {
        self.symbols[symbol].visibility = visibility;
    }

    pub(crate) fn global(&mut self, name: &str, section: u32, value: u64) -> usize {
        self.symbol(name, STB_GLOBAL, STT_NOTYPE, Place::In(section), value, 8)
    }

    pub(crate) fn weak(&mut self, name: &str, section: u32, value: u64) -> usize {
        self.symbol(name, STB_WEAK, STT_NOTYPE, Place::In(section), value, 8)
    }

    pub(crate) fn local(&mut self, name: &str, section: u32, value: u64) -> usize {
        self.symbol(name, STB_LOCAL, STT_NOTYPE, Place::In(section), value, 8)
    }

    pub(crate) fn undefined(&mut self, name: &str) -> usize {
        self.symbol(name, STB_GLOBAL, STT_NOTYPE, Place::Undefined, 0, 0)
    }

    pub(crate) fn undefined_weak(&mut self, name: &str) -> usize {
        self.symbol(name, STB_WEAK, STT_NOTYPE, Place::Undefined, 0, 0)
    }

    pub(crate) fn common(&mut self, name: &str, size: u64, alignment: u64) -> usize {
        self.symbol(name, STB_GLOBAL, STT_OBJECT, Place::Common, alignment, size)
    }

    /// Adds a relocation of a section.
    pub(crate) fn relocation(
        &mut self,
        section: u32,
        offset: u64,
        r#type: u32,
        symbol: usize,
        addend: i64,
    ) {
        self.sections[section as usize - 1].relocations.push((offset, r#type, symbol, addend));
    }

    /// Adds a section group; its members must be there already.
    pub(crate) fn group(&mut self, signature: usize, flags: u32, members: &[u32]) {
        self.groups.push((signature, flags, members.to_vec()));
    }

    /// The index of symbol `number` in the file: local ones come first.
    pub(crate) fn index(&self, number: usize) -> u32 {
        let order = self.order();
        order.iter().position(|at| *at == number).unwrap() as u32 + 1
    }

    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.symbols.len()).collect();
        order.sort_by_key(|at| self.symbols[*at].info >> 4 != STB_LOCAL);
        order
    }

    /// The file: the sections in the order they were added in, their relocations, groups, symbols and names behind them.
    pub(crate) fn build(&self) -> Vec<u8> {
        let order = self.order();
        let mut indices = vec![0u32; order.len()];
        order.iter().zip(1..).for_each(|(at, index)| indices[*at] = index);
        let own = self.sections.len();
        let tables = self.sections.iter().filter(|section| !section.relocations.is_empty()).count();
        let symbol_table = (1 + own + tables + self.groups.len()) as u32;
        let extended = symbol_table >= 0xff00 - 3;
        let (names_at, strings) = (symbol_table + 1, symbol_table + 2 + u32::from(extended));
        let mut file = vec![0u8; 64];
        let mut headers: Vec<[u64; 10]> = vec![[0; 10]]; // name, type, flags, address, offset, size, link, info, align, entry
        let mut section_names = vec![0u8];
        let mut named = |name: &str| {
            let at = section_names.len() as u64;
            section_names.extend(name.bytes().chain([0]));
            at
        };
        let put = |file: &mut Vec<u8>, data: &[u8]| {
            file.resize(file.len().next_multiple_of(8), 0);
            let at = file.len() as u64;
            file.extend_from_slice(data);
            at
        };
        for section in &self.sections {
            let offset = put(&mut file, &section.data);
            headers.push([
                named(&section.name),
                section.r#type.into(),
                section.flags.bits(),
                section.address,
                offset,
                section.size,
                section.followed.into(),
                0,
                section.alignment,
                0,
            ]);
        }
        for (section, target) in self.sections.iter().zip(1u64..) {
            if section.relocations.is_empty() {
                continue;
            }
            let mut data = Vec::new();
            for &(offset, r#type, symbol, addend) in &section.relocations {
                let index = indices.get(symbol).copied().unwrap_or(symbol as u32);
                data.extend(offset.to_le_bytes());
                data.extend((u64::from(index) << 32 | u64::from(r#type)).to_le_bytes());
                data.extend(addend.to_le_bytes());
            }
            let offset = put(&mut file, &data);
            let link = section.link.unwrap_or(symbol_table);
            let name = named(".rela");
            headers.push([
                name,
                SHT_RELA.into(),
                0,
                0,
                offset,
                data.len() as u64,
                link.into(),
                target,
                8,
                24,
            ]);
        }
        for (signature, flags, members) in &self.groups {
            let words: Vec<u8> =
                [*flags].iter().chain(members).flat_map(|word| word.to_le_bytes()).collect();
            let offset = put(&mut file, &words);
            let info = indices[*signature].into();
            let name = named(".group");
            headers.push([
                name,
                SHT_GROUP.into(),
                0,
                0,
                offset,
                words.len() as u64,
                symbol_table.into(),
                info,
                4,
                4,
            ]);
        }
        let (mut table, mut texts, mut wide) = (vec![0u8; 24], vec![0u8], vec![0u8; 4]);
        for at in &order {
            let symbol = &self.symbols[*at];
            let (shndx, section) = match symbol.place {
                Place::Undefined => (SHN_UNDEF, 0),
                Place::Absolute => (SHN_ABS, 0),
                Place::Common => (SHN_COMMON, 0),
                Place::Reserved(shndx) => (shndx, 0),
                Place::In(section) if section >= SHN_LORESERVE.into() => (SHN_XINDEX, section),
                Place::In(section) => (section as u16, 0),
            };
            let name = if symbol.name.is_empty() { 0 } else { texts.len() as u32 };
            if !symbol.name.is_empty() {
                texts.extend(symbol.name.bytes().chain([0]));
            }
            table.extend(name.to_le_bytes());
            table.extend([symbol.info, symbol.visibility]);
            table.extend(shndx.to_le_bytes());
            table.extend(symbol.value.to_le_bytes());
            table.extend(symbol.size.to_le_bytes());
            wide.extend(section.to_le_bytes());
        }
        let first_global =
            order.iter().filter(|at| self.symbols[**at].info >> 4 == STB_LOCAL).count() as u64 + 1;
        let offset = put(&mut file, &table);
        let name = named(".symtab");
        headers.push([
            name,
            SHT_SYMTAB.into(),
            0,
            0,
            offset,
            table.len() as u64,
            names_at.into(),
            first_global,
            8,
            24,
        ]);
        let offset = put(&mut file, &texts);
        let name = named(".strtab");
        headers.push([name, SHT_STRTAB.into(), 0, 0, offset, texts.len() as u64, 0, 0, 1, 0]);
        if extended {
            let offset = put(&mut file, &wide);
            let name = named(".symtab_shndx");
            headers.push([
                name,
                SHT_SYMTAB_SHNDX.into(),
                0,
                0,
                offset,
                wide.len() as u64,
                symbol_table.into(),
                0,
                4,
                4,
            ]);
        }
        let name = named(".shstrtab");
        let offset = put(&mut file, &section_names);
        headers.push([
            name,
            SHT_STRTAB.into(),
            0,
            0,
            offset,
            section_names.len() as u64,
            0,
            0,
            1,
            0,
        ]);
        assert_eq!(headers.len() as u32 - 1, strings);
        let many = headers.len() >= 0xff00;
        if many {
            (headers[0][5], headers[0][6]) = (headers.len() as u64, strings.into());
        }
        let count = headers.len();
        let mut rows = Vec::new();
        for [name, r#type, flags, address, offset, size, link, info, alignment, entry] in headers {
            rows.extend((name as u32).to_le_bytes());
            rows.extend((r#type as u32).to_le_bytes());
            [flags, address, offset, size].iter().for_each(|word| rows.extend(word.to_le_bytes()));
            [link, info].iter().for_each(|word| rows.extend((*word as u32).to_le_bytes()));
            [alignment, entry].iter().for_each(|word| rows.extend(word.to_le_bytes()));
        }
        let at = put(&mut file, &rows);
        file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        file[16..18].copy_from_slice(&self.r#type.to_le_bytes());
        file[18..20].copy_from_slice(&self.machine.to_le_bytes());
        file[20..24].copy_from_slice(&1u32.to_le_bytes());
        file[40..48].copy_from_slice(&at.to_le_bytes());
        let halves = [
            64,
            0,
            0,
            64,
            if many { 0 } else { count as u16 },
            if many { SHN_XINDEX } else { strings as u16 },
        ];
        for (at, half) in halves.iter().enumerate() {
            file[52 + 2 * at..54 + 2 * at].copy_from_slice(&half.to_le_bytes());
        }
        file
    }
}

/// Nobody answers.
pub(crate) fn nobody(_: Name<'_>) -> Option<ExternalSymbol> {
    None
}

/// Functions, data and constants of the caller's: `far`, `near`, `far_data`, `near_data`, `far_constant`, `near_constant`,
/// `empty_constant`.
pub(crate) const FAR: u64 = 0x7fff_1234_5670;
pub(crate) const NEAR: u64 = 0x1012_3450;

pub(crate) fn process(name: Name<'_>) -> Option<ExternalSymbol> {
    Some(match name.to_str()? {
        "far" => ExternalSymbol::function(FAR),
        "near" => ExternalSymbol::function(NEAR),
        "far_data" => ExternalSymbol::new(FAR),
        "near_data" => ExternalSymbol::new(NEAR),
        "far_constant" => ExternalSymbol::constant(FAR, 24),
        "near_constant" => ExternalSymbol::constant(NEAR, 24),
        "empty_constant" => ExternalSymbol::constant(FAR, 0),
        _ => return None,
    })
}

/// Lays out files, with as much storage as they need and dirt in it, and hands the outcome to `f`.
pub(crate) fn plan<R>(
    objects: &[Vec<u8>],
    options: Options,
    externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    f: impl FnOnce(Result<Layout<'_, '_, X86_64>, Error>) -> R,
) -> R {
    let files: Vec<File<'_>> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let needed = match Requirements::of(&files) {
        Ok(needed) => needed,
        Err(error) => return f(Err(error)),
    };
    let mut slots = vec![ObjectSlot::default(); needed.objects];
    let mut sections = vec![SectionSlot::default(); needed.sections];
    let mut symbols = vec![SymbolSlot::default(); needed.symbols];
    let mut names = vec![0xffff_ffff; needed.names];
    let storage = Storage {
        objects: &mut slots,
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut names,
        edits: &mut [],
    };
    f(Layout::plan(&files, options, storage, externals))
}

/// Lays out and hands the layout to `f`, checked.
pub(crate) fn laid_out<R>(objects: &[&Object], f: impl FnOnce(&Layout<'_, '_, X86_64>) -> R) -> R {
    let objects: Vec<Vec<u8>> = objects.iter().map(|object| object.build()).collect();
    plan(&objects, Options::default(), &mut process, |layout| {
        let layout = layout.unwrap();
        placement::check(&layout, &Options::default());
        f(&layout)
    })
}

/// The error of laying out.
pub(crate) fn refused(objects: &[&Object], options: Options) -> Error {
    let objects: Vec<Vec<u8>> = objects.iter().map(|object| object.build()).collect();
    plan(&objects, options, &mut process, |layout| layout.map(|_| ()).unwrap_err())
}

/// Where the image of a test is to run.
pub(crate) const BASE: u64 = 0x1000_0000;

/// The image at [`BASE`].
pub(crate) fn image(layout: &Layout<'_, '_, X86_64>) -> Result<Vec<u8>, Error> {
    let mut image = vec![0x5a; layout.size() as usize];
    layout.write(&mut image, BASE).map(|()| image)
}

/// Why there is no image.
pub(crate) fn image_error(layout: &Layout<'_, '_, X86_64>) -> Error {
    image(layout).map(|_| ()).unwrap_err()
}

/// The eight bytes at `offset`.
pub(crate) fn word(image: &[u8], offset: u64) -> u64 {
    u64::from_le_bytes(image[offset as usize..][..8].try_into().unwrap())
}

/// The four bytes at `offset`, as a signed number.
pub(crate) fn half(image: &[u8], offset: u64) -> i64 {
    i32::from_le_bytes(image[offset as usize..][..4].try_into().unwrap()).into()
}

/// Lays out an object with room for so many edits.
pub(crate) fn with_edits<A: Arch, R>(
    bytes: &[u8],
    options: Options,
    room: usize,
    mut outside: impl FnMut(Name<'_>) -> Option<ExternalSymbol>,
    f: impl FnOnce(Result<Layout<'_, '_, A>, Error>) -> R,
) -> R {
    let files = [File::parse(bytes).unwrap()];
    let needed = Requirements::of(&files).unwrap();
    let storage = Storage {
        objects: &mut [ObjectSlot::default(); 1],
        sections: &mut vec![SectionSlot::default(); needed.sections],
        symbols: &mut vec![SymbolSlot::default(); needed.symbols],
        names: &mut [],
        edits: &mut vec![Edit::default(); room],
    };
    f(Layout::plan(&files, options, storage, &mut outside))
}

/// Why an object is refused.
pub(crate) fn refused_by<A: Arch>(bytes: &[u8]) -> Error {
    outcome::<A>(&[bytes]).unwrap_err()
}

/// Whether objects can be laid out together.
pub(crate) fn outcome<A: Arch>(objects: &[&[u8]]) -> Result<(), Error> {
    let files: Vec<File<'_>> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let mut objects = [ObjectSlot::default(); 3];
    let (mut sections, mut symbols) = ([SectionSlot::default(); 64], [SymbolSlot::default(); 128]);
    let storage = Storage {
        objects: &mut objects,
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut [0; 256],
        edits: &mut [],
    };
    Layout::<A>::plan(&files, Options::default(), storage, &mut nobody).map(|_| ())
}
