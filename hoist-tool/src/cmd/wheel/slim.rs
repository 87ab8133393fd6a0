//! `hoist wheel slim IN.whl -o OUT.whl --keep sm_80,sm_90,ptx --mode size`.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use fatbin::CompressionMode;
use flate2::Compression;
use serde::Serialize;

use super::record::{self, updated};
use super::zip::{Member, New, Zip};
use crate::budget::{Budget, FLOOR};
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
        let (index, member) = list(zip)?;
        let budget = Budget::new(self.how.limit, FLOOR, MOST, size);
        let name = || Printable::from(&*member.name).to_string();
        let old = zip.unpack(member, &budget).with_context(name)?;
        let old = std::str::from_utf8(old.bytes()).with_context(name)?;
        let rows = record::rows(old).map(|(name, said)| (record::plain(&name), said));
        let rows = rows.collect::<Rows<'_>>();
        let mut changed = Changed::default();
        let unpacking = Unpacking::default();
        for (index, member) in zip.members.iter().enumerate() {
            if zip.begins_with(member, &HEADS) {
                let made =
                    self.member(zip, (index, member), (&budget, &unpacking), &rows, &mut changed);
                made.with_context(|| Printable::from(&*member.name).to_string())?;
            }
        }
        changed.notes.extend(zip.unread());
        changed.tally.check()?;
        changed.notes.extend(changed.tally.notes(&self.how.keep));
        changed.notes.extend(unpacking.note());
        if changed.members.is_empty() {
            changed.notes.push(String::from("nothing of the wheel changes"));
            return Ok(changed);
        }
        let new = updated(old, &changed.record).with_context(name)?;
        let new = Mapped::of(new.into_bytes());
        changed.members.insert(index, member.pack(&new, Compression::default())?);
        let is_signature = |member: &&Member| {
            member.name.ends_with(".dist-info/RECORD.jws")
                || member.name.ends_with(".dist-info/RECORD.p7s")
        };
        for signature in zip.members.iter().filter(is_signature) {
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
        (budget, unpacking): (&Budget, &Unpacking),
        rows: &Rows<'_>,
        changed: &mut Changed,
    ) -> Result<()> {
        let old = zip.unpack(member, budget)?;
        // of what stays as it is nothing loads in another time
        let mut own = Unpacking::default();
        let outcome = self.how.plan(&old, &own)?;
        changed.notes.extend(own.left_of(&Printable::from(&*member.name).to_string()));
        let Some(slimmed) = changed.tally.count(&member.name, outcome) else {
            unpacking.extend(&own);
            return Ok(());
        };
        let is_alone = zip.members.iter().filter(|other| other.name == member.name).count() == 1;
        ensure!(is_alone, "there are several members of this name, and RECORD means one of them");
        let mut made = Some(Made::of(*slimmed, &old, member, rows, self.how.mode)?);
        // a wheel compresses small images that are not compressed together, and better than each alone
        if self.how.is_for_size() {
            let others = Unpacking::default();
            let other = self.how.without_mode().map(|how| how.plan(&old, &others));
            let other = match other.transpose()? {
                Some(Outcome::Slimmed(slimmed)) => {
                    Some(Made::of(*slimmed, &old, member, rows, self.how.mode)?)
                }
                _ => None,
            };
            let size = |made: &Option<Made>| {
                made.as_ref().map_or(member.packed_size(), |made| made.packed.packed_size())
            };
            let (after, least) = (size(&made), size(&other));
            if after >= least {
                let stays = if other.is_some() { "what is kept of it" } else { "it" };
                if after > least {
                    changed.notes.push(format!(
                        "{} would take {after} bytes of the wheel instead of {least}: {stays} stays as it is",
                        Printable::from(&*member.name)
                    ));
                }
                (made, own) = (other, others);
            }
        }
        let Some(Made { slimmed, said, packed }) = made else { return Ok(()) };
        unpacking.extend(&own);
        changed.record.insert(record::plain(&member.name), said);
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

/// What the list of files says of each, by its plain name.
type Rows<'r> = HashMap<String, &'r str>;

/// A file of the wheel, made smaller and packed.
struct Made {
    slimmed: Slimmed,
    /// What is recorded of it.
    said: String,
    packed: New,
}

impl Made {
    fn of(
        slimmed: Slimmed,
        old: &Mapped,
        member: &Member,
        rows: &Rows<'_>,
        mode: Option<CompressionMode>,
    ) -> Result<Self> {
        let mut file = tempfile::tempfile()?;
        slimmed.write(old, &mut file)?;
        let new = Mapped::map(&file)?;
        let before = rows.get(&record::plain(&member.name)).copied().unwrap_or_default();
        let mut packed = match mode {
            Some(CompressionMode::Size) => member.pack(&new, Compression::best())?,
            _ => member.pack(&new, Compression::default())?,
        };
        // of little that changes another encoder may make more than there was
        let is_fast = mode == Some(CompressionMode::Speed);
        if !is_fast && packed.packed_size() >= member.packed_size() {
            let best = member.pack(&new, Compression::best())?;
            if best.packed_size() < packed.packed_size() {
                packed = best;
            }
        }
        Ok(Self { slimmed, said: record::said(before, &new), packed })
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
