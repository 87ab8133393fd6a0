//! Debug information: sections of one name one after the other.

use super::entity::{EntityId, Kind};
use super::error::LinkError;
use super::object::{Object, Role, Section};
use super::out::{Class, Meaning, Out, OutId, OutRecord};
use super::span::moved;
use super::state::State;
use crate::cuda::{R_CUDA_32, R_CUDA_64};
use alloc::rc::Rc;
use elf_core::Record;
use elf_core::names::SHT_PROGBITS;

impl State<'_> {
    /// Takes the debug information of all objects, that of dropped functions too but for their lines from `sm_100` on.
    pub(super) fn take_debug(&mut self) {
        for object in Rc::clone(&self.objects).iter() {
            for (number, section) in object.with_role(Role::Debug) {
                let (name, header) = (section.name.as_bytes(), section.header);
                let known = self.outs.iter().find(|(_, out)| out.name == name).map(|(id, _)| id);
                let out = known.unwrap_or_else(|| {
                    let flags = header.flags.bits();
                    self.outs.push(Out { flags, ..Out::new(name, Class::Frame, SHT_PROGBITS, 1) })
                });
                let lines = self.live_lines(object, number, section);
                let data = lines.as_ref().map_or(section.data, |(_, data)| data);
                let base = self.outs[out].append(data, header.alignment);
                self.spans.extend(lines.map(|(spans, _)| ((object.index, number), spans)));
                self.places.insert((object.index, number), (out, base));
            }
        }
    }

    /// Resolves what names places in debug sections; addresses of functions go on to the driver.
    pub(super) fn relocate_debug(
        &mut self,
        object: &Object<'_>,
        section: &Section<'_>,
    ) -> Result<(), LinkError> {
        let target = section.header.info;
        let Some(&(out, base)) = self.places.get(&(object.index, target)) else { return Ok(()) };
        let rows = object.cubin.file().relocations(&section.header);
        let rows = rows.map_err(LinkError::damaged(object.index))?;
        let spans = self.spans.get(&(object.index, target)).cloned();
        for record in rows.into_iter().flat_map(|rows| rows.iter().collect::<alloc::vec::Vec<_>>())
        {
            let offset = match &spans {
                Some(spans) => moved(spans, record.offset),
                None => Some(record.offset),
            };
            let Some(offset) = offset.map(|offset| offset.wrapping_add(base)) else { continue };
            if let Some(id) = object.entity(record.symbol) {
                if self.entities[id].kind == Kind::Shared {
                    self.put_debug(out, offset, &record, self.shared_value(id));
                } else if self.is_described(id, object.index, out) {
                    let (symbol, addend) = (Meaning::Entity(id), record.addend);
                    let r#type = record.r#type;
                    self.keep_record(out, OutRecord { offset, r#type, symbol, addend });
                }
                continue;
            }
            let place = object.section_of(record.symbol);
            let place = place.and_then(|section| self.places.get(&(object.index, section)));
            let Some(&(named, start)) = place else { continue };
            if self.outs[named].class != Class::Frame {
                let symbol = Meaning::Section(named);
                let addend = record.addend.map(|addend| addend.wrapping_add(start.cast_signed()));
                let r#type = record.r#type;
                self.keep_record(out, OutRecord { offset, r#type, symbol, addend });
                continue;
            }
            self.put_debug(out, offset, &record, start);
        }
        Ok(())
    }

    /// Whether records of a section stay that name a variable, or a function: what describes it and where its variables
    /// are, of weak functions all that do; lines and addresses of its code only where this object's is taken. Labels of
    /// code that the compiler removed are nowhere.
    fn is_described(&self, id: EntityId, object: usize, out: OutId) -> bool {
        if !self.is_function(id) {
            let entity = &self.entities[id];
            return !entity.local || entity.place.is_some();
        }
        match self.outs[out].name.as_slice() {
            b".debug_info" | b".debug_loc" => self.calls.kept.contains(&id),
            _ => self.is_unwound(id, object),
        }
    }

    /// Writes `start`, where what a record names is, with the addend: that of the record, or what the field holds.
    fn put_debug(&mut self, out: OutId, offset: u64, record: &Record, start: u64) {
        let at = usize::try_from(offset).ok();
        let Some(field) = at.and_then(|at| self.outs[out].data.get_mut(at..)) else { return };
        let addend = record.addend.map(i64::cast_unsigned);
        match record.r#type {
            R_CUDA_32 => {
                if let Some(word) = field.first_chunk_mut() {
                    let held = u64::from(u32::from_le_bytes(*word));
                    let value = addend.unwrap_or(held).wrapping_add(start);
                    *word = (value as u32).to_le_bytes();
                }
            }
            R_CUDA_64 => {
                if let Some(word) = field.first_chunk_mut() {
                    let value = addend.unwrap_or(u64::from_le_bytes(*word)).wrapping_add(start);
                    *word = value.to_le_bytes();
                }
            }
            _ => {}
        }
    }
}
