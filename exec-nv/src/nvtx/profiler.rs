//! Who is told of ranges, by which functions.

use core::ffi::{CStr, c_char, c_int};

/// Who is told of ranges.
pub(in crate::nvtx) struct Profiler {
    pub(in crate::nvtx) push: Push,
    pub(in crate::nvtx) pop: Pop,
    pub(in crate::nvtx) mark: Option<Mark>,
}

/// `nvtxRangePushA`.
pub(in crate::nvtx) type PlainPush = unsafe extern "C" fn(*const c_char) -> c_int;
/// `nvtxDomainRangePushEx`.
pub(in crate::nvtx) type DomainPush =
    unsafe extern "C" fn(*const (), *const EventAttributes) -> c_int;
/// `nvtxRangePop`.
pub(in crate::nvtx) type PlainPop = unsafe extern "C" fn() -> c_int;
/// `nvtxDomainRangePop`.
pub(in crate::nvtx) type DomainPop = unsafe extern "C" fn(*const ()) -> c_int;

/// How a range begins: tools may know domains only.
#[derive(Clone, Copy)]
pub(in crate::nvtx) enum Push {
    Plain(PlainPush),
    Domain(DomainPush),
}

/// How a range ends.
#[derive(Clone, Copy)]
pub(in crate::nvtx) enum Pop {
    Plain(PlainPop),
    Domain(DomainPop),
}

/// `nvtxMarkA`.
pub(in crate::nvtx) type Mark = unsafe extern "C" fn(*const c_char);

/// `nvtxEventAttributes_t` of version 3.
#[repr(C)]
pub(in crate::nvtx) struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

impl EventAttributes {
    /// A name and nothing else.
    pub(in crate::nvtx) const fn of(name: &CStr) -> Self {
        Self {
            version: 3,
            size: size_of::<Self>() as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            // `NVTX_MESSAGE_TYPE_ASCII`
            message_type: 1,
            message: name.as_ptr(),
        }
    }
}
