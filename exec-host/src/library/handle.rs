//! Libraries that the dynamic loader has loaded, and their symbols by name and version.

use super::link_map::LinkMap;
use crate::c_library;
use crate::descriptions::{self, LINKED_STATICALLY, is_linked_statically};
use crate::machine;
use crate::word;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ops::{ControlFlow, Range};
use elf_core::names::{
    DT_AUXILIARY, DT_FILTER, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERSYM, VER_NDX_GLOBAL,
    VER_NDX_LOCAL,
};
use exec_core::sync::{OnceLock, hold};
use std::ffi::CString;

/// A library that is open; closed on drop.
#[derive(Debug)]
pub(crate) struct Handle(*mut c_void);

// SAFETY: handles belong to the process, and the dynamic loader locks for itself.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// The program, the libraries it was linked to, and those that were opened for all.
    pub(crate) fn of_process() -> Option<&'static Self> {
        static PROCESS: OnceLock<Option<Handle>> = OnceLock::new();
        PROCESS.get_or_init(|| Self::open(core::ptr::null(), libc::RTLD_NOW).ok()).as_ref()
    }

    /// Opens a library by name or path.
    ///
    /// # Errors
    /// The words of the dynamic loader.
    ///
    /// # Safety
    /// Its constructors run.
    pub(crate) unsafe fn library(name: &CStr) -> Result<Self, String> {
        Self::open(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL)
    }

    /// A library that is there, by name or path.
    pub(crate) fn if_loaded(name: &CStr) -> Option<Self> {
        Self::open(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NOLOAD).ok()
    }

    fn open(name: *const c_char, flags: c_int) -> Result<Self, String> {
        if !name.is_null() && is_linked_statically() {
            return Err(LINKED_STATICALLY.to_owned());
        }
        let _held = hold();
        // SAFETY: a name that ends in NUL, or none.
        let handle = unsafe { libc::dlopen(name, flags) };
        if !handle.is_null() {
            return Ok(Self(handle));
        }
        // SAFETY: the words of this thread's last error, or none.
        let words = unsafe { libc::dlerror() };
        if words.is_null() {
            return Err(String::from("the dynamic loader says nothing"));
        }
        // SAFETY: they end in NUL, and stay until the next call.
        Err(unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned())
    }

    /// The address of a symbol of the library or one that it was linked to, for a thread-local variable that of this thread's; `None`
    /// if there is none, or it is 0.
    pub(crate) fn find(&self, name: &[u8], version: Option<&[u8]>) -> Option<u64> {
        with_c_str(name, |name| match version {
            Some(version) => with_c_str(version, |version| self.of_version(name, version))
                .or_else(|| self.without_version(name)),
            // without a version the oldest is meant, which `dlsym` does not give
            None => self.of_version(name, machine::OLDEST_VERSION).or_else(|| {
                // SAFETY: the handle is open, and the name ends in NUL.
                address(unsafe { libc::dlsym(self.0, name.as_ptr()) })
            }),
        })
    }

    /// The same for a program that asks: as `dlsym` has it, or `dlvsym`.
    pub(crate) fn find_default(&self, name: &[u8], version: Option<&[u8]>) -> Option<u64> {
        with_c_str(name, |name| match version {
            Some(version) => with_c_str(version, |version| self.of_version(name, version)),
            // SAFETY: the handle is open, and the name ends in NUL.
            None => address(unsafe { libc::dlsym(self.0, name.as_ptr()) }),
        })
    }

    /// The address of a symbol that has no version, as of a library that was linked without: it stands for each, which `dlvsym` denies.
    fn without_version(&self, name: &CStr) -> Option<u64> {
        // SAFETY: the handle is open, and the name ends in NUL.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        let address = address(found)?;
        let (info, symbol) = c_library::symbol_at(found)?;
        let map = c_library::link_map_at(found)?.cast::<LinkMap>();
        // SAFETY: it is good as long as the library is open.
        let map = unsafe { map.read() };
        // SAFETY: the name of a symbol ends in NUL.
        let is_it = !info.dli_sname.is_null() && unsafe { CStr::from_ptr(info.dli_sname) } == name;
        if !is_it {
            return None;
        }
        let [symbols, versions] = map.values([DT_SYMTAB, DT_VERSYM]);
        let Some(versions) = versions else { return Some(address) };
        let index =
            (symbol.addr() as u64).checked_sub(symbols?)? / size_of::<word::Symbol>() as u64;
        let version = core::ptr::with_exposed_provenance::<u16>((versions + 2 * index) as usize);
        // SAFETY: the list has an entry for each symbol.
        let version = unsafe { version.read() };
        matches!(version, VER_NDX_LOCAL | VER_NDX_GLOBAL).then_some(address)
    }

    fn of_version(&self, name: &CStr, version: &CStr) -> Option<u64> {
        // SAFETY: the handle is open.
        address(unsafe { c_library::dlvsym(self.0, name, version) })
    }
}

/// Gives `f` a text that ends in NUL; nothing if it has one within. Most names are short, and there are many.
fn with_c_str<R>(text: &[u8], f: impl FnOnce(&CStr) -> Option<R>) -> Option<R> {
    let mut buffer = [0; 128];
    let short = buffer.get_mut(..=text.len()).and_then(|place| {
        place.get_mut(..text.len())?.copy_from_slice(text);
        Some(&*place)
    });
    match short {
        Some(short) => f(CStr::from_bytes_with_nul(short).ok()?),
        None => f(&CString::new(text).ok()?),
    }
}

fn address(found: *mut c_void) -> Option<u64> {
    let address = found.expose_provenance() as u64;
    (address != 0).then_some(address)
}

impl Handle {
    /// Whether both are of one library.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// What the dynamic loader says of the library.
    fn map(&self) -> Option<LinkMap> {
        // SAFETY: the handle is open.
        unsafe { LinkMap::of(self.0) }
    }

    /// What is added to addresses of its file.
    pub(crate) fn bias(&self) -> Option<u64> {
        self.map().map(|map| map.bias())
    }

    /// An address inside of the library.
    pub(crate) fn inside(&self) -> Option<u64> {
        self.map().and_then(|map| map.dynamic())
    }

    /// Whether it is the program or what that was linked to, which nobody closes.
    pub(crate) fn stays(&self) -> bool {
        let here = self.inside();
        here.is_some_and(|here| staying().iter().any(|range| range.contains(&here)))
    }

    /// Whether one that it needs is asked before it.
    pub(crate) fn has_stand_ins(&self) -> bool {
        self.map().is_some_and(|map| map.values([DT_AUXILIARY, DT_FILTER]) != [None; 2])
    }

    /// The versions that it defines; nothing if its symbols have none.
    pub(crate) fn versions(&self) -> Option<DefinedVersions<'_>> {
        let [strings, first] = self.map()?.values([DT_STRTAB, DT_VERDEF]);
        Some(DefinedVersions { strings: strings?, first: first?, library: PhantomData })
    }

    /// Where the library is that has an address, and a handle that keeps it, unless it stays as long as the process.
    pub(crate) fn of_closable(address: u64) -> Option<(Range<u64>, Self)> {
        if staying().iter().any(|range| range.contains(&address)) {
            return None;
        }
        let (_, range) = extents().into_iter().find(|(_, range)| range.contains(&address))?;
        let place = core::ptr::with_exposed_provenance(address as usize);
        let map = c_library::link_map_at(place)?.cast::<LinkMap>();
        // SAFETY: it is good as long as the library is open, which has just been found.
        let map = unsafe { map.read() };
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        Some((range, Self::open(map.name()?.as_ptr(), flags).ok()?))
    }

    /// The libraries that it needs, in order, and whether they are asked before it. They are loaded already.
    pub(crate) fn leads(&self) -> Vec<(Self, bool)> {
        let mut all = Vec::new();
        if let Some(map) = self.map() {
            map.each_needed(|name, is_before| all.push((name.as_ptr(), is_before)));
        }
        // the names are in the string table of a library that is open
        let open = |(name, is_before): (*const c_char, bool)| {
            Some((Self::open(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD).ok()?, is_before))
        };
        all.into_iter().filter_map(open).collect()
    }
}

/// The versions that a library defines (LSB, "Version Definitions").
#[derive(Clone, Copy)]
pub(crate) struct DefinedVersions<'h> {
    strings: u64,
    first: u64,
    library: PhantomData<&'h Handle>,
}

impl DefinedVersions<'_> {
    /// Whether there is one of this name, and this hash of it (`vd_hash`).
    pub(crate) fn has(&self, name: &[u8], hash: u32) -> bool {
        let place = |address: u64| core::ptr::with_exposed_provenance::<u32>(address as usize);
        let mut at = self.first;
        loop {
            // SAFETY: the rows of a loaded library are five words each, the last but one of which leads to the name.
            let [_, _, known, first, next] =
                unsafe { place(at).cast::<[u32; 5]>().read_unaligned() };
            if known == hash {
                // SAFETY: as above.
                let text = unsafe { place(at.wrapping_add(first.into())).read_unaligned() };
                let text = place(self.strings.wrapping_add(text.into())).cast();
                // SAFETY: the name ends in NUL in the string table, and stays as long as the library is open.
                if unsafe { CStr::from_ptr(text) }.to_bytes() == name {
                    return true;
                }
            }
            if next == 0 {
                return false;
            }
            at = at.wrapping_add(next.into());
        }
    }
}

/// Where the libraries of the process are, by what is added to addresses of their files.
pub(crate) fn extents() -> Vec<(u64, Range<u64>)> {
    let mut found = Vec::new();
    descriptions::each(|library| {
        found.push((library.bias(), library.extent()));
        ControlFlow::Continue(())
    });
    found
}

/// The library of the dynamic loader that has an address, by what is added to addresses of its file, and whether code is there.
pub(crate) fn place_of(address: u64) -> Option<(u64, bool)> {
    let mut found = None;
    descriptions::each(|library| {
        let loaded = library.headers().iter().filter(|header| header.p_type == libc::PT_LOAD);
        let mut here = loaded.filter(|header| library.range(header).contains(&address));
        found = here.next().map(|header| (library.bias(), header.p_flags & libc::PF_X != 0));
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// Where the program is and what it was linked to: nobody closes them.
pub(crate) fn staying() -> &'static [Range<u64>] {
    static STAYING: OnceLock<Vec<Range<u64>>> = OnceLock::new();
    STAYING.get_or_init(|| {
        let Some(program) = Handle::of_process() else { return Vec::new() };
        let (mut biases, mut all) = (Vec::new(), program.leads());
        biases.extend(program.bias());
        while let Some((library, _)) = all.pop() {
            match library.bias() {
                Some(bias) if !biases.contains(&bias) => {
                    biases.push(bias);
                    all.extend(library.leads());
                }
                _ => {}
            }
        }
        let extents = extents().into_iter().filter(|(bias, _)| biases.contains(bias));
        extents.map(|(_, range)| range).collect()
    })
}

/// Keeps the library that this code is part of, if it is one, as long as the process: others have addresses of its functions.
pub(crate) fn keep_this_library() {
    let here = keep_this_library as *const ();
    let mut is_of_program = false;
    descriptions::each(|program| {
        is_of_program = program.holds(here as u64);
        ControlFlow::Break(())
    });
    if is_of_program {
        return;
    }
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the result is written to a variable of ours, which zeros are a value of.
    let (found, info) =
        unsafe { (libc::dladdr(here.cast(), info.as_mut_ptr()), info.assume_init()) };
    if found != 0 && !info.dli_fname.is_null() {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name ends in NUL; what is there already is not loaded again.
        unsafe { libc::dlopen(info.dli_fname, flags) };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _held = hold();
        // SAFETY: it is open, and closed once.
        unsafe { libc::dlclose(self.0) };
    }
}
