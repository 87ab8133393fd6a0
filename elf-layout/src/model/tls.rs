//! Thread-local variables: their block, where every thread has its copy of it, and what relocations make of both.

use crate::model::external::Variable;
use crate::model::features::THREAD_LOCAL;
use crate::model::options::ThreadLocal;
use crate::model::scan_result::ScanResult;
use crate::model::spans::{Group, Spans};
use crate::model::storage::{SymbolSlot, SymbolState};
use elf_core::{Arch, Kind, Role, Slot, Special, Stub};

/// The initial values of the thread-local variables: what a program header of type `PT_TLS` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsBlock {
    /// Bytes from the start of the image.
    pub offset: u64,
    /// Bytes that the image has; zeros follow in every thread's copy.
    pub file_size: u64,
    /// Size of a thread's copy in bytes.
    pub size: u64,
    /// Alignment of a thread's copy in bytes.
    pub alignment: u64,
}

/// Where every thread has its copy of the block, as whoever makes threads knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StaticTlsBlock {
    /// The number by which `__tls_get_addr` knows the block.
    pub module: u64,
    /// TP offset of the block: bytes from the thread pointer to it, if that is the same in every thread. Without it initial exec and local exec code is
    /// refused.
    pub tp_offset: Option<i64>,
    /// Address of the function of a TLS descriptor whose argument is the variable's TP offset.
    pub descriptor: Option<u64>,
    /// Address of the function of a TLS descriptor whose argument is the address of two words as `__tls_get_addr` takes them.
    pub dynamic_descriptor: Option<u64>,
}

/// What a relocation of this role wants to have to do with threads.
const fn is_tls(role: Role) -> bool {
    matches!(
        role,
        Role::TpOffset
            | Role::DtpOffset
            | Role::TlsDescCall
            | Role::Got(Slot::TpOffset | Slot::TlsGd | Slot::TlsLd | Slot::TlsDesc)
    )
}

/// Whether relocations of this kind are for thread-local variables.
pub(crate) const fn concerns(kind: &Kind) -> bool {
    is_tls(kind.value.of) || is_tls(kind.value.minus)
}

/// Code that calls functions of TLS descriptors, if calls go there.
pub(crate) fn call<A: Arch>(found: &ScanResult) -> Option<Stub> {
    A::TLS?.call.filter(|_| THREAD_LOCAL && found.tls_call)
}

/// Whether the argument of a TLS descriptor is before its function.
pub(crate) const fn has_argument_first(kinds: &[Kind]) -> bool {
    let mut rest = kinds;
    while let [kind, tail @ ..] = rest {
        if matches!(kind.special, Special::Descriptor { argument_first: true }) {
            return true;
        }
        rest = tail;
    }
    false
}

/// Whether code is rewritten where the ABI has a way.
pub(crate) const fn rewrites(access: ThreadLocal) -> bool {
    cfg!(feature = "relax") && matches!(access, ThreadLocal::LocalExec)
}

/// Whether the symbol is a variable of every thread's own.
pub(crate) const fn is_variable(slot: &SymbolSlot) -> bool {
    THREAD_LOCAL
        && matches!(slot.state, SymbolState::ThreadLocal | SymbolState::ExternalThreadLocal)
}

/// Whether code that reaches this symbol becomes local exec.
pub(crate) fn is_local_exec(slot: &SymbolSlot, access: ThreadLocal) -> bool {
    THREAD_LOCAL
        && rewrites(access)
        && match slot.state {
            SymbolState::ThreadLocal | SymbolState::TlsBase | SymbolState::UndefinedWeak => true,
            SymbolState::ExternalThreadLocal => Variable::unpack(slot.value).tp_offset.is_some(),
            _ => false,
        }
}

/// A variable's offset in the block, by the slot of its definition.
pub(crate) fn block_offset(spans: &Spans, slot: &SymbolSlot) -> Option<u64> {
    if !matches!(slot.group, Group::TlsData | Group::TlsZero) {
        return None;
    }
    let start = spans.group(Group::TlsData).offset;
    let group = spans.group(slot.group).offset;
    Some(group.wrapping_sub(start).wrapping_add(slot.value))
}

/// TP offset of the block of an executable in bytes.
pub(crate) fn executable_block<A: Arch>(spans: &Spans) -> Option<i64> {
    let block = block(spans);
    A::TLS?.variant.executable_block(block.size, block.alignment)
}

/// The block that the sections make.
pub(crate) fn block(spans: &Spans) -> TlsBlock {
    let (data, zero) = (spans.group(Group::TlsData), spans.group(Group::TlsZero));
    let size = if zero.size == 0 {
        data.size
    } else {
        zero.offset.wrapping_sub(data.offset).saturating_add(zero.size)
    };
    TlsBlock {
        offset: data.offset,
        file_size: data.size,
        size,
        alignment: data.alignment.max(zero.alignment),
    }
}
