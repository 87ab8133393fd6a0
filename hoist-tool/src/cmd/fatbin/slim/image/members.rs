//! Tar files with other contents of some members: all that stays is copied.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Write as _};
use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use tar::{EntryType, Header};

use crate::mapped::Mapped;
use crate::printable::Printable;

/// Members begin at multiples of it.
const BLOCK: u64 = 512;

/// A member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What a link leads to.
    pub link: Option<String>,
    /// Whether that is another name of the same file, from the root of the archive; else it is one from the folder of this name.
    pub is_hard_link: bool,
    /// Whether it is a file with contents.
    pub is_file: bool,
    /// Whether a record of its own says how large it is (POSIX pax).
    has_size: bool,
    /// From the records before its header to the end of that.
    head: Range<u64>,
    /// Its contents.
    pub data: Range<u64>,
}

impl Member {
    /// Where the next one begins.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.data.end.next_multiple_of(BLOCK)
    }

    /// Its contents.
    ///
    /// # Errors
    /// If they leave the file.
    pub fn content<'b>(&self, bytes: &'b [u8]) -> Result<&'b [u8]> {
        part(bytes, &self.data).with_context(|| Printable::from(&*self.name).to_string())
    }
}

fn part<'b>(bytes: &'b [u8], range: &Range<u64>) -> Result<&'b [u8]> {
    let found = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    let found = found.and_then(|(start, end)| bytes.get(start..end));
    found.with_context(|| format!("{:#x}..{:#x} leaves the file", range.start, range.end))
}

/// The members of a tar file.
///
/// # Errors
/// If it is damaged.
pub fn members(bytes: &[u8]) -> Result<Vec<Member>> {
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    let (mut members, mut last) = (Vec::new(), 0);
    for entry in archive.entries_with_seek()? {
        let mut entry = entry?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (name, link) = (text(&entry.path_bytes()), entry.link_name_bytes());
        let (link, kind) = (link.map(|link| text(&link)), entry.header().entry_type());
        let start = entry.raw_file_position();
        let data = start..start.saturating_add(entry.size());
        let mut has_size = false;
        for record in entry.pax_extensions()?.into_iter().flatten() {
            has_size |= record?.key_bytes() == b"size";
        }
        let is_file = matches!(kind, EntryType::Regular | EntryType::Continuous);
        let is_hard_link = kind == EntryType::Link;
        let head = last..start;
        let member = Member { name, link, is_hard_link, is_file, has_size, head, data };
        ensure!(
            member.data.end <= bytes.len() as u64,
            "{}: is cut",
            Printable::from(&*member.name)
        );
        last = member.end();
        members.push(member);
    }
    Ok(members)
}

/// Writes a tar file with new contents of some members, by their numbers, and with what `renamed` makes of the headers of others and of
/// the records before these: as many bytes.
///
/// # Errors
/// If it cannot be written, or a size is said in a way that is not known here.
pub fn write(
    bytes: &[u8],
    members: &[Member],
    new: &BTreeMap<usize, Mapped>,
    renamed: impl Fn(&[u8]) -> Option<Vec<u8>>,
    out: &mut File,
) -> Result<()> {
    let mut at = 0;
    for (index, member) in members.iter().enumerate() {
        let old = part(bytes, &member.head)?;
        let (content, head) = (new.get(&index), renamed(old));
        if content.is_none() && head.is_none() {
            continue;
        }
        out.write_all(part(bytes, &(at..member.head.start))?)?;
        let mut head = head.unwrap_or_else(|| old.to_vec());
        if let Some(content) = content {
            let size = content.bytes().len() as u64;
            resize(&mut head, member, size)?;
        }
        sum(&mut head)?;
        out.write_all(&head)?;
        at = member.data.start;
        if let Some(content) = content {
            let size = content.bytes().len() as u64;
            for piece in content.bytes().chunks(8 << 20) {
                out.write_all(piece)?;
            }
            let padding = usize::try_from(size.next_multiple_of(BLOCK).saturating_sub(size))?;
            out.write_all(&vec![0; padding])?;
            content.done_with(0..size);
            at = member.end().min(bytes.len() as u64);
        }
    }
    out.write_all(part(bytes, &(at..bytes.len() as u64))?)?;
    Ok(())
}

/// Writes a member's size into its header, the last block of its head.
fn resize(head: &mut [u8], member: &Member, size: u64) -> Result<()> {
    let name = Printable::from(&*member.name);
    ensure!(!member.has_size && size < 1 << 33, "{name}: has a size of more than 33 bits");
    let start = head.len().checked_sub(usize::try_from(BLOCK)?).context("no header")?;
    let field = head.get_mut(start..).and_then(|header| header.get_mut(124..136));
    let text = format!("{size:011o}\0");
    field.context("no header")?.copy_from_slice(text.as_bytes());
    Ok(())
}

/// Writes the checksums of headers anew: of records before a member, and its own.
fn sum(head: &mut [u8]) -> Result<()> {
    let block = usize::try_from(BLOCK)?;
    let mut at = 0_usize;
    while let Some(bytes) = head.get_mut(at..at.saturating_add(block)) {
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(bytes);
        let is_last = !matches!(
            header.entry_type(),
            EntryType::XHeader
                | EntryType::XGlobalHeader
                | EntryType::GNULongName
                | EntryType::GNULongLink
        );
        let old = header.cksum()?;
        header.as_mut_bytes().get_mut(148..156).context("no header")?.fill(b' ');
        let new: u32 = header.as_bytes().iter().map(|&byte| u32::from(byte)).sum();
        if new != old {
            // six digits, or seven, as who wrote it has them
            let count = if bytes.get(154).is_some_and(u8::is_ascii_digit) { 7 } else { 6 };
            let field = bytes.get_mut(148..148_usize.saturating_add(count)).context("no header")?;
            field.copy_from_slice(format!("{new:0count$o}").as_bytes());
        }
        if is_last {
            return Ok(());
        }
        let size = usize::try_from(header.entry_size()?)?.next_multiple_of(block);
        at = at.saturating_add(block).saturating_add(size);
    }
    Ok(())
}
