//! Textures, samplers and surfaces that are named, not passed: each has a word in the parameter bank of every kernel that uses
//! one, at the same offset everywhere; the driver fills it.

use super::entity::EntityId;
use super::error::LinkError;
use super::object::{Object, Role};
use super::out::{Meaning, OutId, OutRecord, align};
use super::resolve::is_texture;
use super::sort::sort;
use super::state::State;
use crate::cuda::{R_CUDA_SAMP_HEADER_INDEX, R_CUDA_SURF_HEADER_INDEX, R_CUDA_TEX_HEADER_INDEX};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;
use elf_core::names::{STT_CUDA_SAMPLER, STT_CUDA_TEXTURE};

/// Bytes of a slot.
const SLOT: u64 = 4;

impl State<'_> {
    /// Gives every texture its slot, behind the longest parameter bank, if code names one.
    pub(super) fn place_textures(&mut self) -> Result<(), LinkError> {
        let (used, users) = self.texture_uses()?;
        if used.is_empty() {
            return Ok(());
        }
        let banks = self.parameter_banks();
        let longest = banks.values().map(|&bank| self.outs[bank].data.len() as u64).max();
        // from Mercury the linker makes more of them anew
        let mercury = self.sm >= 100;
        let start = align(longest.unwrap_or(0), if mercury { 16 } else { SLOT });
        let textures = self.entities.iter().filter(|(id, entity)| {
            is_texture(&entity.symbol) && (entity.place.is_some() || used.contains(id))
        });
        let mut all: Vec<_> = textures.map(|(id, _)| id).collect();
        all.sort_by_key(|&id| Reverse(self.entities[id].symbol.r#type()));
        let all = Vec::from(sort(all.into_iter().rev(), &|_, _| true));
        self.slots = all.iter().copied().zip((start..).step_by(SLOT as usize)).collect();
        let end = start.saturating_add((all.len() as u64).saturating_mul(SLOT));
        for (kernel, bank) in banks {
            let tree = self.calls.trees.get(&kernel);
            if tree.is_none_or(|tree| tree.is_disjoint(&users)) {
                continue;
            }
            self.outs[bank].data.resize(usize::try_from(end).unwrap_or(usize::MAX), 0);
            self.texture_users.insert(kernel);
            for &id in &all {
                let r#type = match self.entities[id].symbol.r#type() {
                    STT_CUDA_TEXTURE => R_CUDA_TEX_HEADER_INDEX,
                    STT_CUDA_SAMPLER => R_CUDA_SAMP_HEADER_INDEX,
                    _ => R_CUDA_SURF_HEADER_INDEX,
                };
                let offset = self.slots.get(&id).copied().unwrap_or(0);
                let symbol = Meaning::Entity(id);
                let addend = mercury.then_some(0);
                self.keep_record(bank, OutRecord { offset, r#type, symbol, addend });
            }
        }
        Ok(())
    }

    /// Whether a record fills a slot.
    pub(super) fn is_slot(&self, record: &OutRecord) -> bool {
        matches!(record.symbol, Meaning::Entity(id) if self.slots.contains_key(&id))
    }

    /// Whether code of an object names a texture.
    pub(super) fn names_textures(&self, object: &Object<'_>) -> bool {
        let mut texts = object.with_role(Role::Text);
        texts.any(|(text, _)| {
            let records = object.records(text).into_iter();
            let mut named = records.flatten().map(|record| record.symbol);
            let is_named = |symbol| {
                object.entity(symbol).is_some_and(|id| is_texture(&self.entities[id].symbol))
            };
            named.any(is_named)
        })
    }

    /// Textures that code names, and the functions that do.
    fn texture_uses(&self) -> Result<(BTreeSet<EntityId>, BTreeSet<EntityId>), LinkError> {
        let (mut used, mut users) = (BTreeSet::new(), BTreeSet::new());
        for object in self.objects.iter() {
            for (text, _) in object.with_role(Role::Text) {
                let Some(function) = self.function_here(object, text) else { continue };
                for record in object.records(text)? {
                    let named = object.entity(record.symbol);
                    let texture = named.filter(|&id| is_texture(&self.entities[id].symbol));
                    if let Some(id) = texture {
                        users.insert(function);
                        used.insert(id);
                    }
                }
            }
        }
        Ok((used, users))
    }

    /// The parameter banks of kernels.
    fn parameter_banks(&self) -> BTreeMap<EntityId, OutId> {
        let mut banks = BTreeMap::new();
        for object in self.objects.iter() {
            for (number, section) in object.with_role(Role::Parameters) {
                let kernel = self.function_here(object, section.header.info);
                let bank = self.places.get(&(object.index, number)).map(|place| place.0);
                banks.extend(kernel.zip(bank));
            }
        }
        banks
    }
}
