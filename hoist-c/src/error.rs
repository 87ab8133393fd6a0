//! What goes wrong, with what is known of it.

use core::any::Any;
use core::fmt::Display;
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
    /// There is no row of this number. Fields: `value`, the number; `maximum`, the last there is, if there is one.
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
    /// There is no such GPU: no driver, one that is too old, no GPU, or not so many.
    NoDevice = 21,
    /// A GPU or its driver says no, or a kernel has failed. Fields, of a function of the driver: `symbol`, its name; `value`, what it
    /// returned.
    Device = 22,
    /// The kernel or the GPU cannot be launched so. Nothing was launched. Fields, of a number: `value`, `minimum`, `maximum`.
    Launch = 23,
}

/// What was found wrong. Free it with `hoist_error_free`.
#[derive(Debug, Default)]
pub struct Error(pub(crate) Box<Details>);

/// What is known of an error.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) status: Status,
    pub(crate) message: CString,
    pub(crate) file: Option<CString>,
    pub(crate) section: Option<CString>,
    pub(crate) symbol: Option<CString>,
    pub(crate) relocation: Option<CString>,
    pub(crate) numbers: Known,
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

/// Bytes up to the first NUL, and one behind.
pub(crate) fn c_string(bytes: impl Into<Vec<u8>>) -> CString {
    let mut bytes = bytes.into();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

impl Error {
    pub(crate) fn new(status: Status, message: impl Display) -> Self {
        let message = c_string(message.to_string());
        Self(Box::new(Details { status, message, ..Details::default() }))
    }

    pub(crate) fn argument(message: impl Display) -> Self {
        Self::new(Status::InvalidArgument, message)
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::argument(format_args!("{what} is NULL"))
    }

    pub(crate) fn out_of_range(what: &str, index: usize, count: usize) -> Self {
        let message = format_args!("there is no {what} {index}: there are {count}");
        let limits = count.checked_sub(1).map(|last| (0, last as i128));
        let numbers = Known { value: Some(index as u64), limits, ..Known::default() };
        Self::new(Status::OutOfRange, message).with(numbers)
    }

    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        let name_or_quotes = if name.is_empty() { "\"\"" } else { name };
        let mut told =
            Self::new(Status::NotFound, format_args!("there is no {what} {name_or_quotes}"));
        // an empty name is the one that was asked for
        told.0.symbol = Some(c_string(name));
        told
    }

    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        Self::new(Status::Internal, format_args!("a fault of this library: {text}"))
    }

    pub(crate) fn status(&self) -> Status {
        self.0.status
    }

    pub(crate) fn file(mut self, file: impl Into<Vec<u8>>) -> Self {
        self.0.file = Some(c_string(file));
        self
    }

    /// The same error, of this file: the words begin with it, unless it is there already.
    pub(crate) fn of_file(self, file: &str) -> Self {
        if self.0.file.is_some() {
            return self;
        }
        self.before(file).file(file)
    }

    /// The same error, with words before its own.
    pub(crate) fn before(self, words: &str) -> Self {
        let message = format!("{words}: {}", self.0.message.to_string_lossy());
        self.in_words(&message)
    }

    /// The same error in other words.
    pub(crate) fn in_words(mut self, message: &str) -> Self {
        self.0.message = c_string(message);
        self
    }

    pub(crate) fn section(mut self, section: impl Into<Vec<u8>>) -> Self {
        self.0.section = Some(c_string(section)).filter(|name| !name.is_empty());
        self
    }

    pub(crate) fn symbol(mut self, symbol: impl Into<Vec<u8>>) -> Self {
        self.0.symbol = Some(c_string(symbol)).filter(|name| !name.is_empty());
        self
    }

    pub(crate) fn relocation(mut self, relocation: impl Into<Vec<u8>>) -> Self {
        self.0.relocation = Some(c_string(relocation));
        self
    }

    pub(crate) fn with(mut self, numbers: Known) -> Self {
        self.0.numbers = numbers;
        self
    }
}
