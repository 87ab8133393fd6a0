//! Section groups: sections that a linker keeps or drops together (gABI ch. 3, "Section Groups").

use crate::content::name::Name;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::{GRP_COMDAT, SHT_GROUP, STT_SECTION};
use crate::table::rows::{Table, TableIter};
use crate::table::word::Word;
use crate::views::section::SectionHeader;
use crate::views::symbol::Definition;

/// A section group.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// `GRP_*`.
    pub flags: u32,
    /// The name by which equal groups know each other.
    pub signature: Name<'a>,
    members: Table<'a, Word>,
}

impl<'a> Group<'a> {
    /// Whether a linker keeps only one of all groups with this signature.
    #[must_use]
    pub const fn is_comdat(&self) -> bool {
        self.flags & GRP_COMDAT != 0
    }

    /// The indices of the sections that belong to the group.
    #[must_use]
    pub fn members(&self) -> TableIter<'a, Word> {
        self.members.iter()
    }
}

impl<'a> File<'a> {
    /// The group that a section of type `SHT_GROUP` describes; `None` for other types.
    ///
    /// The signature is the name of the symbol that `sh_info` names, or of its section if it has none of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the section has not even flags; else as [`rows`](Self::rows),
    /// [`symbol_table_at`](Self::symbol_table_at) and [`SymbolTable::get`](crate::SymbolTable::get).
    pub fn section_group(&self, section: &SectionHeader) -> Result<Option<Group<'a>>, Error> {
        if section.r#type != SHT_GROUP {
            return Ok(None);
        }
        let words: Table<'a, Word> = self.rows(section)?;
        let outside =
            ErrorKind::Outside { what: "flags of a section group", count: 1, file: section.size };
        let missing = Error { at: section.offset, kind: outside };
        let (flags, members) = words.get(0).zip(words.slice(1, words.len())).ok_or(missing)?;
        let symbols = self.symbol_table_at(section.link)?;
        let symbol = symbols.get(section.info)?;
        let mut signature = symbols.name_of(&symbol)?;
        if signature.is_empty()
            && symbol.r#type() == STT_SECTION
            && let Definition::Section(index) = symbols.section_of(section.info, &symbol)?
        {
            signature = self.section_name(&self.section(index)?)?;
        }
        Ok(Some(Group { flags, signature, members }))
    }
}
