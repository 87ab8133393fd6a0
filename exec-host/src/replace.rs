//! Functions that are replaced while others call them: all calls go through a stub, and the stub through a word that is changed.

use crate::Host;
use crate::error::Error;
use crate::memory::Mapping;
use crate::module::{Module, Parts};
use crate::symbols::Keeper;
use core::fmt;
use elf_layout::Layout;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The functions of a load that may be replaced.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    by_name: HashMap<Box<[u8]>, Switch>,
    /// Where each entry leads that does not lead to its own function: what was replaced last is last.
    targets: Mutex<HashMap<u64, Vec<Target>>>,
}

/// Where a stub reads its target.
#[derive(Clone, Copy, Debug)]
struct Switch {
    entry: u64,
    /// The function itself.
    function: u64,
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

    /// Leads an entry elsewhere. Gives the number under which that is undone.
    fn lead(&self, memory: &Mapping, entry: u64, address: u64) -> Result<u64, Error> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let stack = targets.entry(entry).or_default();
        let number = stack.last().map_or(0, |last| last.number.wrapping_add(1));
        memory.write_word(entry, address)?;
        stack.push(Target { address, number });
        Ok(number)
    }

    /// Undoes one replacement: the one before it counts, or the function itself.
    fn undo(&self, memory: &Mapping, switch: Switch, number: u64) {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stack) = targets.get_mut(&switch.entry) else { return };
        stack.retain(|target| target.number != number);
        let address = stack.last().map_or(switch.function, |last| last.address);
        // it worked for the replacement itself
        let _ = memory.write_word(switch.entry, address);
    }
}

/// A function that stands for another one as long as this lives. Both modules are kept.
///
/// If the same function was replaced once more, the later replacement counts until it is dropped.
#[must_use = "dropping it puts the function back"]
pub struct Replacement {
    parts: Arc<Parts>,
    switch: Switch,
    number: u64,
    #[expect(dead_code, reason = "kept")]
    modules: [Keeper; 2],
}

impl fmt::Debug for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = format_args!("{:#x}", self.switch.function);
        f.debug_struct("Replacement").field("function", &function).finish_non_exhaustive()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        self.parts.switches.undo(&self.parts.memory, self.switch, self.number);
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Module<B> {
    /// Puts the function `name` of `new` in the place of the one of this module, for all who have its address or call it, while
    /// threads run: one word changes. Calls that have begun end in the old function. Data stay where they are;
    /// [`keep_data`](crate::symbols::keep_data) makes `new` use them.
    ///
    /// # Errors
    /// [`Error::NotReplaceable`] unless the module was loaded as [replaceable](crate::Loader::replaceable) and defines the
    /// function; as [`function`](Self::function) for the new one; [`Error::Map`].
    ///
    /// # Safety
    /// Both functions have one type, and the new one is sound to call wherever the old one is. When the replacement is dropped, no
    /// thread is in the new function any more, unless somebody else keeps `new`.
    pub unsafe fn replace<N: AsRef<[u8]> + Send + Sync + 'static>(
        self: &Arc<Self>,
        name: &str,
        new: &Arc<Module<N>>,
    ) -> Result<Replacement, Error> {
        let address = new.function(name)?;
        // SAFETY: as the caller vouches.
        unsafe { self.redirect(name, address, Arc::clone(new) as Keeper) }
    }

    /// The same with any code: `keeper` is what has to live as long as the replacement.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    ///
    /// # Safety
    /// As [`replace`](Self::replace); a function is at `address`.
    pub unsafe fn redirect(
        self: &Arc<Self>,
        name: &str,
        address: u64,
        keeper: Keeper,
    ) -> Result<Replacement, Error> {
        if self.needs_initialization() {
            return Err(Error::NotInitialized);
        }
        let parts = self.parts();
        let switch = parts.switches.by_name.get(name.as_bytes()).copied();
        let switch = switch.ok_or_else(|| Error::NotReplaceable(name.into()))?;
        let number = parts.switches.lead(&parts.memory, switch.entry, address)?;
        let modules = [Arc::clone(self) as Keeper, keeper];
        Ok(Replacement { parts: Arc::clone(parts), switch, number, modules })
    }
}
