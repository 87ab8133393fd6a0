//! `hoist cache stats|clear|verify`: what `hoist jit` has compiled before.

use core::str::FromStr;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use exec_core::{CacheMode, DiskCache, default_folder};

/// Bytes of images that are kept.
const LIMIT: u64 = 1 << 30;

/// Shows, checks or empties the cache of compiled sources.
#[derive(Debug, clap::Args)]
pub struct Cache {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    place: Place,
}

/// Where the cache is.
#[derive(Clone, Debug, clap::Args)]
pub struct Place {
    /// The folder of the cache; by default that of $HOIST_CACHE_DIR, or `hoist` among the user's caches
    #[arg(long, value_name = "FOLDER", global = true)]
    cache_dir: Option<PathBuf>,
}

/// What to do with it.
#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum Task {
    /// Shows how much is in it.
    Stats,
    /// Empties it.
    Clear,
    /// Reads everything in it, and removes what is damaged.
    Verify,
}

/// How a command uses the cache, in the words of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Use(pub CacheMode);

impl FromStr for Use {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        Ok(Self(match word {
            "on" => CacheMode::ReadWrite,
            "off" => CacheMode::Off,
            "read-only" => CacheMode::ReadOnly,
            "required" => CacheMode::Required,
            _ => bail!("unknown use {word:?}: one of on, off, read-only, required"),
        }))
    }
}

impl Place {
    /// The folder.
    fn folder(&self) -> Result<PathBuf> {
        self.cache_dir
            .clone()
            .or_else(default_folder)
            .context("no folder for the cache: $HOME is not set")
    }

    /// Opens the cache.
    ///
    /// # Errors
    /// If there is no folder for it, or it cannot be opened.
    pub fn open(&self, mode: CacheMode) -> Result<DiskCache> {
        if mode == CacheMode::Off {
            return Ok(DiskCache::open(&PathBuf::new(), mode, LIMIT)?);
        }
        let folder = self.folder()?;
        DiskCache::open(&folder, mode, LIMIT).with_context(|| folder.display().to_string())
    }

    /// Opens the cache, or none, with a warning: a cache that does not work stops nobody.
    ///
    /// # Errors
    /// If others can write to it; if it must have the image and does not work.
    pub fn open_or_off(&self, mode: CacheMode) -> Result<(DiskCache, Option<String>)> {
        if matches!(mode, CacheMode::Off | CacheMode::Required) {
            return Ok((self.open(mode)?, None));
        }
        let folder = match self.folder() {
            Ok(folder) => folder,
            Err(error) => return Ok((self.open(CacheMode::Off)?, Some(error.to_string()))),
        };
        let (cache, error) = DiskCache::open_or_off(&folder, mode, LIMIT)?;
        let warning = error.map(|error| format!("{}: {error}", folder.display()));
        Ok((cache, warning))
    }
}

impl Cache {
    /// Does it and prints what was found to `out`.
    ///
    /// # Errors
    /// If the cache cannot be opened, read or written, or something in it was damaged.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mode = if matches!(self.task, Task::Stats) {
            CacheMode::ReadOnly
        } else {
            CacheMode::ReadWrite
        };
        let cache = self.place.open(mode)?;
        let context = || {
            self.place.folder().map_or_else(|_| String::new(), |path| path.display().to_string())
        };
        match self.task {
            Task::Stats => {
                let stats = cache.stats().with_context(context)?;
                writeln!(out, "{}", context())?;
                writeln!(
                    out,
                    "{} images, {} bytes, of {LIMIT} at the most",
                    stats.images, stats.bytes
                )?;
                writeln!(out, "{} bytes on disk", stats.file_bytes)?;
            }
            Task::Clear => {
                let stats = cache.clear().with_context(context)?;
                writeln!(out, "{} images, {} bytes removed", stats.images, stats.bytes)?;
            }
            Task::Verify => {
                let found = cache.verify().with_context(context)?;
                writeln!(out, "{} images are good", found.good)?;
                if found.damaged > 0 {
                    bail!("{}: {} images were damaged and are removed", context(), found.damaged);
                }
                if !found.is_sound {
                    bail!("{}: the database is damaged; `hoist cache clear` empties it", context());
                }
            }
        }
        Ok(())
    }
}
