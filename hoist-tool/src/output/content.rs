//! What is written, before it has its name.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

use super::leftovers::{self, folder};
#[cfg(target_os = "linux")]
use super::nameless;

/// What is written.
#[derive(Debug)]
pub(super) enum Content {
    /// In the folder of the target and without a name: nothing is left of it if this process is killed.
    Nameless(File),
    /// Under another name, where the system has no files without one.
    Named(NamedTempFile),
}

impl Content {
    /// A file in a folder, with the permissions that the umask leaves; without one, among the temporary files.
    pub(super) fn new(folder: Option<&Path>) -> io::Result<Self> {
        let Some(folder) = folder else { return tempfile::tempfile().map(Self::Nameless) };
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless::new(folder) {
            return Ok(Self::Nameless(file));
        }
        leftovers::clean(folder);
        #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no permissions to set"))]
        let mut builder = leftovers::builder();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder)?;
        leftovers::hold(file.as_file());
        Ok(Self::Named(file))
    }

    pub(super) fn file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    pub(super) fn file_mut(&mut self) -> &mut File {
        match self {
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Names it `target`.
    pub(super) fn keep(self, target: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => nameless::keep(&file, target, folder(target)),
            #[cfg(not(target_os = "linux"))]
            Self::Nameless(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Named(file) => file.persist(target).map(drop).map_err(|error| error.error),
        }
    }
}

/// Gives a file one more name. What has that name is replaced.
///
/// # Errors
/// If that fails: then what was there is as it was.
pub fn link(file: &Path, name: &Path) -> io::Result<()> {
    let held = File::open(file)?;
    leftovers::hold(&held);
    let link = |path: &Path| fs::hard_link(file, path);
    let named = leftovers::builder().make_in(folder(name), link)?;
    named.into_temp_path().persist(name).map_err(|error| error.error)
}
