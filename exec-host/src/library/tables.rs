//! Symbols of a library of the dynamic loader, read where it has them: by the tables that the dynamic loader reads itself, without its locks.

use crate::machine::resolver;
use crate::word;
use core::ffi::{CStr, c_char};
use core::ptr::with_exposed_provenance;
use elf_core::names::{
    SHN_ABS, SHN_UNDEF, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT,
    STV_DEFAULT, STV_PROTECTED, VER_NDX_GLOBAL, VERSYM_HIDDEN, VERSYM_VERSION,
};
use exec_core::sync::OnceLock;

/// What a library has of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Has {
    At(u64),
    Nothing,
    /// What the resolver at this address says.
    Indirect(u64),
    /// Only the dynamic loader can say it: variables of threads, what all share.
    Unknown,
}

/// Where the tables of a library are. Who reads them keeps it.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) bias: u64,
    pub(super) symbols: u64,
    pub(super) strings: u64,
    /// The number of each symbol's version, if symbols have any.
    pub(super) numbers: u64,
    pub(super) defined: u64,
    pub(super) needed: u64,
    /// Where names of versions are, by number; 0 for none.
    pub(super) versions: OnceLock<Vec<u64>>,
}

impl Tables {
    /// What the first of these symbols is that a reference means, as ld.so decides (`check_match`): of the version that it states, or
    /// without one; without a version, the oldest.
    ///
    /// # Safety
    /// The library is there, and has these symbols.
    pub(super) unsafe fn find(
        &self,
        candidates: impl Iterator<Item = u32>,
        name: &[u8],
        version: Option<&[u8]>,
    ) -> Has {
        // SAFETY: as the caller guarantees.
        match unsafe { self.first(candidates, name, version) } {
            // SAFETY: resolvers of libraries that are loaded may be called, as `dlsym` does.
            Has::Indirect(resolver) => match unsafe { resolver::call(resolver) } {
                0 => Has::Unknown,
                address => Has::At(address),
            },
            found => found,
        }
    }

    /// The same, which is not called if it is a resolver.
    ///
    /// # Safety
    /// As above.
    unsafe fn first(
        &self,
        candidates: impl Iterator<Item = u32>,
        name: &[u8],
        version: Option<&[u8]>,
    ) -> Has {
        let (mut versioned, mut count) = (Has::Nothing, 0u32);
        for index in candidates {
            let size = size_of::<word::Symbol>() as u64;
            let at = self.symbols.wrapping_add(u64::from(index).wrapping_mul(size));
            // SAFETY: the caller guarantees the symbol, and its name.
            let (symbol, is_it) = unsafe {
                let symbol = with_exposed_provenance::<word::Symbol>(at as usize).read();
                (symbol, is_text(self.strings.wrapping_add(symbol.st_name.into()), name))
            };
            let found = if is_it { self.meaning(&symbol) } else { Has::Nothing };
            if found == Has::Nothing {
                continue;
            }
            if self.numbers == 0 {
                return found;
            }
            let number = self.numbers.wrapping_add(u64::from(index).wrapping_mul(2));
            // SAFETY: each symbol has a number.
            let number = unsafe { with_exposed_provenance::<u16>(number as usize).read() };
            let is_hidden = number & VERSYM_HIDDEN != 0;
            let number = number & VERSYM_VERSION;
            match version {
                Some(version) => {
                    let is_plain = number <= VER_NDX_GLOBAL;
                    // SAFETY: the library is there.
                    if is_plain && !is_hidden || !is_plain && unsafe { self.is(number, version) } {
                        return found;
                    }
                }
                None if number < 3 => return found,
                None if !is_hidden => {
                    if count == 0 {
                        versioned = found;
                    }
                    count = count.saturating_add(1);
                }
                None => {}
            }
        }
        if count == 1 { versioned } else { Has::Nothing }
    }

    /// The name of a symbol that others find by it, without a version too.
    ///
    /// # Safety
    /// The library is there, and has this symbol.
    pub(super) unsafe fn shown(&self, index: u32) -> Option<&CStr> {
        let at = |table: u64, size: usize| {
            table.wrapping_add(u64::from(index).wrapping_mul(size as u64)) as usize
        };
        let symbol = at(self.symbols, size_of::<word::Symbol>());
        // SAFETY: the caller guarantees the symbol.
        let symbol = unsafe { with_exposed_provenance::<word::Symbol>(symbol).read() };
        let number = with_exposed_provenance::<u16>(at(self.numbers, size_of::<u16>()));
        // SAFETY: each symbol has a number, if any has one.
        let is_hidden = self.numbers != 0 && unsafe { number.read() } & VERSYM_HIDDEN != 0;
        let name =
            with_exposed_provenance(self.strings.wrapping_add(symbol.st_name.into()) as usize);
        let is_shown = !is_hidden && matches!(self.meaning(&symbol), Has::At(_));
        // SAFETY: names of symbols end in NUL, and are there as long as the library.
        is_shown.then(|| unsafe { CStr::from_ptr(name) })
    }

    /// What a symbol of the name is to others.
    fn meaning(&self, symbol: &word::Symbol) -> Has {
        let (binding, r#type) = (symbol.st_info >> 4, symbol.st_info & 15);
        let value = word::wide(symbol.st_value);
        let is_shown = matches!(symbol.st_other & 3, STV_DEFAULT | STV_PROTECTED);
        let is_absolute = symbol.st_shndx == SHN_ABS;
        match (binding, r#type) {
            _ if !is_shown || symbol.st_shndx == SHN_UNDEF && value == 0 => Has::Nothing,
            // where a program has a function's address
            _ if symbol.st_shndx == SHN_UNDEF || is_absolute => Has::Unknown,
            (STB_GLOBAL | STB_WEAK, STT_NOTYPE | STT_OBJECT | STT_FUNC) if value != 0 => {
                Has::At(self.bias.wrapping_add(value))
            }
            (STB_GLOBAL | STB_WEAK, STT_NOTYPE | STT_OBJECT | STT_FUNC) => Has::Nothing,
            (STB_GLOBAL | STB_WEAK, STT_GNU_IFUNC) if value != 0 => {
                Has::Indirect(self.bias.wrapping_add(value))
            }
            _ => Has::Unknown,
        }
    }

    /// Whether the version of this number has this name.
    ///
    /// # Safety
    /// The library is there.
    unsafe fn is(&self, number: u16, name: &[u8]) -> bool {
        // SAFETY: as the caller guarantees.
        let versions = self.versions.get_or_init(|| unsafe { self.names() });
        let at = versions.get(usize::from(number)).copied().filter(|at| *at != 0);
        // SAFETY: as above; names of versions end in NUL.
        at.is_some_and(|at| unsafe { is_text(at, name) })
    }

    /// Where the names of all versions are, by number.
    ///
    /// # Safety
    /// The library is there.
    unsafe fn names(&self) -> Vec<u64> {
        let mut names = Vec::new();
        let mut set = |number: u32, name: u32| {
            let number = (number as u16 & VERSYM_VERSION) as usize;
            if names.len() <= number {
                names.resize(number.saturating_add(1), 0);
            }
            if let Some(place) = names.get_mut(number) {
                *place = self.strings.wrapping_add(name.into());
            }
        };
        // SAFETY: as the caller guarantees: rows (LSB, "Symbol Versioning") are words, the last of which leads to the next.
        unsafe {
            each(self.needed, 3, |need, [_, _, first, _]| {
                let first = need.wrapping_add(first.into());
                each(first, 3, |_, [_, flags, name, _]| set(flags >> 16, name));
            });
            each(self.defined, 4, |definition, [flags, index, _, name]| {
                // the first is the file itself
                if flags >> 16 & 1 == 0 {
                    let name = with_exposed_provenance::<u32>(
                        definition.wrapping_add(name.into()) as usize
                    );
                    set(index & 0xffff, name.read_unaligned());
                }
            });
        }
        names
    }
}

/// Gives `f` each row of a list, if there is one: where it is, and four words of it. The word of this number says how far the next one is.
///
/// # Safety
/// There are such rows.
unsafe fn each(start: u64, next: usize, mut f: impl FnMut(u64, [u32; 4])) {
    let mut at = start;
    while at != 0 {
        let row = with_exposed_provenance::<u32>(at as usize);
        // SAFETY: as the caller guarantees.
        let (words, step) = unsafe {
            (row.cast::<[u32; 4]>().read_unaligned(), row.wrapping_add(next).read_unaligned())
        };
        f(at, words);
        at = if step == 0 { 0 } else { at.wrapping_add(step.into()) };
    }
}

/// Whether there is this text.
///
/// # Safety
/// There is one that ends in NUL.
#[inline]
unsafe fn is_text(address: u64, text: &[u8]) -> bool {
    let start = with_exposed_provenance::<c_char>(address as usize);
    // SAFETY: as the caller guarantees: no more is compared than both have, and what is equal goes on at least up to a NUL.
    unsafe {
        libc::strncmp(start, text.as_ptr().cast(), text.len()) == 0
            && start.add(text.len()).read() == 0
    }
}
