//! Thread-local variables of the process and its libraries.

use super::library::{DynamicRelocation, Library, map_of};
use crate::descriptions;
use crate::external::External;
use crate::library::file::OpenFile;
use crate::machine;
use crate::word::wide;
use core::ops::{ControlFlow, Range};
use elf_core::Name;
use elf_core::names::{STB_LOCAL, STT_TLS};
use elf_layout::TlsBlock;
use libloading::os::unix;
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The blocks of the process's modules, as far as somebody has asked for them.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// From the thread pointer to a module's block, if that is the same in all threads.
    tp_offsets: HashMap<u64, Option<u64>>,
}

/// The block of one module, as this thread has it.
struct Block {
    module: u64,
    /// Its address in this thread, 0 if there is none yet.
    start: u64,
    /// The file of the library; nothing for the program.
    path: CString,
}

impl Block {
    /// That of the library which is at `bias`.
    fn of_library(bias: u64) -> Option<Self> {
        Self::find(|library_bias, _| library_bias == bias)
    }

    /// The one that holds `address` in this thread.
    fn at(address: u64) -> Option<Self> {
        Self::find(|_, variables| variables.contains(&address))
    }

    fn find(is_it: impl Fn(u64, Range<u64>) -> bool) -> Option<Self> {
        let mut found = None;
        descriptions::each(|library| {
            let start = library.variables().unwrap_or(0);
            let size = library.header(libc::PT_TLS).map(|header| wide(header.p_memsz));
            // without a copy there is no address in it
            let end = |size: u64| if start == 0 { 0 } else { start.saturating_add(size) };
            if size.is_some_and(|size| is_it(library.bias(), start..end(size))) {
                let path = library.path().to_owned();
                found = Some(Self { module: library.module(), start, path });
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        found
    }
}

impl Variables {
    /// Has the loader put the variables of a library near the thread pointer, if it has room: once somebody has asked for the address
    /// of one, they stay where they were then.
    pub(crate) fn settle(&mut self, library: unix::Library) -> unix::Library {
        let (library, map) = map_of(library);
        if let Some(map) = map {
            let _ = self.settle_block(map.bias());
        }
        library
    }

    fn settle_block(&mut self, bias: u64) -> Option<()> {
        let Block { module, path, .. } = Block::of_library(bias)?;
        let path = path.to_bytes();
        let file = OpenFile::new(Path::new(OsStr::from_bytes(path))).ok()?;
        // SAFETY: the library's pages are the file's as well: who changes it changes the library.
        let file = unsafe { file.whole(true) }.ok()?;
        let file = elf_core::File::parse(file.as_ref()).ok()?;
        let table = file.dynamic().ok()??.symbol_table().ok()??;
        let variable = table.symbols().iter().find(|symbol| {
            symbol.r#type() == STT_TLS && symbol.binding() != STB_LOCAL && !symbol.is_undefined()
        })?;
        let relocations =
            [DynamicRelocation::TpOffsetOf(table.name_of(&variable).ok()?.as_bytes())];
        let (_, [tp_offset, ..]) = Library::new(&NOTHING, &[], &relocations, &[path]).ok()?;
        self.tp_offsets.insert(module, Some(tp_offset.wrapping_sub(variable.value)));
        Some(())
    }

    /// The variable `name`, if `address` is that of this thread's copy.
    pub(crate) fn find(&mut self, name: Name<'_>, address: u64) -> Option<External> {
        let block = Block::at(address)?;
        let offset = address.wrapping_sub(block.start);
        let tp_offset = *self.tp_offsets.entry(block.module).or_insert_with(|| {
            let path = block.path.to_bytes();
            let needed = if path.is_empty() { &[][..] } else { &[path] };
            let relocations = [DynamicRelocation::TpOffsetOf(name.as_bytes())];
            let (_, [tp_offset, ..]) = Library::new(&NOTHING, &[], &relocations, needed).ok()?;
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
