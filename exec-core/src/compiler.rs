//! Compilers: source to image, with a cache in between.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error as StdError;
use core::fmt;
use core::time::Duration;

use crate::cache::{Cache, CacheMode, Lookup};
use crate::error::{CacheError, Cause};
use crate::key::{Identity, Key};

/// An image, and where it is from.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The image.
    pub image: Vec<u8>,
    /// Where it is from.
    pub origin: Origin,
    /// What is wrong with the cache, if anything. The image is good nevertheless.
    pub note: Option<CacheWarning>,
}

/// Where an image is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The cache.
    Cache,
    /// The compiler, just now.
    Compiler,
}

/// What is wrong with a cache that was not needed after all.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CacheWarning {
    /// Its entry was damaged, and was compiled anew.
    Damaged,
    /// Its entry could not be read.
    NotRead(CacheError),
    /// The image could not be kept.
    NotKept(CacheError),
}

/// Makes images of sources.
pub trait Compiler: Send + Sync {
    /// What images depend on beside the source.
    fn identity(&self) -> Identity<'_>;

    /// The key of [`identity`](Self::identity), for those who have it ready.
    fn key(&self) -> Key {
        Key::of_identity(&self.identity())
    }

    /// The source with everything that it includes from elsewhere, which an image depends on, too.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    fn expand<'s>(&self, source: &'s str) -> Result<Cow<'s, str>, CompileError> {
        Ok(Cow::Borrowed(source))
    }

    /// Compiles.
    ///
    /// # Errors
    /// What went wrong, with the compiler's messages.
    fn compile(&self, source: &str) -> Result<Vec<u8>, CompileError>;

    /// The instructions of an image that this compiler made, as text; of one function, if it is named.
    ///
    /// # Errors
    /// [`CompileError::Unsupported`] if this compiler cannot, or what went wrong.
    fn disassemble(&self, _image: &[u8], _function: Option<&str>) -> Result<String, CompileError> {
        Err(CompileError::Unsupported { what: "disassembly" })
    }

    /// Takes the image out of the cache, or compiles and keeps it there.
    ///
    /// # Errors
    /// As [`compile`](Self::compile); [`CompileError::Required`] if the cache must have it and has not.
    fn compile_cached(&self, source: &str, cache: &dyn Cache) -> Result<Compiled, CompileError> {
        let mode = cache.mode();
        if mode == CacheMode::Off {
            return Ok(Compiled {
                image: self.compile(source)?,
                origin: Origin::Compiler,
                note: None,
            });
        }
        let source = &*self.expand(source)?;
        let key = self.key().with(source);
        let note = match cache.get(&key) {
            Ok(Lookup::Hit(image)) => {
                return Ok(Compiled { image, origin: Origin::Cache, note: None });
            }
            Ok(Lookup::Miss) => None,
            Ok(Lookup::Damaged) => Some(CacheWarning::Damaged),
            Err(error) => Some(CacheWarning::NotRead(error)),
        };
        if mode == CacheMode::Required {
            return Err(CompileError::Required { key, note });
        }
        let image = self.compile(source)?;
        let kept = if mode == CacheMode::ReadWrite { cache.put(&key, &image) } else { Ok(()) };
        let note = note.or(kept.err().map(CacheWarning::NotKept));
        Ok(Compiled { image, origin: Origin::Compiler, note })
    }
}

/// Why a source was not compiled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CompileError {
    /// There is no such compiler.
    NotFound {
        /// What was looked for.
        name: String,
    },
    /// The compiler could not be started or spoken to.
    Start {
        /// The compiler.
        name: String,
        /// What the system says.
        cause: Cause,
    },
    /// The compiler does not want the source.
    Rejected {
        /// The compiler.
        name: String,
        /// What it says.
        messages: String,
    },
    /// The compiler took too long and was stopped.
    TimedOut {
        /// The compiler.
        name: String,
        /// How long it may take.
        limit: Duration,
    },
    /// The compiler was killed by a signal.
    Died {
        /// The compiler.
        name: String,
        /// The signal's number.
        signal: i32,
        /// What it said before.
        messages: String,
    },
    /// The compiler was content, but what it gave is no image.
    NoImage {
        /// The compiler.
        name: String,
        /// Bytes that it gave.
        size: usize,
        /// What is wrong with them.
        cause: Cause,
    },
    /// The compiler gave more than an image may be.
    TooLarge {
        /// The compiler.
        name: String,
        /// Bytes an image may have.
        limit: u64,
    },
    /// This cannot be done.
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// The cache must have the image and has not.
    Required {
        /// The image's key.
        key: Key,
        /// What is wrong with the cache, if anything.
        note: Option<CacheWarning>,
    },
}

impl fmt::Display for CacheWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => write!(f, "the entry in the cache was damaged"),
            Self::NotRead(error) => error.fmt(f),
            Self::NotKept(error) => write!(f, "not kept: {error}"),
        }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { name } => write!(f, "no compiler {name}"),
            Self::Start { name, cause } => write!(f, "cannot run {name}: {cause}"),
            Self::Rejected { name, messages } => write!(f, "{name}: {}", messages.trim_end()),
            Self::TimedOut { name, limit } => write!(f, "{name}: not done after {limit:?}"),
            Self::Died { name, signal, messages } => {
                write!(f, "{name}: killed by signal {signal}")?;
                if messages.is_empty() { Ok(()) } else { write!(f, ": {}", messages.trim_end()) }
            }
            Self::NoImage { name, size, cause } => {
                write!(f, "{name}: gave {size} bytes that are no image: {cause}")
            }
            Self::TooLarge { name, limit } => write!(f, "{name}: gave more than {limit} bytes"),
            Self::Unsupported { what } => write!(f, "no {what}"),
            Self::Required { key, note } => {
                write!(f, "the cache has no image {key}")?;
                note.as_ref().map_or(Ok(()), |note| write!(f, ": {note}"))
            }
        }
    }
}

impl StdError for CompileError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Start { cause, .. } | Self::NoImage { cause, .. } => Some(cause),
            Self::Required { note: Some(CacheWarning::NotRead(error)), .. } => Some(error),
            _ => None,
        }
    }
}
