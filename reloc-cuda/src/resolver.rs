//! Who resolves a relocation.

/// Who resolves a relocation, as nvlink's table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolver {
    /// It says nothing.
    Nobody,
    /// A device linker: offsets in shared memory and in constant banks, which are known when kernels are put together. No linked
    /// file has one.
    Linker,
    /// Whoever loads the linked file: addresses of code and of global memory, descriptors, headers.
    Driver,
    /// A linker if it knows the value, as it does for shared memory; else whoever loads the file.
    Either,
}
