//! `hoist exec PROGRAM [ARG...]`: runs a program in this process, without `execve`.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use exec_host::program::Program;

/// Runs a program in this process: static, static PIE, or dynamic.
#[derive(Debug, clap::Args)]
pub struct Exec {
    /// The program
    program: PathBuf,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Exec {
    /// Loads the program and goes on in it.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn run(&self) -> Result<()> {
        let label = || self.program.display().to_string();
        let bytes = std::fs::read(&self.program).with_context(label)?;
        let program = Program::load(&bytes).with_context(label)?;
        drop(bytes);
        let name = CString::new(self.program.as_os_str().as_bytes())?;
        let arguments = self.arguments.iter().map(|word| CString::new(word.as_str()));
        let mut words = vec![name];
        words.extend(arguments.collect::<Result<Vec<_>, _>>()?);
        let environment = std::env::vars_os()
            .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()));
        let environment: Vec<CString> = environment.collect::<Result<_, _>>()?;
        // SAFETY: the user asks for the program, and nothing else runs in this process.
        unsafe { program.start(&words, &environment) }.with_context(label)
    }
}
