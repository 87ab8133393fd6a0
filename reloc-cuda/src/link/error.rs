//! Why objects were not linked, and where.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use elf_core::ApplyError;

/// The largest alignment of a section or a variable.
const MOST_ALIGNMENT: u64 = 0x1_0000;

/// Why objects were not linked: everything that was found wrong until linking could not go on, at least one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkErrors(pub Vec<LinkError>);

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    /// Index of the object at fault.
    pub object: usize,
    /// What is wrong.
    pub kind: LinkErrorKind,
}

/// What is wrong. Names are those of symbols and sections, mangled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkErrorKind {
    /// There is nothing to link.
    Nothing,
    /// The object is damaged, or no cubin.
    Cubin(nvinfo::Error),
    /// The object is linked already.
    NotRelocatable,
    /// The object has 32-bit addresses, or does not say for which architecture it is.
    Form,
    /// The toolkit that made the object is too old for its architecture, or the architecture for the form of linked files.
    Toolkit {
        /// The architecture.
        sm: u32,
        /// The toolkit: ten times the major number and the minor number.
        toolkit: u32,
    },
    /// The object is for an architecture whose code does not run on the one that is linked for.
    Architecture {
        /// Its architecture.
        found: u32,
        /// The one that is linked for.
        expected: u32,
    },
    /// The object has a section that is not linked: tables of unified functions, addresses in bank 4.
    Section(String),
    /// An alignment is no power of two, or larger than any that is known.
    Alignment {
        /// The section, or the symbol.
        name: String,
        /// The alignment.
        alignment: u64,
    },
    /// Two objects define the symbol.
    Duplicate {
        /// The symbol.
        symbol: String,
        /// The object that defined it first.
        first: usize,
    },
    /// Objects disagree about the size of a variable.
    Size {
        /// The symbol.
        symbol: String,
        /// The object that named it first.
        first: usize,
    },
    /// Objects disagree about the memory that a variable is in.
    Space {
        /// The symbol.
        symbol: String,
        /// The object that named it first.
        first: usize,
    },
    /// Objects disagree about parameters or result of a function.
    Prototype {
        /// The symbol.
        symbol: String,
        /// The object that named it first.
        first: usize,
    },
    /// A variable is managed in one object and not in another.
    Managed {
        /// The symbol.
        symbol: String,
        /// The object that named it first.
        first: usize,
    },
    /// A function is a kernel in one object and not in another.
    Entry {
        /// The symbol.
        symbol: String,
        /// The object that named it first.
        first: usize,
    },
    /// A common variable is larger than the definition of another object.
    Common {
        /// The symbol.
        symbol: String,
        /// The object that has the other one.
        first: usize,
    },
    /// Two weak kernels of one name have parameters of different size.
    Parameters(String),
    /// Nobody defines the symbol, and a relocation asks for it.
    Undefined(String),
    /// A kernel that may use so many registers calls a function that needs more.
    Registers {
        /// The kernel.
        kernel: String,
        /// Registers that it may use.
        most: u32,
        /// The function that it reaches.
        function: String,
        /// Registers that this needs.
        needs: u32,
    },
    /// A kernel uses tensor memory of one block and of two blocks at once.
    TensorGroups(String),
    /// The function uses tensor memory as toolkit 12 has it, another one as toolkit 13 does, or the other way round.
    TensorMemory(String),
    /// A kernel uses more shared memory than it may.
    SharedTooLarge {
        /// The kernel.
        kernel: String,
        /// Bytes it uses.
        size: u64,
        /// Bytes it may use.
        limit: u64,
    },
    /// The constants of all objects are more than fit a bank.
    ConstantsTooLarge {
        /// Bytes there are.
        size: u64,
        /// Bytes that fit.
        limit: u64,
    },
    /// A relocation cannot be applied.
    Apply {
        /// The section.
        section: String,
        /// Why.
        error: ApplyError,
    },
    /// A relocation is of a form that is not linked.
    Relocation {
        /// The section.
        section: String,
        /// Offset in the section.
        offset: u64,
        /// `r_type`.
        r#type: u32,
    },
}

impl LinkError {
    /// Refuses alignments that no tool writes: they would ask for absurd amounts of padding.
    pub(super) fn check_alignment(
        object: usize,
        name: elf_core::Name<'_>,
        alignment: u64,
    ) -> Result<(), Self> {
        if alignment == 0 || alignment.is_power_of_two() && alignment <= MOST_ALIGNMENT {
            return Ok(());
        }
        let name = name.to_string();
        Err(Self::new(object, LinkErrorKind::Alignment { name, alignment }))
    }

    pub(super) const fn new(object: usize, kind: LinkErrorKind) -> Self {
        Self { object, kind }
    }

    /// A damaged object.
    pub(super) fn damaged<E: Into<nvinfo::Error>>(object: usize) -> impl Fn(E) -> Self {
        move |error| Self { object, kind: LinkErrorKind::Cubin(error.into()) }
    }
}

impl LinkErrorKind {
    /// The symbol that another object has otherwise, and that object's index.
    #[must_use]
    pub fn conflict(&self) -> Option<(&str, usize)> {
        match self {
            Self::Duplicate { symbol, first }
            | Self::Size { symbol, first }
            | Self::Space { symbol, first }
            | Self::Prototype { symbol, first }
            | Self::Managed { symbol, first }
            | Self::Entry { symbol, first }
            | Self::Common { symbol, first } => Some((symbol, *first)),
            _ => None,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, name: impl Fn(usize) -> String) -> fmt::Result {
        match self {
            Self::Nothing => write!(f, "no objects"),
            Self::Cubin(error) => write!(f, "{error}"),
            Self::NotRelocatable => write!(f, "is linked already"),
            Self::Form => write!(f, "has 32-bit addresses or no architecture: not linked"),
            Self::Toolkit { sm, toolkit } => {
                let (major, minor) = (toolkit / 10, toolkit % 10);
                write!(
                    f,
                    "is for sm_{sm} by toolkit {major}.{minor}: sm_75 and later are linked, "
                )?;
                write!(f, "from sm_90 on of toolkit 12.0 and later")
            }
            Self::Architecture { found, expected } => {
                write!(f, "is for sm_{found}, which does not run on sm_{expected}")
            }
            Self::Section(name) => write!(f, "section {name} is not linked"),
            Self::Alignment { name, alignment } => {
                write!(f, "alignment {alignment:#x} of {name} is not linked")
            }
            Self::Duplicate { symbol, first } => {
                write!(f, "symbol {symbol} is defined in {} already", name(*first))
            }
            Self::Size { symbol, first } => {
                write!(f, "symbol {symbol} has another size in {}", name(*first))
            }
            Self::Space { symbol, first } => {
                write!(f, "symbol {symbol} is in another memory in {}", name(*first))
            }
            Self::Prototype { symbol, first } => {
                write!(f, "symbol {symbol} has another prototype in {}", name(*first))
            }
            Self::Managed { symbol, first } => {
                write!(f, "symbol {symbol} is managed in one of this and {} only", name(*first))
            }
            Self::Entry { symbol, first } => {
                write!(f, "symbol {symbol} is a kernel in one of this and {} only", name(*first))
            }
            Self::Common { symbol, first } => {
                write!(f, "common symbol {symbol} is larger than its definition: {}", name(*first))
            }
            Self::Parameters(symbol) => {
                write!(f, "weak kernel {symbol} has parameters of another size elsewhere")
            }
            Self::Registers { kernel, most, function, needs } => {
                write!(
                    f,
                    "kernel {kernel} of at most {most} registers calls {function} that needs {needs}"
                )
            }
            Self::TensorGroups(kernel) => {
                write!(f, "kernel {kernel} uses tensor memory of one block and of two")
            }
            Self::TensorMemory(symbol) => {
                write!(
                    f,
                    "function {symbol} uses tensor memory of toolkit 12, another of toolkit 13, or \
                     the reverse: compile both with one"
                )
            }
            Self::Undefined(symbol) => write!(f, "symbol {symbol} is undefined"),
            Self::SharedTooLarge { kernel, size, limit } => {
                write!(
                    f,
                    "kernel {kernel} uses {size:#x} bytes of shared memory: at most {limit:#x}"
                )
            }
            Self::ConstantsTooLarge { size, limit } => {
                write!(f, "{size:#x} bytes of constants: at most {limit:#x}")
            }
            Self::Apply { section, error } => write!(f, "section {section}: {error}"),
            Self::Relocation { section, offset, r#type } => {
                write!(
                    f,
                    "section {section}: relocation type {type} at offset {offset:#x} is not linked"
                )
            }
        }
    }
}

impl fmt::Display for LinkErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, by_index)
    }
}

impl LinkError {
    /// The error with the name that `name` has for an object in place of "object 0".
    pub fn with_names<'a>(&'a self, name: impl Fn(usize) -> String + 'a) -> impl fmt::Display + 'a {
        Named { error: self, name }
    }
}

/// An error with names of objects.
struct Named<'a, F> {
    error: &'a LinkError,
    name: F,
}

impl<F: Fn(usize) -> String> fmt::Display for Named<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", (self.name)(self.error.object))?;
        self.error.kind.write(f, &self.name)
    }
}

fn by_index(object: usize) -> String {
    format!("object {object}")
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_names(by_index).fmt(f)
    }
}

impl core::error::Error for LinkError {}

impl fmt::Display for LinkErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let line = if index == 0 { "" } else { "\n" };
            write!(f, "{line}{error}")?;
        }
        Ok(())
    }
}

impl core::error::Error for LinkErrors {}

impl From<LinkError> for LinkErrors {
    fn from(error: LinkError) -> Self {
        Self(Vec::from([error]))
    }
}

impl LinkErrors {
    /// Nothing, if there are no errors.
    pub(super) fn none_of(errors: Vec<LinkError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }
}
