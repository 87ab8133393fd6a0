//! Standard output as one of the files that are written.

#[cfg(unix)]
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

use crate::paint;
use crate::shown::Shown;

/// Whether a path of the command line is standard output: `-`, `/dev/stdout`, or the file that it leads to.
#[must_use]
pub fn is_stdout(path: &Path) -> bool {
    if path.as_os_str() == "-" {
        return true;
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        use std::os::unix::fs::MetadataExt as _;
        let opened = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        let number = |file: Metadata| (file.dev(), file.ino());
        let both = opened.and_then(|file| file.metadata()).ok().zip(fs::metadata(path).ok());
        both.is_some_and(|(one, other)| number(one) == number(other))
    }
    #[cfg(not(unix))]
    false
}

/// Where a command says what it did: standard error, if standard output gets the bytes of `path` and nothing else.
#[must_use]
pub fn beside<'o>(path: &Path, out: &'o mut dyn io::Write) -> Box<dyn io::Write + 'o> {
    if is_stdout(path) {
        Box::new(Shown::painted(io::stderr(), paint::is_on_stderr()))
    } else {
        Box::new(out)
    }
}
