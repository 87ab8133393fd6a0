//! Zig, which wants its source and its object to be files, and has a cache of its own.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use exec_core::{Cache, CacheMode, CompileError, Compiled, Compiler, Identity, Origin};

/// What messages call it.
const NAME: &str = "zig";
/// For this processor, which is what it does if nobody says another; position-independent, so that it can be anywhere.
const OPTIONS: [&str; 3] = ["-O", "ReleaseFast", "-fPIC"];

/// The compiler for one source, and what that imports from beside it.
pub(crate) struct Zig {
    /// The program, and what comes before its arguments.
    words: &'static [&'static str],
    version: String,
    options: Vec<String>,
    source: PathBuf,
}

impl Zig {
    /// The compiler `zig`, or that of Python's package `ziglang`, with `options` besides the usual ones.
    ///
    /// # Errors
    /// [`CompileError::NotFound`].
    pub(crate) fn find(source: &Path, options: &[String]) -> Result<Self, CompileError> {
        let ways: [&[&str]; 2] = [&[NAME], &["python3", "-m", "ziglang"]];
        let found = ways.into_iter().find_map(|words| {
            let output = command(words).arg("version").output().ok()?;
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some((words, version))
        });
        let (words, version) = found.ok_or_else(|| CompileError::NotFound { name: NAME.into() })?;
        let usual = OPTIONS.iter().map(|option| String::from(*option));
        let options = usual.chain(options.iter().cloned()).collect();
        Ok(Self { words, version, options, source: source.to_owned() })
    }
}

fn command(words: &[&str]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().unwrap_or(&NAME));
    command.args(words);
    command
}

impl Compiler for Zig {
    fn identity(&self) -> Identity<'_> {
        Identity {
            name: NAME,
            version: &self.version,
            target: std::env::consts::ARCH,
            options: &self.options,
        }
    }

    /// Compiles the file: `source` is its text.
    fn compile(&self, _source: &str) -> Result<Vec<u8>, CompileError> {
        let name = || String::from(NAME);
        let start = |cause: io::Error| CompileError::Start { name: name(), cause: Arc::new(cause) };
        let folder = tempfile::tempdir().map_err(start)?;
        let object = folder.path().join("image.o");
        let mut command = command(self.words);
        command.arg("build-obj").args(&self.options);
        command.arg(format!("-femit-bin={}", object.display())).arg(&self.source);
        // what it leaves beside the source otherwise
        command.arg("--cache-dir").arg(folder.path().join("cache"));
        let output = command.output().map_err(start)?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        match (output.status.success(), output.status.signal()) {
            (true, _) => fs::read(object).map_err(start),
            (false, None) => Err(CompileError::Rejected { name: name(), messages }),
            (false, Some(signal)) => Err(CompileError::Died { name: name(), signal, messages }),
        }
    }

    /// Compiles always: what a source imports is seen by the compiler alone, which keeps what it has compiled itself.
    fn compile_cached(&self, source: &str, cache: &dyn Cache) -> Result<Compiled, CompileError> {
        if cache.mode() == CacheMode::Required {
            return Err(CompileError::Required { key: self.key().with(source), note: None });
        }
        Ok(Compiled { image: self.compile(source)?, origin: Origin::Compiler, note: None })
    }
}
