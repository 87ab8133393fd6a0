//! Where libraries are and what they are called: what `dladdr` says of their addresses.

use super::library_file::LibraryFile;
use core::ffi::c_char;
use elf_core::Symbol;
use elf_core::names::{STB_LOCAL, STT_TLS};
use elf_image::Exports;
use exec_core::sync::RwLock;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

/// Libraries by where they begin.
static LIBRARIES: RwLock<BTreeMap<u64, Known>> = RwLock::new(BTreeMap::new());

struct Known {
    end: u64,
    bias: u64,
    name: CString,
    content: Arc<LibraryFile>,
}

/// A library that is known as long as this lives.
pub(crate) struct Described(u64);

/// What an address is in. The names are there as long as the library.
pub(crate) struct Description {
    pub(crate) file: *const c_char,
    /// Where the library begins.
    pub(crate) start: u64,
    /// The symbol's address and name.
    pub(crate) symbol: Option<(u64, *const c_char)>,
}

impl Described {
    /// Makes the library known whose memory begins at `start`.
    pub(crate) fn enter(
        start: u64,
        end: u64,
        bias: u64,
        name: &[u8],
        content: &Arc<LibraryFile>,
    ) -> Self {
        let name = CString::new(name).unwrap_or_default();
        let known = Known { end, bias, name, content: Arc::clone(content) };
        LIBRARIES.write().insert(start, known);
        Self(start)
    }
}

impl Drop for Described {
    fn drop(&mut self) {
        let gone = LIBRARIES.write().remove(&self.0);
        // what holds the bytes may be the caller's code
        drop(gone);
    }
}

/// What an address is in, if that is a library.
pub(crate) fn at(address: u64) -> Option<Description> {
    let libraries = LIBRARIES.read();
    let (start, known) = libraries.range(..=address).next_back()?;
    let is_in = address < known.end;
    is_in.then(|| Description {
        file: known.name.as_ptr(),
        start: *start,
        symbol: known.symbol_at(address),
    })
}

impl Known {
    /// The symbol that is nearest before an address and has it, as ld.so decides: of those that the library shows.
    fn symbol_at(&self, address: u64) -> Option<(u64, *const c_char)> {
        let exports = self.content.exports()?;
        let symbols = (0..exports.symbols().len() as u32).filter_map(|index| {
            let symbol = exports.symbols().get(index).ok()?;
            has(&symbol, address.wrapping_sub(self.bias)).then_some(symbol)
        });
        // the first of those that begin at one place
        let nearest =
            symbols.reduce(|one, other| if other.value > one.value { other } else { one });
        let nearest = nearest?;
        Some((nearest.value.wrapping_add(self.bias), name(exports, &nearest)?))
    }
}

/// Whether a symbol has an address of the file.
fn has(symbol: &Symbol, address: u64) -> bool {
    let is_shown = !symbol.is_undefined() && symbol.binding() != STB_LOCAL;
    let offset = address.checked_sub(symbol.value);
    let is_in = offset.is_some_and(|offset| offset < symbol.size.max(1));
    is_shown && symbol.r#type() != STT_TLS && is_in
}

/// The name of a symbol, which ends in NUL in the file.
fn name(exports: &Exports<'_>, symbol: &Symbol) -> Option<*const c_char> {
    let name = exports.symbols().name_of(symbol).ok()?.as_bytes();
    (!name.is_empty()).then(|| name.as_ptr().cast())
}
