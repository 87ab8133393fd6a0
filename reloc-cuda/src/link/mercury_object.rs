//! What objects have of the Mercury form: its symbols, and the sections that stand for those of a function.

use super::calls::function_of;
use super::entity::{EntityId, SYMBOL_OF_TEXT};
use super::object::{Object, Role, Section};
use alloc::vec::Vec;
use elf_core::Symbol;
use elf_core::names::{
    SHT_CUDA_CAPMERC, SHT_CUDA_MERCURY_CONSTANT_OPT, SHT_CUDA_MERCURY_INFO,
    SHT_CUDA_MERCURY_SYMTAB, STT_FUNC,
};

/// The table of attributes of the whole object.
pub(super) const MODULE_INFO: &[u8] = b".nv.merc.nv.info";

/// Whether a section is the Mercury form of what the system has of shared memory.
pub(super) fn is_reserved(object: &Object<'_>, section: &Section<'_>) -> bool {
    let name = section.name.as_bytes().strip_prefix(b".nv.merc");
    object.with_role(Role::ReservedShared).any(|(_, own)| Some(own.name.as_bytes()) == name)
}

/// The Mercury symbols of an object.
pub(super) fn mercury_symbols(object: &Object<'_>) -> Option<Vec<Symbol>> {
    let (_, section) = object.with_type(SHT_CUDA_MERCURY_SYMTAB).next()?;
    Some(object.cubin.file().rows::<Symbol>(&section.header).ok()?.iter().collect())
}

/// The Mercury form of a function of an object.
pub(super) fn mercury_code<'o, 'a>(
    object: &'o Object<'a>,
    id: EntityId,
) -> Option<(u32, &'o Section<'a>)> {
    object.with_type(SHT_CUDA_CAPMERC).find(|(_, section)| {
        let symbol = section.header.info & SYMBOL_OF_TEXT;
        let is_function =
            object.symbols.get(symbol as usize).is_some_and(|one| one.0.r#type() == STT_FUNC);
        is_function && object.entity(symbol) == Some(id)
    })
}

/// The section of a function's attributes in the Mercury form.
pub(super) fn mercury_info(object: &Object<'_>, id: EntityId) -> Option<u32> {
    let (code, _) = mercury_code(object, id)?;
    let mut infos = object.with_type(SHT_CUDA_MERCURY_INFO);
    let found =
        infos.find(|(_, one)| one.header.info == code && one.name.as_bytes() != MODULE_INFO);
    found.map(|(number, _)| number)
}

/// Whether a section is the Mercury form of a function's literals: as many bytes as the program has of them.
pub(super) fn are_literals(object: &Object<'_>, section: &Section<'_>) -> bool {
    let code = object.section(section.header.info);
    let code = code.filter(|code| code.header.r#type == SHT_CUDA_CAPMERC);
    let function = code.and_then(|code| object.entity(code.header.info & SYMBOL_OF_TEXT));
    let mut all = object.with_role(Role::Literals).map(|(_, one)| one);
    function.is_some()
        && all.any(|one| {
            function_of(object, one.header.info) == function && one.data.len() == section.data.len()
        })
}

/// The section of a function's literals in the Mercury form.
pub(super) fn literals_of<'o, 'a>(
    object: &'o Object<'a>,
    function: EntityId,
) -> Option<(u32, &'o Section<'a>)> {
    let (code, _) = mercury_code(object, function)?;
    let mut all = object.with_type(SHT_CUDA_MERCURY_CONSTANT_OPT);
    all.find(|(_, section)| section.header.info == code)
}
