//! All device code of a file, looked for on all cores, in bounded memory.

use std::cmp::Reverse;

use fatbin::{Container, Error, FoundContainer, Region, Scan, Search, Span, Step, scans};
use rayon::prelude::*;

use crate::mapped::Mapped;

/// Pages are let go when this many bytes lie behind.
const BEHIND: u64 = 16 << 20;

/// What `each` makes of every container of a file, in the order of [`fatbin::walk`], and the errors between. Sections, and members
/// of an archive, are looked through at the same time.
pub fn containers<'a, T: Send>(
    file: &'a Mapped,
    search: Search,
    each: impl Fn(FoundContainer<'a>) -> T + Sync,
) -> Vec<Result<T, Error>> {
    let scans: Vec<_> = scans(file.bytes(), search).collect();
    let found = |scan| match scan {
        Ok(scan) => look(file, scan, &each),
        Err(error) => vec![Err(error)],
    };
    // What takes longest is begun first, and each goes to who is free: the cores end together.
    let mut scans: Vec<_> = scans.into_iter().enumerate().collect();
    scans.sort_by_key(|(_, scan)| Reverse(scan.as_ref().ok().and_then(Scan::rest).map(Span::size)));
    let mut all: Vec<_> =
        scans.into_iter().par_bridge().map(|(index, scan)| (index, found(scan))).collect();
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().flat_map(|(_, found)| found).collect()
}

/// All regions of a file with their numbers, which count other containers too.
///
/// # Errors
/// The first, if a part of the file cannot be read.
pub fn regions(file: &Mapped, search: Search) -> Result<Vec<(usize, Region<'_>)>, Error> {
    let mut all = Vec::new();
    for (index, container) in
        containers(file, search, |found| found.container).into_iter().enumerate()
    {
        if let Container::Region(region) = container? {
            all.push((index, region));
        }
    }
    Ok(all)
}

/// What is in a part of a file.
fn look<'a, T>(
    file: &Mapped,
    scan: Scan<'a>,
    each: impl Fn(FoundContainer<'a>) -> T,
) -> Vec<Result<T, Error>> {
    let end = |span: Span<'_>| span.at().saturating_add(span.size());
    scan.searched().into_iter().for_each(|span| file.will_read(span.at()..end(span)));
    let mut all = Vec::new();
    let mut looked: Option<(u64, u64)> = None;
    for step in scan {
        let (start, size) = match step {
            Err(error) => {
                all.push(Err(error));
                continue;
            }
            Ok(Step::Passed(span)) => (span.at(), span.size()),
            Ok(Step::Found(found)) => {
                all.push(Ok(each(found)));
                (found.container.at(), found.container.size())
            }
        };
        let (start, end) = (looked.map_or(start, |(start, _)| start), start.saturating_add(size));
        looked = Some((start, end));
        if end.saturating_sub(start) > BEHIND {
            file.done_with(start..end);
            looked = None;
        }
    }
    looked.into_iter().for_each(|(start, end)| file.done_with(start..end));
    all
}
