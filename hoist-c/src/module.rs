//! Loaded objects: their functions and variables.

use crate::address::{Function, function_at, pointer_to};
use crate::border::{Text, changed, empty, fallible, handle, infallible, place};
use crate::error::{Error, Status};
use crate::faults::host;
use crate::module_rows::Tables;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use exec_host::symbols::SharedBytes;
use std::sync::{Arc, OnceLock};

/// Objects in memory. Free it with `hoist_module_free`.
pub struct Module {
    inner: Arc<exec_host::Module<SharedBytes>>,
    tables: OnceLock<Tables>,
}

impl Module {
    pub(crate) fn new(module: exec_host::Module<SharedBytes>) -> Self {
        Self { inner: Arc::new(module), tables: OnceLock::new() }
    }

    /// What others may keep.
    pub(crate) const fn shared(&self) -> &Arc<exec_host::Module<SharedBytes>> {
        &self.inner
    }

    /// Its symbols and sections, collected when they are asked for first.
    pub(crate) fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| Tables::of(&self.inner))
    }
}

/// Whether the objects have constructors that were not run yet; `false` of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_needs_initialization(module: Option<&Module>) -> bool {
    infallible(false, || module.is_some_and(|module| module.inner.needs_initialization()))
}

/// Runs the constructors of the objects, once; later calls do nothing. Functions are given out afterwards only, if there are
/// constructors. Destructors will run when the module goes.
///
/// Errors: `INVALID_ARGUMENT`.
/// Threads: any number at once; all return when the constructors have run.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_initialize(
    module: Option<NonNull<Module>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let module = handle(changed(module), "module")?;
        // SAFETY: who has them run guarantees the objects' constructors.
        unsafe { module.inner.initialize() };
        Ok(())
    })
}

/// The function `name`, to be cast to its type: `int (*f)(int) = (int (*)(int))function`. Good as long as the module.
///
/// Errors: `NOT_FOUND`, `NOT_FUNCTION`, `NOT_INITIALIZED`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_function(
    module: Option<&Module>,
    name: Text,
    function: Option<&mut MaybeUninit<Function>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let function = place(function, "function")?;
        let name = name.get("name")?;
        let address = handle(module, "module")?.inner.function(name);
        *function = function_at(address.map_err(|error| host(&error, &[]))?);
        Ok(())
    })
}

/// The address of the symbol `name`, whatever it is, good as long as the module. Thread-local variables have none.
///
/// Errors: `NOT_FOUND`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_address(
    module: Option<&Module>,
    name: Text,
    address: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let address = place(address, "address")?;
        let name = name.get("name")?;
        let found = handle(module, "module")?.inner.address(name);
        *address = pointer_to(found.ok_or_else(|| Error::not_found("symbol", name))?);
        Ok(())
    })
}

/// Address and size of the memory that the module occupies. Each of the two places may be NULL.
///
/// Errors: `INVALID_ARGUMENT`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_extent(
    module: Option<&Module>,
    address: Option<&mut MaybeUninit<*mut c_void>>,
    size: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (address, size) = (empty(address), empty(size));
        let (start, length) = handle(module, "module")?.inner.extent();
        if let Some(address) = address {
            *address = pointer_to(start);
        }
        if let Some(size) = size {
            *size = length;
        }
        Ok(())
    })
}

/// Unloads a module, unless other modules or replacements use it: then when the last of them goes. What its code has registered with
/// `atexit` runs, then its destructors, if it was initialized. NULL is none.
///
/// Threads: nobody uses the handle any more, or runs code of the module, or has pointers to its data.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_free(module: Option<Box<Module>>) {
    infallible((), || drop(module));
}
