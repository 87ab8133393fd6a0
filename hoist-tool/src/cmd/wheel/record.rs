//! `RECORD`, the list of files of a wheel (PyPA specifications, "Recording installed projects").

use std::collections::HashMap;

use anyhow::{Result, bail, ensure};

/// What is recorded of a file: SHA-256 and size.
pub type New = HashMap<String, (Vec<u8>, u64)>;

/// The list with new digests and sizes of some files. All else stays, byte for byte.
///
/// # Errors
/// If a file is not in the list.
pub fn updated(old: &str, mut new: New) -> Result<String> {
    let text = changed(old, |name, _| {
        let (digest, size) = new.remove(name)?;
        Some(fields(&digest, size))
    });
    if let Some(name) = new.keys().next() {
        bail!("{name} is not in RECORD");
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
    list.lines().filter_map(row)
}

/// The list with other words for some files, where `new` has some for a name and what is said of it.
pub fn changed(old: &str, mut new: impl FnMut(&str, &str) -> Option<String>) -> String {
    let mut text = String::with_capacity(old.len());
    for whole in old.split_inclusive('\n') {
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
        let new = |names: &[&str]| -> New {
            names.iter().map(|name| ((*name).to_owned(), (b"foo".to_vec(), 3))).collect()
        };
        assert_eq!(
            updated(old, new(&["a/b.so"])).unwrap(),
            "a/b.so,sha256=Zm9v,3\r\n\"a,\"\"c\",sha256=y,7\nRECORD,,\n"
        );
        assert_eq!(
            updated(old, new(&["a,\"c"])).unwrap(),
            "a/b.so,sha256=x,5\r\n\"a,\"\"c\",sha256=Zm9v,3\nRECORD,,\n"
        );
        assert!(updated(old, new(&["other"])).is_err());
    }
}
