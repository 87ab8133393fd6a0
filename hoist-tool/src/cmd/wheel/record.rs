//! `RECORD`, the list of files of a wheel (PyPA specifications, "Recording installed projects").

use std::collections::{HashMap, HashSet};

use anyhow::{Result, bail, ensure};
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::mapped::Mapped;

/// What is recorded of files by their names: digest and size.
pub type New = HashMap<String, String>;

/// A file, as a list says it: by the digest that the list has of it, if it is one of SHA-2; otherwise by SHA-256.
#[must_use]
pub fn said(before: &str, file: &Mapped) -> String {
    let size = file.bytes().len();
    match before.split_once('=').map_or("", |(algorithm, _)| algorithm.trim_start_matches('"')) {
        "sha384" => format!("sha384={},{size}", base64(&digest::<Sha384>(file))),
        "sha512" => format!("sha512={},{size}", base64(&digest::<Sha512>(file))),
        _ => fields(&digest::<Sha256>(file), size as u64),
    }
}

/// The digest of a file, of which little is in memory at a time.
fn digest<D: Digest>(file: &Mapped) -> Vec<u8> {
    const PIECE: usize = 8 << 20;
    let mut digest = D::new();
    for (at, piece) in (0_u64..).step_by(PIECE).zip(file.bytes().chunks(PIECE)) {
        digest.update(piece);
        file.done_with(at..at.saturating_add(piece.len() as u64));
    }
    digest.finalize().to_vec()
}

/// A name as members of wheels have it: other tools write `./` before it, or `\` for `/`, and a mark of byte order before all.
#[must_use]
pub fn plain(name: &str) -> String {
    let name = name.trim_start_matches('\u{feff}').replace('\\', "/");
    name.trim_start_matches("./").to_owned()
}

/// The list with new digests and sizes of some files, by their plain names. All else stays, byte for byte.
///
/// # Errors
/// If a file is not in the list.
pub fn updated(old: &str, new: &New) -> Result<String> {
    let mut met = HashSet::new();
    let text = changed(old, |name, _| {
        let (name, said) = new.get_key_value(&plain(name))?;
        met.insert(name);
        Some(said.clone())
    });
    if let Some(name) = new.keys().find(|name| !met.contains(name)) {
        bail!("{name} is not in RECORD, where its digest and size are to stand");
    }
    ensure!(!text.is_empty(), "RECORD is empty");
    Ok(text)
}

/// What a list says of a file: digest and size.
#[must_use]
pub fn fields(digest: &[u8], size: u64) -> String {
    format!("sha256={},{size}", base64(digest))
}

/// Files of a list, and what it says of them.
pub fn rows(list: &str) -> impl Iterator<Item = (String, &str)> {
    records(list).filter_map(|record| row(record.trim_end_matches(['\r', '\n'])))
}

/// The records of a list, each with the end of its line. What is quoted may hold ends of lines, too (RFC 4180 2.6).
fn records(list: &str) -> impl Iterator<Item = &str> {
    let (mut starts, mut is_quoted, mut is_open) = (true, false, false);
    list.split_inclusive(move |character| {
        if starts {
            is_quoted = character == '"';
            is_open = is_quoted;
        } else if is_quoted && character == '"' {
            is_open = !is_open;
        }
        starts = matches!(character, ',' | '\n') && !is_open;
        starts && character == '\n'
    })
}

/// The list with other words for some files, where `new` has some for a name and what is said of it.
pub fn changed(old: &str, mut new: impl FnMut(&str, &str) -> Option<String>) -> String {
    let mut text = String::with_capacity(old.len());
    for whole in records(old) {
        let line = whole.trim_end_matches(['\r', '\n']);
        match row(line).and_then(|(name, fields)| Some((fields, new(&name, fields)?))) {
            None => text.push_str(whole),
            Some((fields, new)) => {
                let start = line.len().saturating_sub(fields.len());
                text.push_str(whole.get(..start).unwrap_or_default());
                text.push_str(&new);
                text.push_str(whole.get(line.len()..).unwrap_or_default());
            }
        }
    }
    text
}

/// A file, and what is said of it.
fn row(line: &str) -> Option<(String, &str)> {
    let (rest, _size) = line.rsplit_once(',')?;
    let (path, _digest) = rest.rsplit_once(',')?;
    let name = match path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => path.to_owned(),
    };
    Some((name, line.get(path.len().saturating_add(1)..)?))
}

/// Base64 for URLs, without padding (RFC 4648 5).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3_usize.saturating_sub(three.len())));
        for index in 0..=three.len() {
            let digit = word >> (18_usize.saturating_sub(6 * index)) & 63;
            let digit = usize::try_from(digit).ok().and_then(|digit| DIGITS.get(digit));
            text.push(digit.map_or('A', |&digit| char::from(digit)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_change_and_others_stay() {
        // RFC 4648 10
        let coded = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(coded, ["", "Zg", "Zm8", "Zm9v", "Zm9vYg"]);
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
        let old = "a/b.so,sha256=x,5\r\n\"a,\"\"c\",sha256=y,7\nRECORD,,\n";
        let updated = |old: &str, names: &[&str]| {
            let said = fields(b"foo", 3);
            let new = names.iter().map(|name| ((*name).to_owned(), said.clone())).collect();
            super::updated(old, &new)
        };
        assert_eq!(
            updated(old, &["a/b.so"]).unwrap(),
            "a/b.so,sha256=Zm9v,3\r\n\"a,\"\"c\",sha256=y,7\nRECORD,,\n"
        );
        assert_eq!(
            updated(old, &["a,\"c"]).unwrap(),
            "a/b.so,sha256=x,5\r\n\"a,\"\"c\",sha256=Zm9v,3\nRECORD,,\n"
        );
        assert!(updated(old, &["other"]).is_err());
        // a name with the end of a line in it, and one with a quotation mark that quotes nothing
        let old = "\"a\n,\"\"b.so\",sha256=x,5\na\"b.so,sha256=x,5\nRECORD,,\n";
        assert_eq!(
            updated(old, &["a\n,\"b.so", "a\"b.so"]).unwrap(),
            old.replace("sha256=x,5", "sha256=Zm9v,3")
        );
        assert_eq!(rows(old).count(), 3);
        // as others write names, and a file twice
        let old = "\u{feff}./a.so,sha256=x,5\nb\\c.so,sha256=x,5\na.so,sha256=x,5\n";
        assert_eq!(
            updated(old, &["a.so", "b/c.so"]).unwrap(),
            old.replace("sha256=x,5", "sha256=Zm9v,3")
        );
    }

    #[test]
    fn digests_are_those_that_the_list_has() {
        // FIPS 180-4, of "abc"
        let file = Mapped::of(b"abc".to_vec());
        let start = |before: &str| said(before, &file).split_at(20).0.to_owned();
        assert_eq!(start("sha256=x,5"), "sha256=ungWv48Bz-pBQ");
        assert_eq!(start("sha384=x,5"), "sha384=ywB1P0WjXou1o");
        assert_eq!(start("\"sha512=x\",\"5\""), "sha512=3a81oZNherrMQ");
        assert_eq!(start(","), start("md5=x,5"));
    }
}
