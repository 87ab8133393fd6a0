//! Files in one another, however deep: archives that are read from their start to their end (tar, and what is compressed as a
//! whole), and zip files, whose members are looked at on all cores.

use core::ops::Range;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive};
use rayon::prelude::*;

use super::budget::{Budget, Left};
use super::unpack;
use super::zip::{BEHIND, Content, MOST, Member, Sized, archive, check, members};
use crate::form::{Form, HEAD, is_wanted, may_hold};
use crate::lent::{self, Slices, Stream};
use crate::mapped::Mapped;

/// What standard input is called.
pub const STANDARD_INPUT: &str = "standard input";

/// A file to look into.
#[derive(Debug)]
pub struct Source {
    /// What to call it: its path, in an archive behind that of the archive and a colon.
    pub label: String,
    /// Its own name, without folders.
    pub name: String,
    /// Its bytes.
    pub file: Mapped,
}

/// How files are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after another.
    OneByOne,
    /// Several at a time, on all cores.
    AtOnce,
}

/// Files up to this size are unpacked in memory.
const IN_MEMORY: u64 = 16 << 20;

/// What is done with files, however deep inside others they are.
pub(super) struct Nest<'f, F> {
    left: Left,
    order: Order,
    look: &'f F,
    /// Which members of archives are unpacked, by what they are called; nothing for all of them.
    #[cfg(not(target_family = "wasm"))]
    only: Option<&'f dyn Only>,
}

/// Who wants certain members of archives.
#[cfg(not(target_family = "wasm"))]
pub(super) trait Only: Sync {
    /// Whether a member, or something inside it, is wanted.
    fn wants(&self, label: &str) -> bool;

    /// Is told of a link in an archive of this label.
    fn link(&self, archive: &str, link: Link<'_>);
}

/// A member of a tar archive that stands for another one.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) path: &'a str,
    pub(super) target: &'a str,
    /// The target is meant from where the link is, or from the root; else it is a member's path.
    pub(super) is_symbolic: bool,
}

impl<'f, F> Nest<'f, F> {
    pub(super) fn new((budget, size): (&Budget, u64), order: Order, look: &'f F) -> Self {
        Self {
            left: Left::new(budget, size),
            order,
            look,
            #[cfg(not(target_family = "wasm"))]
            only: None,
        }
    }

    /// The same of certain members alone.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn only(self, only: &'f dyn Only) -> Self {
        Self { only: Some(only), ..self }
    }

    #[cfg(not(target_family = "wasm"))]
    fn wants(&self, label: &str) -> bool {
        self.only.is_none_or(|only| only.wants(label))
    }

    /// Tells who wants members of a link, if the entry is one.
    #[cfg(not(target_family = "wasm"))]
    fn link(&self, archive: &str, entry: &tar::Entry<'_, impl Read>) {
        let Some((only, target)) = self.only.zip(entry.link_name_bytes()) else { return };
        let (path, target) = (entry.path_bytes(), String::from_utf8_lossy(&target));
        let path = String::from_utf8_lossy(&path);
        let is_symbolic = entry.header().entry_type().is_symlink();
        only.link(archive, Link { path: &path, target: &target, is_symbolic });
    }

    /// Pages show all of a file.
    #[cfg(target_family = "wasm")]
    const fn wants(&self, _: &str) -> bool {
        true
    }
}

impl<T: Send, F: Fn(Source) -> T + Sync> Nest<'_, F> {
    /// What is made of a file, or of what is inside it.
    pub(super) fn path(&self, path: &Path, is_named: bool) -> Vec<Result<T>> {
        let label = path.display().to_string();
        if label == "-" {
            return self.stream(STANDARD_INPUT, is_named, 0, &mut std::io::stdin().lock());
        }
        match lent::stream(path) {
            Ok(None) => {}
            Ok(Some(stream)) => return self.lent(&label, is_named, 0, &stream),
            Err(error) => return vec![Err(error)],
        }
        let file = match Mapped::open(path) {
            Ok(file) => file,
            Err(error) => return vec![Err(error)],
        };
        self.mapped(label, is_named, 0, file)
    }

    /// The same of a file that is open.
    fn mapped(&self, label: String, is_named: bool, depth: usize, file: Mapped) -> Vec<Result<T>> {
        match Form::of(file.bytes()) {
            Form::Zip => self.zip(&label, is_named, depth, &file),
            Form::Plain if is_named && depth == 0 || may_hold(file.bytes()) => {
                vec![Ok(self.look(label, file))]
            }
            Form::Plain => Vec::new(),
            _ => {
                let all = 0..file.bytes().len() as u64;
                let mut passed = Passed::new(&file, file.bytes(), all);
                self.stream(&label, is_named, depth, &mut passed)
            }
        }
    }

    /// The same of what is lent, and no more of it in memory than need be.
    fn lent(&self, label: &str, is_named: bool, depth: usize, stream: &Stream) -> Vec<Result<T>> {
        let look = |head: &[u8]| match Form::of(head) {
            Form::Zip => Ok(self.zip(label, is_named, depth, stream)),
            Form::Plain if may_hold(head) => {
                let file = Mapped::lent(Slices::of(stream)?);
                Ok(vec![Ok(self.look(label.to_owned(), file))])
            }
            Form::Plain => Ok(Vec::new()),
            _ => Ok(self.stream(label, is_named, depth, &mut stream.reader())),
        };
        let all = stream.head().and_then(|head| look(&head)).with_context(|| label.to_owned());
        all.unwrap_or_else(|error| vec![Err(error)])
    }

    /// What is made of a file that is unpacked.
    fn look(&self, label: String, file: Mapped) -> T {
        let name = own_name(&label).to_owned();
        (self.look)(Source { label, name, file })
    }

    /// What is made of what a reader gives: a file, or files inside it.
    fn stream(
        &self,
        label: &str,
        is_named: bool,
        depth: usize,
        reader: &mut dyn Read,
    ) -> Vec<Result<T>> {
        if depth > Budget::DEPTH {
            return vec![Err(anyhow!(
                "{label}: more than {} archives in one another",
                Budget::DEPTH
            ))];
        }
        let mut head = Vec::new();
        if let Err(error) = reader.take(HEAD as u64).read_to_end(&mut head) {
            return vec![Err(anyhow!(error).context(label.to_owned()))];
        }
        let form = Form::of(&head);
        let wanted = may_hold(&head) || is_named && depth == 0;
        let mut whole = io::Cursor::new(head).chain(reader);
        let inside = |reader: &mut dyn Read| self.stream(label, is_named, depth + 1, reader);
        match form {
            Form::Gzip => inside(&mut self.left.counted(flate2::read::MultiGzDecoder::new(whole))),
            Form::Bzip2 => inside(&mut self.left.counted(unpack::bzip2(whole))),
            Form::Zstd => match unpack::zstd(&mut whole) {
                Ok(decoder) => inside(&mut self.left.counted(decoder)),
                Err(error) => vec![Err(anyhow!(error).context(label.to_owned()))],
            },
            Form::Tar => self.tar(label, is_named, depth + 1, &mut whole),
            Form::Plain if !wanted => Vec::new(),
            Form::Plain => match collect(&mut whole).with_context(|| label.to_owned()) {
                Ok(file) => vec![Ok(self.look(label.to_owned(), file))],
                Err(error) => vec![Err(error)],
            },
            // what has its directory at its end
            Form::Zip => match collect(&mut whole).with_context(|| label.to_owned()) {
                Ok(file) => self.zip(label, is_named, depth, &file),
                Err(error) => vec![Err(error)],
            },
        }
    }

    /// What is made of the members of a tar archive.
    fn tar(
        &self,
        label: &str,
        is_named: bool,
        depth: usize,
        reader: &mut dyn Read,
    ) -> Vec<Result<T>> {
        let mut archive = tar::Archive::new(reader);
        let mut all = Vec::new();
        let entries = match archive.entries() {
            Ok(entries) => entries,
            Err(error) => return vec![Err(anyhow!(error).context(label.to_owned()))],
        };
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                // what stands behind is not known
                Err(error) => {
                    all.push(Err(anyhow!(error).context(label.to_owned())));
                    return all;
                }
            };
            if !entry.header().entry_type().is_file() {
                #[cfg(not(target_family = "wasm"))]
                self.link(label, &entry);
                continue;
            }
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let label = format!("{label}:{path}");
            if self.wants(&label) {
                all.extend(self.stream(&label, is_named, depth, &mut entry));
            }
        }
        // checksums stand behind the last member
        if let Err(error) = io::copy(&mut archive.into_inner(), &mut io::sink()) {
            all.push(Err(anyhow!(error).context(label.to_owned())));
        }
        all
    }

    /// What is made of the members of a zip file.
    fn zip(
        &self,
        label: &str,
        is_named: bool,
        depth: usize,
        content: &impl Content,
    ) -> Vec<Result<T>> {
        let archive = match archive(content) {
            Ok(archive) => archive,
            Err(error) => return vec![Err(anyhow!("{label}: {error}"))],
        };
        if depth > Budget::DEPTH {
            return vec![Err(anyhow!(
                "{label}: more than {} archives in one another",
                Budget::DEPTH
            ))];
        }
        let (members, error) = members(&archive);
        if let Err(error) = check(&archive, &members) {
            return vec![Err(anyhow!("{label}: {error}"))];
        }
        let one = |member: &Member| {
            let name = format!("{label}:{}", member.name);
            if !self.wants(&name) {
                return Vec::new();
            }
            self.member(&archive, member, &name, (is_named, depth + 1))
                .unwrap_or_else(|error| vec![Err(error.context(name.clone()))])
        };
        let mut all: Vec<_> = match self.order {
            Order::AtOnce => members.par_iter().with_max_len(1).flat_map(one).collect(),
            Order::OneByOne => members.iter().flat_map(one).collect(),
        };
        all.extend(error.map(|error| Err(anyhow!("{label}: {error}"))));
        all
    }

    fn member(
        &self,
        archive: &ZipArchive<&impl Content>,
        member: &Member,
        name: &str,
        (is_named, depth): (bool, usize),
    ) -> Result<Vec<Result<T>>> {
        let entry = archive.get_entry(member.at)?;
        let (start, end) = entry.compressed_data_range();
        let content = *archive.get_ref();
        let size = end.saturating_sub(start);
        ensure!(end <= content.size(), "{size} bytes at {start:#x} are not in the archive");
        let passed = || Passed::new(content, entry.reader(), start..end);
        let all = match member.method {
            CompressionMethod::Store => {
                ensure!(member.size == size, "a size that lies");
                match content.part(start..end) {
                    Some(part) => self.lent(name, is_named, depth, &part),
                    None => self.unpacked(name, (is_named, depth), passed(), member.size)?,
                }
            }
            CompressionMethod::Deflate => {
                ensure!(
                    member.size / MOST <= size,
                    "{} bytes claimed, where {size} can hold {MOST} times as many at most",
                    member.size,
                );
                self.unpacked(name, (is_named, depth), DeflateDecoder::new(passed()), member.size)?
            }
            CompressionMethod::Zstd => {
                self.unpacked(name, (is_named, depth), unpack::zstd(passed())?, member.size)?
            }
            method => bail!("compressed by method {}", method.as_id().as_u16()),
        };
        content.done_with(start..end);
        Ok(all)
    }

    /// What is made of what a reader gives, which must be `size` bytes.
    fn unpacked(
        &self,
        name: &str,
        (is_named, depth): (bool, usize),
        reader: impl Read,
        size: u64,
    ) -> Result<Vec<Result<T>>> {
        let mut reader = self.left.counted(reader).take(size.saturating_add(1));
        let Some(head) = begins_wanted(&mut reader)? else { return Ok(Vec::new()) };
        let mut whole = Sized::new(head, &mut reader, size);
        Ok(self.stream(name, is_named, depth, &mut whole))
    }
}

/// Bytes of a file that are read once from their start to their end: what lies behind is let go.
struct Passed<'f, C, R> {
    content: &'f C,
    reader: R,
    /// Where the reader is in the file, and up to where pages were let go.
    at: u64,
    gone: u64,
}

impl<'f, C: Content, R> Passed<'f, C, R> {
    /// A range of a file, and what reads it.
    fn new(content: &'f C, reader: R, range: Range<u64>) -> Self {
        content.will_read(range.clone());
        Self { content, reader, at: range.start, gone: range.start }
    }
}

impl<C: Content, R: Read> Read for Passed<'_, C, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(into)?;
        self.at = self.at.saturating_add(count as u64);
        if self.at.saturating_sub(self.gone) >= BEHIND {
            self.content.done_with(self.gone..self.at);
            self.gone = self.at;
        }
        Ok(count)
    }
}

/// All that a reader gives: in memory, or in a file without a name.
fn collect(reader: &mut dyn Read) -> Result<Mapped> {
    let mut bytes = Vec::new();
    reader.take(IN_MEMORY).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < IN_MEMORY {
        return Ok(Mapped::of(bytes));
    }
    unpack::spooled(bytes, reader)
}

/// Whether what a reader gives is worth unpacking, with what was read to tell.
fn begins_wanted(reader: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    reader.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(is_wanted(&head).then_some(head))
}

/// The last part of a label: a file's own name.
fn own_name(label: &str) -> &str {
    let start = label.rfind(['/', ':']).map_or(0, |at| at.saturating_add(1));
    label.get(start..).unwrap_or(label)
}
