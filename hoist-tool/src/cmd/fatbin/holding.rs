//! Which entries have kernels that are meant: their code is unpacked for that.

use std::collections::HashSet;

use anyhow::{Context as _, Error};
use fatbin::Search;
use nvinfo::Cubin;

use super::cubins::{Image, images};
use super::filter::Code;
use super::kernels::{is_cubin, is_ptx};
use crate::pattern::Pattern;
use crate::ptx::ptx_module;
use crate::sources::Source;

/// Entries by the kernels in them; all if nothing is said.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Holding {
    /// Entries with kernels of these names, mangled or not, `gemm*`, or `/REGEX/`; several of them mean all that one of them means.
    #[arg(long = "kernel", value_name = "PATTERN", id = "kernel_pattern")]
    kernel: Vec<Pattern>,
}

/// Numbers of a region and an entry.
pub type Place = (usize, usize);

impl Holding {
    /// Whether nothing is said.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.kernel.is_empty()
    }

    /// The entries of a file that have such kernels, and what was wrong; nothing if all are meant.
    #[must_use]
    pub fn entries(
        &self,
        source: &Source,
        search: Search,
        code: &Code,
    ) -> Option<(HashSet<Place>, Vec<Error>)> {
        if self.is_all() {
            return None;
        }
        let wants = |image: &Image| {
            (is_cubin(image) || is_ptx(image)) && !image.is_encrypted && code.wants_image(image)
        };
        let (mut places, mut errors) = (HashSet::new(), Vec::new());
        for found in images(&source.file, search, wants, |image, bytes| {
            let has = self.has(image, bytes).with_context(|| image.place.to_string())?;
            anyhow::Ok(has.then_some((image.place.region, image.place.entry)))
        }) {
            match found.and_then(|found| found) {
                Ok(place) => places.extend(place),
                Err(error) => errors.push(error.context(source.label.clone())),
            }
        }
        Some((places, errors))
    }

    /// Whether an image has such a kernel.
    fn has(&self, image: &Image, bytes: &[u8]) -> Result<bool, nvinfo::Error> {
        let wanted = |name: &str| Pattern::any(&self.kernel, name);
        if is_ptx(image) {
            let text = String::from_utf8_lossy(fatbin::text(bytes));
            let functions = ptx_module(&text).functions;
            return Ok(functions.iter().any(|one| one.is_kernel && wanted(one.name)));
        }
        let cubin = Cubin::parse(bytes)?;
        Ok(cubin.kernels().any(|one| wanted(&one.name().to_string())))
    }
}
