//! One file of an archive of files, by the name that output has for it: `wheel.whl:folder/library.so`, in archives in one another
//! `image.tar:layer.tar:usr/lib/library.so`.

use std::path::Path;

use anyhow::Result;

use super::Budget;
use super::nest::{Nest, Order, Source};
use crate::mapped::Mapped;

/// The first file inside `archive` that has one of these names, and which name it has. No other is unpacked.
///
/// # Errors
/// If the archive, or the file, is damaged or may not be unpacked.
pub fn read(archive: &Path, names: &[String]) -> Result<Option<(String, Mapped)>> {
    let label = archive.display().to_string();
    let wanted: Vec<String> = names.iter().map(|name| format!("{label}:{name}")).collect();
    let is_wanted = |label: &str| {
        wanted.iter().any(|wanted| {
            let rest = wanted.strip_prefix(label);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    };
    let look = |source: Source| {
        let index = wanted.iter().position(|wanted| *wanted == source.label);
        index.map(|index| (index, source.file))
    };
    let size = archive.metadata().map_or(0, |metadata| metadata.len());
    let budget = Budget::default();
    let nest = Nest::new((&budget, size), Order::OneByOne, &look).only(&is_wanted);
    let mut found: Vec<_> = nest.path(archive, true).into_iter().collect::<Result<_>>()?;
    found.sort_by_key(|found| found.as_ref().map_or(usize::MAX, |(index, _)| *index));
    let first = found.into_iter().flatten().next();
    Ok(first.and_then(|(index, file)| Some((names.get(index)?.clone(), file))))
}
