//! `slim-wheels`: wheels of the package index through `hoist wheel slim`, by mode and by architectures. Sizes and times in a table; every
//! image unpacked is compared with the original's; results are installed into empty environments, checked, imported and tried.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::task::{Reported, Run};
use crate::tool::{Tool, need, output};
use crate::workspace::Workspace;

pub(crate) mod images;
mod installed;
pub(crate) mod places;

use images::{Images, Keep};
use places::{Places, Wheel, list};

/// Arguments of `slim-wheels`.
#[derive(clap::Args)]
pub(crate) struct SlimWheels {
    /// Only wheels with this in their name
    only: Vec<String>,
    /// A folder with wheels, where those that are missing are put
    #[arg(long, value_name = "FOLDER")]
    wheels: Option<PathBuf>,
    /// A hoist, instead of building one for release
    #[arg(long, value_name = "PATH")]
    hoist: Option<PathBuf>,
    /// Mode `size` without `--keep` for wheels of at most so many bytes: it packs 4 MB in a second
    #[arg(long, value_name = "BYTES", default_value_t = 160_000_000)]
    size_up_to: u64,
    /// Installs nothing
    #[arg(long)]
    no_install: bool,
}

/// What is done to each.
const RUNS: [(&str, &[&str]); 6] = [
    ("speed", &["--mode", "speed"]),
    ("balance", &["--mode", "balance"]),
    ("size", &["--mode", "size"]),
    ("keep", &["--allow-gaps", "--keep", "sm_80,sm_90,ptx"]),
    ("keep, balance", &["--allow-gaps", "--keep", "sm_80,sm_90,ptx", "--mode", "balance"]),
    ("keep, size", &["--allow-gaps", "--keep", "sm_80,sm_90,ptx", "--mode", "size"]),
];

/// Those that are installed, if they were made.
const INSTALLED: [&str; 4] = ["balance", "size", "keep, balance", "keep, size"];

/// The most bytes of memory of its own that hoist may take for any of them.
const MEMORY: u64 = 400_000_000;

/// What was measured of a run.
#[derive(Deserialize)]
struct Measured {
    ok: bool,
    seconds: f64,
    processor: f64,
    own: u64,
    said: Option<Said>,
}

/// What hoist says of a wheel.
#[derive(Deserialize)]
struct Said {
    size_before: u64,
    size_after: u64,
    files: Vec<Changed>,
    left: Vec<String>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct Changed {
    file: String,
}

impl Run for SlimWheels {
    fn run(self, workspace: &Workspace) -> Result<()> {
        need([Tool::new("python3", "python3 python3-pip python3-venv")])?;
        let all = list()?;
        let (wheels, hoist) = (self.wheels.as_deref(), self.hoist.as_deref());
        let places = Places::new(workspace, "slim-wheels", wheels, hoist)?;
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        for wheel in all.iter().filter(|wheel| wheel.is_meant(&self.only)) {
            match Trial(&places).row(wheel, self.size_up_to) {
                Ok(row) => rows.push(row),
                Err(error) => faults.push(format!("{}: {error:#}", wheel.name)),
            }
        }
        // they may need one another, and so come last
        for wheel in all.iter().filter(|wheel| wheel.is_meant(&self.only)) {
            for run in INSTALLED.iter().filter(|_| !self.no_install) {
                let is_other = !wheel.runs.is_empty() && !wheel.runs.iter().any(|one| one == run);
                if is_other || *run == "size" && !places.made(&places.file(wheel)?, run)?.exists() {
                    continue;
                }
                let said = installed::try_out(&places, wheel, run);
                match said.with_context(|| format!("{}, {run}", wheel.name)) {
                    Ok(said) => println!("{}, {run}: {said}", wheel.name),
                    Err(error) => faults.push(format!("{error:#}")),
                }
            }
        }
        println!("\nBytes, and seconds of processors; `keep` is `{}`.\n", RUNS[3].1.join(" "));
        println!("| wheel | before | {} | own memory |", RUNS.map(|(name, _)| name).join(" | "));
        println!("|---|---:|{}---:|", "---:|".repeat(RUNS.len()));
        rows.iter().for_each(|row| println!("{row}"));
        for fault in &faults {
            eprintln!("{fault}");
        }
        if faults.is_empty() { Ok(()) } else { Err(Reported.into()) }
    }
}

/// Bytes with a comma between three digits each.
fn with_commas(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What `hoist wheel slim` makes of wheels.
struct Trial<'p>(&'p Places);

impl Trial<'_> {
    /// The row of a wheel: that of an earlier call with this hoist, if what is installed is there, too.
    fn row(&self, wheel: &Wheel, size_up_to: u64) -> Result<String> {
        let row = self.0.out.join(format!("{}-{}.row", wheel.name, wheel.version));
        let file = self.0.file(wheel)?;
        let is_size_wanted = fs::metadata(&file)?.len() <= size_up_to;
        let wanted = INSTALLED.iter().filter(|run| **run != "size" || is_size_wanted);
        let made = wanted.map(|run| self.0.made(&file, run));
        let is_there = made.collect::<Result<Vec<_>>>()?.iter().all(|new| new.exists());
        let is_newer = || -> Result<bool> {
            Ok(fs::metadata(&row)?.modified()? > fs::metadata(&self.0.hoist)?.modified()?)
        };
        if is_there && row.exists() && is_newer()? {
            return Ok(fs::read_to_string(row)?);
        }
        let text = self.wheel(wheel, size_up_to)?;
        fs::write(row, &text)?;
        Ok(text)
    }

    /// A wheel through all runs: its row of the table. What is not installed is removed when it was compared.
    fn wheel(&self, wheel: &Wheel, size_up_to: u64) -> Result<String> {
        let file = self.0.file(wheel)?;
        let before = fs::metadata(&file)?.len();
        let old = Images::of(&self.0.hoist, &file)?;
        let mut cells = vec![format!("{} {}", wheel.name, wheel.version), with_commas(before)];
        let mut most = 0;
        for (run, words) in RUNS {
            if run == "size" && before > size_up_to {
                cells.push(String::from("-"));
                continue;
            }
            let new = self.0.made(&file, run)?;
            let measured = self.slim(&file, &new, words)?;
            let Some(said) = measured.said.filter(|_| measured.ok) else {
                bail!("{run}: was refused");
            };
            ensure!(said.size_before == before, "{run}: another size before");
            let found = Images::of(&self.0.hoist, &new)?;
            let keep = Keep::of(words);
            let equal = old.compare(&found, keep.as_ref(), &said.left);
            let equal = equal.with_context(|| run.to_owned())?;
            let mut record = Command::new("python3");
            record.args(["-c", include_str!("slim_wheels/record.py")]).arg(&file).arg(&new);
            output(record.args(said.files.iter().map(|changed| &changed.file)))?;
            let loading = said.notes.iter().find(|note| note.starts_with("loading"));
            for name in &said.left {
                println!("{}, {run}: {name} stays as it is", wheel.name);
            }
            println!(
                "{}, {run}: {} bytes, {:.1} s, {:.1} s of processors; {equal} images as before; {}",
                wheel.name,
                with_commas(said.size_after),
                measured.seconds,
                measured.processor,
                loading.map_or("loading is as before", String::as_str)
            );
            if !INSTALLED.contains(&run) {
                fs::remove_file(&new)?;
            }
            let cell = format!("{}, {:.0} s", with_commas(said.size_after), measured.processor);
            cells.push(cell);
            ensure!(
                measured.own < MEMORY,
                "{run}: takes {} bytes of memory of its own, {MEMORY} are allowed",
                measured.own
            );
            most = most.max(measured.own);
        }
        cells.push(format!("{} MB", most / 1_000_000));
        Ok(format!("| {} |", cells.join(" | ")))
    }

    fn slim(&self, old: &Path, new: &Path, words: &[&str]) -> Result<Measured> {
        let mut command = Command::new("python3");
        command.args(["-c", include_str!("slim_wheels/measure.py")]).arg(&self.0.hoist);
        command.args(["wheel", "slim", "--json"]).arg(old).arg("-o").arg(new).args(words);
        let done = output(command.env("TMPDIR", &self.0.scratch))?;
        Ok(serde_json::from_slice(&done.stdout)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_threes() {
        let texts = [0, 999, 1000, 12_345_678].map(with_commas);
        assert_eq!(texts, ["0", "999", "1,000", "12,345,678"]);
    }
}
