//! Thread-local variables: every thread, old or new, gets its copies from the C library, which alone knows them all. To this end the
//! initial values are given to its dynamic loader as a library that consists of nothing else.

pub(crate) mod descriptor;
pub(crate) mod dynamic;
mod everywhere;
pub(crate) mod exit;
mod external;
pub(crate) mod initial_exec;
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
use library::{DynamicRelocation, Library};

pub(crate) use library::that_needs;
use pool::Share;

/// The variables of a load, in every thread of the process. Dropped, they are given back.
#[derive(Debug)]
pub(crate) struct Threads {
    #[expect(dead_code, reason = "kept")]
    holder: Holder,
    static_tls_block: StaticTlsBlock,
    /// Where the load's block starts in the static TLS block of that module.
    start: u64,
    /// Bytes of a thread's copy.
    size: u64,
}

/// What holds the room of a load's variables.
#[derive(Debug)]
enum Holder {
    Nobody,
    #[expect(dead_code, reason = "the loader keeps the variables as long as the library")]
    Library(Library),
    #[expect(dead_code, reason = "other loads get the room when this is gone")]
    Share(Share),
}

impl Threads {
    /// Gives every thread its copy of the block, of which `image` has the initial values: at the same TP offset
    /// if `access` wants that or there is room, else where the loader sees fit.
    pub(crate) fn new(block: &TlsBlock, image: &[u8], access: ThreadLocal) -> Result<Self, Error> {
        if block.size == 0 {
            return Ok(Self::held_by(Holder::Nobody, (1, 0), Some(0), block));
        }
        let values = values(block, image);
        // code that was rewritten to local exec asks for no module; what a share cannot do, a library of its own may
        if access == ThreadLocal::LocalExec
            && let Ok(share) = Share::new(block, values)
        {
            let (place, tp_offset) = ((share.module, share.start), share.tp_offset);
            return Ok(Self::held_by(Holder::Share(share), place, Some(tp_offset), block));
        }
        let relocations = [DynamicRelocation::DtpModule, DynamicRelocation::TpOffset];
        let refused = match Library::new(block, values, &relocations, &[]) {
            Ok((library, [module, tp_offset])) => {
                let tp_offset = Some(tp_offset.cast_signed());
                return Ok(Self::held_by(Holder::Library(library), (module, 0), tp_offset, block));
            }
            Err(refused) => refused,
        };
        if access == ThreadLocal::LocalExec { Err(refused) } else { Self::anywhere(block, image) }
    }

    /// Gives every thread its copy where the loader sees fit, and takes nothing of the room near the thread pointer: for code that asks
    /// by module and offset.
    pub(crate) fn anywhere(block: &TlsBlock, image: &[u8]) -> Result<Self, Error> {
        let relocations = [DynamicRelocation::DtpModule];
        let (library, [module, ..]) = Library::new(block, values(block, image), &relocations, &[])?;
        Ok(Self::held_by(Holder::Library(library), (module, 0), None, block))
    }

    /// In the block of `module`, from `start` on; that block, or the part of it, is at `tp_offset` from the thread pointer.
    fn held_by(
        holder: Holder,
        (module, start): (u64, u64),
        tp_offset: Option<i64>,
        block: &TlsBlock,
    ) -> Self {
        let static_tls_block = StaticTlsBlock {
            module,
            tp_offset,
            descriptor: Some(descriptor::near()),
            dynamic_descriptor: descriptor::far(),
        };
        Self { holder, static_tls_block, start, size: block.size }
    }

    /// Bytes of a thread's copy.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// The number of the block that they are in, and where in it they end.
    pub(crate) const fn range_end(&self) -> (u64, u64) {
        (self.static_tls_block.module, self.start.saturating_add(self.size))
    }

    /// Where the variables are, for relocations.
    pub(crate) const fn static_tls_block(&self) -> StaticTlsBlock {
        self.static_tls_block
    }
}

/// The initial values of a block, which the image has.
fn values<'i>(block: &TlsBlock, image: &'i [u8]) -> &'i [u8] {
    let start = usize::try_from(block.offset).ok();
    let size = usize::try_from(block.file_size).ok();
    let values = start.zip(size).and_then(|(start, size)| image.get(start..)?.get(..size));
    values.unwrap_or_default()
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
        // who has no room has nobody to ask for addresses either: that is not what is wrong
        (Error::Undefined(undefined), Error::ThreadLocal { size, cause, .. })
            if undefined.name == GET_ADDRESS =>
        {
            Error::ThreadLocal { size: *size, cause: cause.clone(), text: Box::default() }
        }
        (error, _) => error,
    }
}

/// What code calls for variables that may be anywhere.
const GET_ADDRESS: &str = "__tls_get_addr";

/// Whether a relocation wants a TP offset, and there is none.
fn asks_tp_offset(error: &elf_layout::Error) -> bool {
    let ErrorKind::Apply(error) = error.kind else { return false };
    use ApplyErrorKind::Unresolved;
    matches!(error.kind, Unresolved(Role::TpOffset | Role::Got(Slot::TpOffset)))
}

/// The variables of these objects that later loads may use.
pub(crate) fn exports(
    layout: &Layout<'_, '_, Host>,
    objects: &[usize],
    threads: &Threads,
) -> Vec<(Box<[u8]>, External)> {
    let (mut variables, own) = (Vec::new(), threads.static_tls_block());
    for &object in objects {
        let file = layout.files().get(object);
        let Some(table) = file.and_then(|file| file.symbol_table().ok()?) else { continue };
        for (index, symbol) in (0u32..).zip(table.symbols()).skip(table.first_global()) {
            let is_visible = matches!(symbol.visibility(), STV_DEFAULT | STV_PROTECTED);
            if symbol.r#type() != STT_TLS || symbol.binding() == STB_LOCAL || !is_visible {
                continue;
            }
            let (Some(offset), Ok(name)) = (layout.variable(object, index), table.name_of(&symbol))
            else {
                continue;
            };
            let tp_offset = own.tp_offset.map(|start| start.wrapping_add_unsigned(offset));
            let in_module = threads.start.wrapping_add(offset);
            let variable = External::thread_local(own.module, in_module, tp_offset);
            variables.push((name.as_bytes().into(), variable));
        }
    }
    variables
}
