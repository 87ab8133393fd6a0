//! Errors: what C sees of them.

use crate::border::infallible;
use crate::error::{Error, Known, Status};
use core::ffi::{c_char, c_int};
use core::mem::MaybeUninit;
use std::ffi::CString;

/// `hoist_error_info.fields`: `object` is known.
pub const HOIST_ERROR_HAS_OBJECT: u32 = 1;
/// `hoist_error_info.fields`: `section_index` is known.
pub const HOIST_ERROR_HAS_SECTION_INDEX: u32 = 2;
/// `hoist_error_info.fields`: `offset` is known.
pub const HOIST_ERROR_HAS_OFFSET: u32 = 4;
/// `hoist_error_info.fields`: `relocation_type` is known.
pub const HOIST_ERROR_HAS_RELOCATION_TYPE: u32 = 8;
/// `hoist_error_info.fields`: `symbol_index` is known.
pub const HOIST_ERROR_HAS_SYMBOL_INDEX: u32 = 16;
/// `hoist_error_info.fields`: `value` is known.
pub const HOIST_ERROR_HAS_VALUE: u32 = 32;
/// `hoist_error_info.fields`: `minimum` and `maximum` are known.
pub const HOIST_ERROR_HAS_LIMITS: u32 = 64;
/// `hoist_error_info.fields`: `os_error` is known.
pub const HOIST_ERROR_HAS_OS_ERROR: u32 = 128;

/// All that is known of an error. Pointers are good until the error is freed, and NULL where nothing is known; numbers are known where
/// `fields` says so, and 0 elsewhere.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ErrorInfo {
    /// What kind of error it is.
    pub kind: Status,
    /// `HOIST_ERROR_HAS_...`, added up.
    pub fields: u32,
    /// One line for people. Never NULL.
    pub message: *const c_char,
    /// The file or object, as it was called when it was given; what of a path is not UTF-8 is U+FFFD.
    pub file: *const c_char,
    /// The name of the section.
    pub section: *const c_char,
    /// The name of the symbol.
    pub symbol: *const c_char,
    /// The name of the relocation's type (`R_X86_64_PC32`).
    pub relocation: *const c_char,
    /// The object, by its number in the load or link.
    pub object: usize,
    /// The section's index in the object.
    pub section_index: u32,
    /// The relocation's type, as the file has it.
    pub relocation_type: u32,
    /// The symbol's index in the object.
    pub symbol_index: u32,
    /// `errno`.
    pub os_error: c_int,
    /// Where: with a section, bytes from its start; else bytes from the start of the file.
    pub offset: u64,
    /// The value that did not fit. Signed values are modulo 2^64.
    pub value: u64,
    /// The least that would have fitted.
    pub minimum: i64,
    /// The most that would have fitted.
    pub maximum: u64,
}

impl ErrorInfo {
    fn of(error: &Error) -> Self {
        let text =
            |text: &Option<CString>| text.as_ref().map_or(core::ptr::null(), |text| text.as_ptr());
        let Known { object, section, offset, relocation, symbol, value, limits, os_error } =
            error.0.numbers;
        let (minimum, maximum) = limits.unwrap_or_default();
        let known = [
            (object.is_some(), HOIST_ERROR_HAS_OBJECT),
            (section.is_some(), HOIST_ERROR_HAS_SECTION_INDEX),
            (offset.is_some(), HOIST_ERROR_HAS_OFFSET),
            (relocation.is_some(), HOIST_ERROR_HAS_RELOCATION_TYPE),
            (symbol.is_some(), HOIST_ERROR_HAS_SYMBOL_INDEX),
            (value.is_some(), HOIST_ERROR_HAS_VALUE),
            (limits.is_some(), HOIST_ERROR_HAS_LIMITS),
            (os_error.is_some(), HOIST_ERROR_HAS_OS_ERROR),
        ];
        Self {
            kind: error.status(),
            fields: known.iter().filter(|(is_known, _)| *is_known).map(|(_, bit)| bit).sum(),
            message: error.0.message.as_ptr(),
            file: text(&error.0.file),
            section: text(&error.0.section),
            symbol: text(&error.0.symbol),
            relocation: text(&error.0.relocation),
            object: object.unwrap_or_default(),
            section_index: section.unwrap_or_default(),
            relocation_type: relocation.unwrap_or_default(),
            symbol_index: symbol.unwrap_or_default(),
            os_error: os_error.unwrap_or_default(),
            offset: offset.unwrap_or_default(),
            value: value.unwrap_or_default(),
            // clamped to what the fields hold
            minimum: i64::try_from(minimum).unwrap_or(if minimum < 0 {
                i64::MIN
            } else {
                i64::MAX
            }),
            maximum: u64::try_from(maximum).unwrap_or(if maximum < 0 { 0 } else { u64::MAX }),
        }
    }
}

/// The kind of an error; `HOIST_STATUS_OK` for NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_error_kind(error: Option<&Error>) -> Status {
    error.map_or(Status::Ok, Error::status)
}

/// One line for people: what is wrong, where, and why. Never NULL: of no error (NULL) it is empty. Good until the error is freed.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_error_message(error: Option<&Error>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.0.message.as_ptr())
}

/// All that is known of an error, written to `info`: `false`, and nothing is written, if one of them is NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_error_get_info(
    error: Option<&Error>,
    info: Option<&mut MaybeUninit<ErrorInfo>>,
) -> bool {
    let Some((error, place)) = error.zip(info) else { return false };
    place.write(ErrorInfo::of(error));
    true
}

/// Frees an error; NULL is none.
///
/// Threads: nobody uses the error any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_error_free(error: Option<Box<Error>>) {
    infallible((), || drop(error));
}

/// The name of a status (`"undefined symbol"`). Never NULL; it is never freed.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_status_name(status: u32) -> *const c_char {
    const NAMES: &[&core::ffi::CStr] = &[
        c"ok",
        c"invalid argument",
        c"out of range",
        c"busy",
        c"internal",
        c"file",
        c"bad file",
        c"unsupported",
        c"undefined symbol",
        c"relocation",
        c"layout",
        c"memory",
        c"too large",
        c"not found",
        c"not a function",
        c"not initialized",
        c"not replaceable",
        c"thread-local variables",
        c"library",
        c"no fit",
        c"other",
        c"no device",
        c"device",
        c"launch",
    ];
    NAMES.get(status as usize).map_or(c"unknown".as_ptr(), |name| name.as_ptr())
}
