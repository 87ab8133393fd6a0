//! One relocatable cubin, read once.

use super::entity::EntityId;
use super::error::{LinkError, LinkErrorKind};
use alloc::string::ToString;
use alloc::vec::Vec;
use elf_core::names::{
    SHF_CUDA_MERCURY, SHT_DYNAMIC, SHT_DYNSYM, SHT_GROUP, SHT_HASH, SHT_NOTE, SHT_REL, SHT_RELA,
    SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX,
};
use elf_core::{Definition, Name, Record, SectionHeader, Symbol, SymbolTable};
use nvinfo::{Cubin, HeaderForm, LinkStage};

/// What a section is to a linker, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Tables of the file itself, and what a linker makes anew.
    Ignored,
    /// `.nv.merc.*` and `.nv.capmerc.*`.
    Mercury,
    /// Debug information but for `.debug_frame`.
    Debug,
    /// `.text.F`.
    Text,
    /// `.nv.info`.
    ModuleInfo,
    /// `.nv.info.F`.
    Info,
    /// `.nv.constant0.K`.
    Parameters,
    /// `.nv.constant2.F`.
    Literals,
    /// `.nv.constant3`.
    Constants,
    /// `.nv.global.init`.
    Initialized,
    /// `.nv.global`.
    Zeroed,
    /// `.nv.shared.K`.
    Shared,
    /// `.nv_debug.shared`.
    FreeShared,
    /// `.nv.shared.reserved.0`: what the system has of shared memory.
    ReservedShared,
    /// `.debug_frame`.
    Frame,
    /// `.rel.*` and `.rela.*`.
    Relocations,
    /// `.note.nv.tkinfo`.
    ToolNote,
    /// `.note.nv.cuinfo`, in toolkit 12 `.note.nv.cuver`.
    CudaNote,
    /// `.nv.compat`.
    Compat,
}

/// Names and what they are, first match; a name that ends in a dot or a low line is a prefix.
const ROLES: &[(&[u8], Role)] = &[
    (b"", Role::Ignored),
    (b".shstrtab", Role::Ignored),
    (b".strtab", Role::Ignored),
    (b".symtab", Role::Ignored),
    (b".symtab_shndx", Role::Ignored),
    (b".nv.callgraph", Role::Ignored),
    (b".nv.prototype", Role::Ignored),
    (b".nv.rel.action", Role::Ignored),
    (b".nv.shared.reserved.", Role::ReservedShared),
    (b".text.", Role::Text),
    (b".nv.info", Role::ModuleInfo),
    (b".nv.info.", Role::Info),
    (b".nv.constant0.", Role::Parameters),
    (b".nv.constant2.", Role::Literals),
    (b".nv.constant3", Role::Constants),
    (b".nv.global.init", Role::Initialized),
    (b".nv.global", Role::Zeroed),
    (b".nv.shared.", Role::Shared),
    (b".nv_debug.shared", Role::FreeShared),
    (b".debug_frame", Role::Frame),
    (b".note.nv.tkinfo", Role::ToolNote),
    (b".note.nv.cuinfo", Role::CudaNote),
    (b".note.nv.cuver", Role::CudaNote),
    (b".nv.compat", Role::Compat),
    (b".debug_", Role::Debug),
    (b".nv_debug_", Role::Debug),
];

/// The oldest architecture of the header form that linked files have.
const OLDEST_SM: u32 = 75;
/// Bits of `sh_flags` of code that are the number of barriers up to toolkit 12.
pub(super) const BARRIERS: u64 = 0x7f << 20;

/// Whether nvlink 13.5 takes objects that a toolkit up to 12 made for an architecture.
const fn is_linked(sm: u32, toolkit: u32) -> bool {
    sm >= OLDEST_SM && (sm < 90 || toolkit >= 120)
}

/// A section with its name and bytes.
pub(super) struct Section<'a> {
    pub(super) header: SectionHeader,
    pub(super) name: Name<'a>,
    pub(super) data: &'a [u8],
    pub(super) role: Role,
}

/// A relocatable cubin.
pub(super) struct Object<'a> {
    pub(super) index: usize,
    pub(super) cubin: Cubin<'a>,
    pub(super) sections: Vec<Section<'a>>,
    pub(super) symbols: Vec<(Symbol, Name<'a>)>,
    /// What each symbol means, once symbols are resolved.
    pub(super) entities: Vec<Option<EntityId>>,
    table: SymbolTable<'a>,
}

impl<'a> Object<'a> {
    pub(super) fn read(index: usize, bytes: &'a [u8], sm: Option<u32>) -> Result<Self, LinkError> {
        let refuse = |kind| Err(LinkError::new(index, kind));
        let cubin = Cubin::parse(bytes).map_err(LinkError::damaged(index))?;
        let target = cubin.target();
        if target.stage != LinkStage::Relocatable {
            return refuse(LinkErrorKind::NotRelocatable);
        }
        let Some(found) = target.sm.filter(|_| target.is_64) else {
            return refuse(LinkErrorKind::Form);
        };
        if target.form == HeaderForm::V7 {
            let toolkit = target.toolkit.map_or(0, |toolkit| toolkit.0);
            if !is_linked(found, toolkit) {
                return refuse(LinkErrorKind::Toolkit { sm: found, toolkit });
            }
        }
        let runs_on = |target: u32| found / 10 == target / 10 && found <= target;
        if let Some(expected) = sm.filter(|&expected| !runs_on(expected)) {
            return refuse(LinkErrorKind::Architecture { found, expected });
        }
        let file = cubin.file();
        let damaged = LinkError::damaged::<elf_core::Error>(index);
        let mut sections = Vec::new();
        for header in file.sections() {
            let name = file.section_name(&header).map_err(&damaged)?;
            let role = role_of(&header, name);
            let Some(role) = role else {
                return refuse(LinkErrorKind::Section(name.to_string()));
            };
            LinkError::check_alignment(index, name, header.alignment)?;
            // memory without contents has its size in the header, whatever its type
            let data = match role {
                Role::Zeroed
                | Role::Shared
                | Role::FreeShared
                | Role::ReservedShared
                | Role::Ignored => &[],
                _ => file.section_data(&header).map_err(&damaged)?,
            };
            sections.push(Section { header, name, data, role });
        }
        let Some(&table) = cubin.symbols() else {
            return refuse(LinkErrorKind::Section(".symtab is missing: nothing".to_string()));
        };
        let symbols: Vec<_> = table
            .symbols()
            .iter()
            .map(|symbol| (symbol, table.name_of(&symbol).unwrap_or_default()))
            .collect();
        let entities = alloc::vec![None; symbols.len()];
        Ok(Self { index, cubin, sections, symbols, entities, table })
    }

    pub(super) fn section(&self, index: u32) -> Option<&Section<'a>> {
        self.sections.get(usize::try_from(index).ok()?)
    }

    /// The section that a symbol is in.
    pub(super) fn section_of(&self, index: u32) -> Option<u32> {
        let (symbol, _) = self.symbols.get(usize::try_from(index).ok()?)?;
        match self.table.section_of(index, symbol) {
            Ok(Definition::Section(section)) => Some(section),
            _ => None,
        }
    }

    pub(super) fn entity(&self, symbol: u32) -> Option<EntityId> {
        *self.entities.get(usize::try_from(symbol).ok()?)?
    }

    /// Indices of the sections of this role.
    pub(super) fn with_role(&self, role: Role) -> impl Iterator<Item = (u32, &Section<'a>)> {
        let sections = (0u32..).zip(&self.sections);
        sections.filter(move |(_, section)| section.role == role)
    }

    /// Sections of Mercury of this type, with their indices.
    pub(super) fn with_type(&self, r#type: u32) -> impl Iterator<Item = (u32, &Section<'a>)> {
        self.with_role(Role::Mercury).filter(move |(_, section)| section.header.r#type == r#type)
    }

    /// The records against section `target`, those of all its sections of records.
    pub(super) fn records(&self, target: u32) -> Result<Vec<Record>, LinkError> {
        let ours = self.with_role(Role::Relocations);
        let mut found = Vec::new();
        for (_, section) in ours.filter(|(_, section)| section.header.info == target) {
            let rows = self.cubin.file().relocations(&section.header);
            let rows = rows.map_err(LinkError::damaged(self.index))?;
            found.extend(rows.into_iter().flat_map(|rows| rows.iter()));
        }
        Ok(found)
    }
}

fn role_of(header: &SectionHeader, name: Name<'_>) -> Option<Role> {
    if header.flags.bits() & SHF_CUDA_MERCURY != 0 && header.r#type != SHT_NOTE {
        return Some(Role::Mercury);
    }
    if matches!(header.r#type, SHT_REL | SHT_RELA) {
        return Some(Role::Relocations);
    }
    let name = name.as_bytes();
    let matches = |pattern: &[u8]| match pattern {
        [.., b'.' | b'_'] => name.starts_with(pattern),
        _ => name == pattern,
    };
    let role = ROLES.iter().find(|(pattern, _)| matches(pattern)).map(|row| row.1);
    // what has the name of code or data is no table of an ELF file
    role.filter(|role| *role == Role::Ignored || !TABLES.contains(&header.r#type))
}

/// Types of sections that have names, symbols and what belongs together.
const TABLES: [u32; 7] =
    [SHT_DYNAMIC, SHT_DYNSYM, SHT_GROUP, SHT_HASH, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX];
