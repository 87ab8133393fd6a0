//! `.nv.info` and `.nv.info.F`: what the objects say, with what linking changes.

use super::calls::function_of;
use super::carried::{AT_ENTRY_FRAGMENTS, Carried};
use super::entity::EntityId;
use super::error::LinkError;
use super::object::{Object, Role};
use super::out::{Meaning, OutId};
use super::record::{Bytes, byte, raw, words};
use super::state::State;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use nvinfo::{Attribute, Attributes, Payload, eiattr};

/// Numbers of the symbols of the linked file.
pub(super) type Numbers = BTreeMap<Meaning, u32>;

/// Attributes that stay behind all others from `sm_100` on: `CBANK_PARAM_SIZE`, `PARAM_CBANK`, `SW_WAR`, `NVSAL_SW_WAR`,
/// `PREEXIT_USED`.
const LAST: [u8; 5] = [0x19, 0x0a, 0x36, 0x6b, 0x6d];

/// `BINDLESS_TEXTURE_BANK`, `BINDLESS_SURFACE_BANK`.
const BINDLESS_BANKS: [u8; 2] = [0x15, 0x16];

impl State<'_> {
    /// `.nv.info`: the last object's last record first, then the stacks of kernels.
    pub(super) fn module_info(&self, numbers: &Numbers) -> Result<Vec<u8>, LinkError> {
        let mut records: Vec<Bytes> = Vec::new();
        for object in self.objects.iter() {
            for (_, section) in object.with_role(Role::ModuleInfo) {
                for row in Attributes::new(section.data, section.header.offset) {
                    let row = row.map_err(LinkError::damaged(object.index))?;
                    records.extend(self.module_record(object, &row, numbers));
                }
            }
        }
        records.reverse();
        for &(id, _) in self.texts.iter().filter(|(id, _)| self.entities[*id].is_kernel()) {
            let stack = self.calls.totals(id).stack;
            let symbol = number(numbers, Meaning::Entity(id));
            records.push(words(eiattr::MIN_STACK_SIZE, &[symbol, stack]));
        }
        Ok(records.concat())
    }

    fn module_record(
        &self,
        object: &Object<'_>,
        row: &Attribute<'_>,
        numbers: &Numbers,
    ) -> Option<Bytes> {
        if matches!(row.number, eiattr::MAX_STACK_SIZE | eiattr::MIN_STACK_SIZE) {
            return None;
        }
        let Payload::OfSymbol { symbol, value } = row.payload() else { return Some(raw(row)) };
        let id = object.entity(symbol).filter(|&id| self.is_here(id, object.index))?;
        let value = match row.number {
            eiattr::REGCOUNT if self.entities[id].is_kernel() => self.calls.totals(id).registers,
            _ => value,
        };
        Some(words(row.number, &[number(numbers, Meaning::Entity(id)), value]))
    }

    /// `.nv.info.F` of the function that has section `section` of attributes in its object.
    pub(super) fn function_info(
        &self,
        (object, section): (usize, u32),
        id: EntityId,
        numbers: &Numbers,
    ) -> Result<Vec<u8>, LinkError> {
        let Some(object) = self.objects.get(object) else { return Ok(Vec::new()) };
        let Some(section) = object.section(section) else { return Ok(Vec::new()) };
        let kernel = self.entities[id].is_kernel();
        let mut returns = if kernel { self.calls.totals(id).returns } else { 0 };
        let mut carried = match kernel {
            true => self.calls.carried_by(id),
            false => self.calls.carried.get(&id).cloned().unwrap_or_default(),
        };
        if section.role == Role::Mercury {
            carried = carried.of_mercury();
        }
        let mut externs = Some(self.externs(id, numbers));
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for row in Attributes::new(section.data, section.header.offset) {
            let row = row.map_err(LinkError::damaged(object.index))?;
            let bytes = match row.number {
                // its place is lost if only calls through addresses reach undefined functions
                eiattr::EXTERNS if kernel && !self.calls.reaches_directly(id, &self.entities) => {
                    continue;
                }
                eiattr::EXTERNS if externs.as_ref().is_none_or(Vec::is_empty) => continue,
                eiattr::EXTERNS => words(eiattr::EXTERNS, &externs.take().unwrap_or_default()),
                eiattr::CRS_STACK_SIZE if kernel => {
                    words(eiattr::CRS_STACK_SIZE, &[core::mem::take(&mut returns)])
                }
                AT_ENTRY_FRAGMENTS if !kernel => {
                    carried.take(&row);
                    continue;
                }
                _ if carried.has(row.number) => match carried.take(&row) {
                    Some(bytes) => bytes,
                    None => continue,
                },
                _ => self.renumbered(object, &row, numbers),
            };
            if self.sm >= 100 && LAST.contains(&row.number) {
                last.push(bytes)
            } else {
                first.push(bytes)
            }
        }
        first.reverse();
        first.extend(new_records(returns, carried, externs));
        if self.calls.second_names.contains(&id) {
            first.push(Carried::unknown_mask());
        }
        first.append(&mut last);
        if self.sm >= 100 && self.texture_users.contains(&id) {
            first.extend(BINDLESS_BANKS.map(|attribute| byte(attribute, 0)));
        }
        Ok(first.concat())
    }

    /// Undefined functions that a function calls, a kernel with all that it reaches.
    fn externs(&self, id: EntityId, numbers: &Numbers) -> Vec<u32> {
        let charged = self.calls.charged(id);
        let by_code = self.texts.iter().map(|text| text.0).filter(|one| charged.contains(one));
        // those of an only kernel stand as the code does, of several each has its own first
        let is_only = self.entities[id].is_kernel() && self.calls.trees.len() == 1;
        let mut found = Vec::new();
        for function in Some(id).filter(|_| !is_only).into_iter().chain(by_code) {
            for callee in self.own_externs(function) {
                let symbol = number(numbers, Meaning::Entity(callee));
                if !found.contains(&symbol) {
                    found.push(symbol);
                }
            }
        }
        found
    }

    /// Undefined functions that a function calls directly, and kernels that it launches; those that its object lists first.
    fn own_externs(&self, id: EntityId) -> impl Iterator<Item = EntityId> {
        let callees = self.calls.direct.get(&id).into_iter().flatten().copied();
        let callees: Vec<_> =
            callees.filter(|&callee| self.calls.external.contains(&(id, callee))).collect();
        let listed = self.calls.listed.get(&id).into_iter().flatten().copied();
        let is_extern = |one: &EntityId| self.entities[*one].is_kernel() || callees.contains(one);
        let listed: Vec<_> = listed.filter(is_extern).collect();
        listed.into_iter().chain(callees)
    }

    /// A record whose symbols, if it names any, have their new numbers.
    pub(super) fn renumbered(
        &self,
        object: &Object<'_>,
        row: &Attribute<'_>,
        numbers: &Numbers,
    ) -> Bytes {
        match row.payload() {
            Payload::ParameterBank(bank) => {
                let place = u32::from(bank.size) << 16 | u32::from(bank.offset);
                words(row.number, &[self.renumber(object, bank.symbol, numbers), place])
            }
            Payload::Symbols(symbols) => {
                let symbols: Vec<_> = symbols
                    .into_iter()
                    .map(|symbol| self.renumber(object, symbol, numbers))
                    .collect();
                words(row.number, &symbols)
            }
            Payload::OfSymbol { symbol, value } => {
                words(row.number, &[self.renumber(object, symbol, numbers), value])
            }
            _ => raw(row),
        }
    }

    fn renumber(&self, object: &Object<'_>, symbol: u32, numbers: &Numbers) -> u32 {
        let place = |section| self.places.get(&(object.index, section)).map(|place| place.0);
        let meaning = object
            .entity(symbol)
            .map(Meaning::Entity)
            .or_else(|| object.section_of(symbol).and_then(place).map(Meaning::Section));
        meaning.map_or(0, |meaning| number(numbers, meaning))
    }

    /// Sections of attributes of functions that stay: kernels of an object first. A function stands where it was first defined, also
    /// where that definition was weak and another object's is taken.
    pub(super) fn info_sections(&self) -> Vec<((usize, u32), EntityId, OutId)> {
        let mut found = Vec::new();
        for object in self.objects.iter() {
            found.extend(object.with_role(Role::Info).filter_map(|(index, section)| {
                let text = section.header.info;
                let id = self.function_here(object, text)?;
                let out = self.places.get(&(object.index, text))?.0;
                let (first, place) = self.first_text(id, (object.index, text));
                Some((
                    (first, !self.entities[id].is_kernel(), place),
                    (object.index, index),
                    id,
                    out,
                ))
            }));
        }
        found.sort_by_key(|row| row.0);
        found.into_iter().map(|(_, section, id, out)| (section, id, out)).collect()
    }

    /// The object that defined a function first, and the section of its code there; `text` is that of the definition that is taken.
    fn first_text(&self, id: EntityId, text: (usize, u32)) -> (usize, u32) {
        let origin = self.entities[id].origin.filter(|&origin| origin != text.0);
        let first = origin.and_then(|origin| self.objects.get(origin));
        let found = first.and_then(|object| {
            let mut texts = object.with_role(Role::Text).map(|(index, _)| index);
            Some((object.index, texts.find(|&index| function_of(object, index) == Some(id))?))
        });
        found.unwrap_or(text)
    }
}

/// Records that the object did not have.
fn new_records(
    returns: u32,
    carried: Carried,
    externs: Option<Vec<u32>>,
) -> impl Iterator<Item = Bytes> {
    let returns = (returns > 0).then(|| words(eiattr::CRS_STACK_SIZE, &[returns]));
    let externs = externs.filter(|symbols| !symbols.is_empty());
    let externs = externs.map(|symbols| words(eiattr::EXTERNS, &symbols));
    returns.into_iter().chain(carried.rest()).chain(externs)
}

pub(super) fn number(numbers: &Numbers, meaning: Meaning) -> u32 {
    numbers.get(&meaning).copied().unwrap_or(0)
}
