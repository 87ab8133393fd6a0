//! What a stub jumps by, and what is called when its function is not there yet.

use core::any::Any;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// What has to live as long as a function.
type Keeper = Arc<dyn Any + Send + Sync>;

type Compile = Box<dyn FnOnce() -> (u64, Option<Keeper>) + Send>;

/// Two words: where the stub jumps, and what is called before it can.
#[repr(C)]
pub(crate) struct Slot {
    target: AtomicU64,
    /// Set before anybody knows the stub.
    pub(super) function: AtomicPtr<Function>,
}

/// A function, compiled or not.
pub(crate) struct Function {
    once: Once,
    compile: Mutex<Option<Compile>>,
    keeper: Mutex<Option<Keeper>>,
}

impl Function {
    pub(super) fn new(compile: impl FnOnce() -> (u64, Option<Keeper>) + Send + 'static) -> Self {
        let compile = Mutex::new(Some(Box::new(compile) as Compile));
        Self { once: Once::new(), compile, keeper: Mutex::new(None) }
    }

    pub(super) fn is_compiled(&self) -> bool {
        self.once.is_completed()
    }

    /// Drops what it was compiled to.
    pub(super) fn release(&self) {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        let compile = self.compile.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop((keeper, compile));
    }
}

/// The address of the function of a slot, compiled now if it was not before.
///
/// # Safety
/// A stub has jumped by the slot, which is there as long as that code, with its function.
pub(crate) unsafe extern "C" fn resolve(slot: *const Slot) -> u64 {
    // SAFETY: as the caller guarantees.
    let slot = unsafe { &*slot };
    // SAFETY: as above.
    let function = unsafe { &*slot.function.load(Ordering::Acquire) };
    function.once.call_once(|| {
        let compile = function.compile.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(compile) = compile else { return };
        let (address, keeper) = compile();
        *function.keeper.lock().unwrap_or_else(PoisonError::into_inner) = keeper;
        slot.target.store(address, Ordering::Release);
    });
    slot.target.load(Ordering::Acquire)
}
