//! The loaders of code.

/// Who puts code into the device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CubinLoader {
    /// The driver (`cuModuleLoadData`).
    Driver,
    /// This crate: [`own`](crate::own).
    Own,
}
