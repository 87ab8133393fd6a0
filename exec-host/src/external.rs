//! What a source of symbols answers with.

use elf_layout::ExternalKind;

/// A symbol that no object of a load defines: where it is, and what is known of it.
///
/// An address is only written into code, which somebody has to guarantee who calls it. Constants are read when they are loaded:
///
/// ```compile_fail,E0133
/// // call to unsafe function
/// let nowhere = exec_host::External::constant_at(0x10, 8);
/// ```
///
/// ```compile_fail,E0423
/// // cannot initialize a tuple struct which contains private fields
/// let nowhere = exec_host::External(elf_layout::ExternalSymbol::constant(0x10, 8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct External(elf_layout::ExternalSymbol);

impl External {
    /// A symbol of which nothing but the address is known.
    #[must_use]
    pub const fn new(address: u64) -> Self {
        Self(elf_layout::ExternalSymbol::new(address))
    }

    /// A function.
    #[must_use]
    pub const fn function(address: u64) -> Self {
        Self(elf_layout::ExternalSymbol::function(address))
    }

    /// A thread-local variable at `offset` in the block of `module`, as `__tls_get_addr` knows it, and, if that is so in every thread,
    /// at `tp_offset`.
    #[must_use]
    pub const fn thread_local(module: u64, offset: u64, tp_offset: Option<i64>) -> Self {
        Self(elf_layout::ExternalSymbol::thread_local(module, offset, tp_offset))
    }

    /// Data that never change, of which code without `-fPIC` may get a copy where it reaches it.
    #[must_use]
    pub fn constant(data: &'static [u8]) -> Self {
        let address = data.as_ptr().expose_provenance() as u64;
        Self(elf_layout::ExternalSymbol::constant(address, data.len() as u64))
    }

    /// The same of data that are not known as bytes.
    ///
    /// # Safety
    /// As long as this or a copy of it is offered to loads, `size` bytes can be read at `address`, and nobody writes them.
    #[must_use]
    pub const unsafe fn constant_at(address: u64, size: u64) -> Self {
        Self(elf_layout::ExternalSymbol::constant(address, size))
    }

    /// The address; the offset of a thread-local variable.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0.address
    }

    /// Whether nothing but the address is known.
    pub(crate) const fn is_unknown(self) -> bool {
        matches!(self.0.kind, ExternalKind::Unknown)
    }

    /// Whether it is a function.
    pub(crate) const fn is_function(self) -> bool {
        matches!(self.0.kind, ExternalKind::Function)
    }

    /// The bytes of a constant, to be copied.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        let ExternalKind::Constant { size } = self.0.kind else { return None };
        let data = core::ptr::with_exposed_provenance::<u8>(self.0.address as usize);
        // SAFETY: who made this has them as a slice, or guarantees that they are there and do not change.
        Some(unsafe { core::slice::from_raw_parts(data, usize::try_from(size).ok()?) })
    }

    /// The same for a layout, which reads nothing.
    pub(crate) const fn for_layout(self) -> elf_layout::ExternalSymbol {
        self.0
    }
}
