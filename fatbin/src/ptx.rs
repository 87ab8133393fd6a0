//! What an entry's header has to say about PTX, read from the text itself.

use crate::kind::Sm;

/// The directives that PTX begins with (PTX ISA, "PTX Module Directives").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtxHeader {
    /// `.version`: major and minor.
    pub version: (u16, u16),
    /// `.target`: its first word.
    pub sm: Sm,
    /// `.address_size`: whether it is 64. 32 is assumed without.
    pub address_64: bool,
}

impl PtxHeader {
    /// Reads `.version`, `.target` and `.address_size`; none if one of the first two is not among the directives that the
    /// text begins with.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut words = Words(text);
        let (mut version, mut sm, mut address_64) = (None, None, false);
        while let Some(word) = words.next() {
            match word {
                b".version" => {
                    let (major, minor) = str(words.next()?)?.split_once('.')?;
                    version = Some((major.parse().ok()?, minor.parse().ok()?));
                }
                b".target" => sm = Some(str(words.next()?)?.parse().ok()?),
                b".address_size" => address_64 = words.next()? == b"64",
                word if sm.is_some() && word.starts_with(b".") => break, // the first of another kind
                _ if version.is_none() => return None,
                _ => {} // more words of `.target`
            }
        }
        Some(Self { version: version?, sm: sm?, address_64 })
    }
}

fn str(word: &[u8]) -> Option<&str> {
    core::str::from_utf8(word).ok()
}

/// Words between blanks, commas, comments and the NUL that the tools store at the end.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | 0);
        loop {
            let start = self.0.iter().position(|byte| !between(byte))?;
            let rest = self.0.get(start..)?;
            let comment = if rest.starts_with(b"//") {
                rest.iter().position(|&byte| byte == b'\n')
            } else if rest.starts_with(b"/*") {
                rest.windows(2)
                    .skip(2)
                    .position(|pair| pair == b"*/")
                    .map(|end| end.saturating_add(4))
            } else {
                let end = rest.iter().position(between).unwrap_or(rest.len());
                let (word, rest) = rest.split_at_checked(end)?;
                self.0 = rest;
                return Some(word);
            };
            self.0 = rest.get(comment?..)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let header = |version, sm, address_64| Some(PtxHeader { version, sm, address_64 });
        let sm = |text: &str| text.parse().unwrap();
        for (text, expected) in [
            (
                ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k",
                header((8, 0), sm("75"), true),
            ),
            (
                "//\n// Generated\n//\n\n.version 9.5\n.target sm_100f\n",
                header((9, 5), sm("100f"), false),
            ),
            (
                "/* a */ .version 7.8 .target sm_90a, debug .address_size 64",
                header((7, 8), sm("90a"), true),
            ),
            (
                ".version 7.8 .target sm_52, texmode_independent\n.func f",
                header((7, 8), sm("52"), false),
            ),
            (".target sm_52", None),
            (".version 7.8", None),
            (".version 7 .target sm_52", None),
            (".version 7.8 .target map_f64_to_f32", None),
            ("/* .version 7.8 .target sm_52", None),
            ("int main() {}", None),
            ("", None),
        ] {
            assert_eq!(PtxHeader::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
