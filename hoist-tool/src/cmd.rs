//! The subcommands, one file each. They print to any writer, so that tests and other programs can call them.

use std::io::Write;

use anyhow::Result;
use clap::{ColorChoice, CommandFactory as _};

use crate::progress::during;

#[cfg(feature = "jit")]
pub mod cache;
pub mod completions;
#[cfg(feature = "device-code")]
pub mod cubin;
#[cfg(feature = "nv")]
pub mod devices;
#[cfg(feature = "disasm")]
pub mod disasm;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod exec;
#[cfg(feature = "device-code")]
pub mod fatbin;
#[cfg(feature = "jit")]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod jit;
#[cfg(feature = "nv")]
#[expect(unsafe_code, reason = "launches what the user asks for")]
pub mod launch;
pub mod layout;
pub mod link;
pub mod man;
#[cfg(feature = "device-code")]
pub mod nvidia;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod run;
pub mod show;
#[cfg(feature = "device-code")]
pub mod views;
#[cfg(feature = "device-code")]
pub mod wheel;

/// Puts machine code into memory without a linker or dynamic loader.
#[derive(Debug, clap::Parser)]
#[command(name = "hoist", version)]
pub struct CommandLine {
    /// When text has colours: on a terminal, if the environment (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`) says nothing else, or
    /// `always`, or `never`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of the command line.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Loads objects into this process and calls a function in them.
    #[cfg(feature = "host")]
    Run(run::Run),
    /// Runs a program in this process, without execve.
    #[cfg(feature = "host")]
    Exec(exec::Exec),
    /// Compiles a source and calls a function in it.
    #[cfg(feature = "jit")]
    Jit(jit::Jit),
    /// Shows, checks or empties the cache of compiled sources.
    #[cfg(feature = "jit")]
    Cache(cache::Cache),
    /// Launches a kernel on an NVIDIA GPU.
    #[cfg(feature = "nv")]
    Launch(launch::Launch),
    /// Lists the NVIDIA GPUs of this machine.
    #[cfg(feature = "nv")]
    Devices(devices::Devices),
    /// Shows what ELF files and archives contain.
    Show(show::Show),
    /// Shows where the sections of objects go, and why.
    Layout(layout::Layout),
    /// Writes the image of objects for an address, relocated.
    Link(link::Link),
    /// Shows, changes and links CUDA cubins.
    #[cfg(feature = "device-code")]
    Cubin(cubin::Cubin),
    /// Shows instructions, with relocated targets by name.
    #[cfg(feature = "disasm")]
    Disasm(disasm::Disasm),
    /// Lists, extracts, packs and changes device code inside host files.
    #[cfg(feature = "device-code")]
    #[command(subcommand)]
    Fatbin(fatbin::Fatbin),
    /// Changes wheels of Python.
    #[cfg(feature = "device-code")]
    #[command(subcommand)]
    Wheel(wheel::Wheel),
    /// Answers as NVIDIA's cuobjdump does; also if the program is called by that name.
    #[cfg(feature = "device-code")]
    #[command(disable_help_flag = true)]
    Cuobjdump(nvidia::Cuobjdump),
    /// Answers as NVIDIA's nvprune does; also if the program is called by that name.
    #[cfg(feature = "device-code")]
    #[command(disable_help_flag = true)]
    Nvprune(nvidia::Nvprune),
    /// Prints what a shell needs to complete commands and options.
    Completions(completions::Completions),
    /// Prints the manual page, or writes those of all commands into a folder.
    Man(man::Man),
}

impl Command {
    /// Does what the subcommand says and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line: with file, section, symbol and position as they apply.
    pub fn run(self, out: &mut dyn Write) -> Result<()> {
        match self {
            #[cfg(feature = "host")]
            Self::Run(command) => command.run(out),
            #[cfg(feature = "host")]
            Self::Exec(command) => command.run(),
            #[cfg(feature = "jit")]
            Self::Jit(command) => command.run(out),
            #[cfg(feature = "jit")]
            Self::Cache(command) => command.run(out),
            #[cfg(feature = "nv")]
            Self::Launch(command) => command.run(out),
            #[cfg(feature = "nv")]
            Self::Devices(command) => command.run(out),
            Self::Show(command) => command.run(out),
            Self::Layout(command) => command.run(out),
            Self::Link(command) => during("linking", || command.run(out)),
            #[cfg(feature = "device-code")]
            Self::Cubin(command) => command.run(out),
            #[cfg(feature = "disasm")]
            Self::Disasm(command) => command.run(out),
            #[cfg(feature = "device-code")]
            Self::Fatbin(command) => command.run(out),
            #[cfg(feature = "device-code")]
            Self::Wheel(command) => command.run(out),
            #[cfg(feature = "device-code")]
            Self::Cuobjdump(command) => command.run(out),
            #[cfg(feature = "device-code")]
            Self::Nvprune(command) => command.run(out),
            Self::Completions(command) => command.run(CommandLine::command(), out),
            Self::Man(command) => command.run(CommandLine::command(), out),
        }
    }
}
