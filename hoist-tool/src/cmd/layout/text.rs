//! The same for people.

use std::io::Write;

use anyhow::Result;

use super::{Entry, Part, Placement, Reason, SegmentRow, What, svg};
use crate::paint;
use crate::picture::Kind;
use crate::printable::Printable;
use crate::table::Table;

/// Writes a layout.
pub(super) fn write(placement: &Placement<'_>, out: &mut dyn Write) -> Result<()> {
    let Placement { machine, size, alignment, limit, .. } = placement;
    write!(out, "{machine}, image of {size:#x} bytes, aligned to {alignment:#x}")?;
    match limit {
        Some(limit) => {
            writeln!(out, ", below {limit:#x} because of relocations that hold no higher address")?
        }
        None => writeln!(out)?,
    }
    for segment in &placement.segments {
        let SegmentRow { permissions, size, offset, .. } = segment;
        writeln!(out)?;
        paint::title(out, format_args!("segment {permissions}, {size:#x} bytes at {offset:#x}"))?;
        parts(&segment.parts, svg::of_segment(segment), out)?;
    }
    if !placement.fixed.is_empty() {
        writeln!(out)?;
        paint::title(out, format_args!("sections at addresses of their own"))?;
        parts(&placement.fixed, Kind::Data, out)?;
    }
    entries("global offset table", &placement.got, out)?;
    entries("stubs", &placement.stubs, out)?;
    let undefined: Vec<_> = placement
        .undefined
        .iter()
        .map(|name| Printable::from(name.as_str()).readable().to_string())
        .collect();
    list("undefined", &undefined, out)?;
    for (reason, words) in [
        (Reason::Copy, "left out, as another object's copy of their section group is taken"),
        (Reason::Excluded, "left out, as they say themselves"),
        (Reason::Empty, "empty"),
        (Reason::NotAllocated, "not needed in memory"),
    ] {
        let sections = placement.not_loaded.iter().filter(|section| section.reason == reason);
        let names: Vec<_> = sections.map(|section| section.name.to_string()).collect();
        list(words, &names, out)?;
    }
    Ok(())
}

fn parts(parts: &[Part<'_>], usual: Kind, out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    table.heading(["  offset", "size", "align", "padding", "what", "flags", "object"])?;
    for part in parts {
        let name = part.name.map_or_else(String::new, |name| name.readable().to_string());
        let short = |flag: &&str| String::from(flag.strip_prefix("SHF_").unwrap_or(flag));
        let mut flags: Vec<_> = part.flag_names.iter().map(short).collect();
        if part.takes_no_room {
            flags.push(String::from("(takes no room)"));
        }
        table.painted(
            (4, svg::kind(part, usual).into()),
            [
                format!("  {:#x}", part.offset),
                format!("{:#x}", part.size),
                part.alignment.to_string(),
                part.padding.to_string(),
                match part.what {
                    What::Section => name,
                    What::Common => format!("common symbol {name}"),
                    What::Got => String::from("global offset table"),
                    What::Stubs => String::from("stubs"),
                },
                flags.join(" "),
                part.object.map_or_else(String::new, |object| Printable::from(object).to_string()),
            ],
        )?;
    }
    table.end()
}

fn entries(title: &str, entries: &[Entry<'_>], out: &mut dyn Write) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    paint::title(out, format_args!("{title}"))?;
    let mut table = Table::new(out);
    table.heading(["  offset", "content", "symbol"])?;
    for entry in entries {
        table.row([
            format!("  {:#x}", entry.offset),
            entry.content.clone(),
            entry.symbol.readable().to_string(),
        ])?;
    }
    table.end()
}

/// Names in one line; of many, the first.
fn list(title: &str, names: &[String], out: &mut dyn Write) -> Result<()> {
    const MOST: usize = 20;
    if names.is_empty() {
        return Ok(());
    }
    let shown = names.get(..MOST).unwrap_or(names);
    let more = if names.len() > MOST { ", ..." } else { "" };
    Ok(writeln!(out, "\n{} {title}: {}{more}", names.len(), shown.join(", "))?)
}
