//! Which names libraries of the dynamic loader may define, by their hashes: it takes long to say that it has not got one.

use crate::descriptions::{self, Description};
use crate::{unwind, word};
use core::ffi::{CStr, c_char};
use core::ops::{ControlFlow, Range};
use elf_core::names::{DT_GNU_HASH, DT_HASH, DT_NULL, DT_STRTAB, DT_SYMTAB};
use elf_core::{Name, gnu_hash};
use std::sync::{Arc, Mutex, PoisonError};

/// Which names libraries of the process define, by their hashes.
#[derive(Debug)]
pub(crate) struct ProcessHashes {
    all: Names,
    /// Those of each library, and where it is.
    libraries: Vec<(Range<u64>, Names)>,
}

/// A set of hashes that may hold more than was put in.
#[derive(Debug)]
struct Names {
    /// A power of two of bits, two of them for a name.
    bits: Vec<u64>,
}

/// The names of functions that [stand for](super::scope::stands_for) the process's.
pub(crate) const OWN: [&str; 4] =
    ["__cxa_thread_atexit_impl", "__cxa_thread_atexit", unwind::ASKED, "dl_iterate_phdr"];

/// How often libraries have come and gone.
type Changes = (u64, u64);

/// Bits for a name, most of them 0.
const SPARSE: usize = 32;

/// Names that are so many that each gets fewer bits.
const MANY: usize = 1 << 16;

impl ProcessHashes {
    /// Those of the libraries that are there now, collected anew when that has changed.
    pub(crate) fn current() -> Arc<Self> {
        static LATEST: Mutex<Option<(Changes, Arc<ProcessHashes>)>> = Mutex::new(None);
        let changes = changes();
        let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((of, known)) if *of == changes && changes != (0, 0) => Arc::clone(known),
            _ => {
                let known = Arc::new(Self::collect());
                *latest = Some((changes, Arc::clone(&known)));
                known
            }
        }
    }

    /// Whether a library may define a name with this hash, whose lowest bit does not matter, or we have a function of our own for it: if not,
    /// none does.
    pub(crate) fn may_hold_hash(&self, hash: u32) -> bool {
        self.all.may_hold(hash)
    }

    /// Whether any but the libraries of these numbers may define a name with this hash.
    pub(crate) fn may_hold_beside(&self, hash: u32, libraries: &[usize]) -> bool {
        let others = self.libraries.iter().enumerate().filter(|(at, _)| !libraries.contains(at));
        { others }.any(|(_, (_, names))| names.may_hold(hash))
    }

    /// The number of the library that has an address.
    pub(crate) fn library_at(&self, address: u64) -> Option<usize> {
        self.libraries.iter().position(|(range, _)| range.contains(&address))
    }

    fn collect() -> Self {
        let mut found: Vec<(Range<u64>, Vec<u32>)> = Vec::new();
        descriptions::each(|library| {
            found.push((library.extent(), names_of(library)));
            ControlFlow::Continue(())
        });
        let own = OWN.map(|name| gnu_hash(Name::from(name)));
        let count = found.iter().map(|(_, hashes)| hashes.len()).sum::<usize>();
        let hashes = found.iter().flat_map(|(_, hashes)| hashes).chain(&own);
        let all = Names::new(count.saturating_add(own.len()), hashes.copied());
        let library = |(range, hashes): (Range<u64>, Vec<u32>)| {
            (range, Names::new(hashes.len(), hashes.into_iter()))
        };
        Self { all, libraries: found.into_iter().map(library).collect() }
    }
}

impl Names {
    fn new(count: usize, hashes: impl Iterator<Item = u32>) -> Self {
        // many are to fit the processor's caches
        let bits = if count > MANY { SPARSE / 4 } else { SPARSE };
        let words = count.saturating_mul(bits).next_power_of_two() / 64;
        let mut names = Self { bits: vec![0; words.max(1)] };
        for hash in hashes {
            for (word, bit) in places(hash, names.bits.len()) {
                if let Some(word) = names.bits.get_mut(word) {
                    *word |= bit;
                }
            }
        }
        names
    }

    fn may_hold(&self, hash: u32) -> bool {
        let mut places = places(hash, self.bits.len()).into_iter();
        places.all(|(word, bit)| self.bits.get(word).is_some_and(|it| it & bit != 0))
    }
}

/// Words and bits of a hash in so many words, a power of two. Its lowest bit says something else in tables.
fn places(hash: u32, words: usize) -> [(usize, u64); 2] {
    let first = hash >> 1;
    // any odd number spreads them
    let second = first.wrapping_mul(0x9e37_79b1).rotate_left(16);
    [first, second].map(|number| {
        let number = number as usize;
        ((number / 64) & words.wrapping_sub(1), 1 << (number % 64))
    })
}

fn changes() -> Changes {
    let mut changes = (0, 0);
    descriptions::each(|library| {
        changes = library.changes();
        ControlFlow::Break(())
    });
    changes
}

/// The hashes of a library's names, which the dynamic loader does not unload meanwhile.
fn names_of(library: &Description<'_>) -> Vec<u32> {
    let mut hashes = Vec::new();
    let Some(dynamic) = library.header(libc::PT_DYNAMIC) else { return hashes };
    let (bias, mut entry) = (library.bias(), library.range(dynamic).start);
    let [mut table, mut old_table, mut symbols, mut strings, mut other] = [0; 5];
    loop {
        // SAFETY: the entries of a loaded library are there up to the one that ends them.
        let [tag, value] =
            unsafe { [word::read(entry), word::read(entry.wrapping_add(word::SIZE))] };
        let place = match tag {
            DT_NULL => break,
            DT_GNU_HASH => &mut table,
            DT_HASH => &mut old_table,
            DT_SYMTAB => &mut symbols,
            DT_STRTAB => &mut strings,
            _ => &mut other,
        };
        // the loader may have added the bias
        *place = value.wrapping_add(if value < bias { bias } else { 0 });
        entry = entry.wrapping_add(2 * word::SIZE);
    }
    // SAFETY: the dynamic loader looks symbols up in these tables.
    unsafe {
        if table != 0 {
            add(table, &mut hashes);
        } else if old_table != 0 && symbols != 0 && strings != 0 {
            add_names(old_table, symbols, strings, &mut hashes);
        }
    }
    hashes
}

/// Adds the hashes of a table (GNU gABI, "DT_GNU_HASH").
///
/// # Safety
/// There is one, of a library that is loaded.
unsafe fn add(table: u64, hashes: &mut Vec<u32>) {
    // SAFETY: as the caller vouches.
    let [buckets, first, filter, _] = unsafe { read::<[u32; 4]>(table) };
    let buckets_at = table.wrapping_add(16).wrapping_add(u64::from(filter) * word::SIZE);
    let chains_at = buckets_at.wrapping_add(u64::from(buckets) * 4);
    let word = |start: u64, index: u32| start.wrapping_add(u64::from(index) * 4);
    // SAFETY: so many buckets are there.
    let last = (0..buckets).map(|index| unsafe { read::<u32>(word(buckets_at, index)) }).max();
    let Some(last) = last.and_then(|last| last.checked_sub(first)) else { return };
    let mut index = 0u32;
    loop {
        // SAFETY: symbols have a word each, and the last chain an end.
        let hash = unsafe { read::<u32>(word(chains_at, index)) };
        hashes.push(hash);
        if index >= last && hash & 1 != 0 {
            break;
        }
        index = index.wrapping_add(1);
    }
}

/// Adds the hashes of all names, of a library that has the other table only (gABI ch. 8, "Hash Table").
///
/// # Safety
/// There are these tables, of a library that is loaded.
unsafe fn add_names(table: u64, symbols: u64, strings: u64, hashes: &mut Vec<u32>) {
    // SAFETY: as the caller vouches; the second word says how many symbols there are.
    let [_, count] = unsafe { read::<[u32; 2]>(table) };
    for index in 0..u64::from(count) {
        let symbol = symbols.wrapping_add(index.wrapping_mul(size_of::<word::Symbol>() as u64));
        // SAFETY: as above; the first word of a symbol says where its name is.
        let name = strings.wrapping_add(unsafe { read::<u32>(symbol) }.into());
        let name = core::ptr::with_exposed_provenance::<c_char>(name as usize);
        // SAFETY: names of loaded libraries end in NUL.
        let name = unsafe { CStr::from_ptr(name) };
        hashes.push(gnu_hash(Name(name.to_bytes())));
    }
}

/// # Safety
/// There is a value of this type, aligned.
unsafe fn read<T>(address: u64) -> T {
    // SAFETY: as the caller vouches.
    unsafe { core::ptr::with_exposed_provenance::<T>(address as usize).read() }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::library::scope::stands_for;

    /// All that the dynamic loader finds may be there; most of what it does not find is known not to be.
    #[test]
    fn names_of_the_process() {
        let known = ProcessHashes::current();
        for name in ["malloc", "printf", "pthread_create", "environ", unwind::ASKED] {
            assert!(known.may_hold_hash(gnu_hash(Name::from(name))), "{name}");
        }
        let missing = (0..1000).filter(|number| {
            let name = format!("hoist_has_no_such_name_{number}");
            !known.may_hold_hash(gnu_hash(Name::from(name.as_str())))
        });
        assert!(missing.count() > 900);
        // wherever these functions are
        for name in OWN {
            assert!(
                stands_for(Name::from(name)).is_some()
                    && known.may_hold_hash(gnu_hash(name.into())),
                "{name}"
            );
        }
        assert_eq!(stands_for(Name::from("malloc")), None);
    }
}
