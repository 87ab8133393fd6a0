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
    // of names, brackets of these are part
    const KEPT: [&str; 3] = ["(anonymous namespace)", "operator()", "operator<<"];
    let mut folded = String::new();
    let mut rest = readable;
    while let Some(one) = rest.chars().next() {
        let end = if let Some(kept) = KEPT.iter().find(|kept| rest.starts_with(**kept)) {
            folded.push_str(&kept.replace(' ', "\0"));
            kept.len()
        } else if let Some(inner) = rest.strip_prefix("{lambda") {
            // {lambda(int)#1}: one for all parameters
            let end = rest.len() - inner.len() + closing(inner, '{', '}', 1);
            let number = rest.get(..end).and_then(|lambda| lambda.rsplit_once('#'));
            folded.push_str("{lambda");
            folded.extend(number.into_iter().flat_map(|(_, number)| ["#", number]));
            end
        } else if one == '<' && !folded.ends_with("operator") {
            closing(rest, '<', '>', 0)
        } else if one == '(' && folded.trim_end().ends_with("decltype") {
            // what a template returns
            folded.clear();
            closing(rest, '(', ')', 0)
        } else if one == '(' {
            break;
        } else {
            folded.push(one);
            one.len_utf8()
        };
        rest = rest.get(end..).unwrap_or_default();
    }
    // what templates return stands before their name
    let whole = folded.trim();
    let is_conversion = whole.contains("operator ");
    let name = whole.rsplit_once(' ').filter(|_| !is_conversion).map_or(whole, |(_, name)| name);
    if name.is_empty() { readable.to_owned() } else { name.replace('\0', " ") }
}

/// The bytes of a text up to where as many brackets are closed as it opens, beside `depth` that are open before it; all, if they are not.
fn closing(text: &str, open: char, close: char, mut depth: usize) -> usize {
    let mut last = ' ';
    for (at, one) in text.char_indices() {
        match one {
            one if one == open => depth += 1,
            // an arrow is no bracket
            one if one == close && !(one == '>' && last == '-') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + one.len_utf8();
                }
            }
            _ => {}
        }
        last = one;
    }
    text.len()
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
        let of_unit =
            "__nv_static_51__0afad4c0_22_cuda_device_runtime_cu_f78b5b52_735892__Z3addPfS_i";
        assert_eq!(readable(of_unit), "add(float*, float*, int)");
        for name in [
            "__nv_static_51__0afad4c0",
            "__nv_static_99999999999999999999_x",
            "__nv_static_1_\u{e9}__Z3add",
        ] {
            assert_eq!(readable(name), name);
        }
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
            ("void run<decltype (a->b)>(int)", "run"),
            ("decltype (f({parm#1})) at::apply<int>(int)", "at::apply"),
            (
                "void a::b<int>::{lambda(int, A<int>)#2}::operator()<C>(C) const",
                "a::b::{lambda#2}::operator()",
            ),
            ("std::ostream& operator<< <char>(std::ostream&)", "operator<<"),
            ("bool operator< <int>(A, B)", "operator<"),
            ("A::operator int() const", "A::operator int"),
            ("core::fmt::Write::write_fmt", "core::fmt::Write::write_fmt"),
        ] {
            assert_eq!(family(name), folded);
        }
    }
}
