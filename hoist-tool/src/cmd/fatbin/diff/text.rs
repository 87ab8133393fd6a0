//! Differences for people: as tables, and in Markdown.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;

use super::difference::{Change, Difference, Needs};
use crate::kernel_filter::KernelFilter;
use crate::kernel_name::Text;
use crate::paint;
use crate::table::Table;

/// The width of lines that are no rows of tables.
const WIDTH: usize = 80;
/// Kernels shown of each list, unless the command line says how many.
const SHOWN: usize = 50;

/// Prints tables.
pub(super) fn text(found: &Difference, filter: &KernelFilter, out: &mut dyn Write) -> Result<()> {
    let limit = filter.limit.unwrap_or(SHOWN);
    for (title, list) in lists(found) {
        if list.is_empty() {
            continue;
        }
        paint::title(out, format_args!("{title}"))?;
        let mut table = Table::new(out);
        table.heading(["  arch", "registers", "shared", "stack", "local", "code", "kernel"])?;
        for change in list.iter().take(limit) {
            let [registers, shared, stack, local, code] = cells(change);
            let name = name(change, filter.raw).to_owned();
            table.row([
                format!("  {}", change.arch),
                registers,
                shared,
                stack,
                local,
                code,
                name,
            ])?;
        }
        table.end()?;
        more(list.len(), limit, "", out)?;
        writeln!(out)?;
    }
    for one in summary(found) {
        let mut rest = &*one;
        // long lists go on in the next line
        while let Some(at) = break_of(rest) {
            let (head, tail) = rest.split_at(at);
            writeln!(out, "{head}")?;
            rest = tail;
        }
        writeln!(out, "{rest}")?;
    }
    Ok(())
}

/// Where a line that is too long is broken: at the last blank that something stands before.
fn break_of(line: &str) -> Option<usize> {
    let head =
        line.get(..line.floor_char_boundary(WIDTH)).filter(|head| head.len() < line.len())?;
    head.rfind(' ').filter(|at| *at > 0)
}

/// Prints Markdown.
pub(super) fn markdown(
    found: &Difference,
    filter: &KernelFilter,
    out: &mut dyn Write,
) -> Result<()> {
    for line in summary(found) {
        writeln!(out, "- {line}")?;
    }
    for condition in &found.failed {
        writeln!(out, "- **{}**", escaped(condition))?;
    }
    let limit = filter.limit.unwrap_or(SHOWN);
    for (title, list) in lists(found) {
        if list.is_empty() {
            continue;
        }
        writeln!(out, "\n### {title}\n")?;
        writeln!(out, "| kernel | arch | registers | shared | stack | local | code |")?;
        writeln!(out, "|---|---|---|---|---|---|---|")?;
        for change in list.iter().take(limit) {
            let name = escaped(name(change, filter.raw));
            writeln!(out, "| `{name}` | {} | {} |", change.arch, cells(change).join(" | "))?;
        }
        more(list.len(), limit, "\n", out)?;
    }
    Ok(())
}

const fn lists(found: &Difference) -> [(&'static str, &Vec<Change>); 3] {
    [("changed", &found.changed), ("added", &found.added), ("gone", &found.gone)]
}

fn more(count: usize, limit: usize, before: &str, out: &mut dyn Write) -> Result<()> {
    if count > limit {
        writeln!(out, "{before}  and {} more: --limit shows them", count - limit)?;
    }
    Ok(())
}

fn name(change: &Change, raw: bool) -> &str {
    if raw { &change.name } else { change.demangled.as_deref().unwrap_or(&change.name) }
}

/// What a table of Markdown must not hold.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('`', "'")
}

/// A line for each thing that is true of all kernels.
fn summary(found: &Difference) -> Vec<String> {
    let Difference { added, gone, changed, same, code_before, code_after, .. } = found;
    let alone = match changed.iter().filter(|change| change.is_code_alone()).count() {
        0 => String::new(),
        count => format!(" ({count} in code alone)"),
    };
    let mut lines = vec![
        format!(
            "kernels: {} added, {} gone, {} changed{alone}, {same} the same",
            added.len(),
            gone.len(),
            changed.len()
        ),
        format!("code: {code_before} bytes before, {code_after} after"),
    ];
    let list = |one: &BTreeSet<Text>| match one.is_empty() {
        true => "none".to_owned(),
        false => one.iter().map(|arch| &**arch).collect::<Vec<_>>().join(" "),
    };
    if found.archs_before == found.archs_after {
        lines.push(format!("architectures: {}", list(&found.archs_after)));
    } else {
        let (before, after) = (list(&found.archs_before), list(&found.archs_after));
        lines.push(format!("architectures before: {before}"));
        lines.push(format!("architectures after: {after}"));
    }
    lines
}

/// Numbers before and after: one, if they are the same.
fn cells(change: &Change) -> [String; 5] {
    let cell = |value: fn(&Needs) -> Option<u64>| {
        let text = |side: &Option<Needs>| {
            side.as_ref()
                .map(|needs| value(needs).map_or("-".to_owned(), |value| value.to_string()))
        };
        match (text(&change.old), text(&change.new)) {
            (Some(old), Some(new)) if old != new => format!("{old} -> {new}"),
            (old, new) => new.or(old).unwrap_or_default(),
        }
    };
    let mut code = cell(|needs| Some(needs.code_size));
    if change.is_code_alone() {
        code.push_str(", other code");
    }
    [
        cell(|needs| needs.registers.map(u64::from)),
        cell(|needs| needs.shared),
        cell(|needs| needs.stack),
        cell(|needs| needs.local),
        code,
    ]
}
