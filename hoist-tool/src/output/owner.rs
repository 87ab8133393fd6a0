//! Who owns what is written, and what others may do with it.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
use super::attributes;
#[cfg(unix)]
use crate::paint;

/// The bits with which a file is run with the rights of its owner, or group.
#[cfg(unix)]
const SET_ID: u32 = 0o6000;

/// Gives a file the permissions of another; of another owner, without those to run it with the owner's rights.
pub(super) fn permit(file: &File, other: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let new = file.metadata()?;
        let is_same = (new.uid(), new.gid()) == (other.uid(), other.gid());
        let mode = other.permissions().mode();
        file.set_permissions(Permissions::from_mode(if is_same { mode } else { mode & !SET_ID }))
    }
    #[cfg(not(unix))]
    file.set_permissions(other.permissions())
}

/// Gives a file the permissions, owner and attributes of another, at `path`.
pub(super) fn same(file: &File, other: &Metadata, path: &Path, told: bool) -> io::Result<()> {
    file.set_permissions(other.permissions())?;
    own(file, other, path, told)?;
    #[cfg(target_os = "linux")]
    attributes::keep(file, path, told);
    Ok(())
}

/// Gives a file the owner and group of another, at `path`. Who may not do that becomes the owner, which is told, and
/// then nobody runs the file with the rights of another.
pub(super) fn own(file: &File, old: &Metadata, path: &Path, told: bool) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            let mode = new.permissions().mode();
            let done = fchown(file, Some(old.uid()), Some(old.gid()));
            let mode = if done.is_ok() { mode } else { mode & !SET_ID };
            if let (Err(error), true) = (done, told) {
                let [now, before] = [&file.metadata()?, old].map(|of| (of.uid(), of.gid()));
                paint::warning(&format!(
                    "{}: belongs to user {} and group {} from now on, and belonged to {} and {}: {error}",
                    path.display(),
                    now.0,
                    now.1,
                    before.0,
                    before.1
                ));
            }
            file.set_permissions(Permissions::from_mode(mode))?; // the system takes such rights away, too
        }
    }
    #[cfg(not(unix))]
    let _ = (file, old, path, told);
    Ok(())
}
