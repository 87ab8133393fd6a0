//! The page: the viewer with the data inside.

use std::io::{BufWriter, Write};

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use super::data::Data;
use crate::json::Lines;

const STYLE: &str = include_str!("../../../../viewer/page.css");
const BODY: &str = include_str!("../../../../viewer/page.html");
const SECTIONS: &str = include_str!("../../../../viewer/sections.html");
/// Where in the body they go.
const PLACE: &str = "<!-- sections -->\n";
/// In their order: later ones use what earlier ones have.
const SCRIPTS: [&str; 8] = [
    include_str!("../../../../viewer/data.js"),
    include_str!("../../../../viewer/map.js"),
    include_str!("../../../../viewer/table.js"),
    include_str!("../../../../viewer/kernels.js"),
    include_str!("../../../../viewer/charts.js"),
    include_str!("../../../../viewer/changes.js"),
    include_str!("../../../../viewer/page.js"),
    include_str!("../../../../viewer/report.js"),
];

/// Writes the page. Its policy lets nothing run but its own script, and nothing be fetched; names of files and kernels are data,
/// which the script puts into text.
pub(super) fn write(data: &Data, out: impl Write) -> Result<()> {
    let mut out = BufWriter::new(out);
    let script = SCRIPTS.concat();
    let (style, script_hash) = (hash(STYLE), hash(&script));
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{style}'; script-src '{script_hash}'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">"
    )?;
    write!(out, "<title>")?;
    for one in data.title().chars() {
        match one {
            '&' => write!(out, "&amp;")?,
            '<' => write!(out, "&lt;")?,
            one if elf_core::is_hidden(one) => write!(out, "\u{fffd}")?,
            one => write!(out, "{one}")?,
        }
    }
    let body = BODY.replace(PLACE, SECTIONS);
    write!(
        out,
        "</title>\n<style>{STYLE}</style>\n{body}<script type=\"application/jsonl\" id=\"data\">"
    )?;
    serde_json::to_writer(Lines::new(Within(&mut out)), data)?;
    writeln!(out, "</script>\n<script>{script}</script>\n</html>")?;
    Ok(out.flush()?)
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// JSON inside HTML: no text in it can end the element or begin a comment.
struct Within<W>(W);

impl<W: Write> Write for Within<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // in JSON `<` stands in texts only
        for part in bytes.split_inclusive(|byte| *byte == b'<') {
            match part.strip_suffix(b"<") {
                Some(before) => {
                    self.0.write_all(before)?;
                    self.0.write_all(b"\\u003c")?;
                }
                None => self.0.write_all(part)?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_html() {
        let title = "</title><script>alert(1)</script><!--\u{202e}";
        let mut page = Vec::new();
        write(&Data::new(title.to_owned()), &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert_eq!(page.matches("<script").count(), 2, "{page}");
        assert_eq!(page.matches("</script>").count(), 2);
        assert_eq!(page.matches("<!--").count(), 0);
        assert!(page.contains("{\"title\":\"\\u003c/title>\\u003cscript>alert(1)"));
        assert!(page.contains("<section") && !page.contains(PLACE));
    }

    #[test]
    fn the_policy_names_what_is_in_the_page() {
        let mut page = Vec::new();
        write(&Data::new(String::new()), &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for (text, element) in [(STYLE, "style"), (SCRIPTS.concat().as_str(), "script")] {
            assert!(page.contains(&format!("{element}-src '{}'", hash(text))));
            assert!(page.contains(&format!("<{element}>{text}</{element}>")));
            assert!(!text.contains("</"), "{element} would end early");
        }
    }
}
