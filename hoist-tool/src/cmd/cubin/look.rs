//! The cubins of a file, wherever they are in it: one report for each.

use std::cell::Cell;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Error, Result, anyhow};
use fatbin::{EntryKind, Search, Sm};
use nvinfo::Cubin;
use serde::Serialize;

use crate::cmd::fatbin::cubins::{Image, ImagePlace, images};
use crate::faults::Faults;
use crate::input::Input;
use crate::kernel_name::Text;
use crate::pattern::Pattern;
use crate::printable::Printable;
use crate::sources::{Order, Source, Sources};
use crate::table::line;

/// A report of one cubin, with the file that it is of.
#[derive(Debug, Serialize)]
struct Report<'r, T> {
    file: &'r str,
    member: &'r Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'r ImagePlace>,
    #[serde(flatten)]
    report: T,
}

/// Shows a cubin: the label of its file, the member of an archive, its place, its bytes. What is to be printed, and whether it has a
/// heading; nothing, if the cubin has not what was asked for.
trait Show:
    Fn(&str, &Option<Text>, Option<&ImagePlace>, &[u8]) -> Result<Option<(Vec<u8>, bool)>> + Sync
{
}

impl<F> Show for F where
    F: Fn(&str, &Option<Text>, Option<&ImagePlace>, &[u8]) -> Result<Option<(Vec<u8>, bool)>>
        + Sync
{
}

/// What is asked of the cubins of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'r> {
    /// A cubin, or whatever has cubins inside.
    pub(super) file: &'r PathBuf,
    /// Those for this architecture.
    pub(super) arch: Option<Sm>,
    pub(super) json: bool,
    /// What the patterns mean.
    pub(super) what: &'r str,
    pub(super) wanted: &'r [Pattern],
}

/// What was found in a file.
#[derive(Default)]
struct Looked {
    /// What is to be printed of each cubin, and whether it has a heading.
    shown: Vec<(Vec<u8>, bool)>,
    cubins: usize,
    errors: Vec<Error>,
    /// Why the file itself is no cubin.
    why: Option<Error>,
}

/// Prints `{"files": [...]}` with what `make` gives for every cubin, or calls `text` for it. A cubin of which `make` gives nothing
/// has not what was asked for: that is an error if none has.
pub(super) fn each_report<T: Serialize>(
    request: Request<'_>,
    out: &mut dyn Write,
    make: impl Fn(&Cubin<'_>) -> Result<Option<T>> + Sync,
    text: impl Fn(&T, &mut dyn Write) -> Result<()> + Sync,
) -> Result<()> {
    let Request { file, arch, json, what, wanted } = request;
    let root = file.display().to_string();
    // one cubin: its place in the file, its bytes
    let show = |label: &str, member: &Option<Text>, image: Option<&ImagePlace>, bytes: &[u8]| {
        let Some(report) = make(&Cubin::parse(bytes)?)? else { return Ok(None) };
        let mut shown = Vec::new();
        if json {
            let report = Report { file: &root, member, image, report };
            crate::json::write(&mut shown, &report)?;
            return Ok(Some((shown, false)));
        }
        let is_inside = member.is_some() || image.is_some() || label != root;
        if is_inside {
            let member = member.as_ref().map_or_else(String::new, |name| format!("({name})"));
            let place = image.map_or_else(String::new, |place| format!(" {place}"));
            let label = Printable::from(&*format!("{label}{member}")).to_string();
            writeln!(shown, "{}", line(&label, &format!("{}:", place)))?;
        }
        text(&report, &mut shown)?;
        anyhow::Ok(Some((shown, is_inside)))
    };
    let look = |source: Source| look_into(&source, arch, &show);
    let mut faults = Faults::default();
    let (mut cubins, mut count, mut why) = (0, 0, None);
    let mut headed = false;
    if json {
        write!(out, "{{\"files\":[")?;
    }
    Sources::of(vec![file.clone()]).each(Order::AtOnce, look, |_, looked| {
        match looked {
            Ok(looked) => {
                cubins += looked.cubins;
                why = why.take().or(looked.why);
                looked.errors.into_iter().for_each(|error| faults.push(error));
                for (shown, heading) in looked.shown {
                    let between: &[u8] = match (count, json) {
                        (0, _) => b"",
                        (_, true) => b",",
                        _ if heading || headed => b"\n",
                        _ => b"",
                    };
                    headed = heading;
                    count += 1;
                    out.write_all(between)?;
                    out.write_all(&shown)?;
                }
            }
            Err(error) => faults.push(error),
        }
        Ok(())
    })?;
    if json {
        writeln!(out, "]}}")?;
    }
    if count == 0 && faults.is_empty() {
        match (why, arch, wanted.first()) {
            (Some(why), ..) if cubins == 0 => faults.push(why),
            (_, Some(arch), _) if cubins == 0 => {
                faults.push(anyhow!("{root}: no cubin for sm_{arch}"));
            }
            (.., Some(pattern)) if cubins > 0 => {
                let pattern = pattern.to_string();
                faults.push(anyhow!("{root}: no {what} {}", Printable::from(&*pattern)));
            }
            _ if cubins == 0 => faults.push(anyhow!("{root}: holds no cubin")),
            _ => {}
        }
    }
    faults.result()
}

/// Calls `show` with every cubin of a file: the file itself, the cubins of an archive, or those of this architecture in fatbins.
fn look_into(source: &Source, arch: Option<Sm>, show: &impl Show) -> Looked {
    let mut looked = Looked::default();
    let bytes = source.file.bytes();
    let label = || source.label.clone();
    if bytes.starts_with(elf_core::archive::THIN_MAGIC) {
        match thin(source, &mut looked, show) {
            Ok(()) => {}
            Err(error) => looked.errors.push(error),
        }
        return looked;
    }
    let parsed = Cubin::parse(bytes);
    if parsed.is_ok() {
        looked.cubins = 1;
        match show(&source.label, &None, None, bytes).with_context(label) {
            Ok(shown) => looked.shown.extend(shown),
            Err(error) => looked.errors.push(error),
        }
        return looked;
    }
    let seen = Cell::new(0);
    let wants = |image: &Image| {
        seen.set(seen.get() + 1);
        matches!(image.kind, EntryKind::Elf | EntryKind::Cubin)
            && arch.is_none_or(|arch| arch == image.sm)
    };
    let all = images(&source.file, Search::Always, wants, |image, bytes| {
        let place = (!image.is_alone).then_some(&image.place);
        let context = || match &image.member {
            Some(member) => format!("{}({member}): {}", source.label, image.place),
            None => format!("{}: {}", source.label, image.place),
        };
        show(&source.label, &image.member, place, bytes).with_context(context)
    });
    for one in all {
        match one {
            Ok(Ok(shown)) => {
                looked.cubins += 1;
                looked.shown.extend(shown);
            }
            Ok(Err(error)) => looked.errors.push(error),
            Err(error) => looked.errors.push(error.context(label())),
        }
    }
    if seen.get() == 0 {
        looked.why = parsed.err().map(|error| Error::new(error).context(label()));
        looked.errors.clear(); // of what is no container either
    }
    looked
}

/// The same of the members of a thin archive, which are files of their own.
fn thin(source: &Source, looked: &mut Looked, show: &impl Show) -> Result<()> {
    let input = Input::read(&source.label)?;
    for part in input.parts()? {
        if Cubin::parse(part.bytes).is_ok() {
            looked.cubins += 1;
            let member = part.member.map(Text::from);
            let shown = show(&source.label, &member, None, part.bytes);
            looked.shown.extend(shown.with_context(|| part.label.clone())?);
        }
    }
    Ok(())
}
