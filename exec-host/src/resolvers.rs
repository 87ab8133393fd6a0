//! Resolvers of indirect functions (`STT_GNU_IFUNC`), called as the C library calls them.

use crate::Host;
use crate::memory::Mapping;
use elf_layout::Layout;

/// The resolvers of a load, and where their answers go.
#[derive(Debug, Default)]
pub(crate) struct Resolvers {
    /// Address of a resolver, and of the word for its answer.
    calls: Vec<(u64, u64)>,
}

impl Resolvers {
    /// Those of an image at `base`.
    pub(crate) fn collect(layout: &Layout<'_, '_, Host>, base: u64) -> Self {
        let calls = layout.indirect_functions().map(|function| {
            (base.wrapping_add(function.resolver), base.wrapping_add(function.entry))
        });
        Self { calls: calls.collect() }
    }

    /// Whether there are none.
    pub(crate) const fn are_none(&self) -> bool {
        self.calls.is_empty()
    }

    /// Calls them, one after the other, and stores what they say. The words cannot be written any more afterwards.
    ///
    /// # Safety
    /// The resolvers are executable, sound to call, and this is their only call; the words are writable, and no code of the load runs.
    pub(crate) unsafe fn run(&self, memory: &Mapping) {
        for &(resolver, entry) in &self.calls {
            // SAFETY: as the caller vouches.
            let address = unsafe { call(resolver) };
            let entry = core::ptr::with_exposed_provenance_mut::<u64>(entry as usize);
            // SAFETY: a word of the GOT, aligned.
            unsafe { entry.write(address) };
        }
        memory.end_writing();
    }
}

/// Calls a resolver.
///
/// # Safety
/// It is one.
#[cfg(target_arch = "x86_64")]
unsafe fn call(resolver: u64) -> u64 {
    let code = core::ptr::with_exposed_provenance::<()>(resolver as usize);
    // SAFETY: resolvers of x86-64 take no arguments.
    unsafe { core::mem::transmute::<*const (), unsafe extern "C" fn() -> u64>(code)() }
}

/// Calls a resolver with what the processor can (AAELF64 "Indirect functions", <sys/ifunc.h>).
///
/// # Safety
/// It is one.
#[cfg(target_arch = "aarch64")]
unsafe fn call(resolver: u64) -> u64 {
    /// `__ifunc_arg_t`.
    #[repr(C)]
    struct Features {
        size: u64,
        hwcap: u64,
        hwcap2: u64,
    }
    /// `_IFUNC_ARG_HWCAP`: there is a second argument.
    const IS_FOLLOWED: u64 = 1 << 62;
    // SAFETY: asks only.
    let (hwcap, hwcap2) =
        unsafe { (libc::getauxval(libc::AT_HWCAP), libc::getauxval(libc::AT_HWCAP2)) };
    let features = Features { size: size_of::<Features>() as u64, hwcap, hwcap2 };
    let code = core::ptr::with_exposed_provenance::<()>(resolver as usize);
    type Resolver = unsafe extern "C" fn(u64, *const Features) -> u64;
    // SAFETY: resolvers of AArch64 take these arguments, or fewer.
    unsafe {
        core::mem::transmute::<*const (), Resolver>(code)(hwcap | IS_FOLLOWED, &raw const features)
    }
}
