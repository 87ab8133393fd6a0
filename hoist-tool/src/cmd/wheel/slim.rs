//! `hoist wheel slim IN.whl -o OUT.whl --keep sm_80,sm_90,ptx --mode size`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;

use super::record::{self, updated};
use super::zip::{Member, New, Zip};
use crate::budget::{Budget, FLOOR};
use crate::cmd::fatbin::slim::digest;
use crate::cmd::fatbin::slim::host::{HEADS, Outcome, Slimmed, Slimming, Tally};
use crate::cmd::fatbin::unpacking::Unpacking;
use crate::mapped::Mapped;
use crate::number::smaller;
use crate::output::{self, Backup, Dates, Turn};
use crate::paint;
use crate::printable::Printable;

/// Deflate gives no more than this for a byte (RFC 1951 3.2.5).
const MOST: u64 = 1032;

/// Makes the device code in a wheel smaller; all else is as it was, byte for byte.
#[derive(Debug, clap::Args)]
pub struct Slim {
    /// The wheel.
    #[arg(value_name = "WHEEL")]
    file: PathBuf,
    /// The wheel to write: it appears when it is whole. It may be the same.
    #[arg(short, long, value_name = "WHEEL")]
    output: PathBuf,
    #[command(flatten)]
    how: Slimming,
    #[command(flatten)]
    dates: Dates,
    #[command(flatten)]
    backup: Backup,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

/// A file of the wheel that changed.
#[derive(Debug, Serialize)]
struct Row {
    file: String,
    entries_before: usize,
    entries_after: usize,
    size_before: u64,
    size_after: u64,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    output: String,
    /// The name under which the wheel is kept that was replaced.
    backup: Option<PathBuf>,
    size_before: u64,
    size_after: u64,
    files: Vec<Row>,
    /// Files with device code that stay as they are: they have nothing of what is kept, or are files of Windows.
    left: Vec<String>,
    notes: Vec<String>,
}

/// Contents that changed: which member, and what is recorded of it.
#[derive(Default)]
struct Changed {
    members: BTreeMap<usize, New>,
    record: record::New,
    rows: Vec<Row>,
    tally: Tally,
    notes: Vec<String>,
}

impl Slim {
    /// Writes the wheel and prints what was done.
    ///
    /// # Errors
    /// If the wheel, or device code in it, cannot be changed so: then nothing is written.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        self.how.check_asked()?;
        let label = self.file.display().to_string();
        let turn = Turn::in_place(&self.file, &self.output)?;
        let file = Mapped::open(&self.file)?;
        let before = file.bytes().len() as u64;
        let zip = Zip::parse(file.bytes()).with_context(|| label.clone())?;
        let changed = self.changed(&zip, before).with_context(|| label.clone())?;
        let mut after = 0;
        let keep = |old: &Path, _: &File| self.backup.make(old);
        let done =
            output::change(&self.output, (&self.file, turn.as_ref()), self.dates, keep, |to| {
                zip.write(&file, &changed.members, to).with_context(|| label.clone())?;
                let written = Mapped::map(to)?;
                after = written.bytes().len() as u64;
                check(&written, &zip, &changed)
                    .with_context(|| format!("{label}: what was written"))
            })?;
        let mut notes = changed.notes;
        notes.extend(done.note.map(String::from));
        notes.sort();
        notes.dedup();
        let output = self.output.display().to_string();
        let report = Report {
            file: label,
            output,
            backup: done.backup,
            size_before: before,
            size_after: after,
            files: changed.rows,
            left: changed.tally.left,
            notes,
        };
        let out = &mut *output::beside(&self.output, out);
        if self.json {
            crate::json::write(out, &report)?;
            return Ok(writeln!(out)?);
        }
        text(&report, out)
    }

    /// What becomes of the members with device code, and of the list of files.
    fn changed(&self, zip: &Zip<'_>, size: u64) -> Result<Changed> {
        let list = list(zip)?;
        let budget = Budget::new(self.how.limit, FLOOR, MOST, size);
        let mut changed = Changed::default();
        let unpacking = Unpacking::default();
        for (index, member) in zip.members.iter().enumerate() {
            if zip.begins_with(member, &HEADS) {
                let done = self.member(zip, (index, member), &budget, &unpacking, &mut changed);
                done.with_context(|| Printable::from(&*member.name).to_string())?;
            }
        }
        changed.tally.check()?;
        changed.notes.extend(changed.tally.notes(&self.how.keep));
        changed.notes.extend(unpacking.note().into_iter().chain(unpacking.left()));
        if changed.members.is_empty() {
            changed.notes.push(String::from("nothing of the wheel changes"));
            return Ok(changed);
        }
        let (index, member) = list;
        let name = || Printable::from(&*member.name).to_string();
        let old = zip.unpack(member, &budget).with_context(name)?;
        let old = std::str::from_utf8(old.bytes()).with_context(name)?;
        let new = updated(old, core::mem::take(&mut changed.record)).with_context(name)?;
        let new = Mapped::of(new.into_bytes());
        changed.members.insert(index, member.pack(&new)?);
        let is_signature = |member: &&Member| {
            member.name.ends_with(".dist-info/RECORD.jws")
                || member.name.ends_with(".dist-info/RECORD.p7s")
        };
        if let Some(signature) = zip.members.iter().find(is_signature) {
            let name = &signature.name;
            changed.notes.push(format!("{name} is kept: the signature does not hold any more"));
        }
        Ok(changed)
    }

    /// A member with device code, if any of that changes.
    fn member(
        &self,
        zip: &Zip<'_>,
        (index, member): (usize, &Member),
        budget: &Budget,
        unpacking: &Unpacking,
        changed: &mut Changed,
    ) -> Result<()> {
        let old = zip.unpack(member, budget)?;
        // of what stays as it is nothing loads in another time
        let mut own = Unpacking::default();
        let outcome = self.how.plan(&old, &own)?;
        let Some(slimmed) = changed.tally.count(&member.name, outcome) else {
            unpacking.extend(&own);
            return Ok(());
        };
        let mut made = Some(Made::of(*slimmed, &old, member)?);
        // a wheel compresses small images that are not compressed together, and better than each alone
        if self.how.is_for_size() {
            let others = Unpacking::default();
            let other = self.how.without_mode().map(|how| how.plan(&old, &others));
            let other = match other.transpose()? {
                Some(Outcome::Slimmed(slimmed)) => Some(Made::of(*slimmed, &old, member)?),
                _ => None,
            };
            let size = |made: &Option<Made>| {
                made.as_ref().map_or(member.packed_size(), |made| made.packed.packed_size())
            };
            let (after, least) = (size(&made), size(&other));
            if after >= least {
                let stays = if other.is_some() { "what is kept of it" } else { "it" };
                changed.notes.push(format!(
                    "{} would take {after} bytes of the wheel instead of {least}: {stays} stays as it is",
                    Printable::from(&*member.name)
                ));
                (made, own) = (other, others);
            }
        }
        let Some(Made { slimmed, digest, packed }) = made else { return Ok(()) };
        unpacking.extend(&own);
        changed.record.insert(member.name.clone(), (digest, slimmed.sizes.1));
        changed.members.insert(index, packed);
        changed.rows.push(Row {
            file: member.name.clone(),
            entries_before: slimmed.entries.0,
            entries_after: slimmed.entries.1,
            size_before: slimmed.sizes.0,
            size_after: slimmed.sizes.1,
        });
        changed.notes.extend(slimmed.notes);
        Ok(())
    }
}

/// A file of the wheel, made smaller and packed.
struct Made {
    slimmed: Slimmed,
    digest: Vec<u8>,
    packed: New,
}

impl Made {
    fn of(slimmed: Slimmed, old: &Mapped, member: &Member) -> Result<Self> {
        let mut file = tempfile::tempfile()?;
        slimmed.write(old, &mut file)?;
        let new = Mapped::map(&file)?;
        Ok(Self { slimmed, digest: digest::bytes(&new), packed: member.pack(&new)? })
    }
}

/// The list of files.
fn list<'z>(zip: &'z Zip<'_>) -> Result<(usize, &'z Member)> {
    let is_list = |(_, member): &(usize, &Member)| {
        let folder = member.name.strip_suffix("/RECORD").unwrap_or_default();
        folder.ends_with(".dist-info") && !folder.contains('/')
    };
    let mut lists = zip.members.iter().enumerate().filter(is_list);
    match (lists.next(), lists.next()) {
        (Some(list), None) => Ok(list),
        _ => bail!("is no wheel: it should have one list of files, *.dist-info/RECORD"),
    }
}

/// Looks at the new wheel: the same names in the same order, and what changed is there as it was made.
fn check(written: &Mapped, old: &Zip<'_>, changed: &Changed) -> Result<()> {
    let new = Zip::parse(written.bytes())?;
    let same = old.members.len() == new.members.len()
        && old.members.iter().zip(&new.members).all(|(one, other)| one.name == other.name);
    ensure!(same, "has other members");
    for index in changed.members.keys() {
        let member = new.members.get(*index).context("a member is not there")?;
        let budget = Budget::new(Some(u64::MAX), 0, 0, 0);
        new.unpack(member, &budget).with_context(|| Printable::from(&*member.name).to_string())?;
    }
    Ok(())
}

fn text(report: &Report, out: &mut dyn Write) -> Result<()> {
    for row in &report.files {
        let Row { entries_before, entries_after, size_before, size_after, .. } = row;
        writeln!(
            out,
            "{}: {entries_after} of {entries_before} entries; {size_before} bytes before, {size_after} after",
            Printable::from(&*row.file)
        )?;
    }
    writeln!(
        out,
        "{}: {} files changed; {} bytes before, {} after{}",
        Printable::from(&*report.output),
        report.files.len(),
        report.size_before,
        report.size_after,
        smaller(report.size_before, report.size_after)
    )?;
    if let Some(backup) = &report.backup {
        paint::note(out, &format!("what was replaced is kept as {}", backup.display()))?;
    }
    for note in &report.notes {
        paint::note(out, note)?;
    }
    Ok(())
}
