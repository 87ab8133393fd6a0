//! What the system has of shared memory: variables that the compiler names, one of each for all kernels.

use super::entity::Kind;
use super::object::Role;
use super::out::{Class, Out};
use super::state::State;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use elf_core::names::SHT_NOBITS;

/// Bytes before the first variable.
pub(super) const HEAD: u64 = 0x40;

impl State<'_> {
    /// Makes `.nv.shared.reserved.0`, if an object has one, and places its variables.
    pub(super) fn place_reserved(&mut self) {
        let mut out = None;
        for object in Rc::clone(&self.objects).iter() {
            for (number, section) in object.with_role(Role::ReservedShared) {
                let header = section.header;
                let id = *out.get_or_insert_with(|| {
                    self.outs.push(Out {
                        flags: header.flags.bits(),
                        memory: HEAD,
                        ..Out::new(section.name.as_bytes(), Class::NoBits, SHT_NOBITS, 1)
                    })
                });
                let alignment = &mut self.outs[id].alignment;
                *alignment = header.alignment.max(*alignment);
                self.places.insert((object.index, number), (id, 0));
            }
        }
        let Some(out) = out else { return };
        let all = self.entities.iter();
        let all = all.filter(|(_, one)| one.kind == Kind::Reserved && one.place.is_some());
        let mut all: Vec<_> = all.map(|(id, one)| (id, one.symbol)).collect();
        all.sort_by_key(|(_, symbol)| (Reverse(symbol.value), symbol.size));
        for (id, symbol) in all {
            self.entities[id].value = self.outs[out].reserve(symbol.size, symbol.value);
        }
    }
}
