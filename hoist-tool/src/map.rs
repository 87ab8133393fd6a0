//! The map of an image: what is where, by name. Addresses are numbers.

use elf_core::names::{STT_FILE, STT_SECTION};
use elf_core::{Arch, Mapping, Name};
use elf_layout::Layout;
use serde::Serialize;

use crate::explain::section_name;
use crate::objects::Objects;
use crate::printable::Printable;

/// What is where in an image at `base`.
#[derive(Debug, Default, Serialize)]
pub struct Map<'a> {
    /// Address of the image.
    pub base: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The sections that are loaded, object by object.
    pub sections: Vec<Placed<'a>>,
    /// The symbols that objects define, local ones included, object by object. Those that stand for sections or files are left
    /// out, as are [mapping symbols](Mapping): sections are listed already, files have no address. A name that several objects define is where the definition is
    /// that was taken.
    pub symbols: Vec<Placed<'a>>,
    /// The entries of the global offset table.
    pub got: Vec<Pointer<'a>>,
    /// The stubs.
    pub stubs: Vec<Pointer<'a>>,
    /// The initial values of thread-local variables, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_local: Option<ThreadLocal>,
}

/// Thread-local variables: what a program header of type `PT_TLS` says, and where threads are to have them.
#[derive(Debug, Serialize)]
pub struct ThreadLocal {
    /// Address of the initial values.
    pub address: u64,
    /// Their size in bytes; zeros follow in every thread.
    pub file_size: u64,
    /// Size of a thread's variables in bytes.
    pub size: u64,
    /// Their alignment in bytes.
    pub alignment: u64,
    /// Where the code expects them, in bytes from the thread pointer.
    pub from_thread_pointer: Option<i64>,
}

/// A section or symbol.
#[derive(Debug, Serialize)]
pub struct Placed<'a> {
    /// The object: `FILE` or `ARCHIVE(MEMBER)`.
    pub object: &'a str,
    /// Its name.
    pub name: Printable<'a>,
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A GOT entry or stub.
#[derive(Debug, Serialize)]
pub struct Pointer<'a> {
    /// The symbol that it points at.
    pub symbol: Printable<'a>,
    /// Its own address.
    pub address: u64,
}

impl<'a> Map<'a> {
    /// The map of `layout`, which is one of `objects`, at `base`.
    #[must_use]
    pub fn of<A: Arch>(layout: &Layout<'a, '_, A>, objects: &'a Objects<'a>, base: u64) -> Self {
        let pointer = |object, symbol, offset| Pointer {
            symbol: objects.symbol_name(object, symbol).unwrap_or_default().into(),
            address: base.wrapping_add(offset),
        };
        Self {
            base,
            size: layout.size(),
            sections: sections(layout, objects, base),
            symbols: symbols(layout, objects, base),
            got: layout
                .got_entries()
                .map(|entry| pointer(entry.object, entry.symbol, entry.offset))
                .collect(),
            stubs: layout
                .stubs()
                .map(|stub| pointer(stub.object, stub.symbol, stub.offset))
                .collect(),
            thread_local: layout.tls_block().map(|block| ThreadLocal {
                address: base.wrapping_add(block.offset),
                file_size: block.file_size,
                size: block.size,
                alignment: block.alignment,
                from_thread_pointer: layout.executable_tls_block().tp_offset,
            }),
        }
    }
}

fn sections<'a, A: Arch>(
    layout: &Layout<'a, '_, A>,
    objects: &'a Objects<'a>,
    base: u64,
) -> Vec<Placed<'a>> {
    let files = objects.files().iter().enumerate();
    let sections = files.flat_map(|(object, file)| {
        (0u32..).zip(file.sections()).map(move |row| (object, file, row))
    });
    sections
        .filter_map(|(object, file, (index, _))| {
            let offset = layout.section(object, index)?;
            Some(Placed {
                object: objects.label(object),
                name: section_name(file, index).unwrap_or_default().into(),
                address: base.wrapping_add(offset),
                size: layout.section_size(object, index)?,
            })
        })
        .collect()
}

fn symbols<'a, A: Arch>(
    layout: &Layout<'a, '_, A>,
    objects: &'a Objects<'a>,
    base: u64,
) -> Vec<Placed<'a>> {
    let mut placed = Vec::new();
    for object in 0..objects.files().len() {
        let Some(table) = objects.symbols(object) else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols()).skip(1) {
            let is_own = layout.definition(object, index) == Some((object, index));
            if symbol.is_undefined() || !is_own || matches!(symbol.r#type(), STT_SECTION | STT_FILE)
            {
                continue;
            }
            let Some(address) = layout.symbol(object, index) else { continue };
            let name: Name<'a> = table.name_of(&symbol).unwrap_or_default();
            if Mapping::of(A::MACHINE, &symbol, name).is_some() {
                continue;
            }
            placed.push(Placed {
                object: objects.label(object),
                name: name.into(),
                address: address.at(base),
                size: layout.symbol_size(object, index).unwrap_or(symbol.size),
            });
        }
    }
    placed
}
