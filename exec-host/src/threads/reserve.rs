//! Room for thread-local variables that an executable sets aside.

use super::pool::{self, InitialValues, Region};
use crate::descriptions::{self, Description};
use crate::error::Error;
use crate::free_ranges::FreeRanges;
use crate::machine;
use crate::word::wide;
use core::cell::UnsafeCell;
use core::ops::ControlFlow;
use std::thread::LocalKey;

/// `N` bytes of an executable's own thread-local variables, for those of modules: code that was compiled for an executable wants them
/// at one TP offset in all threads (local exec, initial exec), and the C library has 1.6 KB of such room for what
/// is loaded later, unless `GLIBC_TUNABLES=glibc.rtld.optional_static_tls` says otherwise when the process starts.
///
/// Every thread takes so much longer to start as it takes to copy `N` bytes, and has so much less stack.
///
/// ```
/// use exec_host::StaticTlsReserve;
///
/// thread_local! {
///     // `const`: it has to be there when a thread starts
///     static RESERVE: StaticTlsReserve<65536> = const { StaticTlsReserve::new() };
/// }
/// # #[cfg(target_arch = "x86_64")]
/// StaticTlsReserve::offer(&RESERVE)?; // from now on loads may use it
/// # Ok::<(), exec_host::Error>(())
/// ```
#[repr(C, align(64))]
pub struct StaticTlsReserve<const N: usize>(UnsafeCell<[u8; N]>);

impl<const N: usize> core::fmt::Debug for StaticTlsReserve<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "StaticTlsReserve({N})")
    }
}

impl<const N: usize> Default for StaticTlsReserve<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> StaticTlsReserve<N> {
    /// The bytes.
    #[must_use]
    pub const fn new() -> Self {
        // one that is not 0: zeros would not be among the initial values, which loads change
        let mut bytes = [0; N];
        if let [first, ..] = bytes.as_mut_slice() {
            *first = 1;
        }
        Self(UnsafeCell::new(bytes))
    }

    /// Gives the bytes to the loads of this process, for good. To do it twice changes nothing.
    ///
    /// # Errors
    /// [`Error::ThreadLocal`] if they are not the executable's (those of a library need not have one TP offset in all
    /// threads), or not `const`.
    pub fn offer(reserve: &'static LocalKey<Self>) -> Result<(), Error> {
        let address = reserve.with(|bytes| bytes.0.get().expose_provenance()) as u64;
        let refused = |cause: &str| Error::ThreadLocal {
            size: N as u64,
            cause: cause.into(),
            text: Box::default(),
        };
        let mut found = None;
        descriptions::each(|program| {
            // it comes first
            found = Executable::with(program, address);
            ControlFlow::Break(())
        });
        let found = found.ok_or_else(|| refused("the block is not the executable's"))?;
        let end = found.start.checked_add(N as u64);
        if end.is_none_or(|end| end > found.initial_size) {
            return Err(refused("the block has no initial values: it is not `const`"));
        }
        let address_of_values = found.values.wrapping_add(found.start);
        let size = N as u64;
        pool::add(Region {
            library: None,
            module: found.module,
            start: found.start,
            tp_offset: address.wrapping_sub(machine::thread_pointer()).cast_signed(),
            size,
            values: InitialValues { address: address_of_values, is_read_only: found.is_read_only },
            clean: size,
            free: FreeRanges::of(size),
        });
        Ok(())
    }
}

/// What the executable's program headers say.
struct Executable {
    module: u64,
    /// Where its initial values are, and how many.
    values: u64,
    initial_size: u64,
    /// Offset of the reserve in them.
    start: u64,
    is_read_only: bool,
}

impl Executable {
    /// The program, if it has `address` among this thread's variables.
    fn with(program: &Description<'_>, address: u64) -> Option<Self> {
        let block = program.header(libc::PT_TLS)?;
        let start = address.checked_sub(program.variables()?)?;
        if start >= wide(block.p_memsz) {
            return None;
        }
        let values = program.range(block).start;
        let relro = program.header(libc::PT_GNU_RELRO).map(|relro| program.range(relro));
        Some(Self {
            module: program.module(),
            values,
            initial_size: wide(block.p_filesz),
            start,
            is_read_only: relro.is_some_and(|relro| relro.contains(&values.wrapping_add(start))),
        })
    }
}
