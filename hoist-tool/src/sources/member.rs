//! One file of an archive of files, by the name that output has for it: `wheel.whl:folder/library.so`, in archives in one another
//! `image.tar:layer.tar:usr/lib/library.so`. Links in tar archives are followed within these.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

use super::Budget;
use super::nest::{Link, Nest, Only, Order, Source};
use crate::mapped::Mapped;

/// Most links that lead to one another.
const LINKS: usize = 40;

/// The first file inside `archive` that has one of these names, and which name it has. No other is unpacked.
///
/// # Errors
/// If the archive, or the file, is damaged or may not be unpacked, or links lead nowhere but to each other.
pub fn read(archive: &Path, names: &[String]) -> Result<Option<(String, Mapped)>> {
    let label = archive.display().to_string();
    let mut wanted: Vec<String> = names.iter().map(|name| format!("{label}:{name}")).collect();
    for _ in 0..LINKS {
        let asked = Asked { links: Mutex::new(vec![None; wanted.len()]), wanted: &wanted };
        let found = asked.look(archive)?;
        let links = asked.links.into_inner().unwrap_or_else(PoisonError::into_inner);
        // those that stand before it may be links
        let first = found.as_ref().map_or(wanted.len(), |(index, _)| *index);
        if !links.iter().take(first).any(Option::is_some) {
            return Ok(found.and_then(|(index, file)| Some((names.get(index)?.clone(), file))));
        }
        for (wanted, link) in wanted.iter_mut().zip(links) {
            if let Some(link) = link {
                *wanted = link;
            }
        }
    }
    bail!("{label}: more than {LINKS} links lead to one another")
}

/// Files that are wanted of an archive.
struct Asked<'w> {
    /// What output calls them.
    wanted: &'w [String],
    /// What is meant where links stand for them, or for what they are in.
    links: Mutex<Vec<Option<String>>>,
}

impl Asked<'_> {
    /// The first that there is, by its number.
    fn look(&self, archive: &Path) -> Result<Option<(usize, Mapped)>> {
        let look = |source: Source| {
            let index = self.wanted.iter().position(|wanted| *wanted == source.label);
            index.map(|index| (index, source.file))
        };
        let size = archive.metadata().map_or(0, |metadata| metadata.len());
        let budget = Budget::default();
        let nest = Nest::new((&budget, size), Order::OneByOne, &look).only(self);
        let mut found: Vec<_> = nest.path(archive, true).into_iter().collect::<Result<_>>()?;
        found.sort_by_key(|found| found.as_ref().map_or(usize::MAX, |(index, _)| *index));
        Ok(found.into_iter().flatten().next())
    }
}

impl Only for Asked<'_> {
    fn wants(&self, label: &str) -> bool {
        self.wanted.iter().any(|wanted| {
            let rest = wanted.strip_prefix(label);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    }

    fn link(&self, archive: &str, link: Link<'_>) {
        let label = format!("{archive}:{}", link.path.trim_end_matches('/'));
        let rests = self.wanted.iter().map(|wanted| {
            let rest = wanted.strip_prefix(&label);
            // it, a file in that folder, a member of that archive
            rest.filter(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
        });
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, rest) in links.iter_mut().zip(rests) {
            if let (Some(rest), Some(target)) = (rest, target(link)) {
                *place = Some(format!("{archive}:{target}{rest}"));
            }
        }
    }
}

/// The path in the archive that a link means; nothing if that is outside.
fn target(link: Link<'_>) -> Option<String> {
    let Link { path, target, is_symbolic } = link;
    if !is_symbolic {
        return Some(target.trim_end_matches('/').to_owned());
    }
    let start = if path.starts_with("./") { "./" } else { "" };
    let from = match path.trim_end_matches('/').rfind('/') {
        Some(at) if !target.starts_with('/') => path.get(..at)?,
        _ => "",
    };
    let mut folders = Vec::new();
    for part in from.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(folders.pop()?),
            part => folders.push(part),
        }
    }
    Some(format!("{start}{}", folders.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_links_mean() {
        let symbolic = |path, target| super::target(Link { path, target, is_symbolic: true });
        assert_eq!(symbolic("a/b/x.so", "x.so.1").as_deref(), Some("a/b/x.so.1"));
        assert_eq!(symbolic("./a/b/x.so", "../c/x.so").as_deref(), Some("./a/c/x.so"));
        assert_eq!(symbolic("lib", "usr/lib").as_deref(), Some("usr/lib"));
        assert_eq!(symbolic("./lib/", "/usr/lib/").as_deref(), Some("./usr/lib"));
        assert_eq!(symbolic("a/x.so", "../../x.so"), None, "outside");
        let hard = Link { path: "./b/x.so", target: "./a/x.so", is_symbolic: false };
        assert_eq!(super::target(hard).as_deref(), Some("./a/x.so"));
    }
}
