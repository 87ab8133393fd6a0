//! Where the program and what it was linked to have symbols that loads ask for again and again.

use super::handle::{Handle, staying};
use std::sync::{Mutex, PoisonError};

/// A symbol that was asked for.
struct Known {
    name: Box<[u8]>,
    version: Option<Box<[u8]>>,
    address: u64,
}

/// How many symbols are known at most: those with one remainder of their hashes take turns.
const MOST: usize = 1024;

static KNOWN: Mutex<Vec<Option<Known>>> = Mutex::new(Vec::new());

/// The address of a symbol that `process` has, as [`Handle::find`] says it; `hash` is any of the name. Libraries that stay as long as the
/// process are asked before all that come later: what they have they have for ever. A thread-local variable, which is elsewhere for each
/// thread, is in none of them.
pub(crate) fn find(
    process: &Handle,
    hash: u32,
    name: &[u8],
    version: Option<&[u8]>,
) -> Option<u64> {
    let at = hash as usize % MOST;
    let is_it = |known: &&Known| *known.name == *name && known.version.as_deref() == version;
    let table = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = table.get(at).and_then(Option::as_ref).filter(is_it).map(|known| known.address);
    // resolvers of the process may be called, which may load something
    drop(table);
    if known.is_some() {
        return known;
    }
    let address = process.find(name, version)?;
    if staying().iter().any(|range| range.contains(&address)) {
        let mut table = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if table.is_empty() {
            table.resize_with(MOST, || None);
        }
        if let Some(place) = table.get_mut(at) {
            let (name, version) = (name.into(), version.map(Into::into));
            *place = Some(Known { name, version, address });
        }
    }
    Some(address)
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::machine::OLDEST_VERSION;

    #[test]
    fn what_is_known_is_what_the_process_says() {
        let process = Handle::of_process().expect("there is a process");
        let oldest = Some(OLDEST_VERSION.to_bytes());
        for (name, version) in [("malloc", None), ("malloc", oldest), ("environ", None)] {
            let said = process.find(name.as_bytes(), version);
            // one hash for all: they take turns
            for _ in 0..2 {
                assert_eq!(find(process, 7, name.as_bytes(), version), said, "{name}");
            }
            assert!(said.is_some(), "{name}");
        }
        assert_eq!(find(process, 7, b"malloc", Some(b"HOIST_1")), None);
        assert_eq!(find(process, 7, b"hoist_has_no_such_name", None), None);
    }
}
