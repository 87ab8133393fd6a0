//! Which names libraries of the dynamic loader define, by their hashes: it takes long to say that it has not got one.
//!
//! Their hash tables are copied while the loader's list is locked: whoever has opened a library may close it.

use super::answers::Answers;
use super::handle::{self, Handle};
use super::names_of::{Library, sample};
use super::tables::Has;
use crate::descriptions;
use crate::{unwind, word};
use core::ops::ControlFlow;
use elf_core::{Name, gnu_hash};
use exec_core::sync::{Mutex, OnceLock};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

/// Which names libraries of the process define, by their hashes.
#[derive(Debug)]
pub(crate) struct ProcessHashes {
    /// Of functions that [stand for](super::scope::stands_for) the process's.
    own: [u32; OWN.len()],
    /// In the order in which they were loaded, which is that in which they are asked.
    libraries: Vec<Arc<Library>>,
    /// So many of them stay, the first: what the program was started with, to which others may have added (`LD_PRELOAD`). Somebody may close the
    /// others.
    staying: usize,
}

/// The names of libraries that stay as long as the process, and our own: of most processes most of all. It is made when it pays.
static STAYING: OnceLock<Filter> = OnceLock::new();

/// What those have that stay.
static ANSWERS: Answers = Answers::new();

/// A set of hashes that may hold more than was put in.
#[derive(Debug)]
struct Filter {
    /// A power of two of words, two bits for a name.
    bits: Vec<u64>,
}

/// Bits of a filter for a name, most of them 0.
const SPARSE: usize = 16;

/// The names of functions that [stand for](super::scope::stands_for) the process's.
pub(crate) const OWN: [&str; 10] = [
    "__cxa_thread_atexit_impl",
    "__cxa_thread_atexit",
    unwind::ASKED,
    "dl_iterate_phdr",
    "dladdr",
    "dlclose",
    "dlinfo",
    "dlopen",
    "dlsym",
    "dlvsym",
];

/// How often libraries have come and gone.
type Changes = (u64, u64);

impl ProcessHashes {
    /// Those of the libraries that are there now. What has changed is collected anew.
    pub(crate) fn current() -> Arc<Self> {
        static LATEST: Mutex<Option<(Changes, Arc<ProcessHashes>)>> = Mutex::new(None);
        let changes = changes();
        let mut latest = LATEST.lock();
        // one load follows another
        if let Some((_, known)) = &*latest {
            STAYING.get_or_init(|| known.filter(known.staying()));
        }
        match &*latest {
            Some((of, known)) if *of == changes && changes != (0, 0) => Arc::clone(known),
            before => {
                let is_counted = changes != (0, 0);
                let before = before.as_ref().filter(|_| is_counted);
                // those that may have gone are not known
                let known = before.map_or(&[][..], |((_, lost), known)| {
                    if *lost == changes.1 { &known.libraries } else { known.staying() }
                });
                let known = Arc::new(Self::collect(known));
                *latest = Some((changes, Arc::clone(&known)));
                known
            }
        }
    }

    /// Whether a library has a name with this hash, whose lowest bit does not matter, or we have a function of our own for it: if not,
    /// none does.
    pub(crate) fn may_hold_hash(&self, hash: u32) -> bool {
        self.closable().any(|(_, it)| it.names.may_hold(hash)) || self.may_hold_staying(hash)
    }

    /// The numbers of libraries that somebody may close, and that the program is asked with for what it wants: any of them may be. For who asks
    /// `often`, it is found out that most are not.
    pub(super) fn shown(&self, often: bool) -> Vec<usize> {
        let closable = self.closable().map(|(number, _)| number);
        if !often {
            return closable.collect();
        }
        STAYING.get_or_init(|| self.filter(self.staying()));
        let samples = self.samples();
        let program = Handle::of_process();
        let may_be = |number: &usize| match samples.get(number) {
            // the program has it, of this library or another one, or has it not
            Some(name) => {
                program.is_none_or(|program| program.find_default(name.to_bytes(), None).is_some())
            }
            None => true,
        };
        closable.filter(may_be).collect()
    }

    /// A name that each of those shows which somebody may close, by their numbers.
    fn samples(&self) -> HashMap<usize, CString> {
        let numbers = self.closable().map(|(number, library)| (library.range.start, number));
        let numbers: HashMap<u64, usize> = numbers.collect();
        let mut samples = HashMap::new();
        descriptions::each(|library| {
            if let Some(number) = numbers.get(&library.extent().start)
                && let Some(sample) = sample(library)
            {
                samples.insert(*number, sample);
            }
            ControlFlow::Continue(())
        });
        samples
    }

    /// A filter of our own names and those of some libraries.
    fn filter(&self, libraries: &[Arc<Library>]) -> Filter {
        let names: Vec<&[u32]> = libraries.iter().map(|library| library.names.hashes()).collect();
        let count: usize = names.iter().map(|names| names.len()).sum();
        let words = count.saturating_mul(SPARSE).next_power_of_two() / 64;
        let mut filter = Filter { bits: vec![0; words.max(1)] };
        for hash in names.into_iter().flatten().chain(&self.own) {
            for (word, bit) in places(*hash, filter.bits.len()) {
                if let Some(word) = filter.bits.get_mut(word) {
                    *word |= bit;
                }
            }
        }
        filter
    }

    /// Whether a library that stays, or one of those `shown`, has a name with this hash, or we have a function of our own for it.
    #[inline]
    pub(crate) fn may_hold_shown(&self, hash: u32, shown: &[usize]) -> bool {
        self.do_hold(hash, shown) || self.may_hold_staying(hash)
    }

    /// Whether a library that stays has a name with this hash, or we have a function of our own for it.
    #[inline]
    fn may_hold_staying(&self, hash: u32) -> bool {
        STAYING.get().is_none_or(|filter| filter.may_hold(hash)) && self.may_stay(hash)
    }

    /// The same of a name that passes the filter.
    #[inline(never)]
    fn may_stay(&self, hash: u32) -> bool {
        self.staying().iter().any(|it| it.names.may_hold(hash)) || self.may_be_ours(hash)
    }

    /// The libraries that stay.
    fn staying(&self) -> &[Arc<Library>] {
        self.libraries.get(..self.staying).unwrap_or_default()
    }

    /// The others, with their numbers.
    fn closable(&self) -> impl Iterator<Item = (usize, &Arc<Library>)> {
        self.libraries.iter().enumerate().skip(self.staying)
    }

    /// Whether a library of these numbers has a name with this hash.
    #[inline]
    fn do_hold(&self, hash: u32, libraries: &[usize]) -> bool {
        let mut libraries = libraries.iter().filter_map(|number| self.libraries.get(*number));
        libraries.any(|library| library.names.may_hold(hash))
    }

    /// Whether we may have a function of our own for a name with this hash.
    pub(crate) fn may_be_ours(&self, hash: u32) -> bool {
        self.own.iter().any(|own| (own ^ hash) >> 1 == 0)
    }

    /// What the program has and all that was opened for all, as far as that can be told: of libraries that somebody may close those `shown` may
    /// have been.
    pub(super) fn find(
        &self,
        hash: u32,
        name: &[u8],
        version: Option<&[u8]>,
        shown: &[usize],
    ) -> Has {
        if STAYING.get().is_none_or(|filter| filter.may_hold(hash)) {
            let has = self.find_staying(hash, name, version);
            if has != Has::Nothing {
                return has;
            }
        }
        if self.do_hold(hash, shown) { Has::Unknown } else { Has::Nothing }
    }

    /// What those have that stay.
    fn find_staying(&self, hash: u32, name: &[u8], version: Option<&[u8]>) -> Has {
        if let Some(address) = ANSWERS.find(hash, name, version) {
            return Has::At(address);
        }
        let mut found = self.staying().iter().map(|library| library.find(hash, name, version));
        let has = found.find(|has| *has != Has::Nothing).unwrap_or(Has::Nothing);
        if let Has::At(address) = has {
            ANSWERS.add(hash, name, version, address);
        }
        has
    }

    /// What the library of this number has of a name, which somebody keeps.
    pub(super) fn find_in(
        &self,
        library: usize,
        hash: u32,
        name: &[u8],
        version: Option<&[u8]>,
    ) -> Has {
        let library = self.libraries.get(library);
        library.map_or(Has::Unknown, |library| library.find(hash, name, version))
    }

    /// The number of the library that has an address.
    pub(crate) fn library_at(&self, address: u64) -> Option<usize> {
        self.libraries.iter().position(|library| library.range.contains(&address))
    }

    /// `known` are libraries of before that are there still.
    fn collect(known: &[Arc<Library>]) -> Self {
        // before the loader's list is locked
        let stays = handle::staying();
        let mut libraries = Vec::with_capacity(known.len().saturating_add(1));
        // SAFETY: asks for a number.
        let of_kernel = word::wide(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) });
        descriptions::each(|library| {
            let range = library.extent();
            // the kernel's own is not looked into
            if range.contains(&of_kernel) {
                return ControlFlow::Continue(());
            }
            let is_same = |it: &&Arc<Library>| it.range == range;
            let known = known.iter().find(is_same).cloned();
            libraries.push(known.unwrap_or_else(|| Arc::new(Library::shown(library))));
            ControlFlow::Continue(())
        });
        let own = OWN.map(|name| gnu_hash(Name::from(name)));
        let last = libraries.iter().rposition(|library| stays.contains(&library.range));
        let staying = last.map_or(0, |last| last.saturating_add(1));
        Self { own, libraries, staying }
    }
}

impl Filter {
    /// Whether a hash, whose lowest bit does not matter, may have been put in.
    #[inline]
    fn may_hold(&self, hash: u32) -> bool {
        let mut places = places(hash, self.bits.len()).into_iter();
        places.all(|(word, bit)| self.bits.get(word).is_some_and(|it| it & bit != 0))
    }
}

/// Words and bits of a hash, but for its lowest bit, in so many words, a power of two.
#[inline]
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
        assert!(missing.count() > 990);
        let hashes = || known.libraries.iter().flat_map(|library| library.names.hashes());
        assert!(hashes().all(|hash| known.may_hold_hash(*hash)));
        let often = known.shown(true);
        assert!(often.iter().all(|number| known.shown(false).contains(number)));
        assert!(hashes().all(|hash| known.may_hold_hash(*hash)));
        let filter = STAYING.get().expect("it was made");
        let passing = (0..1000).filter(|number| {
            let name = format!("hoist_has_no_such_name_{number}");
            filter.may_hold(gnu_hash(Name::from(name.as_str())))
        });
        assert!(passing.count() < 100);
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
