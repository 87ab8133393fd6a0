//! Errors: what C sees of them.

use crate::border::infallible;
use core::any::Any;
use core::ffi::{c_char, c_int};
use core::fmt::Display;
use core::mem::MaybeUninit;
use std::ffi::CString;

/// What a function says: `HOIST_STATUS_OK`, or the kind of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// It did what it was to do.
    #[default]
    Ok = 0,
    /// An argument is NULL, has a wrong length, or is no value of its kind. Nothing was done.
    InvalidArgument = 1,
    /// There is no row of this number. Fields: `value`, the number; `maximum`, the last there is.
    OutOfRange = 2,
    /// Another call is using a handle that is for one call at a time.
    Busy = 3,
    /// A fault of this library. The handles that were used can be freed.
    Internal = 4,
    /// A file could not be read. Fields: `file`, `os_error`.
    File = 5,
    /// A file, or a part of it, is damaged or not what it should be. Fields: `file`, `offset`.
    BadFile = 6,
    /// The file is in order, and says something that is not supported.
    Unsupported = 7,
    /// Nobody defines a symbol that is referred to. Fields: `symbol`, `file`, `section`, `relocation`, `offset`.
    UndefinedSymbol = 8,
    /// A relocation could not be applied. Fields: `file`, `section`, `relocation`, `offset`, `symbol`, and for values out of reach
    /// `value`, `minimum`, `maximum`.
    Relocation = 9,
    /// Objects do not go together, or cannot be laid out.
    Layout = 10,
    /// The system gave no memory, or not the permissions.
    Memory = 11,
    /// Something is larger than its limit. Fields: `value`, `maximum`.
    TooLarge = 12,
    /// There is no symbol, section, kernel ... of this name. Field: `symbol`.
    NotFound = 13,
    /// The symbol is not a function. Field: `symbol`.
    NotFunction = 14,
    /// Constructors were not run yet: `hoist_module_initialize`.
    NotInitialized = 15,
    /// The module was not loaded as replaceable, or has no such function. Field: `symbol`.
    NotReplaceable = 16,
    /// There is no room for thread-local variables.
    ThreadLocal = 17,
    /// A library of the system could not be opened, or one that a library needs.
    Library = 18,
    /// No image fits the device.
    NoFit = 19,
    /// Anything else.
    Other = 20,
}

/// What was found wrong. Free it with `hoist_error_free`.
#[derive(Debug, Default)]
pub struct Error {
    status: Status,
    message: CString,
    file: Option<CString>,
    section: Option<CString>,
    symbol: Option<CString>,
    relocation: Option<CString>,
    numbers: Known,
}

/// The numbers that are known of an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) object: Option<usize>,
    pub(crate) section: Option<u32>,
    pub(crate) offset: Option<u64>,
    pub(crate) relocation: Option<u32>,
    pub(crate) symbol: Option<u32>,
    pub(crate) value: Option<u64>,
    pub(crate) limits: Option<(i128, i128)>,
    pub(crate) os_error: Option<i32>,
}

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
    /// The file or object, as it was called when it was given.
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

/// Bytes up to the first NUL, and one behind.
pub(crate) fn c_string(bytes: impl Into<Vec<u8>>) -> CString {
    let mut bytes = bytes.into();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

impl Error {
    pub(crate) fn new(status: Status, message: impl Display) -> Self {
        Self { status, message: c_string(message.to_string()), ..Self::default() }
    }

    pub(crate) fn argument(message: impl Display) -> Self {
        Self::new(Status::InvalidArgument, message)
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::argument(format_args!("{what} is NULL"))
    }

    pub(crate) fn out_of_range(what: &str, index: usize, count: usize) -> Self {
        let message = format_args!("there is no {what} {index}: there are {count}");
        let last = count.saturating_sub(1) as i128;
        let numbers =
            Known { value: Some(index as u64), limits: Some((0, last)), ..Known::default() };
        Self::new(Status::OutOfRange, message).with(numbers)
    }

    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        Self::new(Status::NotFound, format_args!("there is no {what} {name}")).symbol(name)
    }

    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        Self::new(Status::Internal, format_args!("a fault of this library: {text}"))
    }

    pub(crate) const fn status(&self) -> Status {
        self.status
    }

    pub(crate) fn file(mut self, file: impl Into<Vec<u8>>) -> Self {
        self.file = Some(c_string(file));
        self
    }

    /// The same error, of this file: the words begin with it, unless it is there already.
    pub(crate) fn of_file(self, file: &str) -> Self {
        if self.file.is_some() {
            return self;
        }
        let message = format!("{file}: {}", self.message.to_string_lossy());
        Self { message: c_string(message), ..self }.file(file)
    }

    /// The same error in other words.
    pub(crate) fn in_words(self, message: &str) -> Self {
        Self { message: c_string(message), ..self }
    }

    pub(crate) fn section(mut self, section: impl Into<Vec<u8>>) -> Self {
        self.section = Some(c_string(section)).filter(|name| !name.is_empty());
        self
    }

    pub(crate) fn symbol(mut self, symbol: impl Into<Vec<u8>>) -> Self {
        self.symbol = Some(c_string(symbol)).filter(|name| !name.is_empty());
        self
    }

    pub(crate) fn relocation(mut self, relocation: impl Into<Vec<u8>>) -> Self {
        self.relocation = Some(c_string(relocation));
        self
    }

    pub(crate) const fn with(mut self, numbers: Known) -> Self {
        self.numbers = numbers;
        self
    }

    fn info(&self) -> ErrorInfo {
        let text =
            |text: &Option<CString>| text.as_ref().map_or(core::ptr::null(), |text| text.as_ptr());
        let Known { object, section, offset, relocation, symbol, value, limits, os_error } =
            self.numbers;
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
        ErrorInfo {
            kind: self.status,
            fields: known.iter().filter(|(is_known, _)| *is_known).map(|(_, bit)| bit).sum(),
            message: self.message.as_ptr(),
            file: text(&self.file),
            section: text(&self.section),
            symbol: text(&self.symbol),
            relocation: text(&self.relocation),
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
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
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
    place.write(error.info());
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
    ];
    NAMES.get(status as usize).map_or(c"unknown".as_ptr(), |name| name.as_ptr())
}
