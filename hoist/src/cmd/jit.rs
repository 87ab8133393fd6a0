//! `hoist jit SOURCE FUNCTION [ARG...]`: compiles a source, or takes it from the cache, and calls a function in it.

use core::ffi::CStr;
use core::time::Duration;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use exec_core::{Cache, CompileError, Compiled, Compiler, Origin};
use exec_host::Module;
use exec_host::compile::{ClangCompiler, Driver, Family, GccCompiler, RustcCompiler};
use exec_host::dynamic::{DynamicFunction, Type, Value};

use crate::call::{Argument, Element};
use crate::cmd::cache::{Place, Use};
use crate::cmd::disasm::disasm;
use crate::input::Part;
use crate::loading::Loading;
use crate::printable::Printable;

/// Compiles a source and calls a function in it.
#[derive(Debug, clap::Args)]
pub struct Jit {
    /// A C file, or a Rust file if its name ends in `.rs`.
    source: PathBuf,
    /// The function.
    function: String,
    /// Its arguments as TYPE:VALUE: as for `hoist run`.
    #[arg(value_name = "ARG", allow_hyphen_values = false)]
    arguments: Vec<String>,
    /// What the function returns: a number type, `ptr`, `str` or `void`
    #[arg(long, default_value = "void", value_name = "TYPE")]
    ret: String,
    /// The compiler: `clang`, `gcc`, `rustc`; by default the first of those for the language that is there
    #[arg(long, value_name = "NAME")]
    compiler: Option<String>,
    /// An option for the compiler, besides the usual ones
    #[arg(short = 'X', long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// How to use the cache: `on`, `off`, `read-only`, or `required`, where a miss is an error
    #[arg(long, value_name = "USE", env = "HOIST_CACHE", default_value = "on")]
    cache: Use,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    loading: Loading,
    /// Prints the buffers after the call, one a line
    #[arg(long)]
    show_buffers: bool,
    /// Prints how long finding the compiler, compiling, loading and calling took
    #[arg(long)]
    time: bool,
    /// Calls the function so often, with fresh buffers every time, and prints how long it took
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Prints the function's instructions and does not call it
    #[arg(long)]
    disasm: bool,
}

/// How long the parts of the work took.
#[derive(Debug, Default)]
struct Times {
    find: Duration,
    compile: Duration,
    load: Duration,
    calls: Vec<Duration>,
}

impl Jit {
    /// Compiles, calls, and prints what the function returns to `out`.
    ///
    /// # Errors
    /// What is wrong with the source, the compiler, the cache or an argument.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut times = Times::default();
        let mut arguments = self.parse()?;
        let cache = self.place.open(self.cache.0)?;
        let start = Instant::now();
        let compiler = self.compiler(&cache)?;
        times.find = start.elapsed();
        let start = Instant::now();
        let compiled = self.compile(&*compiler, &cache)?;
        times.compile = start.elapsed();
        if let Some(note) = &compiled.note {
            eprintln!("hoist: cache: {note}");
        }
        if self.disasm {
            let label = self.source.display().to_string();
            let part = Part { label, member: None, bytes: &compiled.image };
            return match disasm(&part, Some(&self.function), out)? {
                0 => bail!("{}: no function {}", part.label, self.function),
                _ => Ok(()),
            };
        }
        let start = Instant::now();
        let module = self.load(compiled.image)?;
        let types: Vec<Type> =
            arguments.iter_mut().map(|argument| argument.value().r#type()).collect();
        let function = module
            .dynamic(&self.function, &types, self.returned()?)
            .with_context(|| self.source.display().to_string())?;
        times.load = start.elapsed();

        let mut result = None;
        for _ in 0..self.repeat.unwrap_or(1) {
            if !times.calls.is_empty() {
                arguments = self.parse()?;
            }
            let (value, time) = call(&function, &mut arguments)?;
            result = value;
            times.calls.push(time);
        }
        if let Some(value) = result {
            self.print(value, out)?;
        }
        if self.show_buffers {
            for argument in &arguments {
                if let Argument::Buffer(buffer) = argument {
                    writeln!(out, "{buffer}")?;
                }
            }
        }
        self.report(times, compiled.origin, out)
    }

    fn parse(&self) -> Result<Vec<Argument>> {
        self.arguments.iter().map(|word| word.parse()).collect()
    }

    fn is_rust(&self) -> bool {
        self.source.extension().is_some_and(|extension| extension == "rs")
    }

    /// The compiler that was asked for, or one for the language.
    fn compiler(&self, cache: &dyn Cache) -> Result<Box<dyn Compiler>> {
        Ok(match self.compiler.as_deref() {
            Some("clang") => Box::new(self.with_options(ClangCompiler::find(cache)?)),
            Some("gcc") => Box::new(self.with_options(GccCompiler::find(cache)?)),
            Some("rustc") => Box::new(self.with_options(RustcCompiler::find(cache)?)),
            Some(other) => bail!("unknown compiler {other:?}: one of clang, gcc, rustc"),
            None if self.is_rust() => Box::new(self.with_options(RustcCompiler::find(cache)?)),
            None => match ClangCompiler::find(cache) {
                Ok(clang) => Box::new(self.with_options(clang)),
                Err(_) => Box::new(self.with_options(GccCompiler::find(cache)?)),
            },
        })
    }

    fn with_options<F: Family>(&self, driver: Driver<F>) -> Driver<F> {
        let folder = self.source.parent().unwrap_or(Path::new(""));
        let mut driver = driver;
        if F::EXPAND.is_some() && !folder.as_os_str().is_empty() {
            // includes are searched beside the source, which the compiler does not see as a file
            driver = driver.with_option("-iquote").with_option(folder.to_string_lossy());
        }
        self.options.iter().fold(driver, |driver, option| driver.with_option(option.as_str()))
    }

    fn compile(&self, compiler: &dyn Compiler, cache: &dyn Cache) -> Result<Compiled> {
        let name = || self.source.display().to_string();
        let mut text = fs::read_to_string(&self.source).with_context(name)?;
        if !self.is_rust() {
            // messages name the file
            let quoted = name().replace('\\', "\\\\").replace('"', "\\\"");
            text.insert_str(0, &format!("#line 1 \"{quoted}\"\n"));
        }
        match compiler.compile_cached(&text, cache) {
            Err(CompileError::Rejected { name: compiler, messages }) => {
                messages.lines().for_each(|line| eprintln!("{}", Printable::from(line)));
                bail!("{}: {compiler} rejects it", name());
            }
            outcome => outcome.with_context(name),
        }
    }

    /// Loads the image, with symbols of this process and of the libraries asked for.
    fn load(&self, image: Vec<u8>) -> Result<Module<Vec<u8>>> {
        let module = self.loading.loader()?.load([image], self.loading.process()?);
        let module = module.with_context(|| self.source.display().to_string())?;
        // SAFETY: the user asks for the source to be run.
        unsafe { module.initialize() };
        Ok(module)
    }

    fn returned(&self) -> Result<Type> {
        Ok(match self.ret.as_str() {
            "void" => Type::Void,
            "ptr" | "str" => Type::Pointer,
            word => word.parse::<Element>()?.r#type(),
        })
    }

    /// Prints a result.
    fn print(&self, value: Value, out: &mut dyn Write) -> Result<()> {
        match value {
            Value::Pointer(pointer) if self.ret == "str" && pointer.is_null() => {
                writeln!(out, "null")?
            }
            Value::Pointer(pointer) if self.ret == "str" => {
                // SAFETY: the user says that the function returns a pointer to bytes that end in NUL.
                let text = unsafe { CStr::from_ptr(pointer.cast()) };
                writeln!(out, "{}", text.to_string_lossy())?;
            }
            value => writeln!(out, "{value}")?,
        }
        Ok(())
    }

    /// Prints what was measured.
    fn report(&self, mut times: Times, origin: Origin, out: &mut dyn Write) -> Result<()> {
        times.calls.sort();
        let least = times.calls.first().copied().unwrap_or_default();
        let median = times.calls.get(times.calls.len() / 2).copied().unwrap_or_default();
        if self.time {
            let from = match origin {
                Origin::Cache => "from the cache",
                Origin::Compiler => "compiled",
            };
            let Times { find, compile, load, .. } = times;
            writeln!(
                out,
                "compiler found {find:?}, {from} {compile:?}, loaded {load:?}, called {least:?}"
            )?;
        }
        if self.repeat.is_some() {
            writeln!(out, "min {least:?}, median {median:?}")?;
        }
        Ok(())
    }
}

/// Calls a function and measures the call.
fn call(
    function: &DynamicFunction<'_>,
    arguments: &mut [Argument],
) -> Result<(Option<Value>, Duration)> {
    let values: Vec<Value> = arguments.iter_mut().map(Argument::value).collect();
    let start = Instant::now();
    // SAFETY: the user asks for the call, with these types; the arguments outlive it.
    let result = unsafe { function.call(&values) };
    let time = start.elapsed();
    // SAFETY: flushes what the function printed through the C library, before what we print.
    unsafe { libc::fflush(core::ptr::null_mut()) };
    Ok((result?, time))
}
