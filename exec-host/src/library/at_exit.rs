//! Libraries that are there when the process ends: their destructors run then, as those of libraries do that were opened and not closed.

use super::depth_first::sorted;
use core::sync::atomic::{AtomicU64, Ordering};
use exec_core::sync::{Mutex, MutexGuard, OnceLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

/// Libraries that go together.
pub(crate) trait Ends: Send + Sync {
    /// Where what they keep is, others of this kind among it.
    fn kept(&self) -> Vec<*const ()>;

    /// Calls their destructors, if nobody has.
    fn finalize(&self);
}

/// When libraries came, which are known from then on.
#[derive(Debug, Default)]
pub(crate) struct Coming(OnceLock<u64>);

type Units = BTreeMap<u64, Weak<dyn Ends>>;

/// Those that there are, in the order in which they came.
static UNITS: Mutex<Units> = Mutex::new(BTreeMap::new());

fn units() -> MutexGuard<'static, Units> {
    UNITS.lock()
}

impl Coming {
    /// Makes libraries known whose constructors are about to run, unless they are.
    pub(crate) fn enter(&self, unit: Weak<dyn Ends>) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| {
            // SAFETY: the function may be called at the end of the process, or when the library goes that this code is in. If there is no
            // memory for that, nobody calls it.
            unsafe { libc::atexit(run) };
        });
        if self.0.get().is_none() {
            let number = self.0.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed));
            units().insert(*number, unit);
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        if let Some(number) = self.0.get() {
            units().remove(number);
        }
    }
}

/// Calls the destructors of all, as ld.so does for its libraries: each before those that it needs, else the first first.
extern "C" fn run() {
    let all: Vec<Arc<dyn Ends>> = units().values().filter_map(Weak::upgrade).collect();
    let place = |(place, unit): (usize, &Arc<dyn Ends>)| (Arc::as_ptr(unit).cast(), place);
    let places: HashMap<*const (), usize> = all.iter().enumerate().map(place).collect();
    let leads = |index: usize| {
        let kept = all.get(index).map(|unit| unit.kept()).unwrap_or_default();
        kept.into_iter().filter_map(|unit| places.get(&unit).copied()).collect::<Vec<_>>()
    };
    for index in sorted((0..all.len()).rev(), all.len(), leads) {
        if let Some(unit) = all.get(index) {
            unit.finalize();
        }
    }
    // other threads may be in their code still
    core::mem::forget(all);
}
