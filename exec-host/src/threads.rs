//! Thread-local variables: every thread, old or new, gets its copies from the C library, which alone knows them all. To this end the
//! initial values are given to its dynamic loader as a library that consists of nothing else.

pub(crate) mod descriptor;
pub(crate) mod dynamic;
mod everywhere;
pub(crate) mod exit;
mod external;
mod library;
mod pool;
mod reserve;

pub(crate) use external::Variables;
pub use reserve::StaticTlsReserve;

use crate::Host;
use crate::error::Error;
use crate::external::External;
use elf_core::names::{STB_LOCAL, STT_TLS, STV_DEFAULT, STV_PROTECTED};
use elf_core::{ApplyErrorKind, Role, Slot};
use elf_layout::{ErrorKind, Layout, StaticTlsBlock, ThreadLocal, TlsBlock};
use library::{Library, Wanted};
use pool::Share;

/// The variables of a load, in every thread of the process. Dropped, they are given back.
#[derive(Debug)]
pub(crate) struct Threads {
    #[expect(dead_code, reason = "the loader keeps the variables as long as the library")]
    library: Option<Library>,
    #[expect(dead_code, reason = "other loads get the room when this is gone")]
    share: Option<Share>,
    area: StaticTlsBlock,
    /// Where the load's block starts in the block of that module.
    start: u64,
    /// Bytes of a thread's copy.
    size: u64,
}

impl Threads {
    /// Gives every thread its copy of the block, of which `image` has the initial values: at the same TP offset
    /// if `access` wants that or there is room, else where the loader sees fit.
    pub(crate) fn new(block: &TlsBlock, image: &[u8], access: ThreadLocal) -> Result<Self, Error> {
        let area = StaticTlsBlock {
            module: 1,
            tp_offset: Some(0),
            descriptor: Some(descriptor::near()),
            dynamic_descriptor: descriptor::far(),
        };
        if block.size == 0 {
            return Ok(Self { library: None, share: None, area, start: 0, size: block.size });
        }
        let start = usize::try_from(block.offset).ok();
        let size = usize::try_from(block.file_size).ok();
        let values = start.zip(size).and_then(|(start, size)| image.get(start..)?.get(..size));
        let values = values.unwrap_or_default();
        // code that was rewritten to local exec asks for no module
        if access == ThreadLocal::LocalExec {
            // what it cannot do, a library of its own may
            if let Ok(share) = Share::new(block, values) {
                let (module, start) = (share.module, share.start);
                let area = StaticTlsBlock { module, tp_offset: Some(share.tp_offset), ..area };
                return Ok(Self {
                    library: None,
                    share: Some(share),
                    area,
                    start,
                    size: block.size,
                });
            }
        }
        let wanted = [Wanted::Module, Wanted::Distance];
        let refused = match Library::new(block, values, &wanted, &[]) {
            Ok((library, [module, tp_offset, ..])) => {
                let tp_offset = Some(tp_offset.cast_signed());
                let area = StaticTlsBlock { module, tp_offset, ..area };
                return Ok(Self {
                    library: Some(library),
                    share: None,
                    area,
                    start: 0,
                    size: block.size,
                });
            }
            Err(refused) => refused,
        };
        if access == ThreadLocal::LocalExec {
            return Err(refused);
        }
        let (library, [module, ..]) = Library::new(block, values, &[Wanted::Module], &[])?;
        let area = StaticTlsBlock { module, tp_offset: None, ..area };
        Ok(Self { library: Some(library), share: None, area, start: 0, size: block.size })
    }

    /// Bytes of a thread's copy.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Gives every thread its copy where the loader sees fit, and takes nothing of the room near the thread pointer: for code that asks
    /// by module and offset.
    pub(crate) fn anywhere(block: &TlsBlock, image: &[u8]) -> Result<Self, Error> {
        let start = usize::try_from(block.offset).ok();
        let size = usize::try_from(block.file_size).ok();
        let values = start.zip(size).and_then(|(start, size)| image.get(start..)?.get(..size));
        let values = values.unwrap_or_default();
        let (library, [module, ..]) = Library::new(block, values, &[Wanted::Module], &[])?;
        let area = StaticTlsBlock {
            module,
            tp_offset: None,
            descriptor: Some(descriptor::near()),
            dynamic_descriptor: descriptor::far(),
        };
        Ok(Self { library: Some(library), share: None, area, start: 0, size: block.size })
    }

    /// What relocations are told.
    pub(crate) const fn area(&self) -> StaticTlsBlock {
        self.area
    }
}

/// Whether a load that was refused may be right with variables that code reaches as it was compiled.
pub(crate) fn may_be_elsewhere(refused: &Error) -> bool {
    match refused {
        Error::ThreadLocal { .. } => true,
        Error::Layout(error) => {
            matches!(error.kind, ErrorKind::Apply(error) if error.kind == ApplyErrorKind::Sequence)
        }
        _ => false,
    }
}

/// Why a load was refused that had been refused before.
pub(crate) fn why(error: Error, before: &Error) -> Error {
    match (error, before) {
        (Error::Layout(error), Error::ThreadLocal { size, cause, .. })
            if asks_tp_offset(&error) =>
        {
            Error::NearThreadLocal {
                size: *size,
                cause: cause.clone(),
                error,
                text: error.to_string().into(),
            }
        }
        (error, _) => error,
    }
}

/// Whether a relocation wants a TP offset, and there is none.
fn asks_tp_offset(error: &elf_layout::Error) -> bool {
    let ErrorKind::Apply(error) = error.kind else { return false };
    use ApplyErrorKind::Unresolved;
    matches!(error.kind, Unresolved(Role::TpOffset | Role::Got(Slot::TpOffset)))
}

/// The variables that later loads may use.
pub(crate) fn exports(
    layout: &Layout<'_, '_, Host>,
    threads: &Threads,
) -> Vec<(Box<[u8]>, External)> {
    let (mut variables, area) = (Vec::new(), threads.area());
    for (object, file) in layout.files().iter().enumerate() {
        let Ok(Some(table)) = file.symbol_table() else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols()) {
            let is_visible = matches!(symbol.visibility(), STV_DEFAULT | STV_PROTECTED);
            if symbol.r#type() != STT_TLS || symbol.binding() == STB_LOCAL || !is_visible {
                continue;
            }
            let (Some(offset), Ok(name)) = (layout.variable(object, index), table.name_of(&symbol))
            else {
                continue;
            };
            let tp_offset = area.tp_offset.map(|block| block.wrapping_add_unsigned(offset));
            let in_module = threads.start.wrapping_add(offset);
            let variable = External::thread_local(area.module, in_module, tp_offset);
            variables.push((name.as_bytes().into(), variable));
        }
    }
    variables
}
