//! Static libraries: members grow and shrink; sizes and the table of symbols follow.

use anyhow::{Context as _, Result, bail, ensure};
use elf_core::archive::{Archive, Header};
use zerocopy::FromBytes as _;

use super::{Change, Plan};

const HEADER: u64 = size_of::<Header>() as u64;

/// How to make changes to the members of an archive.
pub(super) fn plan(bytes: &[u8], archive: Archive<'_>, changes: &[Change]) -> Result<Plan> {
    ensure!(
        !archive.is_thin(),
        "is a thin archive: its members are files of their own, to be changed themselves"
    );
    let mut plan = Plan::default();
    // offset of a member's header, and by how many bytes the member grows
    let mut growth: Vec<(u64, i64)> = Vec::new();
    for member in archive.members() {
        let member = member?;
        let Some(data) = member.data else { continue };
        let end = member.offset.saturating_add(data.len() as u64);
        let own = |change: &&Change| (member.offset..end).contains(&change.at);
        let own: Vec<_> =
            changes.iter().filter(own).map(|change| change.within(member.offset)).collect();
        if own.is_empty() {
            continue;
        }
        let part = super::plan(data, &own).with_context(|| format!("member {}", member.name))?;
        let mut more = part.edits.growth();
        let mut edits = part.edits;
        if more % 2 != 0 {
            edits.append(data.len() as u64, 0, vec![b'\n']); // members start at even offsets
            more = more.saturating_add(1);
        }
        let size = decimal(bytes, member.header)?.saturating_add_signed(more);
        let text = format!("{size:<10}");
        ensure!(text.len() == 10, "a member would be too large for an archive");
        plan.edits.put(member.header.saturating_add(48), text.as_bytes())?;
        plan.edits.include(member.offset, edits)?;
        plan.in_place = plan.in_place.saturating_add(part.in_place);
        plan.moved = plan.moved.saturating_add(part.moved);
        plan.notes.extend(part.notes);
        growth.push((member.header, more));
    }
    symbols(bytes, &growth, &mut plan)?;
    Ok(plan)
}

/// The size in the header at `at`.
fn decimal(bytes: &[u8], at: u64) -> Result<u64> {
    let header =
        usize::try_from(at).ok().and_then(|at| Header::read_from_prefix(bytes.get(at..)?).ok());
    let (header, _) = header.context("a member's header leaves the file")?;
    Ok(core::str::from_utf8(&header.ar_size)?.trim_end().parse()?)
}

/// The table of symbols: offsets of the members that define them.
fn symbols(bytes: &[u8], growth: &[(u64, i64)], plan: &mut Plan) -> Result<()> {
    let first = 8_u64;
    let Some((header, _)) = bytes.get(8..).and_then(|rest| Header::read_from_prefix(rest).ok())
    else {
        return Ok(());
    };
    let width: u64 = match header.ar_name.trim_ascii_end() {
        b"/" => 4,
        b"/SYM64/" => 8,
        name if name.starts_with(b"__.SYMDEF") || name.starts_with(b"#1/") => {
            bail!("has a table of symbols in the way of BSD, which cannot be changed here")
        }
        _ => return Ok(()),
    };
    let start = first.saturating_add(HEADER);
    let word = |at: u64| -> Option<u64> {
        let bytes = bytes.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(width).ok()?)?;
        Some(bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    };
    let count = word(start).context("a table of symbols leaves the file")?;
    for index in 1..=count {
        let at = start.saturating_add(index.saturating_mul(width));
        let old = word(at).context("a table of symbols leaves the file")?;
        let before = growth.iter().filter(|(header, _)| *header < old);
        let new = before.fold(old, |offset, (_, more)| offset.saturating_add_signed(*more));
        if new == old {
            continue;
        }
        let all = new.to_be_bytes();
        let (high, low) = all
            .split_at_checked(8_usize.saturating_sub(usize::try_from(width)?))
            .unwrap_or_default();
        ensure!(
            high.iter().all(|&byte| byte == 0),
            "the archive would be too large for its table of symbols"
        );
        plan.edits.put(at, low)?;
    }
    Ok(())
}
