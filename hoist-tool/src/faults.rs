//! Work that goes on after errors: what went wrong.

use std::fmt;

use anyhow::{Error, Result, anyhow};

/// An error in words, and what led to it. Words that those before have are not said again: errors of a library hold their causes' words,
/// and give the causes to programs.
#[must_use]
pub fn in_words(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// An exit status other than 1, when all is said already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u8);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit status {}", self.0)
    }
}

impl std::error::Error for Status {}

/// What went wrong while the work went on: the first, and how many more there were.
#[derive(Debug, Default)]
pub struct Faults {
    first: Option<Error>,
    more: usize,
}

impl Faults {
    /// Remembers an error.
    pub fn push(&mut self, error: impl Into<Error>) {
        if self.first.is_some() {
            self.more += 1;
        } else {
            self.first = Some(error.into());
        }
    }

    /// Whether nothing went wrong.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The result of all the work.
    ///
    /// # Errors
    /// The first error, and the number of others.
    pub fn result(self) -> Result<()> {
        match (self.first, self.more) {
            (None, _) => Ok(()),
            (Some(error), 0) => Err(error),
            (Some(error), more) => Err(anyhow!("{} (and {more} more errors)", in_words(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn causes_are_told_once() {
        let path = || std::path::PathBuf::from("/absent");
        let cause = std::io::Error::from_raw_os_error(2);
        let error = Error::new(exec_core::FileError::System { path: path(), cause });
        assert_eq!(in_words(&error), "/absent: No such file or directory (os error 2)");
        let error = Err::<(), _>(error).context("while it was looked for").unwrap_err();
        let whole = "while it was looked for: /absent: No such file or directory (os error 2)";
        assert_eq!(in_words(&error), whole);
    }
}
