//! The loaders of code.

/// Who puts code into the device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loader {
    /// The driver (`cuModuleLoadData`).
    Driver,
    /// This crate: [`own`](crate::own).
    Own,
}
