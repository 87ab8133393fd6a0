//! The native part of the Python package `hoist`: what its modules in Python are made of.
//!
//! Functions here take and give plain values; names, defaults and documentation for users are in `hoist/*.py`. Calls of machine
//! code are made here from end to end, because they are what costs.

mod borrowed;
mod buffer;
mod call;
mod callback;
mod command;
mod convert;
mod cubin;
mod cubin_link;
mod device;
mod dlpack;
mod errors;
mod fatbins;
mod flat;
mod function;
mod held;
mod interpreter;
mod kept;
mod library;
mod link;
mod liveness;
mod loaded;
mod loader;
mod memory;
mod object;
mod observers;
mod opening;
mod options;
mod pointer;
mod refused;
mod signature;
mod sources;
mod symbol;
mod types;

use pyo3::prelude::*;

/// The module as Python sees it. A Python without a lock that all threads share needs none for it.
#[pymodule(gil_used = false)]
fn _hoist(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreter::refuse_others()?;
    types::add(module)?;
    function::add(module)?;
    memory::add(module)?;
    module.add_class::<callback::Callback>()?;
    module.add_class::<sources::Archive>()?;
    module.add_class::<loader::Arena>()?;
    module.add_class::<loaded::Loaded>()?;
    module.add_class::<loaded::Replacement>()?;
    module.add_class::<library::LoadedLibrary>()?;
    module.add_class::<cubin::DeviceImage>()?;
    module.add_class::<device::Device>()?;
    module.add_class::<device::Buffer>()?;
    module.add_class::<device::Image>()?;
    module.add_class::<device::Kernel>()?;
    module.add_class::<device::Event>()?;
    module.add_function(wrap_pyfunction!(symbol::address_of, module)?)?;
    module.add_function(wrap_pyfunction!(loader::load, module)?)?;
    module.add_function(wrap_pyfunction!(opening::open_library, module)?)?;
    module.add_function(wrap_pyfunction!(link::link, module)?)?;
    module.add_function(wrap_pyfunction!(flat::flat, module)?)?;
    module.add_function(wrap_pyfunction!(command::command, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    module.add_function(wrap_pyfunction!(cubin::cubin, module)?)?;
    module.add_function(wrap_pyfunction!(cubin::occupancy, module)?)?;
    module.add_function(wrap_pyfunction!(cubin_link::link_cubins, module)?)?;
    module.add_function(wrap_pyfunction!(fatbins::entries, module)?)?;
    module.add_function(wrap_pyfunction!(fatbins::payload, module)?)?;
    module.add_function(wrap_pyfunction!(fatbins::select, module)?)?;
    module.add_function(wrap_pyfunction!(device::device_count, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
