//! Symbols and sections of modules, as rows for C.

use crate::address::pointer_to;
use crate::border::Rows;
use crate::error::c_string;
use core::ffi::{c_char, c_void};
use exec_host::symbols::SharedBytes;
use std::ffi::CString;

/// A symbol of a module. Pointers are good as long as the module's handle.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ModuleSymbol {
    /// Its name, mangled if it was so. Local symbols may have names that others have, too.
    pub name: *const c_char,
    /// Its address.
    pub address: *mut c_void,
    /// Its size in bytes, 0 if the object does not tell.
    pub size: u64,
    /// The object that defines it: by number, members of archives behind the objects that were given.
    pub object: usize,
    /// The index of its section in the object; 0 of common symbols.
    pub section: u32,
    /// What it is: `STT_FUNC` (2), `STT_OBJECT` (1) ...
    pub kind: u8,
    /// Who sees it: `STB_LOCAL` (0), `STB_GLOBAL` (1), `STB_WEAK` (2).
    pub binding: u8,
}

/// A section of one of a module's objects. Pointers are good as long as the module's handle.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ModuleSection {
    /// Its name.
    pub name: *const c_char,
    /// Where it is in memory, relocated; NULL if it is not loaded.
    pub address: *mut c_void,
    /// Its size in bytes.
    pub size: u64,
    /// Its bytes as the object has them, without relocation; NULL of zeros (`SHT_NOBITS`).
    pub data: *const c_void,
    /// How many bytes `data` has.
    pub data_size: usize,
    /// `SHF_WRITE` (1), `SHF_ALLOC` (2), `SHF_EXECINSTR` (4) ...
    pub flags: u64,
    /// The object, by its number.
    pub object: usize,
    /// Its index in the object.
    pub index: u32,
}

/// Memory of a module that has one permission.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ModuleSegment {
    /// Where it is.
    pub address: *mut c_void,
    /// Its size in bytes.
    pub size: u64,
    /// `PF_X` (1), `PF_W` (2), `PF_R` (4).
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

/// How many bytes of memory a module takes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ModuleSizes {
    /// Code, stubs included.
    pub code: u64,
    /// Data that are not written once they are relocated.
    pub read_only: u64,
    /// Other data.
    pub writable: u64,
    /// A thread's copy of thread-local variables.
    pub thread_variables: u64,
}

/// Rows with their names.
pub(crate) struct Tables {
    pub(crate) symbols: Rows<ModuleSymbol>,
    pub(crate) sections: Rows<ModuleSection>,
    pub(crate) segments: Rows<ModuleSegment>,
    #[expect(dead_code, reason = "what pointers of rows lead to")]
    names: Vec<CString>,
}

impl Tables {
    pub(crate) fn of(module: &exec_host::Module<SharedBytes>) -> Self {
        let mut names = Vec::new();
        // the text of a `CString` stays where it is when the list grows
        let mut keep = |name: elf_core::Name<'_>| {
            let name = c_string(name.as_bytes());
            let text = name.as_ptr();
            names.push(name);
            text
        };
        let symbols = module.symbols().map(|symbol| ModuleSymbol {
            name: keep(symbol.name),
            address: pointer_to(symbol.address),
            size: symbol.size,
            object: symbol.object,
            section: symbol.section.unwrap_or(0),
            kind: symbol.r#type,
            binding: symbol.binding,
        });
        let symbols = Rows(symbols.collect());
        let sections = module.sections().map(|section| ModuleSection {
            name: keep(section.name),
            address: section.address.map_or(core::ptr::null_mut(), pointer_to),
            size: section.size,
            data: match section.in_file() {
                [] => core::ptr::null(),
                bytes => bytes.as_ptr().cast(),
            },
            data_size: section.in_file().len(),
            flags: section.flags.bits(),
            object: section.object,
            index: section.index,
        });
        let sections = Rows(sections.collect());
        let segments = module.segments().map(|(range, flags)| ModuleSegment {
            address: pointer_to(range.start),
            size: range.end.saturating_sub(range.start),
            flags: flags.bits(),
            reserved: 0,
        });
        let segments = Rows(segments.collect());
        Self { symbols, sections, segments, names }
    }
}
