//! Libraries of the dynamic loader that open others for whoever calls them (GModule, libltdl, Qt's `QLibrary`): what a library out of bytes
//! opens by way of one is a plug-in of it as much as what its own code opens. Their words for `dlopen`, and for what takes handles, are
//! led to ours, once a library out of bytes needs them.

use super::handle::Handle;
use super::loaded::{Held, Member};
use super::plug_ins;
use crate::descriptions::{self, Description};
use crate::library::handle::keep_this_library;
use crate::library_words::{self, Place};
use crate::machine;
use core::ffi::CStr;
use core::ops::ControlFlow;
use exec_core::sync::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Those that were looked at, by what is added to addresses of their files, as long as no library goes.
static KNOWN: Mutex<Known> = Mutex::new(Known { gone: 0, libraries: BTreeSet::new() });

struct Known {
    /// How many libraries had gone.
    gone: u64,
    libraries: BTreeSet<u64>,
}

/// Leads libraries of the dynamic loader that these need, directly or by way of others of it. A library of which another thread looks for `dlopen`
/// meanwhile may open as before.
pub(super) fn lead(libraries: &[Held]) {
    let needed = libraries.iter().flat_map(Held::leads);
    let needed = needed.filter_map(|(member, _)| match member {
        Member::Process(handle) => Some(handle),
        Member::Loaded(_) => None,
    });
    let mut gone = 0;
    descriptions::each(|library| {
        gone = library.changes().1;
        ControlFlow::Break(())
    });
    let is_new = |handle: &Handle| {
        let Some(bias) = handle.bias() else { return false };
        let mut known = KNOWN.lock();
        if known.gone != gone {
            // another one may be where it was
            *known = Known { gone, libraries: BTreeSet::new() };
        }
        known.libraries.insert(bias)
    };
    let (mut new, mut all) = (BTreeSet::new(), needed.collect::<Vec<_>>());
    while let Some(library) = all.pop() {
        if is_new(&library) {
            new.extend(library.bias());
            all.extend(library.leads().into_iter().map(|(handle, _)| Arc::new(handle)));
        }
    }
    if new.is_empty() {
        return;
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
