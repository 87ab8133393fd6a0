//! Thread-local variables of the process and its libraries.

use super::library::{Library, LinkMap, Wanted, map_of};
use crate::external::External;
use crate::machine;
use core::ffi::{CStr, c_int, c_void};
use elf_core::Name;
use elf_core::names::{STB_LOCAL, STT_TLS};
use elf_layout::TlsBlock;
use libloading::os::unix;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The blocks of the process's modules, as far as somebody has asked for them.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// From the thread pointer to a module's block, if that is the same in all threads.
    tp_offsets: HashMap<u64, Option<u64>>,
}

/// The block of one module, as this thread has it.
struct Block<'n> {
    module: u64,
    /// Its address in this thread.
    start: u64,
    /// The file of the library; nothing for the program.
    path: &'n CStr,
}

impl Variables {
    /// Has the loader put the variables of a library near the thread pointer, if it has room: once somebody has asked for the address
    /// of one, they stay where they were then.
    pub(crate) fn settle(&mut self, library: unix::Library) -> unix::Library {
        let (library, map) = map_of(library);
        if let Some(map) = map {
            let _ = self.settle_block(&map);
        }
        library
    }

    fn settle_block(&mut self, map: &LinkMap) -> Option<()> {
        let mut found = Search { address: map.address, is_start: true, block: None };
        // SAFETY: the callback has the type asked for, and the search outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
        let Block { module, path, .. } = found.block?;
        let path = path.to_bytes();
        let file = std::fs::read(OsStr::from_bytes(path)).ok()?;
        let file = elf_core::File::parse(&file).ok()?;
        let table = file.dynamic().ok()??.symbol_table().ok()??;
        let variable = table.symbols().iter().find(|symbol| {
            symbol.r#type() == STT_TLS && symbol.binding() != STB_LOCAL && !symbol.is_undefined()
        })?;
        let wanted = [Wanted::DistanceOf(table.name_of(&variable).ok()?.as_bytes())];
        let (_, [tp_offset, ..]) = Library::new(&NOTHING, &[], &wanted, &[path]).ok()?;
        self.tp_offsets.insert(module, Some(tp_offset.wrapping_sub(variable.value)));
        Some(())
    }

    /// The variable `name`, if `address` is that of this thread's copy.
    pub(crate) fn find(&mut self, name: Name<'_>, address: u64) -> Option<External> {
        let mut found = Search { address, is_start: false, block: None };
        // SAFETY: the callback has the type asked for, and the search outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
        let block = found.block?;
        let offset = address.wrapping_sub(block.start);
        let tp_offset = *self.tp_offsets.entry(block.module).or_insert_with(|| {
            let path = block.path.to_bytes();
            let needed = if path.is_empty() { &[][..] } else { &[path] };
            let wanted = [Wanted::DistanceOf(name.as_bytes())];
            let (_, [tp_offset, ..]) = Library::new(&NOTHING, &[], &wanted, needed).ok()?;
            // another library may have a variable of this name
            let is_this = machine::thread_pointer().wrapping_add(tp_offset) == address;
            is_this.then_some(tp_offset.wrapping_sub(offset))
        });
        let tp_offset = tp_offset.map(|tp_offset| tp_offset.wrapping_add(offset).cast_signed());
        Some(External::thread_local(block.module, offset, tp_offset))
    }
}

/// No variables of our own.
const NOTHING: TlsBlock = TlsBlock { offset: 0, file_size: 0, size: 0, alignment: 1 };

struct Search<'n> {
    /// That of a variable in this thread, or of the start of a library.
    address: u64,
    is_start: bool,
    block: Option<Block<'n>>,
}

/// Looks whether a module's block holds the address.
unsafe extern "C" fn look(
    info: *mut libc::dl_phdr_info,
    size: usize,
    search: *mut c_void,
) -> c_int {
    if size < size_of::<libc::dl_phdr_info>() {
        return 0;
    }
    // SAFETY: `dl_iterate_phdr` gives a valid description of this size, and back what `find` gave it.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    if info.dlpi_phdr.is_null() || (info.dlpi_tls_data.is_null() && !search.is_start) {
        return 0;
    }
    // SAFETY: the description holds so many program headers.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let start = info.dlpi_tls_data.addr() as u64;
    let holds = |header: &libc::Elf64_Phdr| {
        header.p_type == libc::PT_TLS
            && if search.is_start {
                info.dlpi_addr == search.address
            } else {
                (start..start.saturating_add(header.p_memsz)).contains(&search.address)
            }
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    // SAFETY: the name ends in NUL, and lives as long as the library, which its user keeps.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) };
    search.block = Some(Block { module: info.dlpi_tls_modid as u64, start, path });
    1
}
