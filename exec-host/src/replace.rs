//! Functions that are replaced while others call them: all calls go through a stub, and the stub through a word that is changed.

use crate::error::Error;
use crate::module::{Module, Parts};
use crate::switches::Switch;
use crate::symbols::Keeper;
use core::fmt;
use std::sync::Arc;

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
    /// function, [`Error::NotFunction`] if it is none; as [`function`](Self::function) for the new one; [`Error::Map`].
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
        // SAFETY: as the caller guarantees.
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
        let switch = parts.switches.get(name);
        let Some(switch) = switch else {
            return Err(match self.function(name) {
                Err(variable @ Error::NotFunction(_)) => variable,
                _ => Error::NotReplaceable(name.into()),
            });
        };
        let number = parts.switches.lead(&parts.memory, switch.entry, address)?;
        let modules = [Arc::clone(self) as Keeper, keeper];
        Ok(Replacement { parts: Arc::clone(parts), switch, number, modules })
    }
}
