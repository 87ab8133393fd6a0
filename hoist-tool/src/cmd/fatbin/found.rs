//! All device code of a file, looked for on all cores, in bounded memory.

use std::cmp::Reverse;
use std::ops::Range;

use fatbin::{Container, Error, FoundContainer, Region, Scan, Search, Span, Step, Window, scans};
use rayon::prelude::*;

use crate::mapped::Mapped;

/// Pages are let go when this many bytes lie behind.
const BEHIND: u64 = 16 << 20;

/// What `each` makes of every container of a file, in the order of [`fatbin::walk`], and the errors between. Sections, and members
/// of an archive, are looked through at the same time; of much data, its windows.
pub fn containers<'a, T: Send>(
    file: &'a Mapped,
    search: Search,
    each: impl Fn(FoundContainer<'a>) -> T + Sync,
) -> impl Iterator<Item = Result<T, Error>> {
    let mut scans: Vec<_> = scans(file.bytes(), search).enumerate().collect();
    let (mut jobs, mut large) = (Vec::new(), Vec::new());
    // What takes longest is begun first, and each goes to who is free: the cores end together.
    scans.sort_by_key(|(_, scan)| Reverse(scan.as_ref().ok().and_then(Scan::rest).map(Span::size)));
    for (index, scan) in scans {
        match scan {
            Ok(scan) if is_sparse(&scan) => {
                file.will_read(scan.searched().map_or(0..0, range));
                jobs.extend(scan.windows().map(|window| Job::Window(index, window)));
                large.push((index, scan));
            }
            scan => jobs.push(Job::Scan(index, scan)),
        }
    }
    // headers that lead from one to the next are a job that cannot be shared
    jobs.sort_by_key(|job| matches!(job, Job::Window(..)));
    let done = |job| match job {
        Job::Scan(index, Ok(scan)) => Done::Found(index, look(file, scan, &[], &each)),
        Job::Scan(index, Err(error)) => Done::Found(index, vec![Err(error)]),
        Job::Window(index, window) => {
            let (first, span) = (window.first(), range(window.span()));
            if first == span.end {
                file.done_with(span.clone());
            }
            Done::Clean(index, span.start..first)
        }
    };
    let (mut all, mut clean) = (Vec::new(), Vec::new());
    for done in jobs.into_iter().par_bridge().map(done).collect::<Vec<_>>() {
        match done {
            Done::Found(index, found) => all.push((index, found)),
            Done::Clean(index, range) => clean.push((index, range)),
        }
    }
    clean.sort_unstable_by_key(|(index, range)| (*index, range.start));
    let of = |index| {
        let start = clean.partition_point(|(one, _)| *one < index);
        let end = clean.partition_point(|(one, _)| *one <= index);
        clean.get(start..end).unwrap_or_default()
    };
    all.par_extend(
        large.into_par_iter().map(|(index, scan)| (index, look(file, scan, of(index), &each))),
    );
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().flat_map(|(_, found)| found)
}

/// Whether much is to be searched, and does not begin with a container: others may follow that, and headers lead over them.
fn is_sparse(scan: &Scan<'_>) -> bool {
    let mut windows = scan.windows();
    let first = windows.next().filter(|_| windows.next().is_some());
    first.is_some_and(|window| window.first() > window.span().at())
}

/// What can be done apart from the rest; numbers are those of scans.
enum Job<'a> {
    Scan(usize, Result<Scan<'a>, Error>),
    Window(usize, Window<'a>),
}

/// What comes of it.
enum Done<T> {
    Found(usize, Vec<Result<T, Error>>),
    /// No container begins in these bytes.
    Clean(usize, Range<u64>),
}

/// Where in the file a span lies.
fn range(span: Span<'_>) -> Range<u64> {
    span.at()..span.at().saturating_add(span.size())
}

/// All regions of a file with their numbers, which count other containers too.
///
/// # Errors
/// The first, if a part of the file cannot be read.
pub fn regions(file: &Mapped, search: Search) -> Result<Vec<(usize, Region<'_>)>, Error> {
    let mut all = Vec::new();
    for (index, container) in containers(file, search, |found| found.container).enumerate() {
        if let Container::Region(region) = container? {
            all.push((index, region));
        }
    }
    Ok(all)
}

/// What is in a part of a file, of which something is known: where no container begins, in order.
fn look<'a, T>(
    file: &Mapped,
    mut scan: Scan<'a>,
    clean: &[(usize, Range<u64>)],
    each: impl Fn(FoundContainer<'a>) -> T,
) -> Vec<Result<T, Error>> {
    if clean.is_empty() {
        scan.searched().into_iter().for_each(|span| file.will_read(range(span)));
    }
    let mut clean = clean.iter().map(|(_, range)| range).peekable();
    let mut all = Vec::new();
    let mut looked: Option<(u64, u64)> = None;
    loop {
        while let Some(at) = scan.rest().map(Span::at)
            && let Some(range) = clean.next_if(|range| range.start <= at)
        {
            scan.pass(range.end);
        }
        let (start, size) = match scan.next() {
            None => break,
            Some(Err(error)) => {
                all.push(Err(error));
                continue;
            }
            Some(Ok(Step::Passed(span))) => (span.at(), span.size()),
            Some(Ok(Step::Found(found))) => {
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
