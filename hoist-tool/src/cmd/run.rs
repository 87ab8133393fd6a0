//! `hoist run OBJECT... [FUNCTION] [ARG...]`: loads objects into this process and calls a function in them.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use elf_core::{Arch as _, File, Name, names};
use exec_host::library::Library;
use exec_host::observer::Observer;
use exec_host::symbols::{Symbols as _, from_fn};
use exec_host::{Error, External, Host, Module};

use crate::arguments::{ArchiveArguments, definition};
use crate::at_once::on_processors;
use crate::budget::Limits;
use crate::call::Argument;
use crate::calling::{Arguments, Calling};
use crate::explain::section_name;
use crate::input::Input;
use crate::libraries;
use crate::loading::{Loading, Staying};
use crate::objects::{Chosen, Objects};
use crate::printable::Printable;
use crate::program;

/// Calls a function in objects.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// Objects, archives and shared libraries, the function (`main` if there are files only), its arguments as TYPE:VALUE.
    ///
    /// TYPE is one of i8 i16 i32 i64 u8 u16 u32 u64 f32 f64, or `str:TEXT`, `buf:TYPE:1,2,3`, `zeros:TYPE:COUNT`, `file:PATH`,
    /// which pass pointers. A member of an archive is `libx.a(x.so)`, of a wheel, zip or tar file `x.whl:folder/x.so`.
    #[arg(required = true, num_args = 1.., value_names = ["OBJECT", "FUNCTION", "ARG"], allow_hyphen_values = false)]
    words: Vec<String>,
    /// The arguments of a program, whose function is `main`: it returns the exit status.
    ///
    /// Also without any, `main` is called as programs are unless --ret says something else.
    #[arg(last = true, value_name = "ARGUMENT")]
    program: Vec<OsString>,
    /// The address of a symbol that no object defines
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = definition)]
    define: Vec<(String, u64)>,
    /// Leaves functions of shared libraries that nobody has to their first call, as dlopen does with RTLD_LAZY
    #[arg(long)]
    lazy: bool,
    #[command(flatten)]
    archives: ArchiveArguments,
    #[command(flatten)]
    calling: Calling,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    limits: Limits,
}

impl Run {
    /// Calls the function and prints what it returns to `out`.
    ///
    /// # Errors
    /// What is wrong with which object, symbol or argument; nothing was run then.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let (mut objects, function, words) = self.split()?;
        let files: Vec<_> = objects.iter().map(|path| path.display().to_string()).collect();
        let observers = self.loading.observers()?;
        // SAFETY: the user asks for the libraries.
        let libraries =
            unsafe { libraries::open(&mut objects, &observers, self.limits, self.lazy)? };
        // what they have registered for the end of the process is still to run
        libraries.iter().cloned().for_each(core::mem::forget);
        if objects.is_empty() {
            return self.call_library(&libraries, &files, function, words, out);
        }
        let inputs = self.archives.read(&objects, self.limits)?;
        let is_typed = !words.is_empty() || self.calling.says_result();
        if !self.program.is_empty() || (function == "main" && !is_typed) {
            if function != "main" || is_typed {
                bail!("arguments behind -- are for `main`, without --ret and TYPE:VALUE");
            }
            return self.run_program(inputs.leak(), libraries, &observers, out);
        }
        let mut wanted = self.archives.wanted();
        wanted.push(function);
        let (objects, loaded) = Objects::gather_beside(&inputs, &wanted, |chosen| {
            self.load(chosen, libraries, &observers)
        })?;
        let module = Staying::from(loaded?.map_err(|error| explain(&objects, error))?);
        let mut arguments = Arguments::parse(words)?;
        let label = || objects.label(0).to_owned();
        // SAFETY: the user asks for the code to be run.
        let function = unsafe { self.calling.find(&module, function, &mut arguments, label)? };
        // SAFETY: as above, with these arguments and this result.
        let times = unsafe { self.calling.call(&function, arguments, out)? };
        self.calling.report(&times, out)?;
        // what destructors do comes behind, also if it is the end of the process
        Ok(out.flush()?)
    }

    /// Runs a program of which the objects are in `inputs`; the process ends with it, and so do these. Nobody looks at them while it runs:
    /// the files may be changed then.
    fn run_program(
        &self,
        inputs: &'static [Input],
        libraries: Vec<Library>,
        observers: &[Arc<dyn Observer>],
        out: &mut dyn Write,
    ) -> Result<()> {
        let mut wanted = self.archives.wanted();
        wanted.push("main");
        let load = |chosen: &Chosen<'static>| {
            let name = OsString::from(chosen.label(0));
            // SAFETY: other threads only look at objects.
            unsafe { program::announce(&name)? };
            anyhow::Ok((name, self.load(chosen, libraries, observers)?))
        };
        let (objects, loaded) = Objects::gather_beside(inputs, &wanted, load)?;
        let (name, module) = loaded?;
        let module = module.map_err(|error| explain(&objects, error))?;
        drop(objects);
        out.flush()?;
        let release = || {
            on_processors(inputs.len(), inputs.iter(), |input| {
                input.done();
                true
            });
        };
        // SAFETY: the user asks for the program to be run; the process ends with it.
        let status = unsafe { program::run(module, &name, &self.program, release)? };
        std::process::exit(status);
    }

    /// Calls a function of the first library that has it, of those in `files`.
    fn call_library(
        &self,
        libraries: &[Library],
        files: &[String],
        function: &str,
        words: &[String],
        out: &mut dyn Write,
    ) -> Result<()> {
        let mut arguments = Arguments::parse(words)?;
        // what these need comes behind all of them
        let shown = libraries.iter().find(|library| library.shows(function));
        let needed = || libraries.iter().find(|library| library.function(function).is_ok());
        let library = shown.or_else(needed).or(libraries.first());
        let library = library.context("no library")?;
        let function = self.calling.find_in_library(library, function, &mut arguments);
        let function = function.with_context(|| files.join(", "))?;
        // SAFETY: the user asks for the code to be run, with these arguments and this result.
        let times = unsafe { self.calling.call(&function, arguments, out)? };
        self.calling.report(&times, out)
    }

    /// Objects, function and arguments: what looks like arguments at the end, the word before, and the rest. If that word is the name of a
    /// file, as those of objects are, it is one of them, and they are a program.
    fn split(&self) -> Result<(Vec<PathBuf>, &str, &[String])> {
        let (objects, function, arguments) = match self.words.as_slice() {
            all @ [.., last] if last.contains(['.', '/']) && Path::new(last).is_file() => {
                (all, "main", &[][..])
            }
            words => Argument::behind_function(words, "OBJECT")?,
        };
        Ok((objects.iter().map(PathBuf::from).collect(), function, arguments))
    }

    /// Loads the objects, with symbols of this process and of the libraries asked for. What is wrong with them is for who knows them
    /// better to [explain].
    fn load<'a>(
        &self,
        objects: &Chosen<'a>,
        libraries: Vec<Library>,
        observers: &[Arc<dyn Observer>],
    ) -> Result<Loaded<'a>> {
        let machine = objects.files().first().map_or(Host::MACHINE, |file| file.header().machine);
        if machine != Host::MACHINE {
            let name = |number| {
                names::machine(number).map_or_else(|| format!("machine {number}"), String::from)
            };
            bail!(
                "{}: is for {}, this machine is {}",
                objects.label(0),
                name(machine),
                name(Host::MACHINE)
            );
        }
        let bytes = objects.files().iter().map(File::bytes);
        // SAFETY: the user asks for the libraries; nothing else runs in this process than threads that look at objects.
        let process = unsafe { self.loading.process()? };
        let defined = |name: Name<'_>| {
            let (_, address) = self.define.iter().rev().find(|(own, _)| name == *own.as_str())?;
            Some(External::new(*address))
        };
        let symbols = from_fn(defined).or(libraries.or(process));
        let mut loader = self.loading.loader_with(observers);
        if let Some(limit) = self.limits.limit {
            loader = loader.limit(limit);
        }
        Ok(loader.load_numbered(bytes, objects.numbers(), symbols))
    }
}

/// Objects that are loaded, or what is wrong with them.
type Loaded<'a> = Result<Module<&'a [u8]>, Error>;

/// What went wrong, with the names of file and section.
fn explain(objects: &Objects<'_>, error: Error) -> anyhow::Error {
    let name = |object: usize, section: u32| {
        let file = objects.files().get(object);
        let name = file
            .and_then(|file| section_name(file, section))
            .map(|name| Printable::from(name).to_string());
        format!(
            "{}: section {}",
            objects.label(object),
            name.unwrap_or_else(|| section.to_string())
        )
    };
    match error {
        Error::Layout(error) | Error::Object { error, .. } => objects.explain(error),
        Error::Undefined(undefined) => objects.lines(&undefined.all, undefined.more),
        Error::NearThreadLocal { size, cause, error, .. } => {
            let text = objects.explain(error).to_string().into();
            anyhow::Error::new(Error::NearThreadLocal { size, cause, error, text })
        }
        Error::ThreadLocal { size, cause, text } => {
            // its objects have numbers
            let label = |text: &str| {
                let (number, rest) = text.strip_prefix("object ")?.split_once(':')?;
                Some(format!("{}:{rest}", objects.label(number.parse().ok()?)))
            };
            let text = label(&text).map_or(text, Into::into);
            anyhow::Error::new(Error::ThreadLocal { size, cause, text })
        }
        Error::Elf { object, error } => {
            anyhow::Error::new(error).context(objects.label(object).to_owned())
        }
        Error::ByteOrder { object } => anyhow::anyhow!(
            "{}: its data are big-endian, and those of this process not",
            objects.label(object)
        ),
        Error::TooLarge { size, limit, object, section, largest, .. } => anyhow::anyhow!(
            "{}: asks for {largest} bytes of an image of {size}, more than the limit of {limit} (--limit)",
            name(object, section)
        ),
        Error::FixedAddress { object, section, address, .. } => {
            anyhow::anyhow!(
                "{}: its address {address:#x} cannot be had in this process",
                name(object, section)
            )
        }
        Error::ExecutableStack { object, section, .. } => {
            anyhow::anyhow!("{}: code that wants to execute the stack", name(object, section))
        }
        Error::Fragment { object, section, .. } => {
            anyhow::anyhow!(
                "{}: a part of `_init` or `_fini` that is not run here (start files of a program)",
                name(object, section)
            )
        }
        Error::Initializer { object, section, address, .. } => {
            anyhow::anyhow!(
                "{}: constructor {address:#x} is outside the code",
                name(object, section)
            )
        }
        Error::Unwinding { object, section, error, .. } => {
            anyhow::Error::new(error).context(name(object, section))
        }
        error => anyhow::Error::new(error).context(objects.label(0).to_owned()),
    }
}
