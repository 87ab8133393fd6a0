//! Files that appear whole or not at all.

use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::paint;

#[cfg(target_os = "linux")]
mod attributes;
mod backup;
mod content;
mod leftovers;
#[cfg(target_os = "linux")]
mod nameless;
mod owner;
mod stdout;
mod turn;

pub use backup::Backup;
pub use content::link;
pub use leftovers::{NewFolder, is_ours};
pub use stdout::{beside, is_stdout};
pub use turn::Turn;

use content::Content;
use leftovers::folder;

/// Among the temporary files.
const TEMPORARY: Option<&Path> = None;

/// A file that is written, and takes its name when it is kept.
///
/// What a link leads to is replaced, not the link; what is no file (a pipe, `/dev/null`) is written to when it is kept. `-`, and
/// what standard output is already, is standard output.
#[derive(Debug)]
pub struct Output {
    content: Content,
    target: Target,
}

/// Where it goes.
#[derive(Debug)]
enum Target {
    /// To standard output.
    Stdout,
    /// To something that is there and no file.
    Device(PathBuf),
    /// In the place of a file.
    Old(PathBuf, Metadata),
    /// Where nothing is.
    New(PathBuf),
}

impl Output {
    /// Writes a file that is to be called `path`.
    ///
    /// # Errors
    /// If it cannot be written: then `path` is as it was.
    pub fn new(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<Self> {
        let target = Target::of(path);
        let content = Content::new(match &target {
            Target::Stdout | Target::Device(_) => TEMPORARY,
            Target::Old(path, _) | Target::New(path) => Some(folder(path)),
        });
        let content = content.with_context(|| path.display().to_string())?;
        let mut output = Self { content, target };
        write(output.content.file_mut())?;
        Ok(output)
    }

    /// Gives it the permissions of another file. A new file of another owner is not run with the rights of its owner or group.
    ///
    /// # Errors
    /// If that fails.
    pub fn like(self, other: &Path) -> Result<Self> {
        let context = || other.display().to_string();
        let old = fs::metadata(other).with_context(context)?;
        let file = self.content.file();
        let done = match &self.target {
            Target::Old(..) => file.set_permissions(old.permissions()),
            _ => owner::permit(file, &old),
        };
        done.with_context(context)?;
        Ok(self)
    }

    /// Gives it what another file has besides its bytes and times: permissions, owner, attributes. What it cannot have is told, if `told` says
    /// so.
    ///
    /// # Errors
    /// If that fails.
    pub fn same_as(self, other: &Path, told: bool) -> Result<Self> {
        let context = || other.display().to_string();
        let old = fs::metadata(other).with_context(context)?;
        let file = self.content.file();
        owner::same(file, &old, other, told).with_context(context)?;
        Ok(self)
    }

    /// Gives it the times of another file, if they are to be kept.
    ///
    /// # Errors
    /// If that fails.
    pub fn dated(self, other: &Path, dates: Dates) -> Result<Self> {
        if !dates.preserve_dates {
            return Ok(self);
        }
        let old = fs::metadata(other).and_then(|old| Ok((old.accessed()?, old.modified()?)));
        let (accessed, modified) = old.with_context(|| other.display().to_string())?;
        self.with_times(FileTimes::new().set_accessed(accessed).set_modified(modified))
    }

    /// Gives it these times.
    ///
    /// # Errors
    /// If that fails.
    pub fn with_times(self, times: FileTimes) -> Result<Self> {
        self.content.file().set_times(times).context("its times")?;
        Ok(self)
    }

    /// Whether it takes the place of this file.
    fn replaces(&self, other: &Path) -> bool {
        match &self.target {
            Target::Old(path, _) => dunce::canonicalize(other).is_ok_and(|other| other == *path),
            Target::Stdout | Target::Device(_) | Target::New(_) => false,
        }
    }

    /// Puts it in its place. A file that is there is replaced, and its owner is kept, if this process may do that. Other names of that
    /// one (hard links) are told: they lead to what it was.
    ///
    /// # Errors
    /// If that fails: then what was there is as it was.
    pub fn keep(self) -> Result<()> {
        self.keep_in(None)
    }

    /// The same of a file of which this is the turn.
    fn keep_in(self, turn: Option<&Turn>) -> Result<()> {
        let links = match &self.target {
            Target::Old(path, old) => Some((path.clone(), more_names(old))),
            Target::Stdout | Target::Device(_) | Target::New(_) => None,
        };
        self.keep_name_in(turn)?;
        if let Some((path, more)) = links {
            tell_links(&path, more);
        }
        Ok(())
    }

    /// The same, for who looks after other names.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_name(self) -> Result<()> {
        self.keep_name_in(None)
    }

    /// The same of a file of which this is the turn.
    ///
    /// # Errors
    /// As [`keep`](Self::keep); if somebody changed the file who asked for no turn.
    pub fn keep_name_in(self, turn: Option<&Turn>) -> Result<()> {
        let Self { mut content, target } = self;
        match target {
            Target::Stdout => {
                copy(content.file_mut(), &mut io::stdout().lock()).context("standard output")
            }
            Target::Device(path) => {
                let device = File::options().write(true).open(&path);
                let done = device.and_then(|mut device| copy(content.file_mut(), &mut device));
                done.with_context(|| path.display().to_string())
            }
            Target::Old(path, old) => {
                let done = owner::own(content.file(), &old, &path, true);
                #[cfg(target_os = "linux")]
                attributes::keep(content.file(), &path, true);
                let done = done.and_then(|()| content.file().sync_all());
                done.with_context(|| path.display().to_string())?;
                turn.map_or(Ok(()), Turn::check)?;
                content.keep(&path).with_context(|| path.display().to_string())
            }
            Target::New(path) => {
                let done = content.file().sync_all().and_then(|()| content.keep(&path));
                done.with_context(|| path.display().to_string())
            }
        }
    }
}

impl Target {
    fn of(path: &Path) -> Self {
        if is_stdout(path) {
            return Self::Stdout;
        }
        let target = dunce::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(old) if old.is_file() => Self::Old(target, old),
            Ok(_) => Self::Device(target),
            Err(_) => Self::New(target),
        }
    }
}

/// Writes text to the file that is named, or to what a command prints to.
///
/// # Errors
/// If it cannot be written.
pub fn text(
    path: Option<&Path>,
    out: &mut dyn io::Write,
    write: impl FnOnce(&mut dyn io::Write) -> Result<()>,
) -> Result<()> {
    let Some(path) = path else { return write(out) };
    self::write(path, None, |file| {
        let mut file = io::BufWriter::new(file);
        write(&mut file)?;
        Ok(io::Write::flush(&mut file)?)
    })
}

/// Writes a file of this name into a folder, with what the umask leaves. A link of that name is replaced, and not followed: the file
/// is in the folder. Whatever goes wrong, no part of it stays.
///
/// # Errors
/// If it cannot be written.
pub fn write_inside(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut content = Content::new(Some(folder))?;
    write(content.file_mut())?;
    content.keep(&folder.join(name))
}

/// Writes the file `path`, with the permissions of `like`, or what the umask leaves.
///
/// # Errors
/// If it cannot be written: then `path` is as it was.
pub fn write(
    path: &Path,
    like: Option<&Path>,
    content: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let output = Output::new(path, content)?;
    match like {
        Some(like) => output.like(like)?.keep(),
        None => output.keep(),
    }
}

/// What becomes of the times of a file that is changed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Dates {
    /// What is written has the times of the file that it was made of; otherwise it was modified now.
    #[arg(short, long)]
    preserve_dates: bool,
}

impl Dates {
    /// What is said of a file that was changed where it is.
    #[must_use]
    pub fn note(self) -> Option<&'static str> {
        let note = "the time of modification is that of the change (--preserve-dates keeps it)";
        (!self.preserve_dates).then_some(note)
    }
}

/// What is told of a file that was changed.
#[derive(Debug)]
pub struct Changed {
    /// What is to be known of its times.
    pub note: Option<&'static str>,
    /// The name under which the file is kept that it replaces.
    pub backup: Option<PathBuf>,
}

/// Writes the file `path`, which is what becomes of `old`: with its permissions, and its times if that is asked for. Before it replaces a
/// file, `keep` is told which one, and what takes its place; what that gives is the name under which the old one is kept.
///
/// # Errors
/// As [`write()`]; if the file, of which this is the turn, was changed by somebody who asked for none.
pub fn change(
    path: &Path,
    (old, turn): (&Path, Option<&Turn>),
    dates: Dates,
    keep: impl FnOnce(&Path, &File) -> Result<Option<PathBuf>>,
    content: impl FnOnce(&mut File) -> Result<()>,
) -> Result<Changed> {
    let output = Output::new(path, content)?.like(old)?.dated(old, dates)?;
    let note = dates.note().filter(|_| output.replaces(old));
    turn.map_or(Ok(()), Turn::check)?;
    let backup = match &output.target {
        Target::Old(path, _) => keep(path, output.content.file())?,
        Target::Stdout | Target::Device(_) | Target::New(_) => None,
    };
    output.keep_in(turn)?;
    Ok(Changed { note, backup })
}

fn copy(content: &mut File, to: &mut dyn io::Write) -> io::Result<()> {
    content.rewind()?;
    io::copy(content, to)?;
    to.flush()
}

/// How many names a file has beside this one.
fn more_names(file: &Metadata) -> u64 {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::nlink(file).saturating_sub(1)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        0
    }
}

/// Says that other names of a file that was replaced, if there are any, still lead to what it was.
pub fn tell_links(path: &Path, more: u64) {
    if more > 0 {
        let path = path.display().to_string();
        paint::warning(&format!(
            "{path}: is a new file: {more} more names (hard links) keep the old one"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use tempfile::NamedTempFile;

    /// Names in a folder.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_a_killed_process_left_goes_with_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let [path, left, held] =
            ["out", ".hoist-left.tmp", ".hoist-held.tmp"].map(|name| folder.path().join(name));
        for path in [&path, &left, &held] {
            fs::write(path, "old").unwrap();
        }
        let file = File::open(&held).unwrap();
        leftovers::hold(&file);
        write(&path, None, |file| Ok(file.write_all(b"new")?)).unwrap();
        let mut found = names(folder.path());
        found.sort();
        assert_eq!(
            (fs::read(&path).unwrap(), found),
            (b"new".to_vec(), vec![".hoist-held.tmp".into(), "out".into()])
        );
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for text in ["first", "second"] {
            let output = Output::new(&path, |file| Ok(file.write_all(text.as_bytes())?)).unwrap();
            assert_ne!(fs::read(&path).ok().as_deref(), Some(text.as_bytes()));
            output.keep().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let failed = write(&path, None, |file| {
                file.write_all(b"half")?;
                anyhow::bail!("no more")
            });
            assert!(failed.is_err() && fs::read_to_string(&path).unwrap() == text);
            assert_eq!(names(folder.path()), ["out"]);
        }
    }

    #[test]
    fn both_kinds_of_content_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let named = Content::Named(NamedTempFile::new_in(folder.path()).unwrap());
        for (text, mut content) in
            [("named", named), ("as it comes", Content::new(Some(folder.path())).unwrap())]
        {
            content.file_mut().write_all(text.as_bytes()).unwrap();
            content.keep(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_a_folder_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["inside", "outside"].map(|name| folder.path().join(name));
        fs::create_dir(&inside).unwrap();
        fs::write(&outside, "old").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("name")).unwrap();
        write_inside(&inside, "name", |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "old");
        assert!(fs::symlink_metadata(inside.join("name")).unwrap().is_file());
        assert_eq!(fs::read_to_string(inside.join("name")).unwrap(), "new");
        let failed = write_inside(&inside, "half", |file| {
            file.write_all(b"ha")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(names(&inside), ["name"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn attributes_stay_where_a_file_is_replaced() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        if setxattr(&path, "user.hoist", b"kept", XattrFlags::empty()).is_err() {
            println!(
                "skipped: attributes_stay_where_a_file_is_replaced: needs extended attributes of users"
            );
            return;
        }
        write(&path, Some(&path), |file| Ok(file.write_all(b"new")?)).unwrap();
        let mut value = [0; 8];
        let size = getxattr(&path, "user.hoist", &mut value[..]).unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), &value[..size]),
            ("new".into(), &b"kept"[..])
        );
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_another_file() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        symlink("file", &link).unwrap();
        write(&link, Some(&path), |file| Ok(file.write_all(b"new")?)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
