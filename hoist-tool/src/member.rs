//! Members of archives that a command line names as output does: `libx.a(x.so)`, `wheel.whl:folder/x.so`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use elf_core::archive::Archive;

use crate::form::{Form, is_archive};
use crate::mapped::Mapped;
use crate::printable::Printable;

/// A member that is named, of a file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The archive.
    pub archive: PathBuf,
    /// Its name in there; of archives in one another the names with colons between them.
    pub name: String,
}

impl Member {
    /// The member that a word means, unless there is a file of this name.
    #[must_use]
    pub fn named(word: &Path) -> Option<Self> {
        let text = word.to_str().filter(|_| word.symlink_metadata().is_err())?;
        let colons = text.match_indices(':').filter_map(|(at, _)| text.split_at_checked(at));
        let colons = colons.map(|(archive, name)| (archive, name.trim_start_matches(':')));
        let brackets = text.match_indices('(').filter_map(|(at, _)| text.split_at_checked(at));
        let brackets = brackets.filter_map(|(archive, rest)| {
            Some((archive, rest.strip_prefix('(')?.strip_suffix(')')?))
        });
        let mut all = colons.chain(brackets);
        let (archive, name) =
            all.find(|(archive, name)| !name.is_empty() && Path::new(archive).is_file())?;
        Some(Self { archive: archive.into(), name: name.into() })
    }

    /// Its bytes.
    ///
    /// # Errors
    /// If there is none, it cannot be read, or the archive is damaged.
    pub fn read(&self) -> Result<Mapped> {
        let Self { archive, name } = self;
        let found = self.first_of(std::slice::from_ref(name))?;
        found
            .map(|(_, bytes)| bytes)
            .with_context(|| format!("{}: no member {name} that may hold code", archive.display()))
    }

    /// The first member of the same archive that has one of these names, with its name.
    ///
    /// # Errors
    /// As [`read`](Self::read), but for what is not there.
    pub fn first_of(&self, names: &[String]) -> Result<Option<(String, Mapped)>> {
        let label = self.archive.display();
        let mut head = Vec::new();
        let file = File::open(&self.archive).with_context(|| label.to_string())?;
        file.take(512).read_to_end(&mut head).with_context(|| label.to_string())?;
        if is_archive(&head) {
            return self.of_archive(names);
        }
        if Form::of(&head) == Form::Plain {
            bail!("{label}: no archive: it has no member {}", self.name);
        }
        #[cfg(all(feature = "device-code", not(target_family = "wasm")))]
        return crate::sources::member::read(&self.archive, names);
        #[cfg(not(all(feature = "device-code", not(target_family = "wasm"))))]
        bail!(
            "{label}: an archive of files, which only a hoist with the feature `device-code` looks into"
        );
    }

    /// The same of an archive of objects.
    fn of_archive(&self, names: &[String]) -> Result<Option<(String, Mapped)>> {
        let label = || self.archive.display().to_string();
        let mapped = Mapped::open(&self.archive)?;
        let archive = Archive::parse(mapped.bytes()).with_context(label)?;
        let mut found = None::<(usize, Vec<u8>)>;
        for member in archive.members() {
            let member = member.with_context(label)?;
            let shown = Printable::from(member.name).to_string();
            let Some(index) = names.iter().position(|name| *name == shown) else { continue };
            let Some(bytes) = member.data else {
                bail!("{}({shown}): a file of its own, as the archive is a thin one", label());
            };
            if found.as_ref().is_none_or(|(known, _)| index < *known) {
                found = Some((index, bytes.to_vec()));
            }
        }
        Ok(found.and_then(|(index, bytes)| Some((names.get(index)?.clone(), Mapped::of(bytes)))))
    }
}
