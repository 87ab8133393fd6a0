//! Programs on `PATH`.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The program of this name, as a shell would find it; else the one with the highest version behind the name and a hyphen.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> =
        env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let exact = folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path));
    exact.or_else(|| {
        let files =
            folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        let versions = files.filter_map(|file| {
            let version = version(file.file_name().to_str()?, name)?;
            Some((version, file.path())).filter(|(_, path)| is_program(path))
        });
        // of equal ones the first on the path
        versions
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, path)| path)
    })
}

/// The version in a file name such as `clang-19`.
fn version(file: &str, name: &str) -> Option<u32> {
    file.strip_prefix(name)?.strip_prefix('-')?.parse().ok()
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_behind_the_name() {
        assert_eq!(version("clang-19", "clang"), Some(19));
        assert_eq!(version("clang-tidy-19", "clang"), None);
        assert_eq!(version("clang", "clang"), None);
        assert!(find("sh").is_some_and(|path| path.ends_with("sh")));
        assert!(find("no such program").is_none());
    }
}
