//! Names as people wrote them: of C++ and of Rust.

use alloc::string::String;
use core::fmt::{self, Write as _};

/// The longest name that is demangled, and the longest that it becomes: templates can grow without an end.
const LONGEST: usize = 1 << 16;

/// The name as it was in the source, of C++ (Itanium C++ ABI, "Mangling") or Rust. `None` if it is not mangled, or becomes longer than
/// 64 KiB.
///
/// ```
/// assert_eq!(exec_core::demangled("_Z3addPfS_i").as_deref(), Some("add(float*, float*, int)"));
/// assert_eq!(exec_core::demangled("add"), None);
/// ```
#[must_use]
pub fn demangled(name: &str) -> Option<String> {
    if name.len() > LONGEST {
        return None;
    }
    let mut text = Limited(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(text, "{rust:#}").ok()?;
        return Some(text.0);
    }
    let name = of_unit(name).unwrap_or(name);
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    let options = cpp_demangle::DemangleOptions::new();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// The mangled name in that of a static function of device code, which nvcc tells apart by its file:
/// `__nv_static_51_`, so many bytes for the file, `__Z3addPfS_i`.
fn of_unit(name: &str) -> Option<&str> {
    let (size, rest) = name.strip_prefix("__nv_static_")?.split_once('_')?;
    rest.get(size.parse().ok()?..)?.strip_prefix('_')
}

/// Text up to a limit.
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len().saturating_add(text.len()) > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_languages() {
        for (name, readable) in [
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                Some("core::fmt::Write::write_fmt"),
            ),
            ("_RNvC6_123foo3bar", Some("123foo::bar")),
            ("plain", None),
            ("_Zno name", None),
        ] {
            assert_eq!(demangled(name).as_deref(), readable);
        }
        // each parameter is a pair of those before it
        let pairs = |count: usize| {
            let numbers = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars().take(count);
            let rest: String = numbers.map(|n| alloc::format!("S_IS{n}_S{n}_E")).collect();
            demangled(&alloc::format!("_Z1fSt4pairIiiE{rest}"))
        };
        let readable =
            "f(std::pair<int, int>, std::pair<std::pair<int, int>, std::pair<int, int> >)";
        assert_eq!(pairs(1).as_deref(), Some(readable));
        assert_eq!(pairs(30), None);
        assert_eq!(demangled(&"_Z".repeat(LONGEST)), None);
    }
}
