//! `hoist jit SOURCE... FUNCTION [ARG...]`: compiles sources, or takes them from the cache, and calls a function in them.

use core::time::Duration;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};
use exec_core::{Cache, CompileError, Compiled, Compiler, Origin};
use exec_host::compile::{
    Clang, ClangAssembly, ClangCpp, CompilerDriver, Family, Gcc, GccAssembly, GccCpp, Gfortran,
    Rustc,
};

use crate::call::Argument;
use crate::calling::{Arguments, Calling};
use crate::cmd::cache::{Place, Use};
use crate::cmd::disasm::{disasm, functions};
use crate::input::Part;
use crate::loading::{Loading, Staying};
use crate::meant::meant;
use crate::paint;
use crate::printable::Printable;
use crate::progress::during;
use crate::zig::Zig;

/// Compiles sources and calls a function in them.
#[derive(Debug, clap::Args)]
pub struct Jit {
    /// Sources, the function, its arguments as TYPE:VALUE, as for `hoist run`.
    ///
    /// The name says the language: C, or C++ (.cc .cpp .cxx .C), Fortran (.f90 .f95 .f03 .f08), assembly (.s .S), Rust (.rs), Zig (.zig).
    #[arg(required = true, num_args = 1.., value_names = ["SOURCE", "FUNCTION", "ARG"], allow_hyphen_values = false)]
    words: Vec<String>,
    #[command(flatten)]
    calling: Calling,
    /// The compiler: `clang`, `gcc`, `rustc`, `zig`; by default the first of those for the language that is there
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
        let (sources, function, words) = self.split()?;
        let mut arguments = Arguments::parse(words)?;
        let (cache, warning) = self.place.open_or_off(self.cache.0)?;
        if let Some(warning) = warning {
            paint::warning(&format!("compiling without the cache: {warning}"));
        }
        let mut images = Vec::new();
        for source in &sources {
            let source = Source::of(source);
            let start = Instant::now();
            let compiler = self.compiler(&source, &cache)?;
            times.find += start.elapsed();
            let start = Instant::now();
            images.push(self.compile(&source, &*compiler, &cache)?);
            times.compile += start.elapsed();
        }
        for note in images.iter().filter_map(|compiled| compiled.note.as_ref()) {
            paint::warning(&format!("cache: {note}"));
        }
        let first = || sources.first().map(|source| source.display().to_string());
        let label = || first().unwrap_or_default();
        if self.disasm {
            for (source, compiled) in sources.iter().zip(&images) {
                let label = source.display().to_string();
                let part = Part { label, member: None, bytes: &compiled.image };
                if disasm(&part, Some(function), out)? > 0 {
                    return Ok(());
                }
            }
            let names = images.iter().flat_map(|compiled| functions(&compiled.image));
            bail!("{}: no function {function}{}", label(), meant(function, names));
        }
        let start = Instant::now();
        // SAFETY: the user asks for the libraries; nothing else runs in this process.
        let symbols = unsafe { self.loading.process()? };
        for library in sources.iter().filter_map(|source| Source::of(source).language.library()) {
            // SAFETY: the library of the language; where it is missing, what it would have is.
            let _ = unsafe { symbols.open_global(library) };
        }
        let from_cache = images.iter().all(|compiled| compiled.origin == Origin::Cache);
        let images = images.into_iter().map(|compiled| compiled.image);
        let module = self.loading.loader()?.load(images, symbols);
        let module = Staying::from(module.with_context(label)?);
        // SAFETY: the user asks for the code to be run.
        let function = unsafe { self.calling.find(&module, function, &mut arguments, label)? };
        times.load = start.elapsed();
        // SAFETY: as above, with these arguments and this result.
        let calls = unsafe { self.calling.call(&function, arguments, out)? };
        if self.time {
            let least = calls.first().copied().unwrap_or_default();
            let origin = if from_cache { Origin::Cache } else { Origin::Compiler };
            times.print(origin, least, out)?;
        }
        self.calling.report(&calls, out)?;
        // what destructors do comes behind, also if it is the end of the process
        Ok(out.flush()?)
    }

    /// Sources, function and arguments: what looks like arguments at the end, the word before, and the rest.
    fn split(&self) -> Result<(Vec<PathBuf>, &str, &[String])> {
        let (sources, function, arguments) = Argument::behind_function(&self.words, "SOURCE")?;
        Ok((sources.iter().map(PathBuf::from).collect(), function, arguments))
    }

    /// The compiler that was asked for, or one for the language.
    fn compiler(&self, source: &Source<'_>, cache: &dyn Cache) -> Result<Box<dyn Compiler>> {
        let wanted = match self.compiler.as_deref() {
            None => [true; 4],
            Some("clang") => [true, false, false, false],
            Some("gcc") => [false, true, false, false],
            Some("rustc") => [false, false, true, false],
            Some("zig") => [false, false, false, true],
            Some(other) => bail!("unknown compiler {other:?}: one of clang, gcc, rustc, zig"),
        };
        let [clang, gcc, rustc, zig] = wanted;
        match source.language {
            Language::Rust if rustc => self.find::<Rustc>(source, cache),
            Language::C => self.find_either::<Clang, Gcc>([clang, gcc], source, cache),
            Language::Cpp => self.find_either::<ClangCpp, GccCpp>([clang, gcc], source, cache),
            Language::Assembly => {
                self.find_either::<ClangAssembly, GccAssembly>([clang, gcc], source, cache)
            }
            Language::Fortran if gcc => self.find::<Gfortran>(source, cache),
            Language::Zig if zig => Ok(Box::new(Zig::find(source.path, &self.options)?)),
            _ => Err(wrong_compiler(source)),
        }
    }

    /// The first of two compilers that is wanted and there.
    fn find_either<A: Family, B: Family>(
        &self,
        [first, second]: [bool; 2],
        source: &Source<'_>,
        cache: &dyn Cache,
    ) -> Result<Box<dyn Compiler>> {
        match (first.then(|| self.find::<A>(source, cache)), second) {
            (Some(Ok(found)), _) => Ok(found),
            (_, true) => self.find::<B>(source, cache),
            (Some(error), false) => error,
            (None, false) => Err(wrong_compiler(source)),
        }
    }

    fn find<F: Family>(&self, source: &Source<'_>, cache: &dyn Cache) -> Result<Box<dyn Compiler>> {
        let mut driver = CompilerDriver::<F>::find(cache)?;
        let folder = source.path.parent().unwrap_or(Path::new(""));
        if F::EXPAND.is_some() && !folder.as_os_str().is_empty() {
            // includes are searched beside the source, which the compiler does not see as a file
            driver = driver.with_option("-iquote").with_option(folder.to_string_lossy());
        }
        let options = self.options.iter();
        Ok(Box::new(options.fold(driver, |driver, option| driver.with_option(option.as_str()))))
    }

    fn compile(
        &self,
        source: &Source<'_>,
        compiler: &dyn Compiler,
        cache: &dyn Cache,
    ) -> Result<Compiled> {
        let name = || source.path.display().to_string();
        let mut text = fs::read_to_string(source.path).with_context(name)?;
        if source.language.has_lines() {
            // messages name the file
            let quoted = name().replace('\\', "\\\\").replace('"', "\\\"");
            text.insert_str(0, &format!("#line 1 \"{quoted}\"\n"));
        }
        match during("compiling", || compiler.compile_cached(&text, cache)) {
            Err(CompileError::Rejected { name: compiler, messages }) => {
                messages.lines().for_each(|line| eprintln!("{}", Printable::from(line)));
                bail!("{}: {compiler} rejects it", name());
            }
            outcome => outcome.with_context(name),
        }
    }
}

/// What is said of a compiler that was asked for by name.
fn wrong_compiler(source: &Source<'_>) -> anyhow::Error {
    anyhow!("{}: this compiler has not its language", source.path.display())
}

/// A source and its language.
struct Source<'p> {
    path: &'p Path,
    language: Language,
}

/// What a compiler is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Cpp,
    Fortran,
    Assembly,
    Rust,
    Zig,
}

/// Endings of files; all others are C.
const ENDINGS: &[(&str, Language)] = &[
    ("cc", Language::Cpp),
    ("cpp", Language::Cpp),
    ("cxx", Language::Cpp),
    ("C", Language::Cpp),
    ("f90", Language::Fortran),
    ("f95", Language::Fortran),
    ("f03", Language::Fortran),
    ("f08", Language::Fortran),
    ("s", Language::Assembly),
    ("S", Language::Assembly),
    ("rs", Language::Rust),
    ("zig", Language::Zig),
];

impl<'p> Source<'p> {
    fn of(path: &'p Path) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let known = ENDINGS.iter().find(|(own, _)| ending == Some(own));
        Self { path, language: known.map_or(Language::C, |(_, language)| *language) }
    }
}

impl Language {
    /// Whether a line with the file's name may stand before the source.
    const fn has_lines(self) -> bool {
        matches!(self, Self::C | Self::Cpp)
    }

    /// The library that programs of the language have.
    const fn library(self) -> Option<&'static str> {
        match self {
            Self::Cpp => Some("libstdc++.so.6"),
            Self::Fortran => Some("libgfortran.so.5"),
            _ => None,
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
