//! Which symbol means which: one entity for each thing that several objects name.

use super::arena::Arena;
use super::entity::{Entities, Entity, EntityId, Kind, Place, SYMBOL_OF_TEXT};
use super::error::{LinkError, LinkErrorKind, LinkErrors};
use super::object::{Object, Role};
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use elf_core::names::{
    SHN_COMMON, STB_LOCAL, STB_WEAK, STO_CUDA_ENTRY, STO_CUDA_MANAGED, STT_CUDA_SURFACE,
    STT_CUDA_TEXTURE, STT_FUNC, STT_SECTION,
};
use elf_core::{Name, Symbol};
use nvinfo::{Payload, Space, eiattr};

/// What `nvlink -r` calls all arrays whose size the launch gives where kernels use them. Its value is no alignment, but where the
/// arrays of some kernel began.
const JOINED_ARRAYS: &[u8] = b"externsharedinstance";

/// Finds the entity of every symbol, and writes it into the objects.
pub(super) fn resolve<'a>(objects: &mut [Object<'a>]) -> Result<Entities<'a>, LinkErrors> {
    let mut all = Arena::new();
    let mut errors = Vec::new();
    let mut names: BTreeMap<Name<'a>, EntityId> = BTreeMap::new();
    for object in objects {
        let registers = registers_of(object)?;
        // functions first: the order of their numbers is that of nvlink's tables
        for functions in [true, false] {
            for index in 0..object.symbols.len() {
                let Some(&(symbol, name)) = object.symbols.get(index) else { continue };
                let is_function = symbol.r#type() == STT_FUNC;
                if index == 0 || symbol.r#type() == STT_SECTION || is_function != functions {
                    continue;
                }
                let index = index as u32;
                let mut entity = entity_of(object, index, symbol, name);
                if entity.kind == Kind::Shared && name.as_bytes() == JOINED_ARRAYS {
                    entity.symbol.value = arrays_alignment(object);
                }
                if entity.place.is_some() {
                    entity.registers = registers.get(&index).copied();
                }
                let is_aligned = match entity.kind {
                    Kind::Shared => true,
                    Kind::Reserved => entity.place.is_some(),
                    _ => entity.common.is_some(),
                };
                if is_aligned {
                    LinkError::check_alignment(object.index, name, entity.symbol.value)?;
                }
                let id = match names.get(&name) {
                    Some(&id) if !entity.local => {
                        errors.extend(merge(&mut all[id], entity, object.index).err());
                        id
                    }
                    _ => {
                        let local = entity.local;
                        let id = all.push(entity);
                        if !local {
                            names.insert(name, id);
                        }
                        id
                    }
                };
                if let Some(slot) = object.entities.get_mut(index as usize) {
                    *slot = Some(id);
                }
            }
        }
    }
    LinkErrors::none_of(errors)?;
    Ok(all)
}

/// What one symbol says of what it names.
fn entity_of<'a>(object: &Object<'a>, index: u32, symbol: Symbol, name: Name<'a>) -> Entity<'a> {
    let section = object.section_of(index);
    let role = section.and_then(|section| object.section(section)).map(|section| section.role);
    let is_texture = is_texture(&symbol);
    let kind = match (symbol.r#type(), Space::of(&symbol), role) {
        (STT_FUNC, ..) => Kind::Function,
        (_, _, Some(Role::Parameters | Role::Literals)) => Kind::InBank,
        (_, Space::ReservedShared, _) | (_, _, Some(Role::ReservedShared)) => Kind::Reserved,
        _ if name.as_bytes().starts_with(b".nv.reservedSmem.") => Kind::Reserved,
        (_, Space::Shared, _) | (_, _, Some(Role::Shared | Role::FreeShared)) => Kind::Shared,
        _ => Kind::Variable,
    };
    let text = section.and_then(|section| object.section(section));
    let inner = kind == Kind::Function
        && text.is_some_and(|text| text.header.info & SYMBOL_OF_TEXT != index);
    let common = (symbol.shndx == SHN_COMMON).then_some(symbol.value);
    let placed = section.is_some() && !is_array(object, index, &symbol);
    let defined = placed || is_texture || common.is_some();
    Entity {
        name,
        kind,
        local: symbol.binding() == STB_LOCAL,
        symbol,
        place: defined.then_some(Place { object: object.index, section }),
        origin: defined.then_some(object.index),
        former: Vec::new(),
        first: object.index,
        common,
        inner,
        registers: None,
        value: symbol.value,
    }
}

/// Whether a symbol is an array whose size the launch gives, in the section that `nvlink -r` puts it into.
fn is_array(object: &Object<'_>, index: u32, symbol: &Symbol) -> bool {
    let section = object.section_of(index).and_then(|section| object.section(section));
    let is_free = section.is_some_and(|section| section.role == Role::FreeShared);
    is_free && symbol.size == 0 && symbol.binding() != STB_LOCAL && symbol.r#type() != STT_SECTION
}

/// The largest alignment of the arrays that `nvlink -r` put into a section.
fn arrays_alignment(object: &Object<'_>) -> u64 {
    let symbols = (0..).zip(&object.symbols);
    let arrays = symbols.filter(|(index, (symbol, _))| is_array(object, *index, symbol));
    arrays.map(|(_, (symbol, _))| symbol.value).max().unwrap_or(1)
}

/// Registers that an object's functions need, by the number of their symbol.
fn registers_of(object: &Object<'_>) -> Result<BTreeMap<u32, u32>, LinkError> {
    let damaged = LinkError::damaged::<nvinfo::Error>(object.index);
    let mut found = BTreeMap::new();
    for row in object.cubin.attributes().map_err(&damaged)? {
        let row = row.map_err(&damaged)?;
        if let (eiattr::REGCOUNT, Payload::OfSymbol { symbol, value }) = (row.number, row.payload())
        {
            found.insert(symbol, value);
        }
    }
    Ok(found)
}

/// Takes another mention of an entity: of two definitions the strong one, of two weak functions that of fewer
/// registers, as nvlink does, of two references the first.
fn merge<'a>(known: &mut Entity<'a>, new: Entity<'a>, object: usize) -> Result<(), LinkError> {
    let refuse = |kind| Err(LinkError::new(object, kind));
    let (symbol, first) = (known.name.to_string(), known.first);
    if known.kind != new.kind || Space::of(&known.symbol) != Space::of(&new.symbol) {
        return refuse(LinkErrorKind::Space { symbol, first });
    }
    let differ = |bit| (known.symbol.other ^ new.symbol.other) & bit != 0;
    match known.kind {
        Kind::Function if differ(STO_CUDA_ENTRY) => {
            return refuse(LinkErrorKind::Entry { symbol, first });
        }
        Kind::Variable if differ(STO_CUDA_MANAGED) => {
            return refuse(LinkErrorKind::Managed { symbol, first });
        }
        _ => {}
    }
    check_sizes(known, &new, object)?;
    if let (Kind::Shared, None, None) = (known.kind, known.place, new.place) {
        // code of each object counts on the alignment that it gives the array
        known.symbol.value = known.symbol.value.max(new.symbol.value);
    }
    let weak = |entity: &Entity<'_>| entity.symbol.binding() == STB_WEAK;
    let is_one_texture = is_texture(&known.symbol) && known.symbol.r#type() == new.symbol.r#type();
    let replaces = match (known.place, new.place) {
        (_, None) => false,
        (None, Some(_)) => true,
        // textures are where the driver puts them, and every object that names one defines it
        (Some(_), Some(_)) if is_one_texture => false,
        (Some(_), Some(_)) if known.common.is_some() && new.common.is_some() => {
            known.common = known.common.max(new.common);
            known.symbol.size = known.symbol.size.max(new.symbol.size);
            return Ok(());
        }
        (Some(_), Some(_)) if known.common.is_some() => true,
        (Some(_), Some(_)) if weak(known) && weak(&new) => {
            let pair = known.registers.zip(new.registers);
            pair.is_some_and(|(old, new)| new < old)
        }
        (Some(_), Some(_)) if new.common.is_some() || weak(&new) => false,
        (Some(_), Some(_)) if weak(known) => true,
        (Some(place), Some(_)) => {
            return refuse(LinkErrorKind::Duplicate { symbol, first: place.object });
        }
    };
    if replaces {
        let mut former = core::mem::take(&mut known.former);
        former.extend(known.place.map(|place| place.object));
        *known = Entity { first, origin: known.origin.or(new.origin), former, ..new };
    }
    Ok(())
}

/// Whether both mentions can be the same variable by their sizes, of which 0 is none.
fn check_sizes(known: &Entity<'_>, new: &Entity<'_>, object: usize) -> Result<(), LinkError> {
    let (symbol, first) = (known.name.to_string(), known.first);
    let refuse = |kind| Err(LinkError::new(object, kind));
    let sizes = (known.symbol.size, new.symbol.size);
    if known.kind != Kind::Variable || sizes.0 == sizes.1 || sizes.0 == 0 || sizes.1 == 0 {
        return Ok(());
    }
    let defined = known.place.is_some() && new.place.is_some();
    match (known.common, new.common) {
        (Some(_), Some(_)) => Ok(()),
        (Some(_), None) if defined && sizes.0 < sizes.1 => Ok(()),
        (None, Some(_)) if defined && sizes.1 < sizes.0 => Ok(()),
        (Some(_), None) | (None, Some(_)) if defined => {
            refuse(LinkErrorKind::Common { symbol, first })
        }
        _ => refuse(LinkErrorKind::Size { symbol, first }),
    }
}

pub(super) fn is_texture(symbol: &Symbol) -> bool {
    matches!(symbol.r#type(), STT_CUDA_TEXTURE..=STT_CUDA_SURFACE)
}
