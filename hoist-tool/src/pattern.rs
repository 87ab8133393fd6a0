//! Which kernels are meant: by name, by glob, by regular expression, mangled or as people wrote them.

use std::fmt;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};

use crate::demangle::family;
use crate::kernel_name::KernelName;

/// A name, `gemm*`, or `/gemm.*f32/`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Name,
    /// What has to match somewhere in the name.
    Expression(Regex),
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let source = match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
            Some(source) if text.len() > 1 => source.to_owned(),
            _ if text.contains(['*', '?']) => glob(text),
            _ => return Ok(Self { text: text.to_owned(), form: Form::Name }),
        };
        let built = RegexBuilder::new(&source).size_limit(1 << 20).build();
        let regex = built.map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), form: Form::Expression(regex) })
    }
}

impl Pattern {
    /// Whether a kernel of this name, as it is in the symbol table, is meant. A name means the mangled name, the demangled one with
    /// its parameters, without them, without arguments of templates, and of that the end, without namespaces: `gemm`, `blas::gemm`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let readable = || KernelName::known(name).demangled;
        match &self.form {
            Form::Name => {
                let wanted = &self.text;
                // an identifier stands in a mangled name as it is
                let last = wanted.rsplit("::").next().unwrap_or_default();
                let is_identifier =
                    last.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if is_identifier && !name.contains(last) {
                    return false;
                }
                name == wanted
                    || readable().is_some_and(|readable| {
                        let family = family(&readable);
                        let before = family.strip_suffix(&**wanted);
                        *readable == **wanted
                            || before.is_some_and(|left| left.is_empty() || left.ends_with("::"))
                    })
            }
            Form::Expression(regex) => {
                regex.is_match(name) || readable().is_some_and(|readable| regex.is_match(&readable))
            }
        }
    }

    /// Whether one of these means the name; every name, if there is none.
    #[must_use]
    pub fn any(patterns: &[Self], name: &str) -> bool {
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The regular expression of a glob, for the whole name. Brackets are themselves: names of templates are full of them.
fn glob(text: &str) -> String {
    let mut source = String::from("(?s)^");
    for one in text.chars() {
        match one {
            '*' => source.push_str(".*"),
            '?' => source.push('.'),
            one => source.push_str(&regex::escape(one.encode_utf8(&mut [0; 4]))),
        }
    }
    source.push('$');
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_globs_and_expressions() {
        let matches = |pattern: &str, name: &str| pattern.parse::<Pattern>().unwrap().matches(name);
        for pattern in [
            "_Z3addPfS_i",
            "add(float*, float*, int)",
            "add",
            "add*",
            "?dd(*",
            "/float.*int/",
            "/^_Z3/",
        ] {
            assert!(matches(pattern, "_Z3addPfS_i"), "{pattern}");
        }
        for pattern in ["ad", "add?", "sub*", "/double/", "//x/"] {
            assert!(!matches(pattern, "_Z3addPfS_i"), "{pattern}");
        }
        let nested = "_ZN4blas8internal4gemmILi4EEEvPf"; // void blas::internal::gemm<4>(float*)
        for (pattern, is_meant) in [
            ("gemm", true),
            ("internal::gemm", true),
            ("blas::internal::gemm", true),
            ("emm", false),
            ("al::gemm", false),
            ("blas::gemm", false),
            ("", false),
        ] {
            assert_eq!(matches(pattern, nested), is_meant, "{pattern}");
        }
        assert!("/(/".parse::<Pattern>().is_err());
        assert!(Pattern::any(&[], "x"));
    }
}
