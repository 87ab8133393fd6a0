//! Zeros that take no memory before something is written to them.

#[cfg(target_family = "wasm")]
pub(super) use grown::Pages;
#[cfg(not(target_family = "wasm"))]
pub(super) use zeros::Pages;

/// Where the allocator may be asked for zeros.
#[cfg(not(target_family = "wasm"))]
mod zeros {
    use core::ops::{Deref, DerefMut};

    #[derive(Debug)]
    pub(crate) struct Pages(Vec<u8>);

    impl Pages {
        /// So many zeros, if there is memory for them.
        pub(crate) fn new(size: u64) -> Option<Self> {
            let size = usize::try_from(size).ok()?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(size).ok()?;
            bytes.resize(size, 0);
            Some(Self(bytes))
        }
    }

    impl Deref for Pages {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            &self.0
        }
    }

    impl DerefMut for Pages {
        fn deref_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
}

/// In WebAssembly the allocator writes the zeros, all of them: memory that the machine grows by has them already. It is never given
/// back: whoever runs the module ends it with its files.
#[cfg(target_family = "wasm")]
#[expect(unsafe_code, reason = "memory that the machine has grown by")]
mod grown {
    use core::arch::wasm32::memory_grow;
    use core::ops::{Deref, DerefMut};

    const PAGE: u64 = 1 << 16;

    #[derive(Debug)]
    pub(crate) struct Pages(&'static mut [u8]);

    impl Pages {
        /// So many zeros, if there is memory for them.
        pub(crate) fn new(size: u64) -> Option<Self> {
            let count = usize::try_from(size.div_ceil(PAGE)).ok()?;
            let size = usize::try_from(size).ok().filter(|size| *size <= isize::MAX as usize)?;
            let first = memory_grow::<0>(count);
            // what is refused is the largest number
            let address = first.checked_mul(PAGE as usize).filter(|_| first != usize::MAX)?;
            let start = core::ptr::with_exposed_provenance_mut::<u8>(address);
            // SAFETY: `memory.grow` has added these pages to the memory: they are zeros, and this is their only owner, as the
            // allocator uses what it has grown by itself. They stay for good. The size is no more than they have, and than
            // `isize::MAX`; bytes are aligned anywhere. The address is not 0: the module's own data come before it.
            Some(Self(unsafe { core::slice::from_raw_parts_mut(start, size) }))
        }
    }

    impl Deref for Pages {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            self.0
        }
    }

    impl DerefMut for Pages {
        fn deref_mut(&mut self) -> &mut [u8] {
            self.0
        }
    }
}
