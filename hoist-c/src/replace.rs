//! Functions that are replaced while others call them.

use crate::address::Function;
use crate::border::{Text, fallible, give, handle, infallible, place};
use crate::error::{Error, Status};
use crate::faults::host;
use crate::module::Module;
use core::mem::MaybeUninit;
use std::sync::Arc;

/// A function that stands for another one until this is freed with `hoist_replacement_free`.
pub struct Replacement {
    #[expect(dead_code, reason = "its end puts the function back")]
    inner: exec_host::Replacement,
}

/// Puts the function `name` of `replacing` in the place of the one of `module`, for all who call it or have its address, while threads
/// run. Calls that have begun end in the old function. Both modules stay in memory as long as the replacement, whether their handles
/// are freed or not. Both functions have one type. If a function is replaced several times, the last replacement counts.
///
/// Data stay where they are; `hoist_objects_add_keeping_data` has new code use them.
///
/// Errors: `NOT_REPLACEABLE` unless the module was loaded as replaceable (`hoist_loader_set_replaceable`) and defines the function;
/// `NOT_FOUND`, `NOT_FUNCTION`, `NOT_INITIALIZED` of either; `MEMORY`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_replace(
    module: Option<&Module>,
    name: Text,
    replacing: Option<&Module>,
    replacement: Option<&mut MaybeUninit<*mut Replacement>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let replacement = place(replacement, "replacement")?;
        let name = name.get("name")?;
        let old = handle(module, "module")?.shared();
        let new = handle(replacing, "replacing")?.shared();
        // SAFETY: who replaces guarantees that both have one type, and frees the replacement when nobody runs the new one.
        let inner = unsafe { old.replace(name, new) }.map_err(|error| host(&error, &[]))?;
        give(replacement, Replacement { inner });
        Ok(())
    })
}

/// The same with any function of this process, which must stay as long as the replacement.
///
/// Errors: as `hoist_module_replace`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_redirect(
    module: Option<&Module>,
    name: Text,
    function: Function,
    replacement: Option<&mut MaybeUninit<*mut Replacement>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let replacement = place(replacement, "replacement")?;
        let name = name.get("name")?;
        let old = handle(module, "module")?.shared();
        let function = function.ok_or_else(|| Error::null("function"))?;
        let address = (function as *const ()).expose_provenance() as u64;
        // SAFETY: who replaces guarantees type and life of the function.
        let inner = unsafe { old.redirect(name, address, Arc::new(())) };
        give(replacement, Replacement { inner: inner.map_err(|error| host(&error, &[]))? });
        Ok(())
    })
}

/// Puts the function back that was replaced, or the one that an earlier replacement has; NULL is none.
///
/// Threads: no thread is in the new function any more, unless the module that has it stays.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_replacement_free(replacement: Option<Box<Replacement>>) {
    infallible((), || drop(replacement));
}
