//! Constants that the optimizer made, in the Mercury form: literals and tables of branches, as bank 2 has them.

use super::mercury_object::literals_of;
use super::mercury_records::{FLAGS_WITH_INFO, Forms};
use super::out::{Class, Info, Out, OutId};
use super::state::State;
use alloc::rc::Rc;
use elf_core::names::SHT_CUDA_MERCURY_CONSTANT_OPT;

/// `SHF_ALLOC`.
const ALLOC: u64 = 2;
/// What the name of a kernel follows.
const NAME: &[u8] = b".nv.merc.nv.constant.optimizer.";

impl State<'_> {
    /// Makes the Mercury form of bank 2 of each kernel: what objects have there, where the literals of the program are.
    pub(super) fn take_mercury_literals(&mut self, forms: &mut Forms) {
        let objects = Rc::clone(&self.objects);
        for (bank, function, start) in self.literal_parts.clone() {
            let object = self.entities[function].place.and_then(|place| objects.get(place.object));
            let Some((_, section)) = object.and_then(|object| literals_of(object, function)) else {
                continue;
            };
            let known = forms.get(&bank).copied();
            let Some(form) = known.or_else(|| self.mercury_bank(bank, forms)) else { continue };
            forms.insert(bank, form);
            let data = &mut self.outs[form].data;
            let from = usize::try_from(start).ok();
            let to = from.and_then(|from| data.get_mut(from..)?.get_mut(..section.data.len()));
            let pairs = to.into_iter().flatten().zip(section.data);
            pairs.for_each(|(to, from)| *to = *from);
        }
    }

    /// Makes the section for a kernel's bank.
    fn mercury_bank(&mut self, bank: OutId, forms: &Forms) -> Option<OutId> {
        let own = &self.outs[bank];
        let Info::Section(text) = own.info else { return None };
        let kernel = own.name.strip_prefix(b".nv.constant2.")?;
        let (name, alignment, size) = ([NAME, kernel].concat(), own.alignment, own.data.len());
        Some(self.outs.push(Out {
            flags: FLAGS_WITH_INFO | ALLOC,
            info: Info::Section(*forms.get(&text)?),
            data: alloc::vec![0; size],
            ..Out::new(&name, Class::MercuryBanks, SHT_CUDA_MERCURY_CONSTANT_OPT, alignment)
        }))
    }
}
