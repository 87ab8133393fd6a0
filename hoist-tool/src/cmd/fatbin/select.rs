//! `hoist fatbin select PATH... --sm 90 --cuda 12.8`: what a driver would take for a device.

use std::io::Write;

use anyhow::{Context as _, Result};
use fatbin::{Candidate, Container, CudaVersion, Fit, Region, Selected, TargetDevice, select};
use serde::Serialize;

use super::filter::{Code, Where, kind};
use super::found::containers;
use super::holding::Holding;
use super::rows::arch;
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::printable::Printable;
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::Table;

/// Shows which entry of each region a driver would take for a device. Filters are about that entry: `--kind ptx` shows what the driver
/// has to compile.
#[derive(Debug, clap::Args)]
pub struct Select {
    #[command(flatten)]
    sources: Sources,
    /// The SM of the device: 90, 121.
    #[arg(long, value_name = "NUMBER", value_parser = sm)]
    sm: u32,
    /// The version of CUDA that the driver knows: 12.8. Without it the newest there is.
    #[arg(long, value_name = "MAJOR.MINOR", value_parser = version)]
    cuda: Option<CudaVersion>,
    #[command(flatten)]
    code: Code,
    #[command(flatten)]
    holding: Holding,
    /// The most regions to show.
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    json: JsonArguments,
}

/// What is taken of a region.
#[derive(Clone, Debug, Serialize)]
struct Choice {
    file: String,
    region: usize,
    /// None if nothing runs.
    entry: Option<usize>,
    /// The image in a concatenated entry.
    part: Option<usize>,
    kind: Option<String>,
    arch: Option<String>,
    fit: Option<&'static str>,
    /// The oldest driver that reads it.
    needs: Option<String>,
}

impl Choice {
    /// Whether what is taken is of such code.
    fn is_of(&self, code: &Code) -> bool {
        let kind = self.kind.as_deref().and_then(|found| kind(&found.replace(' ', "-")).ok());
        let arch = self.arch.as_deref().map(|arch| arch.trim_start_matches("compute_"));
        code.wants(kind, arch.and_then(|arch| arch.parse().ok()))
    }
}

impl Select {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let driver = self.cuda.unwrap_or(CudaVersion::new(u16::MAX, 0));
        let device = TargetDevice { sm: self.sm, driver };
        let mut faults = Faults::default();
        let mut roots = Roots::default();
        let mut choices = Vec::new();
        let look = |source: Source| {
            let (mut choices, mut errors) = (Vec::new(), Vec::new());
            let mut index = 0;
            let search = self.place.search();
            let holding = self.holding.entries(&source, search, &Code::default());
            for container in containers(&source.file, search, |found| found.container) {
                let number = index;
                index += usize::from(container.is_ok());
                let choice = match container {
                    Ok(Container::Region(region)) => choose(&source.label, number, region, device),
                    Ok(_) => continue,
                    Err(error) => Err(error),
                };
                match choice.with_context(|| source.label.clone()) {
                    Ok(choice) => choices.push(choice),
                    Err(error) => errors.push(error),
                }
            }
            choices.retain(|choice| self.code.is_all() || choice.is_of(&self.code));
            if let Some((places, wrong)) = holding {
                choices.retain(|one| {
                    one.entry.is_some_and(|entry| places.contains(&(one.region, entry)))
                });
                errors = wrong; // the others are among these
            }
            (choices, errors)
        };
        self.sources.each(Order::AtOnce, look, |root, found| {
            match found {
                Ok((found, errors)) => {
                    roots.has(root, !found.is_empty() || !errors.is_empty());
                    choices.extend(found);
                    errors.into_iter().for_each(|error| faults.push(error));
                }
                Err(error) => {
                    roots.failed(root);
                    faults.push(error);
                }
            }
            Ok(())
        })?;
        let what = match self.code.is_all() && self.holding.is_all() {
            true => "holds no fatbin of NVIDIA's",
            false => "no region of which a driver takes such code",
        };
        roots.without_containers(&self.sources.paths, what, &mut faults);
        choices.truncate(self.limit.unwrap_or(usize::MAX));
        if self.json.is_on() {
            crate::json::write(out, &serde_json::json!({ "choices": choices }))?;
            writeln!(out)?;
        } else if !choices.is_empty() {
            print(&choices, out)?;
        }
        faults.result()
    }
}

fn print(choices: &[Choice], out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(out);
    table.heading(["region", "entry", "kind", "arch", "fit", "needs CUDA", "file"])?;
    for choice in choices {
        let entry = match (choice.entry, choice.part) {
            (Some(entry), Some(part)) => format!("{entry} part {part}"),
            (Some(entry), None) => entry.to_string(),
            (None, _) => String::from("none"),
        };
        table.row([
            &choice.region.to_string(),
            &entry,
            choice.kind.as_deref().unwrap_or_default(),
            choice.arch.as_deref().unwrap_or_default(),
            choice.fit.unwrap_or_default(),
            choice.needs.as_deref().unwrap_or_default(),
            &Printable::from(&*choice.file).to_string(),
        ])?;
    }
    table.end()
}

fn choose(
    file: &str,
    index: usize,
    region: Region<'_>,
    device: TargetDevice,
) -> Result<Choice, fatbin::Error> {
    let none = Choice {
        file: file.to_owned(),
        region: index,
        entry: None,
        part: None,
        kind: None,
        arch: None,
        fit: None,
        needs: None,
    };
    let Some(Selected { entry, part, fit }) = select(region.entries(), device)? else {
        return Ok(none);
    };
    let number =
        region.entries().position(|other| other.is_ok_and(|other| other.at() == entry.at()));
    let (kind, sm) = part.map_or((entry.kind(), entry.sm()), |part| (part.kind, part.sm));
    let part =
        part.map(|part| entry.parts().map(|parts| parts.iter().position(|other| other == part)));
    Ok(Choice {
        entry: number,
        part: part.transpose()?.flatten(),
        kind: Some(kind.to_string()),
        arch: arch(kind, sm),
        fit: Some(fit_name(fit)),
        needs: Candidate::from(&entry).needs().map(|version| version.to_string()),
        ..none
    })
}

const fn fit_name(fit: Fit) -> &'static str {
    match fit {
        Fit::Compiled => "compiled",
        Fit::LowerMinor => "lower minor",
        Fit::Family => "family",
        Fit::Exact => "exact",
    }
}

fn sm(text: &str) -> Result<u32, String> {
    let sm: fatbin::Sm = text.parse().map_err(|error: fatbin::NotAnSm| error.to_string())?;
    match sm.suffix {
        fatbin::Suffix::None => Ok(sm.number),
        _ => Err(String::from("a device has no suffix: it runs code with and without")),
    }
}

fn version(text: &str) -> Result<CudaVersion, String> {
    let parse = || {
        let (major, minor) = text.split_once('.')?;
        Some(CudaVersion::new(major.parse().ok()?, minor.parse().ok()?))
    };
    parse().ok_or_else(|| String::from("not a version such as 12.8"))
}
