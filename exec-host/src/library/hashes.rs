//! Which names libraries of the dynamic loader may define, by their hashes: it takes long to say that it has not got one.

use core::ffi::{CStr, c_char, c_int, c_void};
use elf_core::names::{DT_GNU_HASH, DT_HASH, DT_NULL, DT_STRTAB, DT_SYMTAB};
use elf_core::{Name, gnu_hash};
use std::sync::{Arc, Mutex, PoisonError};

/// The hashes of all names that libraries of the process define, each a bit.
#[derive(Debug)]
pub(crate) struct ProcessHashes {
    /// A power of two of bits.
    bits: Vec<u64>,
}

/// The names of functions that [stand for](super::scope::stands_for) the process's.
pub(crate) const OWN: [&str; 4] =
    ["__cxa_thread_atexit_impl", "__cxa_thread_atexit", "_dl_find_object", "dl_iterate_phdr"];

/// How often libraries have come and gone.
type Changes = (u64, u64);

/// Bits for a name, most of them 0.
const SPARSE: usize = 32;

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

    /// Whether a library may define this name, or we have a function of our own for it: if not, none does.
    pub(crate) fn may_hold(&self, name: Name<'_>) -> bool {
        self.may_hold_hash(gnu_hash(name))
    }

    /// The same of a name with this hash, whose lowest bit does not matter.
    pub(crate) fn may_hold_hash(&self, hash: u32) -> bool {
        let bit = place(hash, self.bits.len());
        bit.is_some_and(|(word, bit)| self.bits.get(word).is_some_and(|it| it & bit != 0))
    }

    fn collect() -> Self {
        let mut hashes: Vec<u32> = OWN.map(|name| gnu_hash(Name::from(name))).to_vec();
        // SAFETY: the callback has the type asked for, and keeps nothing.
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut hashes).cast()) };
        let words = hashes.len().saturating_mul(SPARSE).next_power_of_two() / 64;
        let mut bits = vec![0u64; words.max(1)];
        for hash in hashes {
            if let Some((word, bit)) = place(hash, bits.len())
                && let Some(word) = bits.get_mut(word)
            {
                *word |= bit;
            }
        }
        Self { bits }
    }
}

/// Word and bit of a hash in so many words. Its lowest bit says something else in tables.
fn place(hash: u32, words: usize) -> Option<(usize, u64)> {
    let number = (hash >> 1) as usize;
    Some(((number / 64).checked_rem(words)?, 1 << (number % 64)))
}

fn changes() -> Changes {
    unsafe extern "C" fn ask(
        info: *mut libc::dl_phdr_info,
        size: usize,
        changes: *mut c_void,
    ) -> c_int {
        if size >= size_of::<libc::dl_phdr_info>() {
            // SAFETY: `dl_iterate_phdr` gives a valid description of this size, and back what it was given.
            unsafe { *changes.cast::<Changes>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        }
        1
    }
    let mut changes = (0, 0);
    // SAFETY: the callback has the type asked for, and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(ask), (&raw mut changes).cast()) };
    changes
}

/// Collects the hashes of a library, which the dynamic loader does not unload meanwhile.
unsafe extern "C" fn collect(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    hashes: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` gives a valid description, and back what it was given.
    let (info, hashes) = unsafe { (&*info, &mut *hashes.cast::<Vec<u32>>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the description holds so many program headers.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
        return 0;
    };
    let mut entry = info.dlpi_addr.wrapping_add(dynamic.p_vaddr);
    let [mut table, mut old_table, mut symbols, mut strings, mut other] = [0; 5];
    loop {
        // SAFETY: the entries of a loaded library are there up to the one that ends them.
        let [tag, value] = unsafe { read::<[u64; 2]>(entry) };
        let place = match tag {
            DT_NULL => break,
            DT_GNU_HASH => &mut table,
            DT_HASH => &mut old_table,
            DT_SYMTAB => &mut symbols,
            DT_STRTAB => &mut strings,
            _ => &mut other,
        };
        // the loader may have added the bias
        let bias = if value < info.dlpi_addr { info.dlpi_addr } else { 0 };
        *place = value.wrapping_add(bias);
        entry = entry.wrapping_add(16);
    }
    // SAFETY: the dynamic loader looks symbols up in these tables.
    unsafe {
        if table != 0 {
            add(table, hashes);
        } else if old_table != 0 && symbols != 0 && strings != 0 {
            add_names(old_table, symbols, strings, hashes);
        }
    }
    0
}

/// Adds the hashes of a table (GNU gABI, "DT_GNU_HASH").
///
/// # Safety
/// There is one, of a library that is loaded.
unsafe fn add(table: u64, hashes: &mut Vec<u32>) {
    // SAFETY: as the caller vouches.
    let [buckets, first, filter, _] = unsafe { read::<[u32; 4]>(table) };
    let buckets_at = table.wrapping_add(16).wrapping_add(u64::from(filter) * 8);
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
        let symbol = symbols.wrapping_add(index.wrapping_mul(size_of::<libc::Elf64_Sym>() as u64));
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
        for name in ["malloc", "printf", "pthread_create", "environ", "_dl_find_object"] {
            assert!(known.may_hold(Name::from(name)), "{name}");
        }
        let missing = (0..1000).filter(|number| {
            let name = format!("hoist_has_no_such_name_{number}");
            !known.may_hold(Name::from(name.as_str()))
        });
        assert!(missing.count() > 900);
        // wherever these functions are
        for name in OWN {
            assert!(
                stands_for(Name::from(name)).is_some() && known.may_hold(name.into()),
                "{name}"
            );
        }
        assert_eq!(stands_for(Name::from("malloc")), None);
    }
}
