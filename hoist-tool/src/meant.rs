//! Names that somebody may have meant who asked for one that is not there.

use std::fmt::Write as _;

use elf_core::Name;
use strsim::damerau_levenshtein;

use crate::demangle::{demangled, family};
use crate::printable::Printable;

/// So many are named at most.
const MOST: usize = 3;

/// The end of a message that a name is not there: which of `names` are like it, or are it once they are demangled. Empty if none is.
pub(crate) fn meant<'n>(asked: &str, names: impl IntoIterator<Item = Name<'n>>) -> String {
    let names = names.into_iter().filter_map(|name| {
        let like = likeness(asked, name.to_str()?)?;
        Some((like, name))
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.dedup();
    let best = names.first().map(|(like, _)| *like);
    let mut text = String::new();
    for (number, (_, name)) in names.iter().filter(|(like, _)| Some(*like) == best).enumerate() {
        let before = match number {
            0 => ": there is",
            MOST => {
                text.push_str(", and more");
                break;
            }
            _ => ",",
        };
        let name = Printable::from(*name);
        let _ = write!(text, "{before} {name}");
        let readable = name.readable().to_string();
        if readable != name.to_string() {
            let _ = write!(text, " ({readable})");
        }
    }
    text
}

/// How many letters a name is away from the one that was asked for, as it is or demangled. `None` if it is another one.
fn likeness(asked: &str, name: &str) -> Option<usize> {
    let most = (asked.chars().count() / 3).max(1);
    let readable = demangled(name);
    let family = readable.as_deref().map(family);
    let forms = [Some(name), readable.as_deref(), family.as_deref()];
    let distances = forms.into_iter().flatten().map(|form| damerau_levenshtein(asked, form));
    distances.min().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_like_a_name() {
        let of = |asked| {
            let names = ["add", "_Z3subii", "_Z3subff", "norm", "normal", "fill_rows", "fill_cols"];
            meant(asked, names.map(Name::from))
        };
        assert_eq!(of("ad"), ": there is add");
        assert_eq!(of("sub"), ": there is _Z3subff (sub(float, float)), _Z3subii (sub(int, int))");
        assert_eq!(of("sub(int, int)"), ": there is _Z3subii (sub(int, int))");
        assert_eq!(of("nrom"), ": there is norm");
        assert_eq!(of("normals"), ": there is normal");
        assert_eq!(of("fill_lows"), ": there is fill_rows");
        assert_eq!(of("multiply"), "");
        let many = ["a1", "a2", "a3", "a4"].map(Name::from);
        assert_eq!(meant("a", many), ": there is a1, a2, a3, and more");
    }
}
