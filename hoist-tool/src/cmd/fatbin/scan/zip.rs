//! Wheels: zip files whose members are stored or deflated. Members are looked at on all cores; large ones are unpacked into
//! temporary files, so that memory stays bounded.

use std::io::{self, Read, Write as _};

use anyhow::{Context as _, Error, Result, bail, ensure};
use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};
use rayon::prelude::*;

use super::super::mapped::Mapped;
use crate::budget::Budget;
use crate::printable::Printable;

use super::{Covered, in_member, may_hold, one, spooled};

/// Members up to this size are unpacked in memory.
const IN_MEMORY: u64 = 16 << 20;
/// Deflate gives no more than this for a byte (RFC 1951 3.2.5).
const MOST: u64 = 1032;

struct Member {
    name: String,
    at: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    size: u64,
}

/// What the members of a wheel hold; what was wrong.
pub(super) fn scan(label: &str, file: &Mapped, limit: Option<u64>) -> (Vec<Covered>, Vec<Error>) {
    let archive = match ZipArchive::from_slice(file.bytes()) {
        Ok(archive) => archive,
        Err(error) => return (Vec::new(), vec![in_member(label, "", error)]),
    };
    let (members, error) = members(&archive);
    if let Err(error) = check(&archive, &members) {
        return (Vec::new(), vec![in_member(label, "", error)]);
    }
    let budget = Budget::new(limit, 1 << 30, 64, file.bytes().len() as u64);
    let results: Vec<_> = members
        .par_iter()
        .with_max_len(1)
        .map(|member| match unpack(&archive, member, (file, &budget)) {
            Ok(None) => Default::default(),
            Ok(Some(content)) => one(format!("{label}:{}", member.name), &content),
            Err(error) => (Vec::new(), vec![in_member(label, &member.name, format!("{error:#}"))]),
        })
        .collect();
    let mut errors: Vec<_> = error.into_iter().map(|error| in_member(label, "", error)).collect();
    let mut all = Vec::new();
    for (covered, wrong) in results {
        all.extend(covered);
        errors.extend(wrong);
    }
    (all, errors)
}

/// Refuses members that share bytes: few bytes would be unpacked many times.
fn check(archive: &ZipSliceArchive<&[u8]>, members: &[Member]) -> Result<()> {
    let mut ranges: Vec<(u64, u64, &Member)> = Vec::new();
    for member in members {
        let range = archive.get_entry(member.at).map(|entry| entry.compressed_data_range());
        // what cannot be read is an error of its own
        ranges.extend(range.ok().map(|(start, end)| (start, end, member)));
    }
    ranges.retain(|(start, end, _)| start < end);
    ranges.sort_by_key(|(start, ..)| *start);
    for [(_, end, one), (start, _, other)] in ranges.array_windows() {
        let [one, other] = [one, other].map(|member| Printable::from(&*member.name));
        ensure!(start >= end, "members {one} and {other} share the bytes at {start:#x}");
    }
    Ok(())
}

fn members(archive: &ZipSliceArchive<&[u8]>) -> (Vec<Member>, Option<rawzip::Error>) {
    let mut members = Vec::new();
    let mut entries = archive.entries();
    loop {
        match entries.next_entry() {
            Ok(None) => return (members, None),
            Err(error) => return (members, Some(error)),
            Ok(Some(entry)) if entry.is_dir() => {}
            Ok(Some(entry)) => members.push(Member {
                name: String::from_utf8_lossy(entry.file_path().as_ref()).into_owned(),
                at: entry.wayfinder(),
                method: entry.compression_method(),
                size: entry.uncompressed_size_hint(),
            }),
        }
    }
}

/// The bytes of a member; none if it does not begin like a file that may hold device code.
fn unpack(
    archive: &ZipSliceArchive<&[u8]>,
    member: &Member,
    (file, budget): (&Mapped, &Budget),
) -> Result<Option<Mapped>> {
    let entry = archive.get_entry(member.at)?;
    let stored = entry.data();
    let (start, end) = entry.compressed_data_range();
    let content = match member.method {
        CompressionMethod::Store if !may_hold(stored) => return Ok(None),
        CompressionMethod::Store => {
            ensure!(member.size == stored.len() as u64, "a size that lies");
            spooled(|file| file.write_all(stored).context("a temporary file"))?
        }
        CompressionMethod::Deflate => {
            let mut reader = DeflateDecoder::new(stored);
            let mut head = Vec::new();
            reader.by_ref().take(64).read_to_end(&mut head)?;
            if !may_hold(&head) || head.starts_with(b"PK") {
                return Ok(None);
            }
            ensure!(
                member.size / MOST <= stored.len() as u64,
                "{} bytes claimed, where {} can hold {MOST} times as many at most",
                member.size,
                stored.len(),
            );
            budget.take("it", member.size)?;
            inflate(head, reader, member.size)?
        }
        method => bail!("compressed by method {}", method.as_id().as_u16()),
    };
    file.done_with(start..end);
    Ok(Some(content))
}

/// What `head` and `reader` give, which must be `size` bytes.
fn inflate(head: Vec<u8>, reader: impl Read, size: u64) -> Result<Mapped> {
    let mut rest = reader.take(size.saturating_sub(head.len() as u64).saturating_add(1));
    if size <= IN_MEMORY {
        let mut bytes = head;
        rest.read_to_end(&mut bytes)?;
        ensure!(bytes.len() as u64 == size, "unpacks to another size than {size}");
        return Ok(Mapped::of(bytes));
    }
    spooled(|file| {
        file.write_all(&head)?;
        let more = io::copy(&mut rest, file)?;
        ensure!(
            more.saturating_add(head.len() as u64) == size,
            "unpacks to another size than {size}"
        );
        Ok(())
    })
}
