//! Bank 2: literals, which code of device functions reaches in the banks of all kernels at one offset.

use super::entity::EntityId;
use super::object::Role;
use super::out::{Class, Info, Out, OutId, align};
use super::state::State;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use elf_core::SectionHeader;
use elf_core::names::{SHT_PROGBITS, SHT_RELA};

impl State<'_> {
    /// Puts literals of kernels at the start of their banks, then those of functions, last section first, behind what the
    /// banks of all kernels that reach it hold by then, and at the largest alignment of these.
    pub(super) fn place_literals(&mut self) {
        let mut found: Vec<(EntityId, SectionHeader, Vec<u8>)> = Vec::new();
        let mut sections = BTreeMap::new();
        for object in self.objects.iter() {
            for (number, section) in object.with_role(Role::Literals) {
                if let Some(id) = self.function_here(object, section.header.info) {
                    sections.insert(id, (object.index, number));
                    found.push((id, section.header, section.data.to_vec()));
                }
            }
        }
        let mut banks: BTreeMap<EntityId, OutId> = BTreeMap::new();
        let texts = self.texts.clone();
        let (own, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|row| self.entities[row.0].is_kernel());
        for (kernel, header, data) in own {
            let bank = self.bank(kernel, &header, &mut banks);
            self.outs[bank].append(&data, header.alignment);
            self.literals.insert(kernel, 0);
            self.literal_parts.push((bank, kernel, 0));
            if let Some(&place) = sections.get(&kernel) {
                self.places.insert(place, (bank, 0));
            }
        }
        for (function, header, data) in others.into_iter().rev() {
            let trees = self.calls.trees.iter().filter(|(_, tree)| tree.contains(&function));
            let kernels: Vec<_> = trees.map(|(&kernel, _)| kernel).collect();
            let known = kernels.iter().filter_map(|kernel| banks.get(kernel));
            let known: Vec<_> = known.map(|&bank| &self.outs[bank]).collect();
            let end = known.iter().map(|bank| bank.data.len() as u64).max().unwrap_or(0);
            let alignments = known.iter().map(|bank| bank.alignment).chain([header.alignment]);
            let alignment = alignments.max().unwrap_or(1);
            let start = align(end, alignment);
            let size = |end: u64| usize::try_from(end).unwrap_or(usize::MAX);
            for kernel in texts.iter().rev().map(|text| text.0).filter(|id| kernels.contains(id)) {
                let bank = self.bank(kernel, &header, &mut banks);
                let out = &mut self.outs[bank];
                out.alignment = alignment;
                out.data.resize(size(start), 0);
                out.data.extend_from_slice(&data);
                out.data.resize(size(align(out.data.len() as u64, alignment)), 0);
                self.literal_parts.push((bank, function, start));
            }
            self.literals.insert(function, start);
        }
        if self.sm >= 100 {
            self.keep_lists_of_literals(&banks);
        }
    }

    /// Banks of kernels that reach literals with a section of records have one too, as with nvlink: the objects' are empty.
    fn keep_lists_of_literals(&mut self, banks: &BTreeMap<EntityId, OutId>) {
        for object in Rc::clone(&self.objects).iter() {
            for (_, section) in object.with_role(Role::Relocations) {
                let literals = object.section(section.header.info);
                let literals = literals.filter(|one| one.role == Role::Literals);
                let owner = literals.and_then(|one| self.function_here(object, one.header.info));
                let Some(owner) = owner else { continue };
                let trees = self.calls.trees.iter().filter(|(_, tree)| tree.contains(&owner));
                let reached = trees.filter_map(|(kernel, _)| banks.get(kernel));
                let with = section.header.r#type == SHT_RELA;
                self.kept_lists.extend(reached.map(|&bank| (bank, with)));
            }
        }
    }

    /// The bank of a kernel, made if need be.
    fn bank(
        &mut self,
        kernel: EntityId,
        like: &SectionHeader,
        banks: &mut BTreeMap<EntityId, OutId>,
    ) -> OutId {
        if let Some(&bank) = banks.get(&kernel) {
            return bank;
        }
        let mut name = b".nv.constant2.".to_vec();
        name.extend_from_slice(self.entities[kernel].name.as_bytes());
        let text = self.texts.iter().find(|text| text.0 == kernel);
        let bank = self.outs.push(Out {
            flags: like.flags.bits() | 0x40, // SHF_INFO_LINK, which older toolkits do not set
            info: text.map_or(Info::None, |text| Info::Section(text.1)),
            ..Out::new(&name, Class::Banks, SHT_PROGBITS, 1)
        });
        banks.insert(kernel, bank);
        bank
    }
}
