//! A compiler that is a program of this machine.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::borrow::Cow;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::string::String;
use std::sync::{Arc, OnceLock};

use elf_core::names::ET_REL;
use elf_core::{Arch as _, File};
use exec_core::{Cache, CacheMode, CompileError, Compiler, Identity, Key};

use super::family::Family;
use super::tool::{self, Failure, Output};
use super::{search, target, version};
use crate::Host;

/// A compiler of the family `F`.
#[derive(Clone, Debug)]
pub struct CompilerDriver<F> {
    path: PathBuf,
    /// What messages call it.
    name: String,
    version: String,
    target: String,
    options: Vec<String>,
    limit: Duration,
    /// Of everything above but the path and the limit.
    key: OnceLock<Key>,
    family: PhantomData<F>,
}

/// How long a compiler may take, unless it is told otherwise.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes that an image may have.
const SIZE: u64 = 1 << 28;

impl<F: Family> CompilerDriver<F> {
    /// The compiler on `PATH`: without a version in its name, else the newest.
    ///
    /// It is asked for its version, which takes longer than looking an image up. A compiler whose file is as it was when `cache`
    /// was told the version, is not asked again: path, size, time and number of the file are the same.
    ///
    /// # Errors
    /// [`CompileError::NotFound`]; what keeps it from saying its version.
    pub fn find(cache: &dyn Cache) -> Result<Self, CompileError> {
        let missing = || CompileError::NotFound { name: String::from(F::NAME) };
        Self::at(&search::find(F::NAME).ok_or_else(missing)?, cache)
    }

    /// The compiler at this path. It is asked for its version as by [`find`](Self::find).
    ///
    /// # Errors
    /// [`CompileError::Start`]; what keeps it from saying its version.
    pub fn at(path: &Path, cache: &dyn Cache) -> Result<Self, CompileError> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut driver = Self {
            path: path.to_owned(),
            name,
            version: String::new(),
            target: target::native(),
            options: F::OPTIONS.iter().copied().map(String::from).collect(),
            limit: LIMIT,
            key: OnceLock::new(),
            family: PhantomData,
        };
        let key = if F::IS_ITSELF { version::key(path, F::NAME) } else { None };
        if let Some(known) = key.as_ref().and_then(|key| version::known(cache, key)) {
            return Ok(Self { version: known, ..driver });
        }
        let said = driver.run(F::VERSION.iter().copied(), "")?;
        driver.version = String::from_utf8_lossy(&said.out).into_owned() + &said.messages;
        if let Some(key) = key.filter(|_| cache.mode() == CacheMode::ReadWrite) {
            // that it is not kept costs time, nothing else
            let _ = cache.put(&key, driver.version.as_bytes());
        }
        Ok(driver)
    }

    /// The same, with these options in place of the usual ones.
    #[must_use]
    pub fn with_options(self, options: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self { options, key: OnceLock::new(), ..self }
    }

    /// The same, with one more option.
    #[must_use]
    pub fn with_option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self.key = OnceLock::new();
        self
    }

    /// The same, with this much time to compile.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs it on a source; whatever it says, it was content.
    fn run<'a>(
        &'a self,
        arguments: impl Iterator<Item = &'a str>,
        source: &str,
    ) -> Result<Output, CompileError> {
        let outcome = tool::run(&self.path, arguments, source.as_bytes(), self.limit, SIZE);
        let output = outcome.map_err(|failure| self.explain(failure))?;
        let name = self.name.clone();
        match (output.status.success(), output.status.signal()) {
            (true, _) => Ok(output),
            (false, None) => Err(CompileError::Rejected { name, messages: output.messages }),
            (false, Some(signal)) => {
                Err(CompileError::Died { name, signal, messages: output.messages })
            }
        }
    }

    fn explain(&self, failure: Failure) -> CompileError {
        let name = self.name.clone();
        match failure {
            Failure::Start(cause) => CompileError::Start { name, cause: Arc::new(cause) },
            Failure::TimedOut => CompileError::TimedOut { name, limit: self.limit },
            Failure::TooLarge => CompileError::TooLarge { name, limit: SIZE },
        }
    }

    /// The arguments for a task.
    fn arguments<'a>(&'a self, task: &'static [&'static str]) -> impl Iterator<Item = &'a str> {
        self.options.iter().map(String::as_str).chain(task.iter().copied())
    }
}

impl<F: Family> Compiler for CompilerDriver<F> {
    fn identity(&self) -> Identity<'_> {
        Identity {
            name: F::NAME,
            version: &self.version,
            target: &self.target,
            options: &self.options,
        }
    }

    fn key(&self) -> Key {
        *self.key.get_or_init(|| Key::of_identity(&self.identity()))
    }

    fn expand<'s>(&self, source: &'s str) -> Result<Cow<'s, str>, CompileError> {
        match F::EXPAND {
            Some(arguments) if depends_on_files(source) => {
                let output = self.run(self.arguments(arguments), source)?;
                Ok(Cow::Owned(String::from_utf8_lossy(&output.out).into_owned()))
            }
            _ => Ok(Cow::Borrowed(source)),
        }
    }

    fn compile(&self, source: &str) -> Result<Vec<u8>, CompileError> {
        let Output { out: image, .. } = self.run(self.arguments(F::COMPILE), source)?;
        let (name, size) = (self.name.clone(), image.len());
        match check(&image) {
            Ok(()) => Ok(image),
            Err(cause) => Err(CompileError::NoImage { name, size, cause }),
        }
    }

    fn disassemble(&self, image: &[u8], function: Option<&str>) -> Result<String, CompileError> {
        let name = || String::from("objdump");
        let path =
            search::find("objdump").ok_or_else(|| CompileError::NotFound { name: name() })?;
        let what =
            function.map_or_else(|| String::from("-d"), |name| format!("--disassemble={name}"));
        let arguments = [&*what, "-r", "--no-show-raw-insn", "/proc/self/fd/0"];
        let output = tool::run(&path, arguments, image, self.limit, SIZE);
        let output = output.map_err(|failure| match self.explain(failure) {
            CompileError::Start { cause, .. } => CompileError::Start { name: name(), cause },
            CompileError::TimedOut { limit, .. } => CompileError::TimedOut { name: name(), limit },
            other => other,
        })?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.out).into_owned())
        } else {
            Err(CompileError::Rejected { name: name(), messages: output.messages })
        }
    }
}

/// Whether what the preprocessor makes of a source depends on more than the source. Says so sometimes when it does not.
fn depends_on_files(source: &str) -> bool {
    ["include", "embed"].iter().any(|word| source.contains(word))
}

/// Whether an image is an object for this machine.
fn check(image: &[u8]) -> Result<(), exec_core::Cause> {
    let file = File::parse(image).map_err(|error| Arc::new(error) as exec_core::Cause)?;
    let (kind, machine) = (file.header().r#type, file.header().machine);
    if kind == ET_REL && machine == Host::MACHINE {
        Ok(())
    } else {
        Err(Arc::new(NotObject { kind, machine }))
    }
}

/// An ELF file that is no object for this machine.
#[derive(Debug)]
struct NotObject {
    kind: u16,
    machine: u16,
}

impl fmt::Display for NotObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, machine } = self;
        write!(f, "an ELF file of type {kind} for machine {machine}, no object for this one")
    }
}

impl core::error::Error for NotObject {}
