//! What features leave out.

/// Whether the caller's symbols may have copy relocations and canonical PLT entries.
pub(crate) const COPY_RELOCATIONS: bool = cfg!(feature = "copy-relocations");
/// Whether there may be variables of which every thread has its own.
pub(crate) const THREAD_LOCAL: bool = cfg!(feature = "thread-local");
/// Whether functions may stand behind stubs of their own.
pub(crate) const INDIRECT_FUNCTIONS: bool = cfg!(feature = "indirect-functions");
/// Whether an image may be written in parts.
pub(crate) const PARTS: bool = cfg!(feature = "parts");
/// Whether names of symbols have versions.
pub(crate) const SYMBOL_VERSIONS: bool = cfg!(feature = "symbol-versions");
/// Whether names mean what linkers make of them: where sections start and end, and that one of a name is enough.
pub(crate) const LINKER_DEFINED: bool = cfg!(feature = "linker-defined");
/// Whether an executable may have its start files: who links one has a heap.
pub(crate) const START_FILES: bool = LINKER_DEFINED && cfg!(feature = "alloc");
