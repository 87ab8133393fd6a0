//! Static libraries: members grow and shrink; sizes and the table of symbols follow.

use std::ops::Range;

use elf_core::archive::{Archive, Header};
use zerocopy::FromBytes as _;

use crate::edits::With;
use crate::error::{Error, ErrorKind, Result, index};
use crate::plan::Draft;

const HEADER: u64 = size_of::<Header>() as u64;

/// What becomes of a member with these bytes, at this range of the archive: nothing if it stays as it is.
pub(crate) type MemberChange<'f> = &'f dyn Fn(&[u8], Range<u64>) -> Option<Result<Draft>>;

/// How to make changes to the members of an archive.
pub(crate) fn plan(bytes: &[u8], archive: Archive<'_>, change: MemberChange<'_>) -> Result<Draft> {
    if archive.is_thin() {
        return Err(Error::new(0, ErrorKind::ThinArchive));
    }
    let mut plan = Draft::default();
    // offset of a member's header, and by how many bytes the member grows
    let mut growth: Vec<(u64, i64)> = Vec::new();
    for member in archive.members() {
        let member = member?;
        let Some(data) = member.data else { continue };
        let end = member.offset.saturating_add(data.len() as u64);
        let Some(part) = change(data, member.offset..end) else { continue };
        let part =
            part.map_err(|error| error.of_member(&member.name.to_string(), member.offset))?;
        let mut more = part.edits.growth();
        let mut edits = part.edits;
        if more % 2 != 0 {
            edits.append(data.len() as u64, 0, With::Made(vec![b'\n'])); // members start at even offsets
            more = more.saturating_add(1);
        }
        let size = decimal(bytes, member.header)?.saturating_add_signed(more);
        let text = format!("{size:<10}");
        if text.len() != 10 {
            return Err(Error::new(member.header, ErrorKind::ArchiveTooLarge("the member")));
        }
        plan.edits.put(member.header.saturating_add(48), text.as_bytes())?;
        plan.edits.include(member.offset, edits)?;
        plan.in_place = plan.in_place.saturating_add(part.in_place);
        plan.moved = plan.moved.saturating_add(part.moved);
        plan.holes = plan.holes.saturating_add(part.holes);
        plan.left.extend(part.left.into_iter().map(|at| at.saturating_add(member.offset)));
        plan.remarks.extend(part.remarks);
        growth.push((member.header, more));
    }
    symbols(bytes, &growth, &mut plan)?;
    Ok(plan)
}

/// The size in the header at `at`.
fn decimal(bytes: &[u8], at: u64) -> Result<u64> {
    let header =
        usize::try_from(at).ok().and_then(|at| Header::read_from_prefix(bytes.get(at..)?).ok());
    let (header, _) = header.ok_or(Error::outside(at, "a member's header"))?;
    let text = core::str::from_utf8(&header.ar_size).ok();
    text.and_then(|text| text.trim_end().parse().ok()).ok_or(Error::new(at, ErrorKind::MemberSize))
}

/// The table of symbols: offsets of the members that define them.
fn symbols(bytes: &[u8], growth: &[(u64, i64)], plan: &mut Draft) -> Result<()> {
    let first = 8_u64;
    let Some((header, _)) = bytes.get(8..).and_then(|rest| Header::read_from_prefix(rest).ok())
    else {
        return Ok(());
    };
    let width: u64 = match header.ar_name.trim_ascii_end() {
        b"/" => 4,
        b"/SYM64/" => 8,
        name if name.starts_with(b"__.SYMDEF") || name.starts_with(b"#1/") => {
            return Err(Error::new(first, ErrorKind::BsdSymbols));
        }
        _ => return Ok(()),
    };
    let start = first.saturating_add(HEADER);
    let word = |at: u64| -> Option<u64> {
        let bytes = bytes.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(width).ok()?)?;
        Some(bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    };
    let count = word(start).ok_or(Error::outside(start, "a table of symbols"))?;
    for row in 1..=count {
        let at = start.saturating_add(row.saturating_mul(width));
        let old = word(at).ok_or(Error::outside(at, "a table of symbols"))?;
        let before = growth.iter().filter(|(header, _)| *header < old);
        let new = before.fold(old, |offset, (_, more)| offset.saturating_add_signed(*more));
        if new == old {
            continue;
        }
        let all = new.to_be_bytes();
        let (high, low) =
            all.split_at_checked(8_usize.saturating_sub(index(width)?)).unwrap_or_default();
        if high.iter().any(|&byte| byte != 0) {
            return Err(Error::new(
                at,
                ErrorKind::ArchiveTooLarge("an offset in the table of symbols"),
            ));
        }
        plan.edits.put(at, low)?;
    }
    Ok(())
}
