//! `hoist jit SOURCE FUNCTION [ARG...]`: compiles a source, or takes it from the cache, and calls a function in it.

use core::time::Duration;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use exec_core::{Cache, CompileError, Compiled, Compiler, Origin};
use exec_host::compile::{ClangCompiler, Driver, Family, GccCompiler, RustcCompiler};

use crate::calling::{Arguments, Calling};
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
    #[command(flatten)]
    calling: Calling,
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
    /// Prints how long finding the compiler, compiling, loading and calling took
    #[arg(long)]
    time: bool,
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
}

impl Jit {
    /// Compiles, calls, and prints what the function returns to `out`.
    ///
    /// # Errors
    /// What is wrong with the source, the compiler, the cache or an argument.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut times = Times::default();
        let mut arguments = Arguments::parse(&self.arguments)?;
        let (cache, warning) = self.place.open_or_off(self.cache.0)?;
        if let Some(warning) = warning {
            eprintln!("hoist: compiling without the cache: {}", Printable::from(&*warning));
        }
        let start = Instant::now();
        let compiler = self.compiler(&cache)?;
        times.find = start.elapsed();
        let start = Instant::now();
        let compiled = self.compile(&*compiler, &cache)?;
        times.compile = start.elapsed();
        if let Some(note) = &compiled.note {
            eprintln!("hoist: cache: {}", Printable::from(&*note.to_string()));
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
        let label = || self.source.display().to_string();
        // SAFETY: the user asks for the libraries; nothing else runs in this process.
        let symbols = unsafe { self.loading.process()? };
        let module = self.loading.loader()?.load([compiled.image], symbols);
        let module = module.with_context(label)?;
        // SAFETY: the user asks for the code to be run.
        let function =
            unsafe { self.calling.find(&module, &self.function, &mut arguments, label)? };
        times.load = start.elapsed();
        // SAFETY: as above, with these arguments and this result.
        let calls = unsafe { self.calling.call(&function, arguments, out)? };
        if self.time {
            let least = calls.first().copied().unwrap_or_default();
            times.print(compiled.origin, least, out)?;
        }
        self.calling.report(&calls, out)
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
}

impl Times {
    /// Prints them, and how long a call took.
    fn print(&self, origin: Origin, call: Duration, out: &mut dyn Write) -> Result<()> {
        let from = match origin {
            Origin::Cache => "from the cache",
            Origin::Compiler => "compiled",
        };
        let Self { find, compile, load } = self;
        writeln!(
            out,
            "compiler found {find:?}, {from} {compile:?}, loaded {load:?}, called {call:?}"
        )?;
        Ok(())
    }
}
