//! A cubin: its target, attributes, symbols and sections.

use crate::attribute::Attributes;
use crate::bank::ConstantBank;
use crate::calls::Calls;
use crate::compat;
use crate::error::{Error, ErrorKind};
use crate::names::eiattr;
use crate::note::{CubinNote, CubinNotes};
use crate::target::{HeaderForm, Target, TargetSuffix, TextureMode};
use elf_core::names::{
    EM_CUDA, SHT_CUDA_CALLGRAPH, SHT_CUDA_COMPAT_INFO, SHT_CUDA_INFO, SHT_NOTE, STT_CUDA_SURFACE,
    STT_CUDA_TEXTURE,
};
use elf_core::{File, Name, SectionHeader, Symbol, SymbolTable};

/// A cubin in memory: code for one architecture, relocatable or linked.
#[derive(Clone, Copy)]
pub struct Cubin<'a> {
    file: File<'a>,
    symbols: Option<SymbolTable<'a>>,
    target: Target,
    info: Option<SectionHeader>,
}

impl<'a> Cubin<'a> {
    /// Reads the file header and finds the tables.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if it is no ELF file or a damaged one, [`ErrorKind::NotCuda`] and [`ErrorKind::BigEndian`] if it is
    /// no cubin.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::of(File::parse(bytes)?)
    }

    /// The same for a file that has been parsed.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn of(file: File<'a>) -> Result<Self, Error> {
        let header = *file.header();
        if header.machine != EM_CUDA {
            return Err(Error::new(0x12, ErrorKind::NotCuda { machine: header.machine }));
        }
        if file.encoding().is_big_endian() {
            return Err(Error::new(5, ErrorKind::BigEndian));
        }
        let named = |section: &SectionHeader| {
            file.section_name(section).is_ok_and(|name| name == ".nv.info")
        };
        let info = file
            .sections()
            .iter()
            .find(|section| section.r#type == SHT_CUDA_INFO && named(section));
        let target = Target::of_header(&header, file.encoding());
        let mut cubin = Self { file, symbols: file.symbol_table()?, target, info };
        cubin.refine_target();
        Ok(cubin)
    }

    /// Adds what notes, `.nv.compat` and `.nv.info` say of the target. What is damaged there says nothing.
    fn refine_target(&mut self) {
        if self.target.form != HeaderForm::V8 {
            return;
        }
        let mut target = self.target;
        let mut named = None;
        for note in self.notes().flatten() {
            match note {
                CubinNote::Cuda { virtual_sm, toolkit, .. } => {
                    target.virtual_sm = target.virtual_sm.or(Some(virtual_sm.into()));
                    target.toolkit = target.toolkit.or(toolkit);
                }
                CubinNote::Tool(tool) => {
                    let suffix = tool.architecture().and_then(|text| suffix_of(text, target.sm?));
                    named = named.or(suffix);
                    target.toolkit = target.toolkit.or(tool.toolkit());
                }
                CubinNote::Other { .. } => {}
            }
        }
        let accelerated = |compat: Attributes<'_>| {
            compat.flatten().any(|row| {
                row.number == compat::CUDA_ACCELERATOR_TARGET && row.number_value() == Some(1)
            })
        };
        if target.suffix == TargetSuffix::NotRecorded {
            target.suffix = match self.compat().map(accelerated) {
                Ok(true) => TargetSuffix::Accelerated,
                _ => named.unwrap_or(TargetSuffix::NotRecorded),
            };
        }
        let independent = |row: crate::Attribute<'_>| row.number == eiattr::TEXMODE_INDEPENDENT;
        if let Ok(mut rows) = self.attributes() {
            let found = rows.by_ref().flatten().any(independent);
            target.texture_mode =
                if found { TextureMode::Independent } else { TextureMode::Unified };
        }
        self.target = target;
    }

    /// The ELF file.
    #[must_use]
    pub const fn file(&self) -> &File<'a> {
        &self.file
    }

    /// What the code is for, from all places that say so.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// The symbols, if there is a table of them.
    #[must_use]
    pub const fn symbols(&self) -> Option<&SymbolTable<'a>> {
        self.symbols.as_ref()
    }

    /// Symbol `index` and its name. A name that cannot be read is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if there is no such symbol.
    pub fn symbol(&self, index: u32) -> Result<(Symbol, Name<'a>), Error> {
        let Some(table) = self.symbols else {
            return Err(Error::new(
                0,
                ErrorKind::Elf(elf_core::ErrorKind::NoSymbol { index, count: 0 }),
            ));
        };
        let symbol = table.get(index)?;
        Ok((symbol, table.name_of(&symbol).unwrap_or_default()))
    }

    /// All symbols with their indices and names.
    pub fn symbols_named(&self) -> impl Iterator<Item = (u32, Symbol, Name<'a>)> + use<'a> {
        let table = self.symbols;
        let symbols = table.into_iter().flat_map(|table| (0..u32::MAX).zip(table.symbols()));
        symbols.map(move |(index, symbol)| {
            let name = table.and_then(|table| table.name_of(&symbol).ok());
            (index, symbol, name.unwrap_or_default())
        })
    }

    /// The symbols that another file is to define, or the system: those without a section, but not the null symbols.
    ///
    /// Textures, samplers and surfaces have no section either and are left out.
    pub fn undefined(&self) -> impl Iterator<Item = (u32, Symbol, Name<'a>)> + use<'a> {
        let all = self.symbols_named();
        all.filter(|(_, symbol, name)| {
            symbol.is_undefined()
                && !name.is_empty()
                && !matches!(symbol.r#type(), STT_CUDA_TEXTURE..=STT_CUDA_SURFACE)
        })
    }

    /// The attributes of the whole module: `.nv.info`.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the section leaves the file.
    pub fn attributes(&self) -> Result<Attributes<'a>, Error> {
        self.info.map_or(Ok(Attributes::default()), |section| self.attributes_in(&section))
    }

    /// The records of `.nv.compat`: what the code is compatible with, named by [`compat_name`](crate::compat_name).
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the section leaves the file.
    pub fn compat(&self) -> Result<Attributes<'a>, Error> {
        let found =
            self.file.sections().iter().find(|section| section.r#type == SHT_CUDA_COMPAT_INFO);
        found.map_or(Ok(Attributes::default()), |section| self.attributes_in(&section))
    }

    /// The records of a section of attributes.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the section leaves the file.
    pub fn attributes_in(&self, section: &SectionHeader) -> Result<Attributes<'a>, Error> {
        Ok(Attributes::new(self.file.section_data(section)?, section.offset))
    }

    /// All notes in the order of the file.
    pub fn notes(&self) -> impl Iterator<Item = Result<CubinNote<'a>, Error>> + use<'a> {
        let file = self.file;
        let sections = file.sections().iter().filter(|section| section.r#type == SHT_NOTE);
        sections.flat_map(move |section| {
            let (notes, error) = match file.section_data(&section) {
                Ok(data) => (CubinNotes::new(data, section.offset), None),
                Err(error) => (CubinNotes::default(), Some(Err(error.into()))),
            };
            notes.chain(error)
        })
    }

    /// Who calls whom: `.nv.callgraph`.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the section leaves the file.
    pub fn calls(&self) -> Result<Calls<'a>, Error> {
        let found =
            self.file.sections().iter().find(|section| section.r#type == SHT_CUDA_CALLGRAPH);
        match found {
            Some(section) => Ok(Calls::new(self.file.section_data(&section)?)),
            None => Ok(Calls::default()),
        }
    }

    /// The text of a prototype that a [`Call`](crate::Call) names.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if there is no such string.
    pub fn prototype(&self, prototype: u32) -> Result<Name<'a>, Error> {
        match self.symbols {
            Some(table) => Ok(table.names().get(prototype)?),
            None => Ok(Name::default()),
        }
    }

    /// The constant banks of the module and of all functions.
    pub fn constant_banks(&self) -> impl Iterator<Item = ConstantBank> + use<'a> {
        let file = self.file;
        (0..u32::MAX)
            .zip(file.sections())
            .filter_map(move |(index, section)| ConstantBank::of(&file, index, section))
    }
}

/// The suffix of `text` if it is `sm_N` with this number.
fn suffix_of(text: &[u8], sm: u32) -> Option<TargetSuffix> {
    let text = text.strip_prefix(b"sm_")?;
    let (digits, suffix) = match text {
        [digits @ .., b'a'] => (digits, TargetSuffix::Accelerated),
        [digits @ .., b'f'] => (digits, TargetSuffix::Family),
        digits => (digits, TargetSuffix::Plain),
    };
    let number: u32 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    (number == sm).then_some(suffix)
}
