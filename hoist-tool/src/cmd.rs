//! The subcommands, one file each. They print to any writer, so that tests and other programs can call them.

use std::io::Write;

use anyhow::Result;
use clap::{ColorChoice, CommandFactory as _};

use crate::progress::during;

#[cfg(feature = "host")]
pub mod cache;
pub mod completions;
pub mod cubin;
#[cfg(feature = "nv")]
pub mod devices;
pub mod disasm;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod exec;
pub mod fatbin;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod jit;
#[cfg(feature = "nv")]
#[expect(unsafe_code, reason = "launches what the user asks for")]
pub mod launch;
pub mod layout;
pub mod link;
pub mod man;
pub mod nvidia;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "runs what the user asks for")]
pub mod run;
pub mod show;
pub mod views;
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
    #[cfg(feature = "host")]
    Jit(jit::Jit),
    /// Shows, checks or empties the cache of compiled sources.
    #[cfg(feature = "host")]
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
    Cubin(cubin::Cubin),
    /// Shows instructions, with relocated targets by name.
    Disasm(disasm::Disasm),
    /// Lists, extracts, packs and changes device code inside host files.
    #[command(subcommand)]
    Fatbin(fatbin::Fatbin),
    /// Changes wheels of Python.
    #[command(subcommand)]
    Wheel(wheel::Wheel),
    /// Answers as NVIDIA's cuobjdump does; also if the program is called by that name.
    #[command(disable_help_flag = true)]
    Cuobjdump(nvidia::Cuobjdump),
    /// Answers as NVIDIA's nvprune does; also if the program is called by that name.
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
            #[cfg(feature = "host")]
            Self::Jit(command) => command.run(out),
            #[cfg(feature = "host")]
            Self::Cache(command) => command.run(out),
            #[cfg(feature = "nv")]
            Self::Launch(command) => command.run(out),
            #[cfg(feature = "nv")]
            Self::Devices(command) => command.run(out),
            Self::Show(command) => command.run(out),
            Self::Layout(command) => command.run(out),
            Self::Link(command) => during("linking", || command.run(out)),
            Self::Cubin(command) => command.run(out),
            Self::Disasm(command) => command.run(out),
            Self::Fatbin(command) => command.run(out),
            Self::Wheel(command) => command.run(out),
            Self::Cuobjdump(command) => command.run(out),
            Self::Nvprune(command) => command.run(out),
            Self::Completions(command) => command.run(CommandLine::command(), out),
            Self::Man(command) => command.run(CommandLine::command(), out),
        }
    }
}
