//! `conda-meta/*.json`: what conda, mamba and pixi say of the files of an installed package. Text is changed where digests and sizes stand,
//! and nowhere else.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What is read of a list.
#[derive(Deserialize)]
struct Package<'t> {
    #[serde(borrow, default)]
    paths_data: Option<Paths<'t>>,
}

#[derive(Deserialize)]
struct Paths<'t> {
    #[serde(borrow, default)]
    paths: Vec<File<'t>>,
}

/// A file: its digest in the package, and as it was installed, where a prefix may have been written into it.
#[derive(Deserialize)]
struct File<'t> {
    #[serde(borrow, rename = "_path")]
    path: Cow<'t, str>,
    #[serde(borrow, default)]
    sha256: Option<&'t RawValue>,
    #[serde(borrow, default)]
    sha256_in_prefix: Option<&'t RawValue>,
    #[serde(borrow, default)]
    size_in_bytes: Option<&'t RawValue>,
}

/// Where a list says what a file is.
struct Row<'t> {
    name: Cow<'t, str>,
    digest: &'t RawValue,
    size: Option<&'t RawValue>,
}

impl Row<'_> {
    /// What it says: digest and size as they stand there.
    fn fields(&self) -> String {
        format!("{},{}", self.digest.get(), self.size.map_or("", RawValue::get))
    }
}

/// What a list says of a file: digest and size, of which the second is there if `before` has one.
pub fn fields(before: &str, digest: &str, size: u64) -> String {
    let size = if before.ends_with(',') { String::new() } else { size.to_string() };
    format!("\"{digest}\",{size}")
}

/// Files of a list, and what it says of them.
///
/// # Errors
/// If it is no list of conda's.
pub fn rows(list: &str) -> serde_json::Result<Vec<(String, String)>> {
    let rows = parse(list)?.into_iter();
    let said = |row: Row<'_>| {
        let fields = row.fields();
        (row.name.into_owned(), fields)
    };
    Ok(rows.map(said).collect())
}

/// The list with other words for some files, where `new` has some for a name and what is said of it.
///
/// # Errors
/// If it is no list of conda's.
pub fn changed(
    old: &str,
    mut new: impl FnMut(&str, &str) -> Option<String>,
) -> serde_json::Result<String> {
    let mut words: Vec<(Range<usize>, String)> = Vec::new();
    for row in parse(old)? {
        let Some(new) = new(&row.name, &row.fields()) else { continue };
        let (digest, size) = new.rsplit_once(',').unwrap_or((&new, ""));
        words.push((place(old, row.digest), digest.to_owned()));
        words.extend(row.size.map(|value| (place(old, value), size.to_owned())));
    }
    words.sort_by_key(|(range, _)| range.start);
    let (mut text, mut at) = (String::with_capacity(old.len()), 0);
    for (range, word) in words {
        text.push_str(old.get(at..range.start).unwrap_or_default());
        text.push_str(&word);
        at = range.end;
    }
    text.push_str(old.get(at..).unwrap_or_default());
    Ok(text)
}

/// All files of which a list has a digest.
fn parse(list: &str) -> serde_json::Result<Vec<Row<'_>>> {
    let package: Package<'_> = serde_json::from_str(list)?;
    let files = package.paths_data.into_iter().flat_map(|paths| paths.paths);
    let rows = files.filter_map(|file| {
        let digest = file.sha256_in_prefix.or(file.sha256)?;
        Some(Row { name: file.path, digest, size: file.size_in_bytes })
    });
    Ok(rows.collect())
}

/// Where a value stands in the text that it was read from.
fn place(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start.saturating_add(value.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{
  "name": "thing", "paths_data": { "paths": [
    {"_path": "lib/a.so", "path_type": "hardlink", "sha256": "aa", "sha256_in_prefix": "bb", "size_in_bytes": 5},
    {"_path": "lib/\u00e4.so", "size_in_bytes": 6, "sha256": "cc"},
    {"_path": "lib/none", "path_type": "softlink"},
    {"_path": "lib/sizeless", "sha256_in_prefix": null, "sha256": "dd"}
  ], "paths_version": 1 }, "version": "1.0"
}
"#;

    #[test]
    fn digests_and_sizes_change_and_all_else_stays() {
        let rows = rows(LIST).expect("a list");
        let said: Vec<_> = rows.iter().map(|(name, said)| (&**name, &**said)).collect();
        assert_eq!(
            said,
            [("lib/a.so", "\"bb\",5"), ("lib/\u{e4}.so", "\"cc\",6"), ("lib/sizeless", "\"dd\",")]
        );
        let new = |name: &str, before: &str| {
            (name != "lib/a.so").then(|| fields(before, &name.len().to_string(), 1234))
        };
        let text = changed(LIST, new).expect("a list");
        let expected = LIST.replace("6, \"sha256\": \"cc\"", "1234, \"sha256\": \"9\"");
        assert_eq!(text, expected.replace("\"dd\"", "\"12\""));
        assert_eq!(changed(LIST, |_, _| None).expect("a list"), LIST);
        assert_eq!(self::rows("{\"name\": \"old\"}").expect("a list"), []);
        assert!(self::rows("{").is_err() && changed("7", |_, _| None).is_err());
    }
}
