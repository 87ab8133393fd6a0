//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tempfile::NamedTempFile;

/// Writes a file under another name in its folder, then gives it its own. What a link leads to is replaced, not the link; what is
/// no file (a pipe, `/dev/null`) is written to. The permissions are those of `like`, or what the umask leaves.
///
/// # Errors
/// If it cannot be written: then `path` is as it was.
pub fn write(
    path: &Path,
    like: Option<&Path>,
    content: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let context = || path.display().to_string();
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_special = fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file());
    let mut file = temporary(&target, is_special).with_context(context)?;
    content(file.as_file_mut())?;
    if let Some(like) = like {
        let permissions =
            fs::metadata(like).with_context(|| like.display().to_string())?.permissions();
        file.as_file().set_permissions(permissions).with_context(context)?;
    }
    if is_special {
        let mut from = file.reopen().with_context(context)?;
        let mut to = File::options().write(true).open(&target).with_context(context)?;
        io::copy(&mut from, &mut to).with_context(context)?;
        return Ok(());
    }
    file.as_file().sync_all().with_context(context)?;
    file.persist(&target).map_err(|error| error.error).with_context(context)?;
    Ok(())
}

fn temporary(target: &Path, is_special: bool) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder: PathBuf = match folder {
        _ if is_special => std::env::temp_dir(),
        Some(folder) => folder.to_owned(),
        None => PathBuf::from("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask
    builder.tempfile_in(folder)
}
