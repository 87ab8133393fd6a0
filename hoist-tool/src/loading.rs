//! How objects get into this process: what `hoist run` and `hoist jit` have in common.

use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use exec_host::observer::{GdbInterface, JitDump, Observer, PerfMap};
use exec_host::{Loader, Module, Process, StaticTlsReserve};

thread_local! {
    /// For code that was compiled for an executable: a debug build of Zig's runtime has 256 KiB of thread-local variables.
    static RESERVE: StaticTlsReserve<{ 288 << 10 }> = const { StaticTlsReserve::new() };
}

/// Which memory, which libraries, and who is told.
#[derive(Debug, clap::Args)]
pub struct Loading {
    /// Opens a library whose symbols the code and later libraries may use, as dlopen does with RTLD_GLOBAL
    #[arg(long = "lib", value_name = "NAME_OR_PATH")]
    libraries: Vec<PathBuf>,
    /// Shows the code to a debugger that this process runs under
    #[arg(long)]
    gdb: bool,
    /// Writes the functions' names to /tmp/perf-PID.map
    #[arg(long)]
    perf_map: bool,
    /// Writes code and lines to jit-PID.dump in a folder, for `perf inject --jit`
    #[arg(long, value_name = "FOLDER")]
    jitdump: Option<PathBuf>,
    /// Writes code through other addresses than those where it is executed
    #[arg(long)]
    dual_mapping: bool,
    /// Asks for huge pages for large code
    #[arg(long)]
    huge_pages: bool,
    /// Leaves instructions that use the global offset table as they are, even where they could do without
    #[arg(long)]
    no_relax: bool,
}

impl Loading {
    /// What loads.
    ///
    /// # Errors
    /// If a profiler's file cannot be written.
    pub fn loader(&self) -> Result<Loader> {
        Ok(self.loader_with(&self.observers()?))
    }

    /// The same, with those who are told.
    #[must_use]
    pub fn loader_with(&self, observers: &[Arc<dyn Observer>]) -> Loader {
        let mut loader = Loader::new()
            .dual_mapping(self.dual_mapping)
            .huge_pages(self.huge_pages)
            .relax(!self.no_relax);
        for observer in observers {
            loader = loader.observer(Arc::clone(observer));
        }
        loader
    }

    /// Who is told of loads.
    ///
    /// # Errors
    /// If a profiler's file cannot be written.
    pub fn observers(&self) -> Result<Vec<Arc<dyn Observer>>> {
        let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
        if self.gdb {
            observers.push(Arc::new(GdbInterface));
        }
        if self.perf_map {
            observers.push(Arc::new(PerfMap::create().context("the map for perf")?));
        }
        if let Some(folder) = &self.jitdump {
            let dump = JitDump::create(folder).with_context(|| folder.display().to_string())?;
            observers.push(Arc::new(dump));
        }
        Ok(observers)
    }

    /// The symbols of this process and of the libraries asked for, which stay open to its end, as those that a program has opened:
    /// also what nothing is used of may have given others pointers to itself.
    ///
    /// # Errors
    /// If a library cannot be opened.
    ///
    /// # Safety
    /// The libraries' constructors may run, and nobody in this process keeps pointers to variables of libraries.
    pub unsafe fn process(&self) -> Result<&'static mut Process> {
        // where that cannot be had, loads find the room that the C library has, or are refused
        let _ = StaticTlsReserve::offer(&RESERVE);
        let mut process = Process::new();
        // SAFETY: as the caller says.
        unsafe { process.copy_relocations(true) };
        let mut left: Vec<_> = self.libraries.iter().collect();
        while !left.is_empty() {
            // one may need a symbol of another that comes later and is not named in it
            let (mut missed, mut why) = (Vec::new(), Ok(()));
            for library in &left {
                // SAFETY: as the caller says.
                if let Err(error) = unsafe { process.open_global(library) } {
                    missed.push(*library);
                    why = why.and(Err(error).with_context(|| library.display().to_string()));
                }
            }
            if missed.len() == left.len() {
                why?;
            }
            left = missed;
        }
        Ok(Box::leak(Box::new(process)))
    }
}

/// A module whose destructors run when it is dropped, and which stays mapped: threads that its code has started (a runtime's, Go's for
/// one) run as long as the process does.
#[derive(Debug)]
pub struct Staying<B: AsRef<[u8]>>(ManuallyDrop<Module<B>>);

impl<B: AsRef<[u8]>> From<Module<B>> for Staying<B> {
    fn from(module: Module<B>) -> Self {
        Self(ManuallyDrop::new(module))
    }
}

impl<B: AsRef<[u8]>> Deref for Staying<B> {
    type Target = Module<B>;

    fn deref(&self) -> &Module<B> {
        &self.0
    }
}

impl<B: AsRef<[u8]>> Drop for Staying<B> {
    fn drop(&mut self) {
        if !self.0.needs_initialization() {
            // SAFETY: its constructors have run, or it has none; it is dropped once, and the module never.
            unsafe { self.0.finish() };
        }
    }
}
