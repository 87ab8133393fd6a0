//! `hoist exec PROGRAM [ARG...]`: runs a program in this process, without `execve`.

mod payload;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use exec_host::program::{LoadedProgram, StartBlock, set_executable};

use crate::mapped::Mapped;
use crate::member::Member;
use crate::number::number;
use crate::paint;

/// Runs a program in this process: static, static PIE, or dynamic.
#[derive(Debug, clap::Args)]
pub struct Exec {
    /// Bytes that the program may have in memory: decimal, or hexadecimal after 0x; otherwise what the size of its file explains
    #[arg(long, value_name = "BYTES", value_parser = number)]
    limit: Option<u64>,
    /// The program: a file, or `x.whl:folder/program`, a member of a wheel, zip or tar file
    program: PathBuf,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Exec {
    /// Loads the program and goes on in it.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn run(&self) -> Result<()> {
        let label = || self.program.display().to_string();
        let (bytes, path) = match Member::named(&self.program) {
            Some(member) => (member.read()?, None),
            None => {
                let bytes = Mapped::of(std::fs::read(&self.program).with_context(label)?);
                (bytes, std::fs::canonicalize(&self.program).ok())
            }
        };
        let program = match self.limit {
            Some(limit) => LoadedProgram::load_within(bytes.bytes(), limit),
            None => LoadedProgram::load(bytes.bytes()),
        };
        let program = program.with_context(label)?;
        // what is in no folder has none
        let program = match path.as_deref().and_then(Path::parent) {
            Some(folder) => program.origin(folder),
            None => program,
        };
        let payload = payload::of(bytes.bytes());
        drop(bytes);
        let name = CString::new(self.program.as_os_str().as_bytes())?;
        let arguments = self.arguments.iter().map(|word| CString::new(word.as_bytes()));
        let mut words = vec![name];
        words.extend(arguments.collect::<Result<Vec<_>, _>>()?);
        let environment = StartBlock::environment_of_process();
        let is_told = path.as_ref().is_some_and(|path| {
            // SAFETY: nothing else runs in this process.
            unsafe { set_executable(path) }.is_ok()
        });
        if let Some(payload) = payload.filter(|_| !is_told) {
            paint::warning(&format!("{}: {payload}", label()));
        }
        // SAFETY: the default, which Rust's runtime has changed for this program only, is no code; the user asks for the program, and
        // nothing else runs in this process.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            program.start(&words, &environment).with_context(label)
        }
    }
}
