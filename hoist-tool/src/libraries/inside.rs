//! What a library needs that is a member of an archive: other members, where it says that they are (`DT_RUNPATH`, `DT_RPATH`).

use anyhow::{Error, Result};
use elf_core::names::{DT_RPATH, DT_RUNPATH};
use elf_core::{File, Name};
use exec_host::library::NeededLibrary;

use crate::member::Member;

/// The archive of a library, and where libraries are in there.
pub(super) struct Inside {
    member: Member,
    /// What stands before a name in the innermost archive: the archives that this one is in.
    around: String,
    folders: Vec<String>,
    error: Option<Error>,
}

impl Inside {
    /// Of a member with these bytes.
    pub(super) fn of(member: Member, bytes: &[u8]) -> Self {
        let name = member.name.as_str();
        let (around, path) = name.rfind(':').map_or(("", name), |at| name.split_at(at + 1));
        let (around, path) = (around.to_owned(), path.to_owned());
        let mut inside = Self { member, around, folders: Vec::new(), error: None };
        inside.add_folders(&path, bytes);
        inside
    }

    /// The library of this name, if a folder of the archive that was said has one.
    pub(super) fn find(&mut self, name: Name<'_>) -> Option<NeededLibrary> {
        let name = core::str::from_utf8(name.as_bytes()).ok()?;
        if name.contains('/') || self.folders.is_empty() {
            return None;
        }
        let Self { around, folders, .. } = self;
        let names = folders.iter().map(|folder| format!("{around}{folder}{name}"));
        let names: Vec<String> = names.collect();
        match self.member.first_of(&names) {
            Ok(found) => {
                let (name, bytes) = found?;
                let path = name.strip_prefix(self.around.as_str())?.to_owned();
                self.add_folders(&path, bytes.bytes());
                Some(NeededLibrary::bytes(bytes))
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// What was wrong with the archive when something was looked for.
    ///
    /// # Errors
    /// That.
    pub(super) fn check(self) -> Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    /// Notes where the library at this path of the archive says that others are.
    fn add_folders(&mut self, path: &str, bytes: &[u8]) {
        let Ok(file) = File::parse_segments(bytes) else { return };
        let Ok(Some(dynamic)) = file.dynamic_by_segment() else { return };
        let own = path.rfind('/').map_or("", |at| path.get(..at).unwrap_or_default());
        for list in [DT_RUNPATH, DT_RPATH].into_iter().flat_map(|tag| dynamic.texts(tag)) {
            let list = list.unwrap_or_default();
            for entry in String::from_utf8_lossy(list.as_bytes()).split([':', ';']) {
                let rest = ["$ORIGIN", "${ORIGIN}"].iter().find_map(|own| entry.strip_prefix(own));
                let folder = rest.and_then(|rest| normal(&format!("{own}{rest}")));
                self.folders.extend(folder.filter(|folder| !self.folders.contains(folder)));
            }
        }
    }
}

/// A folder of an archive without `..`, with the slash that stands before a name; nothing if it is outside.
fn normal(path: &str) -> Option<String> {
    let start = if path.starts_with("./") { "./" } else { "" };
    let mut folders = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(folders.pop()?),
            part => folders.push(part),
        }
    }
    folders.push("");
    Some(format!("{start}{}", folders.join("/")))
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn folders_of_archives() {
        let all = [("a/b/../../a.libs", Some("a.libs/")), ("", Some("")), ("/../x", None)];
        for (path, folder) in all {
            assert_eq!(normal(path).as_deref(), folder, "{path}");
        }
        assert_eq!(normal("./usr/lib/.").as_deref(), Some("./usr/lib/"));
    }
}
