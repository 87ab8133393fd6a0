//! What the caller decides.

use elf_core::Arch;

/// How to lay out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Segments by permission, or one blob.
    pub mode: ImageMode,
    /// The address of the image, if it is known already. Sections that carry an address are placed at it; without a base their
    /// address counts from the image's start.
    pub base: Option<u64>,
    /// How code reaches thread-local variables.
    pub thread_local: ThreadLocal,
    /// Whether the caller runs the resolvers of indirect functions (`STT_GNU_IFUNC`) before anything else:
    /// [`Layout::indirect_functions`](crate::Layout::indirect_functions). If not, or without the feature
    /// `indirect-functions`, they are refused.
    pub indirect_functions: bool,
    /// Whether loads and branches through the GOT become direct where that does the same ([`Special::Relax`](elf_core::Special::Relax)),
    /// and code shorter where the caller lends [room](crate::Storage::edits) for that ([`Special::Shrink`](elf_core::Special::Shrink)).
    /// Entries that nobody uses any more are left out. A caller that changes entries later, to replace functions, turns it off.
    pub relax: bool,
    /// Whether code may count from `__global_pointer$` where RISC-V has shorter instructions for that: the image runs with `gp` set to that
    /// symbol, which is an object's or the caller's. Not so in a process, of which the global pointer is the program's own; and nothing
    /// counts from there where an object has that register for [something else](Arch::NO_GLOBAL_POINTER).
    pub global_pointer: bool,
    /// Whether the image is all of an executable, whose thread-local variables are where the ABI has those of module 1
    /// ([`executable_tls_block`](crate::Layout::executable_tls_block)): code becomes shorter by that. It is an error to write the image for another block.
    pub executable: bool,
    /// Whether all who call a global function of the objects, or take its address, get a stub, which jumps through a GOT entry of its
    /// own: [`Layout::replaceable_functions`](crate::Layout::replaceable_functions). Changing the entry replaces the function.
    /// Refused without the feature `indirect-functions`.
    pub replaceable_functions: bool,
    /// Bytes within which the segments will be if the caller [places](crate::Layout::place_segments) them apart; 0 if they stay one behind
    /// the other.
    pub spread: u64,
    /// Whether what the caller answers is a definition of this image, as a linker's `--defsym` is, and not another component's: an undefined
    /// weak name that is not visible to others ([`STV_HIDDEN`](elf_core::names::STV_HIDDEN) and its like) may then mean it, else it is 0 and the
    /// caller is not asked (gABI ch. 5, "Symbol Visibility").
    pub hidden_externals: bool,
    /// Where unwinding tables of Arm find type information.
    pub target2: Target2,
}

/// What `R_ARM_TARGET2` is, by which unwinding tables name types: the unwinder of each platform expects another (AAELF32, "Static miscellaneous
/// relocations"; `--target2` of linkers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target2 {
    /// [`Relative`](Self::Relative) if the processors of the objects [say so](elf_core::Arch::DIRECT_TYPE_INFO), as those of M-profile do, else
    /// [`GotRelative`](Self::GotRelative).
    #[default]
    ByProcessor,
    /// The address, as `R_ARM_ABS32`: LLVM's libc++abi expects it without an operating system.
    Absolute,
    /// The distance of the address from the place, as `R_ARM_REL32`: libgcc expects it without an operating system.
    Relative,
    /// The distance of the address's GOT entry from the place, as `R_ARM_GOT_PREL`: on Linux.
    GotRelative,
}

impl Target2 {
    /// What it is of objects for these processors.
    pub(crate) const fn on<A: Arch>(self, processor: u32) -> Self {
        match self {
            Self::ByProcessor if processor & A::DIRECT_TYPE_INFO != 0 => Self::Relative,
            Self::ByProcessor => Self::GotRelative,
            chosen => chosen,
        }
    }
}

/// How code reaches thread-local variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadLocal {
    /// By their TP offset: code of other models is rewritten where the ABI has a way, as linkers do in
    /// executables. Code that is not what the ABI wants is refused.
    #[default]
    LocalExec,
    /// As it was compiled: by GOT entries, with `__tls_get_addr` and descriptors where the compiler called these.
    AsCompiled,
}

/// Segments by permission, or one blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageMode {
    /// Sections of one permission together, each segment on pages of its own.
    Segments {
        /// Size of a page in bytes, a power of two.
        page_size: u64,
    },
    /// All sections in file order in one segment.
    Packed {
        /// Least alignment of a section in bytes, a power of two; GPUs want 128.
        section_alignment: u64,
    },
}

impl Default for Options {
    /// Segments on pages of 4 KiB, at an address that is not known yet, relaxed.
    fn default() -> Self {
        Self {
            mode: ImageMode::Segments { page_size: 4096 },
            base: None,
            thread_local: ThreadLocal::default(),
            indirect_functions: false,
            relax: true,
            global_pointer: false,
            executable: false,
            replaceable_functions: false,
            spread: 0,
            hidden_externals: false,
            target2: Target2::default(),
        }
    }
}
