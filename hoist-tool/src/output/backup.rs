//! What is kept of files that are replaced, in the words of `cp` and `mv` (GNU coreutils, "Backup options").

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};

use super::content::{Content, link};
use super::leftovers::folder;
use super::owner;

/// Whether a file that is replaced stays under another name.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Backup {
    /// Keeps the file that is replaced under another name, as cp does: `none`, `numbered` (`FILE.~1~`), `simple` (`FILE~`), `existing`
    /// (numbered if there are such, else simple). Without a word it is `VERSION_CONTROL`, else `existing`.
    #[arg(
        short,
        long,
        value_name = "CONTROL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    backup: Option<Control>,
    /// The same, with this at the end of the simple name instead of `~` or `SIMPLE_BACKUP_SUFFIX`.
    #[arg(short = 'S', long, value_name = "SUFFIX")]
    suffix: Option<String>,
}

/// How a file that stays is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    None,
    Numbered,
    Existing,
    Simple,
    /// As the environment says.
    Usual,
}

impl FromStr for Control {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "" => Self::Usual,
            "none" | "off" => Self::None,
            "numbered" | "t" => Self::Numbered,
            "existing" | "nil" => Self::Existing,
            "simple" | "never" => Self::Simple,
            _ => return Err(String::from("expected none, numbered, existing or simple")),
        })
    }
}

impl Backup {
    fn control(&self) -> Result<Control> {
        let asked = match (self.backup, &self.suffix) {
            (None, None) => return Ok(Control::None),
            (None, Some(_)) => Control::Usual,
            (Some(control), _) => control,
        };
        if asked != Control::Usual {
            return Ok(asked);
        }
        let usual = std::env::var("VERSION_CONTROL").unwrap_or_default();
        let usual: Control =
            usual.parse().map_err(anyhow::Error::msg).context("VERSION_CONTROL")?;
        Ok(if usual == Control::Usual { Control::Existing } else { usual })
    }

    fn suffix(&self) -> Result<String> {
        let usual = || std::env::var("SIMPLE_BACKUP_SUFFIX").ok();
        let suffix = self.suffix.clone().or_else(usual).filter(|suffix| !suffix.is_empty());
        let suffix = suffix.unwrap_or_else(|| String::from("~"));
        ensure!(!suffix.contains('/'), "--suffix {suffix}: would be in another folder");
        Ok(suffix)
    }

    /// Gives a file that will be replaced one more name, if it is to stay: it is never without one. The name.
    ///
    /// # Errors
    /// If that fails.
    pub fn make(&self, path: &Path) -> Result<Option<PathBuf>> {
        let control = self.control()?;
        let last = if matches!(control, Control::Numbered | Control::Existing) {
            last(path).with_context(|| path.display().to_string())?
        } else {
            0
        };
        let kept = match control {
            Control::None => return Ok(None),
            Control::Numbered => numbered(path, last),
            Control::Existing if last > 0 => numbered(path, last),
            Control::Existing | Control::Simple | Control::Usual => simple(path, &self.suffix()?),
        };
        Ok(Some(kept.with_context(|| format!("{}: one more name", path.display()))?))
    }
}

/// The name of a file with more behind it.
fn with(path: &Path, more: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(more);
    PathBuf::from(name)
}

/// The largest number of a file's numbered names.
fn last(path: &Path) -> io::Result<u64> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut last = 0;
    for entry in fs::read_dir(folder(path))? {
        let found = entry?.file_name();
        let rest = found.as_encoded_bytes().strip_prefix(name);
        let number = rest.and_then(|rest| rest.strip_prefix(b".~")?.strip_suffix(b"~"));
        let number = number.and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    Ok(last)
}

fn numbered(path: &Path, last: u64) -> io::Result<PathBuf> {
    let mut number = last;
    loop {
        number = number.saturating_add(1);
        let name = with(path, &format!(".~{number}~"));
        match fs::hard_link(path, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return copied(path, name),
            Ok(()) => return Ok(name),
        }
    }
}

fn simple(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let name = with(path, suffix);
    match link(path, &name) {
        Ok(()) => Ok(name),
        Err(_) => copied(path, name),
    }
}

/// A copy, where a file has one name only.
fn copied(path: &Path, name: PathBuf) -> io::Result<PathBuf> {
    let old = fs::metadata(path)?;
    let mut copy = Content::new(Some(folder(path)))?;
    io::copy(&mut fs::File::open(path)?, copy.file_mut())?;
    owner::same(copy.file(), &old, path, false)?;
    let times = fs::FileTimes::new().set_accessed(old.accessed()?).set_modified(old.modified()?);
    copy.file().set_times(times)?;
    copy.file().sync_all()?;
    copy.keep(&name)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_cp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.so");
        let make = |control: Option<Control>, suffix: Option<&str>, text: &str| {
            fs::write(folder.path().join("new"), text).unwrap();
            let backup = Backup { backup: control, suffix: suffix.map(String::from) };
            let made = backup.make(&path).unwrap();
            fs::rename(folder.path().join("new"), &path).unwrap();
            let made = made?;
            let name = made.file_name().unwrap().to_string_lossy().into_owned();
            Some((name, fs::read_to_string(&made).unwrap()))
        };
        let pair = |name: &str, text: &str| Some((name.to_owned(), text.to_owned()));
        fs::write(&path, "0").unwrap();
        assert_eq!(make(None, None, "1"), None);
        assert_eq!(make(Some(Control::Existing), None, "2"), pair("lib.so~", "1"));
        assert_eq!(make(Some(Control::Simple), Some(".old"), "3"), pair("lib.so.old", "2"));
        assert_eq!(make(None, Some(".old"), "4"), pair("lib.so.old", "3"));
        assert_eq!(make(Some(Control::Numbered), None, "5"), pair("lib.so.~1~", "4"));
        assert_eq!(make(Some(Control::Existing), None, "6"), pair("lib.so.~2~", "5"));
        assert_eq!(make(Some(Control::None), None, "7"), None);
        fs::write(folder.path().join("lib.so.~17~"), "").unwrap();
        assert_eq!(make(Some(Control::Numbered), None, "8"), pair("lib.so.~18~", "7"));
        let copy = copied(&path, folder.path().join("copy")).unwrap();
        assert_eq!(fs::read_to_string(copy).unwrap(), "8");
        let elsewhere = Backup { backup: Some(Control::Simple), suffix: Some("/x".into()) };
        assert!(elsewhere.make(&path).is_err());
        assert!("oops".parse::<Control>().is_err());
    }
}
