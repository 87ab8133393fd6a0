//! The needs of all kernels in one pass over the file, in storage that the caller lends.

use crate::cubin::Cubin;
use crate::error::{Error, ErrorKind};
use crate::resources::{Resources, bank_target, of_symbol};

/// No kernel.
const NONE: u32 = u32::MAX;

/// A kernel and what it needs.
#[derive(Clone, Copy, Debug)]
pub struct KernelNeeds {
    /// Index of its symbol.
    pub symbol: u32,
    /// Index of the section of its code.
    pub section: u32,
    /// What it needs.
    pub resources: Resources,
}

impl KernelNeeds {
    /// Room for a kernel.
    pub const EMPTY: Self = Self { symbol: 0, section: 0, resources: Resources::EMPTY };
}

impl Cubin<'_> {
    /// What every kernel needs, in the order of the symbol table: as [`resources`](crate::Function::resources) of each, in one
    /// pass for all.
    ///
    /// `room` is for the kernels, `index` for as many numbers as there are symbols and sections together.
    ///
    /// # Errors
    /// [`ErrorKind::Storage`] without enough room; those of `resources` if the file is damaged.
    pub fn kernel_needs<'m>(
        &self,
        room: &'m mut [KernelNeeds],
        index: &mut [u32],
    ) -> Result<&'m [KernelNeeds], Error> {
        let symbols = self.symbols().map_or(0, elf_core::SymbolTable::len);
        let needed = symbols.saturating_add(self.file().sections().len());
        let short =
            |what, room: usize| Error::new(0, ErrorKind::Storage { what, room: room as u64 });
        let found = index.len();
        let Some((by_symbol, by_section)) =
            index.get_mut(..needed).and_then(|index| index.split_at_mut_checked(symbols))
        else {
            return Err(short("symbols and sections", found));
        };
        by_symbol.fill(NONE);
        by_section.fill(NONE);
        let (most, mut count) = (room.len(), 0u32);
        for kernel in self.kernels() {
            let slot = room.get_mut(count as usize).ok_or(short("kernels", most))?;
            let resources = Resources::of_headers(&kernel);
            *slot = KernelNeeds { symbol: kernel.index(), section: kernel.section(), resources };
            for (list, at) in
                [(&mut *by_symbol, kernel.index()), (&mut *by_section, kernel.section())]
            {
                if let Some(place) = list.get_mut(at as usize) {
                    *place = count;
                }
            }
            count = count.saturating_add(1);
        }
        let room = room.get_mut(..count as usize).unwrap_or_default();
        let find = |list: &[u32], at: u32| list.get(at as usize).copied().unwrap_or(NONE) as usize;
        for row in self.attributes()? {
            if let Some((symbol, number, value)) = of_symbol(&row?)
                && let Some(kernel) = room.get_mut(find(by_symbol, symbol))
            {
                kernel.resources.module_attribute(number, value);
            }
        }
        for section in self.file().sections() {
            if let Some(kernel) = room.get_mut(find(by_section, section.info)) {
                kernel.resources.section(self, &section)?;
            }
            if let Some(target) = bank_target(self, &section)
                && let Some(kernel) = room.get_mut(find(by_section, target))
            {
                kernel.resources.headers(self, &section)?;
            }
        }
        Ok(room)
    }
}
