//! Libraries of the dynamic loader that open others for whoever calls them (GModule, libltdl, Qt's `QLibrary`): what a library out of bytes
//! opens by way of one is a plug-in of it as much as what its own code opens. Their words for `dlopen`, and for what takes handles, are
//! led to ours, once a library out of bytes needs them.

use super::handle;
use super::link_map::LinkMap;
use super::loaded::{Held, Member};
use super::plug_ins;
use crate::descriptions::{self, Description};
use crate::library::handle::keep_this_library;
use crate::library_words::{self, Place};
use crate::machine;
use core::ffi::CStr;
use core::ops::ControlFlow;
use elf_core::{Name, gnu_hash};
use exec_core::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// Those that were looked at, by what is added to addresses of their files.
static KNOWN: Mutex<Known> =
    Mutex::new(Known { staying: BTreeSet::new(), gone: 0, closable: BTreeSet::new() });

struct Known {
    staying: BTreeSet<u64>,
    /// How many libraries had gone.
    gone: u64,
    /// Those that somebody may close, as long as none goes.
    closable: BTreeSet<u64>,
}

impl Known {
    fn has(&self, bias: u64, gone: u64) -> bool {
        self.staying.contains(&bias) || self.gone == gone && self.closable.contains(&bias)
    }

    fn all(&self, gone: u64) -> BTreeSet<u64> {
        let closable = self.closable.iter().filter(|_| self.gone == gone);
        self.staying.iter().chain(closable).copied().collect()
    }

    /// Whether it is new.
    fn add(&mut self, bias: u64, gone: u64) -> bool {
        if handle::staying().iter().any(|range| range.contains(&bias)) {
            return self.staying.insert(bias);
        }
        if self.gone != gone {
            // another one may be where it was
            (self.gone, self.closable) = (gone, BTreeSet::new());
        }
        self.closable.insert(bias)
    }
}

/// Leads libraries of the dynamic loader that these need, directly or by way of others of it. A library of which another thread looks for `dlopen`
/// meanwhile may open as before.
pub(super) fn lead(libraries: &[Held]) {
    let needed = libraries.iter().flat_map(Held::leads);
    let needed = needed.filter_map(|(member, _)| match member {
        Member::Process(handle) => handle.bias(),
        Member::Loaded(_) => None,
    });
    let mut first: Vec<u64> = needed.collect();
    let mut gone = 0;
    descriptions::each(|library| {
        gone = library.changes().1;
        ControlFlow::Break(())
    });
    {
        let known = KNOWN.lock();
        first.retain(|bias| !known.has(*bias, gone));
    }
    if first.is_empty() {
        return;
    }
    let known = KNOWN.lock().all(gone);
    let mut new = needed_by(first, &known);
    // which stay is asked of the dynamic loader, the first time: not with a lock
    handle::staying();
    {
        let mut known = KNOWN.lock();
        new.retain(|bias| known.add(*bias, gone));
    }
    let (mut words, here) = (Vec::new(), lead as *const () as u64);
    descriptions::each(|library| {
        let is_other = !library.path().is_empty() && !library.holds(here);
        if is_other && new.contains(&library.bias()) {
            words.extend(of_opener(library));
        }
        ControlFlow::Continue(())
    });
    if words.is_empty() {
        return;
    }
    // the words that take handles before those that give them
    let opens = own(c"dlopen");
    words.sort_by_key(|(_, function)| Some(*function) == opens);
    keep_this_library();
    for (place, function) in words {
        // SAFETY: the library is kept by those that need it; our function does what the word's does, and more.
        unsafe { library_words::lead(&[place], function) };
    }
}

/// These libraries, by what is added to addresses of their files, and what they need, directly or not, but for those that are known. Names are those
/// of the dynamic sections and of the files: to ask the dynamic loader for each takes it longer than a load.
fn needed_by(first: Vec<u64>, known: &BTreeSet<u64>) -> BTreeSet<u64> {
    // names may be gone when they are looked for: a hash that two have leads more words than it has to
    let hash = |name: &CStr| gnu_hash(Name(name.to_bytes()));
    let (mut by_name, mut needed) = (BTreeMap::new(), BTreeMap::new());
    descriptions::each(|library| {
        let bias = library.bias();
        if known.contains(&bias) {
            return ControlFlow::Continue(());
        }
        // SAFETY: it is shown until this returns.
        let map = unsafe { LinkMap::of_shown(library) };
        let mut names = Vec::new();
        map.each_needed(|name, _| names.push(hash(name)));
        needed.insert(bias, names);
        let path = library.path();
        map.own_name(|name| _ = by_name.insert(hash(name), bias));
        for name in [Some(path), file_of(path)].into_iter().flatten() {
            by_name.entry(hash(name)).or_insert(bias);
        }
        ControlFlow::Continue(())
    });
    let (mut all, mut rest) = (BTreeSet::new(), first);
    while let Some(bias) = rest.pop() {
        if all.insert(bias) {
            let names = needed.get(&bias).into_iter().flatten();
            rest.extend(names.filter_map(|name| by_name.get(name)));
        }
    }
    all
}

/// The name of a file in its folder.
fn file_of(path: &CStr) -> Option<&CStr> {
    let bytes = path.to_bytes_with_nul();
    let slash = bytes.iter().rposition(|byte| *byte == b'/')?;
    CStr::from_bytes_with_nul(bytes.get(slash.checked_add(1)?..)?).ok()
}

/// The words of a library for these functions, and where they are to lead; none if it opens nothing.
fn of_opener(library: &Description<'_>) -> Vec<(Place, u64)> {
    let (mut words, mut opens) = (Vec::new(), false);
    let look = |name: &CStr, place: Place| {
        opens |= name == c"dlopen";
        words.extend(own(name).map(|function| (place, function)));
    };
    // SAFETY: what the dynamic loader shows is loaded and relocated.
    unsafe {
        if library_words::may_ask_for(library, c"dlopen") {
            library_words::each(library, look);
        }
    }
    if opens { words } else { Vec::new() }
}

/// Our function for this name.
fn own(name: &CStr) -> Option<u64> {
    let function = match name.to_bytes() {
        b"dlopen" => machine::dlopen::of_process as *const (),
        b"dlsym" => machine::dlsym::of_process as *const (),
        #[cfg(target_env = "gnu")]
        b"dlvsym" => machine::dlsym::version_of_process as *const (),
        b"dlclose" => plug_ins::close as *const (),
        b"dlinfo" => plug_ins::inform as *const (),
        _ => return None,
    };
    Some(function.expose_provenance() as u64)
}
