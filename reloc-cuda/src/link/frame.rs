//! `.debug_frame`: how to unwind each function. Objects' sections one after the other.

use super::entity::EntityId;
use super::error::LinkError;
use super::object::{Object, Role, Section};
use super::out::{Class, Meaning, Out, OutRecord};
use super::span::{Span, moved, part_from};
use super::state::State;
use crate::cuda::{R_CUDA_64, R_CUDA_UNUSED_CLEAR64};
use alloc::vec::Vec;
use elf_core::names::SHT_PROGBITS;

/// Of an entry: its length in the form of 12 bytes, then the place of the entry that it depends on.
const LENGTH: usize = 12;

impl State<'_> {
    /// Takes the unwind tables of all objects. From `sm_100` on those of functions that are dropped are cut out.
    pub(super) fn take_frames(&mut self) -> Result<(), LinkError> {
        let mut out = None;
        for index in 0..self.objects.len() {
            let Some(object) = self.objects.get(index) else { continue };
            let Some((number, section)) = object.with_role(Role::Frame).next() else { continue };
            let spans = match self.sm {
                100.. => self.live_spans(object, number, section)?,
                _ => Vec::from([Span::all(section.data)]),
            };
            let data: Vec<u8> =
                spans.iter().flat_map(|span| span.of(section.data)).copied().collect();
            let header = section.header;
            let id = *out.get_or_insert_with(|| {
                self.outs.push(Out {
                    flags: header.flags.bits(),
                    ..Out::new(b".debug_frame", Class::Frame, SHT_PROGBITS, 1)
                })
            });
            let base = self.outs[id].append(&data, header.alignment);
            self.places.insert((index, number), (id, base));
            self.spans.insert((index, number), spans);
        }
        Ok(())
    }

    /// The entries of functions that stay, each with the one it depends on, which stands before it.
    fn live_spans(
        &self,
        object: &Object<'_>,
        number: u32,
        section: &Section<'_>,
    ) -> Result<Vec<Span>, LinkError> {
        let records = object.records(number)?;
        let dead = |from: u64, end: u64| {
            let mut ours = records.iter().filter(|record| (from..end).contains(&record.offset));
            // all records of an entry that name a function name that one
            let function = ours.find_map(|record| object.entity(record.symbol));
            function.is_some_and(|id| !self.is_unwound(id, object.index))
        };
        let (mut spans, mut from, mut to, mut start) = (Vec::new(), 0u64, 0u64, 0u64);
        while let Some(rest) = part_from(section.data, from).filter(|rest| rest.len() >= LENGTH) {
            let (_, length) = rest.split_at(4);
            let length = length.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
            let end = from.saturating_add(length).saturating_add(LENGTH as u64);
            let end = end.min(section.data.len() as u64);
            let marker = rest.get(LENGTH..).and_then(|rest| rest.first_chunk::<8>());
            let is_common = marker.is_some_and(|marker| u64::from_le_bytes(*marker) == u64::MAX);
            if !is_common {
                let size = end.saturating_sub(start);
                if !dead(start, end) {
                    spans.push(Span { from: start, to, size });
                    to = to.saturating_add(size);
                }
                start = end;
            }
            from = end;
        }
        Ok(spans)
    }

    /// Resolves what depends on places in the section; addresses of functions go on to the driver.
    pub(super) fn relocate_frame(
        &mut self,
        object: &Object<'_>,
        section: &Section<'_>,
    ) -> Result<(), LinkError> {
        let target = section.header.info;
        let Some(&(out, base)) = self.places.get(&(object.index, target)) else { return Ok(()) };
        let spans = self.spans.get(&(object.index, target)).cloned().unwrap_or_default();
        let rows = object.cubin.file().relocations(&section.header);
        let rows = rows.map_err(LinkError::damaged(object.index))?;
        for record in rows.into_iter().flat_map(|rows| rows.iter().collect::<Vec<_>>()) {
            let Some(offset) = moved(&spans, record.offset) else { continue };
            let offset = offset.wrapping_add(base);
            let here = |id: &EntityId| self.is_here(*id, object.index);
            match (record.r#type, object.entity(record.symbol)) {
                (R_CUDA_UNUSED_CLEAR64, Some(id)) => {
                    // one that lost against another object's keeps its size
                    let own = super::calls::defined_in(&self.entities, id, object.index);
                    if own && !here(&id) {
                        self.put(out, offset, 0);
                    }
                }
                (R_CUDA_64, Some(id)) if self.is_unwound(id, object.index) => {
                    let symbol = Meaning::Entity(id);
                    let (r#type, addend) = (record.r#type, record.addend);
                    self.keep_record(out, OutRecord { offset, r#type, symbol, addend });
                }
                // the place of another entry
                (R_CUDA_64, None) if self.sm >= 100 => {
                    let span = spans.iter().find(|span| span.holds(record.offset));
                    let start = span.map_or(0, |span| span.to.wrapping_add(base));
                    self.put(out, offset, start);
                }
                (R_CUDA_64, None) => {
                    let addend = match record.addend {
                        Some(addend) => addend.cast_unsigned(),
                        None => word(section_data(object, target), record.offset).unwrap_or(0),
                    };
                    self.put(out, offset, addend.wrapping_add(base));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether an object's entry for a function stays: a weak function's that came first too, though another took its place;
    /// from `sm_90` on if its code asked for no relocation.
    pub(super) fn is_unwound(&self, id: EntityId, object: usize) -> bool {
        let lost = || self.entities[id].origin == Some(object) && self.calls.kept.contains(&id);
        self.is_here(id, object) || lost() && (self.sm < 90 || !self.has_records(id, object))
    }

    /// Whether an object has relocations for the code that it has of a function.
    fn has_records(&self, id: EntityId, object: usize) -> bool {
        let Some(object) = self.objects.get(object) else { return false };
        let mut texts = object.with_role(Role::Text).map(|(number, _)| number);
        let text = texts.find(|&text| super::calls::function_of(object, text) == Some(id));
        let records = text.and_then(|text| object.records(text).ok());
        records.is_some_and(|rows| !rows.is_empty())
    }

    pub(super) fn put(&mut self, out: super::out::OutId, offset: u64, value: u64) {
        let place = usize::try_from(offset).ok();
        let place = place.and_then(|at| self.outs[out].data.get_mut(at..)?.first_chunk_mut());
        if let Some(place) = place {
            *place = value.to_le_bytes();
        }
    }
}

fn section_data<'a>(object: &Object<'a>, index: u32) -> &'a [u8] {
    object.section(index).map_or(&[], |section| section.data)
}

fn word(data: &[u8], offset: u64) -> Option<u64> {
    part_from(data, offset)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}
