//! `hoist run OBJECT... FUNCTION [ARG...]`: loads objects into this process and calls a function in them.

use core::ffi::CStr;
use core::str::FromStr;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use elf_core::Arch as _;
use elf_core::names;
use exec_host::dynamic::{DynamicFunction, Type, Value};
use exec_host::{Error, Host, Module};

use crate::call::{Argument, Element};
use crate::explain::section_name;
use crate::input::{self, Input};
use crate::loading::Loading;
use crate::objects::Objects;
use crate::printable::Printable;

/// Calls a function in objects.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// Objects and archives, the function, its arguments as TYPE:VALUE.
    ///
    /// TYPE is one of i8 i16 i32 i64 u8 u16 u32 u64 f32 f64, or `str:TEXT`, `buf:TYPE:1,2,3`, `zeros:TYPE:COUNT`, `file:PATH`,
    /// which pass pointers.
    #[arg(required = true, num_args = 2.., value_names = ["OBJECT", "FUNCTION", "ARG"], allow_hyphen_values = false)]
    words: Vec<String>,
    /// Takes every member of the archives, asked for or not
    #[arg(long)]
    whole_archive: bool,
    /// What the function returns: a number type, `ptr`, `str` or `void`
    #[arg(long, default_value = "void", value_name = "TYPE")]
    ret: Returned,
    #[command(flatten)]
    loading: Loading,
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
}

impl Run {
    /// Calls the function and prints what it returns to `out`.
    ///
    /// # Errors
    /// What is wrong with which object, symbol or argument; nothing was run then.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let (objects, function, words) = self.split()?;
        let inputs = input::read_all(&objects)?;
        let whole = |input: Input| input.whole(self.whole_archive);
        let inputs: Vec<Input> = inputs.into_iter().map(whole).collect();
        let objects = Objects::gather(&inputs, &[function])?;
        let module = self.load(&objects)?;
        let parse =
            || words.iter().map(|word| word.parse::<Argument>()).collect::<Result<Vec<_>>>();
        let mut arguments = parse()?;
        let types: Vec<Type> =
            arguments.iter_mut().map(|argument| argument.value().r#type()).collect();
        // SAFETY: the user asks for these objects to be run.
        unsafe { module.initialize() };
        let function = module
            .dynamic(function, &types, self.ret.r#type())
            .with_context(|| objects.label(0).to_owned())?;

        let mut times = Vec::new();
        let mut result = None;
        for _ in 0..self.repeat.unwrap_or(1) {
            if !times.is_empty() {
                arguments = parse()?;
            }
            let (value, time) = call(&function, &mut arguments)?;
            result = value;
            times.push(time);
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
        if self.repeat.is_some() {
            times.sort();
            let median = times.get(times.len() / 2).copied().unwrap_or_default();
            writeln!(
                out,
                "min {:?}, median {median:?}",
                times.first().copied().unwrap_or_default()
            )?;
        }
        Ok(())
    }

    /// Objects, function and arguments: what looks like arguments at the end, the word before, and the rest.
    fn split(&self) -> Result<(Vec<PathBuf>, &str, &[String])> {
        let count = self.words.iter().rev().take_while(|word| Argument::is_one(word)).count();
        let (names, arguments) = self.words.split_at(self.words.len().saturating_sub(count));
        match names {
            [] | [_] => bail!("OBJECT and FUNCTION are needed before the arguments"),
            [objects @ .., function] => {
                Ok((objects.iter().map(PathBuf::from).collect(), function, arguments))
            }
        }
    }

    /// Loads the objects, with symbols of this process and of the libraries asked for.
    fn load<'a>(&self, objects: &Objects<'a>) -> Result<Module<&'a [u8]>> {
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
        let bytes = objects.files().iter().map(|file| file.bytes());
        let module = self.loading.loader()?.load(bytes, self.loading.process()?);
        module.map_err(|error| explain(objects, error))
    }

    /// Prints a result.
    fn print(&self, value: Value, out: &mut dyn Write) -> Result<()> {
        match (self.ret, value) {
            (Returned::Text, Value::Pointer(pointer)) if pointer.is_null() => {
                writeln!(out, "null")?
            }
            (Returned::Text, Value::Pointer(pointer)) => {
                // SAFETY: the user says that the function returns a pointer to bytes that end in NUL.
                let text = unsafe { CStr::from_ptr(pointer.cast()) };
                writeln!(out, "{}", text.to_string_lossy())?;
            }
            (_, value) => writeln!(out, "{value}")?,
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
        Error::Layout(error) => objects.explain(error),
        Error::Elf { object, error } => {
            anyhow::Error::new(error).context(objects.label(object).to_owned())
        }
        Error::FixedAddress { object, section, address } => {
            anyhow::anyhow!(
                "{}: its address {address:#x} cannot be had in this process",
                name(object, section)
            )
        }
        Error::Initializer { object, section, address } => {
            anyhow::anyhow!(
                "{}: constructor {address:#x} is outside the code",
                name(object, section)
            )
        }
        error => anyhow::Error::new(error).context(objects.label(0).to_owned()),
    }
}
