//! Files that commands look into: those that the command line names, those of folders, and what archives have inside: wheels and
//! other zip files, tar, gzip, zstd and bzip2, packages of conda, layers of container images, one in another as they come.
//!
//! Nothing is unpacked to a place with a name, and only what may hold device code is unpacked at all: small files into memory,
//! large ones into temporary files without a name.

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use anyhow::{Error, Result};
use rayon::prelude::*;
#[cfg(not(target_family = "wasm"))]
use walkdir::WalkDir;

use nest::Nest;

use crate::progress::Progress;

mod budget;
#[cfg(not(target_family = "wasm"))]
pub mod member;
mod nest;
mod roots;
#[cfg_attr(target_family = "wasm", path = "sources/unpack/wasm.rs")]
mod unpack;
mod zip;

pub use budget::Budget;
pub use nest::{Order, STANDARD_INPUT, Source};
pub use roots::Roots;

/// Which files: folders with all that is in them, files, and `-` for standard input.
#[derive(Debug, Default, clap::Args)]
pub struct Sources {
    /// Files, folders, wheels, zip and tar archives (gzip, zstd, bzip2), packages of conda, images of containers; `-` is standard
    /// input.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    budget: Budget,
}

/// What is to be looked into, with its size: none for what is no file.
struct Item {
    path: PathBuf,
    /// Which of the paths of the command line it is, or is in.
    root: usize,
    size: u64,
    is_named: bool,
}

impl Sources {
    /// These paths, with the budget that is usual.
    #[must_use]
    pub fn of(paths: Vec<PathBuf>) -> Self {
        Self { paths, budget: Budget::default() }
    }

    /// Calls `look` with every file that may hold device code, and every file that the command line names; gives what it returns to
    /// `take`, in the order of the command line, with the number of the path that it is in. What cannot be read comes as an error in
    /// its place.
    ///
    /// # Errors
    /// Those of `take`, which end the work.
    pub fn each<T: Send>(
        &self,
        order: Order,
        look: impl Fn(Source) -> T + Sync,
        mut take: impl FnMut(usize, Result<T>) -> Result<()>,
    ) -> Result<()> {
        // where there are no threads, nobody else works while the results are waited for
        let order = if cfg!(target_family = "wasm") { Order::OneByOne } else { order };
        let (items, errors) = self.items();
        let size = items.iter().map(|item| item.size).sum();
        let progress = Progress::of_bytes(size);
        // nobody knows how much comes there
        let streams = self.paths.iter().filter(|path| path.as_os_str() == "-").count() as u64;
        let expected = streams.saturating_mul(1 << 30).saturating_add(size);
        let nest = Nest::new((&self.budget, expected), order, &look);
        let one = |item: &Item| {
            let all = nest.path(&item.path, item.is_named);
            progress.advance(item.size);
            (item.root, all)
        };
        let mut take_all = |(root, all): (usize, Vec<Result<T>>)| {
            progress.aside(|| all.into_iter().try_for_each(|one| take(root, one)))
        };
        match order {
            Order::OneByOne => {
                for item in &items {
                    take_all(one(item))?;
                }
            }
            Order::AtOnce => rayon::in_place_scope(|scope| {
                let (sender, receiver) = mpsc::channel();
                let (items, one) = (&items, &one);
                scope.spawn(move |_| {
                    let numbered = items.par_iter().enumerate().with_max_len(1);
                    numbered.for_each_with(sender, |sender, (index, item)| {
                        let _ = sender.send((index, one(item))); // nobody listens after an error
                    });
                });
                let mut waiting = std::collections::BTreeMap::new();
                let mut next = 0;
                for (index, all) in receiver {
                    waiting.insert(index, all);
                    while let Some(all) = waiting.remove(&next) {
                        take_all(all)?;
                        next += 1;
                    }
                }
                anyhow::Ok(())
            })?,
        }
        drop(progress);
        errors.into_iter().try_for_each(|(root, error)| take(root, Err(error)))
    }

    /// What to call a path of the command line.
    #[must_use]
    pub fn root(&self, root: usize) -> String {
        self.paths.get(root).map_or_else(String::new, |path| path.display().to_string())
    }

    /// The files in order; folders that cannot be read.
    fn items(&self) -> (Vec<Item>, Vec<(usize, Error)>) {
        let (mut items, mut errors) = (Vec::new(), Vec::new());
        for (root, named) in self.paths.iter().enumerate() {
            if named.as_os_str() == "-" || !named.is_dir() {
                let size = named.metadata().map_or(0, |metadata| metadata.len());
                items.push(Item { path: named.clone(), root, size, is_named: true });
                continue;
            }
            for entry in folder(named) {
                match entry {
                    Ok((path, size)) => items.push(Item { path, root, size, is_named: false }),
                    Err(error) => errors.push((root, error)),
                }
            }
        }
        (items, errors)
    }
}

/// The files in a folder and below with their sizes, by name.
#[cfg(not(target_family = "wasm"))]
fn folder(path: &Path) -> impl Iterator<Item = Result<(PathBuf, u64)>> {
    WalkDir::new(path).sort_by_file_name().into_iter().filter_map(|entry| match entry {
        Ok(entry) if entry.file_type().is_file() => {
            let size = entry.metadata().map_or(0, |metadata| metadata.len());
            Some(Ok((entry.into_path(), size)))
        }
        Ok(_) => None,
        Err(error) => Some(Err(error.into())),
    })
}

/// There are no folders.
#[cfg(target_family = "wasm")]
fn folder(_path: &Path) -> impl Iterator<Item = Result<(PathBuf, u64)>> {
    core::iter::empty()
}
