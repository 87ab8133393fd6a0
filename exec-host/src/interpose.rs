//! What libraries ask for by name and a program defines: `malloc`, `operator new`, `argp_program_version`, what a library leaves to
//! its user. The dynamic loader looks into an executable before all libraries (gABI ch. 5, "Shared Object Dependencies"); libraries
//! that are there before a program is loaded have to be led to it.

use crate::c_library;
use crate::descriptions::{self, Description};
use crate::library_words::{self, Place};
use crate::module::Module;
use crate::process::size_of_symbol;
use crate::word;
use core::ffi::CStr;
use core::mem::ManuallyDrop;
use core::ops::ControlFlow;
use elf_core::names::{SHN_COMMON, STB_GLOBAL, STT_COMMON, STT_OBJECT};
use elf_core::{File, Name};
use std::collections::HashMap;
use std::sync::Arc;

impl<B: AsRef<[u8]> + Send + Sync + 'static> Module<B> {
    /// Leads libraries of this process to functions and variables of the module where they ask for that name, as the dynamic loader
    /// does for an executable. The module then stays for ever. Gives how many words of libraries were changed.
    ///
    /// Variables are those whose definition is not weak: of what is weak (tables of classes, variables of templates) libraries use
    /// their own already. A common symbol gets the bytes that the library has, as by linkers, which copy them.
    ///
    /// Left as they are: the program of this process itself, the dynamic loader, the library that unwinds, libraries out of bytes,
    /// and what libraries mean that are opened later.
    ///
    /// If the module has a `free`, destructors of thread-local variables that this thread has so far run now: the C
    /// library would give memory of its own to that function after them.
    ///
    /// # Safety
    /// The functions do what libraries ask these names for, and the variables are what they take them for. No other thread runs, nobody
    /// uses the module yet, and memory that a library has so far from a function
    /// which is replaced never comes to one that is. Nothing on this thread relies on its thread-local variables with destructors.
    pub unsafe fn interpose(self: &Arc<Self>) -> usize {
        let exports = self.exports();
        let (mut words, mut asked) = (Vec::new(), Vec::new());
        let is_passed_over = passed_over();
        descriptions::each(|library| {
            if !is_passed_over(library) {
                let look = |name: &CStr, place: Place| {
                    let Some(found) = exports.get(Name(name.to_bytes())) else { return };
                    if found.is_function() {
                        words.push((place, found.address()));
                    } else if found.is_unknown() {
                        asked.push((name.to_owned(), place, found.address()));
                    }
                };
                // SAFETY: what the dynamic loader shows is loaded and relocated.
                unsafe { library_words::each(library, look) };
            }
            ControlFlow::Continue(())
        });
        let names = asked.iter().map(|(name, _, address)| (name.as_c_str(), *address));
        let variables = variables(self.bytes().zip(&self.parts().globals), names);
        for (name, place, address) in &asked {
            if let Some(Some(common)) = variables.get(name.to_bytes()) {
                // SAFETY: the library is loaded; the variable has so many bytes, and nobody uses it yet.
                unsafe { copy_variable(place.value(), *address, *common) };
                words.push((*place, *address));
            }
        }
        if words.is_empty() {
            return 0;
        }
        let _stays = ManuallyDrop::new(Arc::clone(self));
        if exports.get(Name::from("free")).is_some_and(|it| it.is_function()) {
            // SAFETY: as the caller guarantees this thread.
            unsafe { end_thread_local_variables() };
        }
        // SAFETY: as the caller guarantees the functions.
        words.retain(|&(place, function)| unsafe { library_words::lead(&[place], function) });
        words.len()
    }
}

/// Which of these names, of which the addresses are known, objects define as variables that are not weak: the bytes of those that are
/// common symbols and nothing else, 0 of others. Objects come with the addresses of their global symbols.
fn variables<'n, 'a>(
    objects: impl Iterator<Item = (&'a [u8], &'a Box<[u64]>)>,
    names: impl Iterator<Item = (&'n CStr, u64)>,
) -> HashMap<&'n [u8], Option<u64>> {
    let (mut variables, mut wanted) = (HashMap::new(), Vec::new());
    for (name, address) in names {
        variables.insert(name.to_bytes(), None);
        wanted.push(address);
    }
    if wanted.is_empty() {
        return variables;
    }
    wanted.sort_unstable();
    for (bytes, addresses) in objects {
        let mut own = (0usize..).zip(addresses).filter_map(|(at, address)| {
            // few of all are asked for, and have to be looked at
            wanted.binary_search(address).is_ok().then_some(at)
        });
        let Some(first) = own.next() else { continue };
        let Ok(Some(table)) = File::parse(bytes).and_then(|file| file.symbol_table()) else {
            continue;
        };
        for at in core::iter::once(first).chain(own) {
            let index = u32::try_from(table.first_global().saturating_add(at));
            let Ok(symbol) = table.get(index.unwrap_or(u32::MAX)) else { continue };
            let is_variable = matches!(symbol.r#type(), STT_OBJECT | STT_COMMON);
            if is_variable
                && symbol.binding() == STB_GLOBAL
                && !symbol.is_undefined()
                && let Ok(name) = table.name_of(&symbol)
                && let Some(variable) = variables.get_mut(name.as_bytes())
            {
                let common = if symbol.shndx == SHN_COMMON { symbol.size } else { 0 };
                *variable = Some(match *variable {
                    Some(so_far) if common > 0 && so_far > 0 => common.max(so_far),
                    Some(_) => 0,
                    None => common,
                });
            }
        }
    }
    variables
}

/// Copies what a library has at `from`, `size` bytes at most, to a variable that is to take its place.
///
/// # Safety
/// The variable has so many bytes, and nobody uses either.
unsafe fn copy_variable(from: u64, to: u64, size: u64) {
    let Some(size) = size_of_symbol(from).map(|there| there.min(size)).filter(|_| from != to)
    else {
        return;
    };
    // SAFETY: the dynamic loader says that so many bytes are there; the caller guarantees the rest.
    unsafe {
        core::ptr::copy_nonoverlapping(
            core::ptr::with_exposed_provenance::<u8>(from as usize),
            core::ptr::with_exposed_provenance_mut::<u8>(to as usize),
            size as usize,
        );
    }
}

/// Which libraries are left as they are.
fn passed_over() -> impl Fn(&Description<'_>) -> bool {
    unsafe extern "C" {
        fn _Unwind_RaiseException();
    }
    // SAFETY: asks only.
    let loader = word::wide(unsafe { libc::getauxval(libc::AT_BASE) });
    let unwinder = _Unwind_RaiseException as *const () as u64;
    move |library| {
        library.path().is_empty() || [loader, unwinder].iter().any(|&it| library.holds(it))
    }
}

/// Runs the destructors that the C library has for this thread (`__cxa_thread_atexit_impl`), where it shows the function for that.
///
/// # Safety
/// Nobody on this thread uses these variables any more.
unsafe fn end_thread_local_variables() {
    let (name, version) = (c"__call_tls_dtors", c"GLIBC_PRIVATE");
    // SAFETY: asks for a function of the C library by its name.
    let found = unsafe { c_library::dlvsym(libc::RTLD_DEFAULT, name, version) };
    if !found.is_null() {
        // SAFETY: this is its type (glibc, `stdlib/cxa_thread_atexit_impl.c`).
        let run = unsafe {
            core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn()>(found)
        };
        // SAFETY: as the caller guarantees.
        unsafe { run() };
    }
}
