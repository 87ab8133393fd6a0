//! `whole-libraries`: libraries of wheels of the index, changed by hoist, and then by other tools, two after one another. They load, their
//! wrappers lead to the same regions in memory, hoist and cuobjdump list the same, and nothing has more to complain of than of the library
//! as it was linked and changed by the same tools. Changed again, they are as they were; undone, they have their first bytes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::slim_wheels::images::{Images, Keep};
use crate::slim_wheels::places::{Places, list};
use crate::task::{Reported, Run};
use crate::tool::{Tool, need, output, unzip};
use crate::workspace::Workspace;
use look::{Look, complaints, symbols_of, taken};
use others::{Counts, Others};

mod look;
#[path = "../../hoist-tool/tests/fatbin/tools/numbers.rs"]
mod numbers;
mod others;
mod stubs;
#[path = "../../hoist-tool/tests/fatbin/tools/symbols.rs"]
mod symbols;

/// Arguments of `whole-libraries`.
#[derive(clap::Args)]
pub(crate) struct WholeLibraries {
    /// Only wheels with this in their name
    only: Vec<String>,
    /// A folder with wheels, where those that are missing are put
    #[arg(long, value_name = "FOLDER")]
    wheels: Option<PathBuf>,
    /// Wheels of no list, instead of those of the list
    #[arg(long, value_name = "WHEEL")]
    file: Vec<PathBuf>,
    /// A hoist, instead of building one for release
    #[arg(long, value_name = "PATH")]
    hoist: Option<PathBuf>,
    /// Only libraries with this in their name
    #[arg(long, value_name = "NAME")]
    library: Option<String>,
    /// Libraries of at most so many bytes
    #[arg(long, value_name = "BYTES", default_value_t = u64::MAX)]
    up_to: u64,
    /// Mode `size` for libraries of at most so many bytes: it packs 4 MB in a second
    #[arg(long, value_name = "BYTES", default_value_t = 64_000_000)]
    size_up_to: u64,
    /// Only this change
    #[arg(long, value_name = "NAME")]
    change: Option<String>,
    /// One tool only, not two after one another
    #[arg(long)]
    one: bool,
}

const KEEP: &[&str] = &["prune", "--allow-gaps", "--keep", "sm_80,sm_90,ptx"];
const BALANCE: &[&str] = &["recompress", "--mode", "balance"];

/// What becomes of each library first: words for `hoist fatbin`, one call after another.
const CHANGES: [(&str, &[&[&str]]); 6] = [
    ("speed", &[&["recompress", "--mode", "speed"]]),
    ("balance", &[BALANCE]),
    ("size", &[&["recompress", "--mode", "size"]]),
    ("none", &[&["recompress", "--with", "none"]]),
    ("keep", &[KEEP]),
    ("keep, balance", &[KEEP, BALANCE]),
];

impl Run for WholeLibraries {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([
            Tool::new("python3", "python3 python3-pip"),
            Tool::new("strip", "binutils"),
            Tool::new("patchelf", "patchelf"),
            Tool::new("eu-elflint", "elfutils"),
        ])?;
        let (wheels, hoist) = (self.wheels.as_deref(), self.hoist.as_deref());
        let places = Places::new(workspace, "whole-libraries", wheels, hoist)?;
        let mut total = Counts::default();
        let (mut libraries, mut files, mut refused, mut faults) = (0, 0, 0, 0);
        let mut wheels = self.file.clone();
        if wheels.is_empty() {
            let listed = list()?;
            let meant = listed.iter().filter(|wheel| wheel.is_meant(&self.only));
            wheels = meant.map(|wheel| places.file(wheel)).collect::<Result<_>>()?;
        }
        for wheel in &wheels {
            let site = places.scratch.join("site");
            unzip(wheel, &site)?;
            for (name, old) in Images::of(&places.hoist, wheel)?.by_file() {
                let path = site.join(&name);
                let size = fs::metadata(&path)?.len();
                let is_named = self.library.as_ref().is_none_or(|part| name.contains(part));
                if !name.contains(".so") || !is_named || size > self.up_to {
                    continue;
                }
                libraries += 1;
                let at = places.scratch.join("library");
                fs::create_dir_all(&at)?;
                fs::copy(&path, at.join("original.so"))?;
                let (search, stubs) = stubs::search(&path, &site, &at.join("stubs"))?;
                let look = Look { hoist: &places.hoist, search: &search };
                let mut library =
                    Library { name: &name, old: &old, others: Others::new(&look, at.clone())? };
                println!("{name}: {size} bytes, {stubs} stubs for what it needs");
                for (change, steps) in CHANGES {
                    let is_named = self.change.as_ref().is_none_or(|part| part == change);
                    if !is_named || (change == "size" && size > self.size_up_to) {
                        continue;
                    }
                    match library.changed(steps, self.one) {
                        Ok(Made::Changed(counts, more)) => {
                            println!(
                                "  {change}: {} combinations, {} broken as it was linked, too, {} differences",
                                counts.tried, counts.broken, counts.differences
                            );
                            more.iter().for_each(|line| println!("    {line}"));
                            files += 1;
                            total.tried += counts.tried;
                            total.broken += counts.broken;
                            total.differences += counts.differences;
                        }
                        Ok(Made::Refused(said)) => {
                            println!("  {change}: refused: {said}");
                            refused += 1;
                        }
                        Err(error) => {
                            println!("  {change}: {error:#}");
                            faults += 1;
                        }
                    }
                }
                if let Err(error) = library.undone() {
                    println!("  undone: {error:#}");
                    faults += 1;
                }
                fs::remove_dir_all(&at)?;
            }
            fs::remove_dir_all(&site)?;
        }
        println!(
            "{libraries} libraries, {files} changes, {refused} refused: {} times one tool or two after; {} break it as it was linked, too; {} differences, {faults} faults",
            total.tried, total.broken, total.differences
        );
        if total.differences == 0 && faults == 0 { Ok(()) } else { Err(Reported.into()) }
    }
}

/// A library of a wheel.
struct Library<'a> {
    name: &'a str,
    old: &'a Images,
    others: Others<'a>,
}

/// What became of a change.
enum Made {
    Changed(Counts, Vec<String>),
    Refused(String),
}

impl Library<'_> {
    /// Changes the library, and looks at what others make of it.
    fn changed(&mut self, steps: &[&[&str]], one: bool) -> Result<Made> {
        let at = self.others.at.clone();
        fs::copy(at.join("original.so"), at.join("changed.so"))?;
        for step in steps {
            if let Err(error) = self.hoist(step, "changed.so") {
                return Ok(Made::Refused(format!("{error:#}")));
            }
        }
        let path = at.join("changed.so");
        let found = Images::of_library(self.others.look.hoist, &path, self.name)?;
        let keep = steps.iter().find_map(|words| Keep::of(words));
        self.old.compare(&found, keep.as_ref(), &[])?;
        let seen = self.others.look.at(&path)?;
        let is_kept = |name: &str| {
            keep.is_none() || ["80.cubin", "90.cubin"].contains(&name) || name.ends_with(".ptx")
        };
        let folder = at.join("taken");
        let old = taken(&at.join("original.so"), &folder, is_kept)?;
        let is_same = old.is_none() || taken(&path, &folder, |_| true)? == old;
        ensure!(is_same, "cuobjdump takes out other images");
        ensure!(
            seen.regions
                .iter()
                .all(|(section, _)| section == ".nv_fatbin" || section == "__nv_relfatbin"),
            "regions in other sections"
        );
        let (new, old) = (symbols_of(&path)?, symbols_of(&at.join("original.so"))?);
        let other: Vec<_> = new.offsets.symmetric_difference(&old.offsets).take(4).collect();
        ensure!(other.is_empty(), "other symbols: {other:?}");
        ensure!(new.astray.is_subset(&old.astray), "symbols outside of their sections");
        let new = complaints(&path)?;
        let old = complaints(&at.join("original.so"))?;
        ensure!(
            new.is_subset(&old),
            "complaints: {:?}",
            new.difference(&old).take(4).collect::<Vec<_>>()
        );
        let mut more = Vec::new();
        let mut counts = self.others.try_out(&seen, one, |line| more.push(line))?;
        match self.again(steps) {
            Ok(note) => more.extend(note),
            Err(error) => {
                counts.differences += 1;
                more.push(format!("{error:#}"));
            }
        }
        Ok(Made::Changed(counts, more))
    }

    fn hoist(&self, words: &[&str], file: &str) -> Result<()> {
        let mut command = Command::new(self.others.look.hoist);
        command
            .arg("fatbin")
            .args(words)
            .args([file, "-o", file])
            .args(["--limit", "1000000000000"]);
        output(command.current_dir(&self.others.at)).map(drop)
    }

    /// Twice and thrice changed is as good as once; what was grown, and made small, grows to the same bytes: at once, or from then on if
    /// tables had to make room for program headers. That is what is said then.
    fn again(&self, steps: &[&[&str]]) -> Result<Option<String>> {
        let at = &self.others.at;
        let first = fs::read(at.join("changed.so"))?;
        fs::copy(at.join("changed.so"), at.join("again.so"))?;
        for times in ["twice", "thrice"] {
            for step in steps {
                self.hoist(step, "again.so")?;
            }
            ensure!(fs::read(at.join("again.so"))? == first, "{times} changed is another file");
        }
        let mut note = None;
        if steps.iter().any(|step| step.contains(&"none")) {
            let regrown = || -> Result<Vec<u8>> {
                for step in [BALANCE, steps.first().context("no step")?] {
                    self.hoist(step, "again.so")?;
                }
                Ok(fs::read(at.join("again.so"))?)
            };
            let second = regrown()?;
            if second != first {
                ensure!(regrown()? == second, "packed and unpacked it is another file each time");
                let (one, two) = (first.len(), second.len());
                note = Some(format!(
                    "packed and unpacked it has {two} bytes for {one}, and from then on the same"
                ));
            }
        }
        fs::remove_file(at.join("again.so"))?;
        Ok(note)
    }

    /// `hoist fatbin slim --undo` brings the first bytes back.
    fn undone(&self) -> Result<()> {
        let at = &self.others.at;
        let installed = at.join("installed");
        fs::create_dir(&installed)?;
        fs::copy(at.join("original.so"), installed.join("x.so"))?;
        let slim = |words: &[&str]| {
            let mut command = Command::new(self.others.look.hoist);
            output(command.args(["fatbin", "slim"]).args(words).current_dir(at)).map(drop)
        };
        slim(&["installed", "--mode", "balance", "--backup", "backup"])?;
        let is_other = fs::read(installed.join("x.so"))? != fs::read(at.join("original.so"))?;
        if is_other {
            slim(&["--undo", "backup"])?;
        }
        let is_back = fs::read(installed.join("x.so"))? == fs::read(at.join("original.so"))?;
        ensure!(is_back, "other bytes than the first");
        if !is_other {
            println!("  undone: nothing had changed");
        }
        Ok(())
    }
}
