//! Functions: kernels, device functions, and subroutines inside them.

use crate::attribute::Attributes;
use crate::bank::ConstantBank;
use crate::calls::Call;
use crate::cubin::Cubin;
use crate::error::{Error, ErrorKind};
use crate::parameter::KernelParameter;
use crate::payload::Payload;
use crate::symbol::is_entry;
use elf_core::names::{SHF_CUDA_MERCURY, SHT_CUDA_INFO, STT_FUNC};
use elf_core::{Definition, Name, SectionHeader, Symbol};

/// A function that has code in the file.
#[derive(Clone, Copy)]
pub struct Function<'a> {
    cubin: Cubin<'a>,
    index: u32,
    symbol: Symbol,
    name: Name<'a>,
    section: u32,
    text: SectionHeader,
}

impl<'a> Function<'a> {
    /// The function that this symbol names, if it names one that has code here.
    fn of(cubin: &Cubin<'a>, index: u32, symbol: Symbol, name: Name<'a>) -> Option<Self> {
        if symbol.r#type() != STT_FUNC {
            return None;
        }
        let Ok(Definition::Section(section)) = cubin.symbols()?.section_of(index, &symbol) else {
            return None;
        };
        let text = cubin.file().section(section).ok()?;
        Some(Self { cubin: *cubin, index, symbol, name, section, text })
    }

    /// The cubin it is in.
    #[must_use]
    pub const fn cubin(&self) -> &Cubin<'a> {
        &self.cubin
    }

    /// Index of its symbol.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Its symbol.
    #[must_use]
    pub const fn symbol(&self) -> &Symbol {
        &self.symbol
    }

    /// Its name as it is in the symbol table: mangled. Empty if it cannot be read.
    #[must_use]
    pub const fn name(&self) -> Name<'a> {
        self.name
    }

    /// Index of the section of its code.
    #[must_use]
    pub const fn section(&self) -> u32 {
        self.section
    }

    /// The header of that section.
    #[must_use]
    pub const fn section_header(&self) -> &SectionHeader {
        &self.text
    }

    /// Whether it is a kernel: its symbol is marked as an entry.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        is_entry(&self.symbol)
    }

    /// Whether it is a subroutine: its code is part of another function's, whose attributes and memory it shares.
    #[must_use]
    pub const fn is_subroutine(&self) -> bool {
        let owner = self.text.info;
        // registers are above the number up to `sm_89`; the linker of CUDA 12.0 has them there for `sm_90`, too, where a kernel recurses
        owner != self.index && owner & 0xff_ffff != self.index
    }

    /// Its machine code: the section of a function, the part of it that is a subroutine.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the section leaves the file, [`ErrorKind::Truncated`] if the subroutine leaves the section.
    pub fn code(&self) -> Result<&'a [u8], Error> {
        let section = self.cubin.file().section_data(&self.text)?;
        if !self.is_subroutine() {
            return Ok(section);
        }
        let range =
            usize::try_from(self.symbol.value).ok().zip(usize::try_from(self.symbol.size).ok());
        let code = range.and_then(|(start, size)| section.get(start..)?.get(..size));
        let left = (section.len() as u64).saturating_sub(self.symbol.value);
        let kind = ErrorKind::Truncated { what: "subroutine", needed: self.symbol.size, left };
        code.ok_or(Error::new(self.text.offset.saturating_add(self.symbol.value), kind))
    }

    /// Its attributes: `.nv.info.K`. Those of a subroutine are those of the function it is in.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the section leaves the file.
    pub fn attributes(&self) -> Result<Attributes<'a>, Error> {
        let is_ours = |section: &SectionHeader| {
            section.info == self.section && section.r#type == SHT_CUDA_INFO
        };
        let found = self.cubin.file().sections().iter().find(is_ours);
        found.map_or(Ok(Attributes::default()), |section| self.cubin.attributes_in(&section))
    }

    /// Its parameters in the order of the file, which is mostly that of falling ordinals.
    ///
    /// # Errors
    /// As [`attributes`](Self::attributes); the items are those of the records.
    pub fn parameters(
        &self,
    ) -> Result<impl Iterator<Item = Result<KernelParameter, Error>> + use<'a>, Error> {
        let parameter =
            |row: Result<crate::Attribute<'a>, Error>| match row.map(|row| row.payload()) {
                Ok(Payload::Parameter(parameter)) => Some(Ok(parameter)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            };
        Ok(self.attributes()?.filter_map(parameter))
    }

    /// The constant banks of its own, not those of the module.
    pub fn constant_banks(&self) -> impl Iterator<Item = ConstantBank> + use<'a> {
        let section = self.section;
        self.cubin.constant_banks().filter(move |bank| bank.owner == Some(section))
    }

    /// The subroutines inside it.
    pub fn subroutines(&self) -> impl Iterator<Item = Function<'a>> + use<'a> {
        let (section, index) = (self.section, self.index);
        self.cubin.functions().filter(move |other| other.section == section && other.index != index)
    }

    /// The symbols of the functions that it calls directly, defined here or not.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`] if the call graph leaves the file.
    pub fn callees(&self) -> Result<impl Iterator<Item = u32> + use<'a>, Error> {
        let index = self.index;
        Ok(self.cubin.calls()?.filter_map(move |call| match call {
            Call::Direct { caller, callee } if caller == index => Some(callee),
            _ => None,
        }))
    }
}

impl<'a> Cubin<'a> {
    /// All functions that have code here: kernels, device functions, and subroutines inside them.
    #[must_use]
    pub fn functions(&self) -> Functions<'a> {
        Functions { cubin: *self, next: 0 }
    }

    /// The kernels: functions whose symbol is marked as an entry.
    pub fn kernels(&self) -> impl Iterator<Item = Function<'a>> + use<'a> {
        self.functions().filter(Function::is_kernel)
    }

    /// The kernel of this name, as it is in the symbol table: mangled.
    #[must_use]
    pub fn kernel(&self, name: Name<'_>) -> Option<Function<'a>> {
        self.kernels().find(|kernel| kernel.name() == name)
    }
}

/// The functions of a cubin in the order of the symbol table. Those in the Mercury form of the code are left out.
#[derive(Clone)]
pub struct Functions<'a> {
    cubin: Cubin<'a>,
    next: u32,
}

impl<'a> Iterator for Functions<'a> {
    type Item = Function<'a>;

    fn next(&mut self) -> Option<Function<'a>> {
        let table = self.cubin.symbols()?;
        loop {
            let index = self.next;
            let symbol = table.symbols().get(usize::try_from(index).ok()?)?;
            self.next = index.checked_add(1)?;
            if symbol.r#type() != STT_FUNC || symbol.is_undefined() {
                continue;
            }
            let name = table.name_of(&symbol).unwrap_or_default();
            let found = Function::of(&self.cubin, index, symbol, name);
            if let Some(function) =
                found.filter(|found| found.text.flags.bits() & SHF_CUDA_MERCURY == 0)
            {
                return Some(function);
            }
        }
    }
}

impl core::iter::FusedIterator for Functions<'_> {}
