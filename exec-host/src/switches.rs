//! Words through which stubs jump, to be changed while code runs.

use crate::Host;
use crate::error::Error;
use crate::memory::Mapping;
use elf_layout::Layout;
use exec_core::sync::Mutex;
use std::collections::HashMap;

/// The functions of a load that may be replaced.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    by_name: HashMap<Box<[u8]>, Switch>,
    /// Where each entry leads that does not lead to its own function: what was replaced last is last.
    targets: Mutex<HashMap<u64, Vec<Target>>>,
}

/// Where a stub reads its target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub(crate) entry: u64,
    /// The function itself.
    pub(crate) function: u64,
}

#[derive(Debug)]
struct Target {
    address: u64,
    /// Tells replacements of one function apart.
    number: u64,
}

impl Switches {
    /// Those of an image at `base`.
    pub(crate) fn collect(layout: &Layout<'_, '_, Host>, base: u64) -> Self {
        let named = layout.replaceable_functions().filter_map(|function| {
            let table = layout.files().get(function.object)?.symbol_table().ok()??;
            let name = table.name_of(&table.get(function.symbol).ok()?).ok()?;
            let switch = Switch {
                entry: base.wrapping_add(function.entry),
                function: base.wrapping_add(function.function),
            };
            Some((name.as_bytes().into(), switch))
        });
        Self { by_name: named.collect(), targets: Mutex::default() }
    }

    /// That of the function of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Switch> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// Leads an entry elsewhere. Gives the number under which that is undone.
    pub(crate) fn lead(&self, memory: &Mapping, entry: u64, address: u64) -> Result<u64, Error> {
        let mut targets = self.targets.lock();
        let stack = targets.entry(entry).or_default();
        let number = stack.last().map_or(0, |last| last.number.wrapping_add(1));
        memory.write_word(entry, address)?;
        stack.push(Target { address, number });
        Ok(number)
    }

    /// Undoes one replacement: the one before it counts, or the function itself.
    pub(crate) fn undo(&self, memory: &Mapping, switch: Switch, number: u64) {
        let mut targets = self.targets.lock();
        let Some(stack) = targets.get_mut(&switch.entry) else { return };
        stack.retain(|target| target.number != number);
        let address = stack.last().map_or(switch.function, |last| last.address);
        // it worked for the replacement itself
        let _ = memory.write_word(switch.entry, address);
    }
}
