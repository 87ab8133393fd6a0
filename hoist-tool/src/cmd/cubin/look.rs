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
use crate::json::JsonArguments;
use crate::kernel_name::Text;
use crate::paint;
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

/// Looks at a cubin: the label of its file, the member of an archive, its place, its bytes. Nothing, if the cubin has not what was
/// asked for.
pub(super) trait Look<T>:
    Fn(&str, &Option<Text>, Option<&ImagePlace>, &[u8]) -> Result<Option<T>> + Sync
{
}

impl<T, F> Look<T> for F where
    F: Fn(&str, &Option<Text>, Option<&ImagePlace>, &[u8]) -> Result<Option<T>> + Sync
{
}

/// What is asked of the cubins of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'r> {
    /// A cubin, or whatever has cubins inside.
    pub(super) file: &'r PathBuf,
    /// Those for these architectures; all, if there is none.
    pub(super) arch: &'r [Sm],
    pub(super) json: bool,
    /// What the patterns mean.
    pub(super) what: &'r str,
    pub(super) wanted: &'r [Pattern],
}

impl<'r> Request<'r> {
    /// What is asked of a file's cubins for an architecture: `what` these patterns mean.
    pub(super) fn new(
        (file, arch): (&'r PathBuf, &'r [Sm]),
        json: &JsonArguments,
        (what, wanted): (&'r str, &'r [Pattern]),
    ) -> Self {
        Self { file, arch, json: json.is_on(), what, wanted }
    }
}

/// What was found in a file.
struct Looked<T> {
    /// What it is for each cubin.
    found: Vec<T>,
    cubins: usize,
    errors: Vec<Error>,
    /// Why the file itself is no cubin.
    why: Option<Error>,
}

/// A cubin in words: its file, the member of an archive, its place.
pub(super) fn place(label: &str, member: &Option<Text>, image: Option<&ImagePlace>) -> [String; 2] {
    let member = member.as_ref().map_or_else(String::new, |name| format!("({name})"));
    let label = Printable::from(&*format!("{label}{member}")).to_string();
    [label, image.map_or_else(String::new, |place| format!(" {place}"))]
}

/// What is made of a cubin, and where that is.
pub(super) struct Placed<T> {
    label: String,
    member: Option<Text>,
    image: Option<ImagePlace>,
    pub(super) report: T,
}

impl<T> Placed<T> {
    /// In words.
    pub(super) fn place(&self) -> [String; 2] {
        place(&self.label, &self.member, self.image.as_ref())
    }
}

/// Prints `{"files": [...]}` with what `make` gives for every cubin, or calls `text` for it. A cubin of which `make` gives nothing
/// has not what was asked for: that is an error if none has.
pub(super) fn each_report<T: Serialize>(
    request: Request<'_>,
    out: &mut dyn Write,
    make: impl Fn(&Cubin<'_>) -> Result<Option<T>> + Sync,
    text: impl Fn(&T, &mut dyn Write) -> Result<()> + Sync,
) -> Result<()> {
    let show = |label: &str, member: &Option<Text>, image: Option<&ImagePlace>, bytes: &[u8]| {
        let Some(report) = make(&Cubin::parse(bytes)?)? else { return Ok(None) };
        request.show((label, member, image), &report, &text).map(Some)
    };
    let mut printer = Printer::new(request.json, out)?;
    let done = each_cubin(request, show, |shown| printer.print(shown));
    printer.end()?;
    done
}

/// What `make` gives for every cubin, in order.
pub(super) fn all_reports<T: Send>(
    request: Request<'_>,
    make: impl Fn(&Cubin<'_>) -> Result<Option<T>> + Sync,
) -> (Vec<Placed<T>>, Result<()>) {
    let look = |label: &str, member: &Option<Text>, image: Option<&ImagePlace>, bytes: &[u8]| {
        let report = make(&Cubin::parse(bytes)?)?;
        let (label, member, image) = (label.to_owned(), member.clone(), image.cloned());
        anyhow::Ok(report.map(|report| Placed { label, member, image, report }))
    };
    let mut all = Vec::new();
    let done = each_cubin(request, look, |one| {
        all.push(one);
        Ok(())
    });
    (all, done)
}

/// Prints reports as [`each_report`] does.
pub(super) fn print_all<T: Serialize>(
    request: Request<'_>,
    all: &[Placed<T>],
    out: &mut dyn Write,
    text: impl Fn(&T, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut printer = Printer::new(request.json, out)?;
    for Placed { label, member, image, report } in all {
        printer.print(request.show((label, member, image.as_ref()), report, &text)?)?;
    }
    printer.end()
}

/// A report as it is printed, and whether it has a heading.
type Printed = (Vec<u8>, bool);

impl Request<'_> {
    fn show<T: Serialize>(
        self,
        (label, member, image): (&str, &Option<Text>, Option<&ImagePlace>),
        report: &T,
        text: &impl Fn(&T, &mut dyn Write) -> Result<()>,
    ) -> Result<Printed> {
        let root = self.file.display().to_string();
        let mut shown = Vec::new();
        if self.json {
            crate::json::write(&mut shown, &Report { file: &root, member, image, report })?;
            return Ok((shown, false));
        }
        let is_inside = member.is_some() || image.is_some() || label != root;
        if is_inside {
            let [label, place] = place(label, member, image);
            let label = line(&label, &format!("{place}:"));
            paint::title(&mut shown, format_args!("{label}"))?;
        }
        text(report, &mut shown)?;
        Ok((shown, is_inside))
    }
}

/// Prints reports one after another.
struct Printer<'o> {
    out: &'o mut dyn Write,
    json: bool,
    count: usize,
    headed: bool,
}

impl<'o> Printer<'o> {
    fn new(json: bool, out: &'o mut dyn Write) -> Result<Self> {
        out.write_all(if json { b"{\"files\":[" } else { b"" })?;
        Ok(Self { out, json, count: 0, headed: false })
    }

    fn print(&mut self, (shown, heading): Printed) -> Result<()> {
        let between: &[u8] = match (self.count, self.json) {
            (0, _) => b"",
            (_, true) => b",",
            _ if heading || self.headed => b"\n",
            _ => b"",
        };
        self.headed = heading;
        self.count += 1;
        self.out.write_all(between)?;
        Ok(self.out.write_all(&shown)?)
    }

    fn end(self) -> Result<()> {
        Ok(self.out.write_all(if self.json { b"]}\n" } else { b"" })?)
    }
}

/// Calls `look` for every cubin, and `take` with what it is, in order.
pub(super) fn each_cubin<T: Send>(
    request: Request<'_>,
    look: impl Look<T>,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let Request { file, arch, what, wanted, .. } = request;
    let root = file.display().to_string();
    let look = |source: Source| look_into(&source, arch, &look);
    let mut faults = Faults::default();
    let (mut cubins, mut count, mut why) = (0, 0, None);
    Sources::of(vec![file.clone()]).each(Order::AtOnce, look, |_, looked| {
        match looked {
            Ok(looked) => {
                cubins += looked.cubins;
                why = why.take().or(looked.why);
                looked.errors.into_iter().for_each(|error| faults.push(error));
                for found in looked.found {
                    count += 1;
                    take(found)?;
                }
            }
            Err(error) => faults.push(error),
        }
        Ok(())
    })?;
    if count == 0 && faults.is_empty() {
        match (why, arch, wanted.first()) {
            (Some(why), ..) if cubins == 0 => faults.push(why),
            (_, [_, ..], _) if cubins == 0 => {
                let archs: Vec<_> = arch.iter().map(|sm| format!("sm_{sm}")).collect();
                faults.push(anyhow!("{root}: no cubin for {}", archs.join(", ")));
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

/// Calls `look` with every cubin of a file: the file itself, the cubins of an archive, or those of these architectures in fatbins.
fn look_into<T: Send>(source: &Source, arch: &[Sm], look: &impl Look<T>) -> Looked<T> {
    let mut looked = Looked { found: Vec::new(), cubins: 0, errors: Vec::new(), why: None };
    let bytes = source.file.bytes();
    let label = || source.label.clone();
    if bytes.starts_with(elf_core::archive::THIN_MAGIC) {
        match thin(source, &mut looked, look) {
            Ok(()) => {}
            Err(error) => looked.errors.push(error),
        }
        return looked;
    }
    let parsed = Cubin::parse(bytes);
    if parsed.is_ok() {
        looked.cubins = 1;
        match look(&source.label, &None, None, bytes).with_context(label) {
            Ok(found) => looked.found.extend(found),
            Err(error) => looked.errors.push(error),
        }
        return looked;
    }
    let seen = Cell::new(0);
    let wants = |image: &Image| {
        seen.set(seen.get() + 1);
        matches!(image.kind, EntryKind::Elf | EntryKind::Cubin)
            && (arch.is_empty() || arch.contains(&image.sm))
    };
    let all = images(&source.file, Search::Always, wants, |image, bytes| {
        let place = (!image.is_alone).then_some(&image.place);
        let context = || match &image.member {
            Some(member) => format!("{}({member}): {}", source.label, image.place),
            None => format!("{}: {}", source.label, image.place),
        };
        look(&source.label, &image.member, place, bytes).with_context(context)
    });
    for one in all {
        match one {
            Ok(Ok(found)) => {
                looked.cubins += 1;
                looked.found.extend(found);
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
fn thin<T>(source: &Source, looked: &mut Looked<T>, look: &impl Look<T>) -> Result<()> {
    let input = Input::read(&source.label)?;
    for part in input.parts()? {
        if Cubin::parse(part.bytes).is_ok() {
            looked.cubins += 1;
            let member = part.member.map(Text::from);
            let found = look(&source.label, &member, None, part.bytes);
            looked.found.extend(found.with_context(|| part.label.clone())?);
        }
    }
    Ok(())
}
