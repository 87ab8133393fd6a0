//! Files without a name (`O_TMPFILE`), and how they get one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

use super::leftovers;

/// A file in a folder, if its file system has such files, and `/proc` can name them.
pub(super) fn new(folder: &Path) -> Option<File> {
    static CAN_NAME: OnceLock<bool> = OnceLock::new();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    CAN_NAME.get_or_init(|| Path::new(&name(&file)).exists()).then_some(file)
}

/// What `/proc` calls an open file.
fn name(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, name(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Names a file, in a folder. A name that is taken cannot be given directly: between two calls of the system the file has another, under which a
/// process that is killed then leaves it.
pub(super) fn keep(file: &File, target: &Path, folder: &Path) -> io::Result<()> {
    match link(file, target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            leftovers::clean(folder);
            leftovers::hold(file);
            let named = leftovers::builder().make_in(folder, |path| link(file, path))?;
            named.into_temp_path().persist(target).map_err(|error| error.error)
        }
        done => done,
    }
}
