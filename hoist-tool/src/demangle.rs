//! Names as people wrote them: of C++ and of Rust.

use std::borrow::Cow;

pub use exec_core::demangled;

/// The name as it was in the source, or as it is.
#[must_use]
pub fn readable(name: &str) -> Cow<'_, str> {
    demangled(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// The template that a kernel is made of: its demangled name without arguments of templates, parameters and what it returns.
#[must_use]
pub fn family(readable: &str) -> String {
    let mut folded = String::new();
    let mut depth = 0usize;
    let mut chars = readable.chars().peekable();
    // anonymous namespaces, `operator()` and lambdas have brackets that are part of the name
    let mut rest = readable;
    while let Some(one) = chars.next() {
        let here = rest;
        rest = rest.get(one.len_utf8()..).unwrap_or_default();
        if depth == 0 {
            let kept = ["(anonymous namespace)", "operator()", "{lambda"];
            if let Some(kept) = kept.iter().find(|kept| here.starts_with(**kept)) {
                folded.push_str(&kept.replace(' ', "\0"));
                for _ in 1..kept.chars().count() {
                    chars.next();
                }
                rest = here.get(kept.len()..).unwrap_or_default();
                continue;
            }
        }
        match one {
            '<' if !folded.ends_with("operator") => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '(' if depth == 0 => break,
            one if depth == 0 => folded.push(one),
            _ => {}
        }
    }
    // what templates return stands before their name
    let whole = folded.trim();
    let is_conversion = whole.contains("operator ");
    let name = whole.rsplit_once(' ').filter(|_| !is_conversion).map_or(whole, |(_, name)| name);
    if name.is_empty() { readable.to_owned() } else { name.replace('\0', " ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_languages() {
        assert_eq!(readable("_Z3addPfS_i"), "add(float*, float*, int)");
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(readable("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(readable("plain"), "plain");
        assert_eq!(readable("_Zno name"), "_Zno name");
    }

    #[test]
    fn templates_fold() {
        for (name, folded) in [
            (
                "void at::native::unrolled<4, std::array<char*, 2ul>>(int, T)",
                "at::native::unrolled",
            ),
            ("add(float*, float*, int)", "add"),
            ("plain", "plain"),
            ("void (anonymous namespace)::copy<int>(int*)", "(anonymous namespace)::copy"),
            ("void cub::run<A<(int)3>, B>::go<C>(D)", "cub::run::go"),
            ("core::fmt::Write::write_fmt", "core::fmt::Write::write_fmt"),
        ] {
            assert_eq!(family(name), folded);
        }
    }
}
