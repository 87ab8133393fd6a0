//! Digests and sizes in the JSON of images: written anew, and not a byte else.

use std::collections::BTreeMap;
use std::ops::Range;

/// What became of a thing that is called by its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// The SHA-256 of what it is now.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Successors by the digests before.
pub type Successors = BTreeMap<String, Successor>;

/// Text in which digests are those of successors, and sizes beside them too. The text is JSON.
#[must_use]
pub fn updated(text: &str, new: &Successors) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0_usize;
    for (digest, size) in descriptors(text) {
        let digest = digest.strip_prefix("sha256:").unwrap_or_default();
        if let Some(successor) = new.get(digest) {
            result.push_str(text.get(at..size.start).unwrap_or_default());
            result.push_str(&successor.size.to_string());
            at = size.end;
        }
    }
    result.push_str(text.get(at..).unwrap_or_default());
    String::from_utf8_lossy(&renamed(result.as_bytes(), new).unwrap_or_else(|| result.into_bytes()))
        .into_owned()
}

/// Bytes in which digests are those of successors; nothing if there are none of those.
#[must_use]
pub fn renamed(bytes: &[u8], new: &Successors) -> Option<Vec<u8>> {
    const DIGITS: usize = 64;
    let mut result = None;
    let mut at = 0_usize;
    while let Some(window) = bytes.get(at..at.saturating_add(DIGITS)) {
        // a window that has a byte which is no digit is passed over to behind that byte
        if let Some(other) = window.iter().rposition(|byte| !byte.is_ascii_hexdigit()) {
            at = at.saturating_add(other).saturating_add(1);
            continue;
        }
        let found = std::str::from_utf8(window).ok().and_then(|digest| new.get(digest));
        if let Some(found) = found {
            let result = result.get_or_insert_with(|| bytes.to_vec());
            let place = result.get_mut(at..at.saturating_add(DIGITS));
            place.into_iter().for_each(|place| place.copy_from_slice(found.digest.as_bytes()));
            at = at.saturating_add(DIGITS);
        } else {
            at = at.saturating_add(1);
        }
    }
    result
}

/// An object or list that is open.
#[derive(Default)]
struct Open {
    is_object: bool,
    /// Whether a key comes next.
    is_key: bool,
    key: String,
    digest: Option<String>,
    size: Option<Range<usize>>,
}

/// Objects that have a digest and a size: the digest, and where the size stands; in the order of the sizes.
fn descriptors(text: &str) -> Vec<(String, Range<usize>)> {
    let bytes = text.as_bytes();
    let (mut stack, mut found, mut at) = (Vec::<Open>::new(), Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' => stack.push(Open { is_object: true, is_key: true, ..Open::default() }),
            b'[' => stack.push(Open::default()),
            b'}' | b']' => {
                let open = stack.pop().unwrap_or_default();
                found.extend(open.digest.zip(open.size));
            }
            b'"' => {
                at += string(bytes.get(at..).unwrap_or_default());
                let string = text.get(start + 1..at - 1).unwrap_or_default();
                let Some(open) = stack.last_mut() else { continue };
                if open.is_key {
                    string.clone_into(&mut open.key);
                } else if open.key == "digest" {
                    open.digest = Some(string.to_owned());
                }
            }
            b':' => stack.iter_mut().last().into_iter().for_each(|open| open.is_key = false),
            b',' => {
                if let Some(open) = stack.last_mut() {
                    open.is_key = open.is_object;
                }
            }
            b'0'..=b'9' => {
                let rest = bytes.get(at..).unwrap_or_default();
                at += rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if let Some(open) = stack.last_mut()
                    && open.key == "size"
                {
                    open.size = Some(start..at);
                }
            }
            _ => {}
        }
    }
    found.sort_by_key(|(_, size)| size.start);
    found
}

/// Bytes of a string with the quotation mark at its end.
fn string(bytes: &[u8]) -> usize {
    let mut at = 0_usize;
    while let Some(&byte) = bytes.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_and_their_sizes_change_and_nothing_else() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(64));
        let new = Successors::from([(a.clone(), Successor { digest: b.clone(), size: 12345 })]);
        let text = |digest: &str, size: u64| {
            format!(
                r#" {{"x":[1,2,{{"size": {size}, "digest" :"sha256:{digest}","more":{{"size":7}}}}, "a\"}}{{"],
                "size":7,"digest":"sha256:{c}","list":["{digest}"], "\u003c":"{digest}0","blobs/sha256/{digest}": 1 }}"#
            )
        };
        assert_eq!(updated(&text(&a, 7), &new), text(&b, 12345));
        assert_eq!(updated(&text(&c, 7), &new), text(&c, 7));
        assert_eq!(renamed(b"no digest at all", &new), None);
        assert_eq!(
            renamed(&[a.as_bytes(), b"/x"].concat(), &new),
            Some([b.as_bytes(), b"/x"].concat())
        );
    }
}
