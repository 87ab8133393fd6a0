//! How a function is called and what comes of it is printed: what `hoist run` and `hoist jit` have in common.

use core::ffi::CStr;
use core::str::FromStr;
use core::time::Duration;
use std::io::Write;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use elf_core::names::{STB_LOCAL, STT_FUNC, STT_GNU_IFUNC};
use exec_host::Module;
use exec_host::dynamic::{DynamicFunction, Scalar, Type};
use exec_host::library::Library;

use crate::call::{Argument, Element};
use crate::meant::meant;
use crate::printable::Printable;

/// What the function returns, and how often it is called.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Calling {
    /// What the function returns: a number type, `ptr`, `str` or `void`, which it is by default
    #[arg(long, value_name = "TYPE")]
    ret: Option<Returned>,
    /// Prints the buffers after the call, one a line
    #[arg(long)]
    show_buffers: bool,
    /// Calls the function so often, with fresh buffers every time, and prints how long it took
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
}

/// What to make of the result.
#[derive(Clone, Copy, Debug)]
enum Returned {
    Void,
    Number(Element),
    Pointer,
    Text,
}

impl FromStr for Returned {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        Ok(match word {
            "void" => Self::Void,
            "ptr" => Self::Pointer,
            "str" => Self::Text,
            word => Self::Number(word.parse()?),
        })
    }
}

impl Returned {
    const fn r#type(self) -> Type {
        match self {
            Self::Void => Type::Void,
            Self::Number(element) => element.r#type(),
            Self::Pointer | Self::Text => Type::Pointer,
        }
    }

    /// # Safety
    /// A pointer that stands for text points to bytes that end in NUL.
    unsafe fn print(self, value: Scalar, out: &mut dyn Write) -> Result<()> {
        match (self, value) {
            (Self::Text, Scalar::Pointer(pointer)) if pointer.is_null() => writeln!(out, "null")?,
            (Self::Text, Scalar::Pointer(pointer)) => {
                // SAFETY: as the caller says.
                let text = unsafe { CStr::from_ptr(pointer.cast()) };
                writeln!(out, "{}", text.to_string_lossy())?;
            }
            (_, value) => writeln!(out, "{value}")?,
        }
        Ok(())
    }
}

/// Arguments as they were typed, and as they are passed.
#[derive(Debug)]
pub struct Arguments<'w> {
    words: &'w [String],
    values: Vec<Argument>,
}

impl<'w> Arguments<'w> {
    /// Reads them.
    ///
    /// # Errors
    /// Which is not one.
    pub fn parse(words: &'w [String]) -> Result<Self> {
        let values = words.iter().map(|word| word.parse()).collect::<Result<_>>()?;
        Ok(Self { words, values })
    }

    fn values(&mut self) -> Vec<Scalar> {
        self.values.iter_mut().map(Argument::value).collect()
    }
}

impl Calling {
    /// Whether it is said what the function returns.
    pub(crate) const fn says_result(&self) -> bool {
        self.ret.is_some()
    }

    fn ret(&self) -> Returned {
        self.ret.unwrap_or(Returned::Void)
    }

    /// The function of a module that takes such arguments. Constructors run before. `label` is what errors call the module.
    ///
    /// # Errors
    /// If there is no such function: then nothing was run.
    ///
    /// # Safety
    /// The module's constructors may run.
    pub unsafe fn find<'m, B: AsRef<[u8]>>(
        &self,
        module: &'m Module<B>,
        function: &str,
        arguments: &mut Arguments<'_>,
        label: impl FnOnce() -> String,
    ) -> Result<DynamicFunction<'m>> {
        if module.address(function).is_none() {
            let seen = module.symbols().filter(|symbol| symbol.binding != STB_LOCAL);
            let code = seen.filter(|symbol| [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.r#type));
            let meant = meant(function, code.map(|symbol| symbol.name));
            bail!("{}: no object defines {}{meant}", label(), Printable::from(function));
        }
        let types: Vec<Type> = arguments.values().iter().map(Scalar::r#type).collect();
        // SAFETY: the caller guarantees the code.
        unsafe { module.initialize() };
        module.dynamic(function, &types, self.ret().r#type()).with_context(label)
    }

    /// The function of a library that takes such arguments.
    ///
    /// # Errors
    /// If there is no such function.
    pub fn find_in_library<'l>(
        &self,
        library: &'l Library,
        function: &str,
        arguments: &mut Arguments<'_>,
    ) -> Result<DynamicFunction<'l>> {
        let types: Vec<Type> = arguments.values().iter().map(Scalar::r#type).collect();
        Ok(library.dynamic(function, &types, self.ret().r#type())?)
    }

    /// Calls the function as often as asked for and prints what it returns to `out`: how long each call took, the shortest first.
    ///
    /// # Errors
    /// Arguments that cannot be made again; `out` that cannot be written.
    ///
    /// # Safety
    /// The function takes these arguments, returns what was said, and may run.
    pub unsafe fn call(
        &self,
        function: &DynamicFunction<'_>,
        mut arguments: Arguments<'_>,
        out: &mut dyn Write,
    ) -> Result<Vec<Duration>> {
        let (mut times, mut result) = (Vec::new(), None);
        for _ in 0..self.repeat.unwrap_or(1) {
            if !times.is_empty() {
                arguments = Arguments::parse(arguments.words)?;
            }
            let values = arguments.values();
            let start = Instant::now();
            // SAFETY: the caller guarantees the call; the arguments outlive it.
            let outcome = unsafe { function.call(&values) };
            times.push(start.elapsed());
            // SAFETY: flushes what the function printed through the C library, before what we print.
            unsafe { libc::fflush(core::ptr::null_mut()) };
            result = outcome?;
        }
        if let Some(value) = result {
            // SAFETY: the function returns what the caller says.
            unsafe { self.ret().print(value, out)? };
        }
        if self.show_buffers {
            for argument in &arguments.values {
                if let Argument::Buffer(buffer) = argument {
                    writeln!(out, "{buffer}")?;
                }
            }
        }
        times.sort();
        Ok(times)
    }

    /// Prints how long calls took, if they were to be repeated.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn report(&self, times: &[Duration], out: &mut dyn Write) -> Result<()> {
        if self.repeat.is_some() {
            let least = times.first().copied().unwrap_or_default();
            let median = times.get(times.len() / 2).copied().unwrap_or_default();
            writeln!(out, "min {least:?}, median {median:?}")?;
        }
        Ok(())
    }
}
