//! Names as people wrote them: of C++ and of Rust.

use alloc::format;
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
    // without a hash such a name is one of C++
    let may_be_rust = !name.starts_with("_ZN") || name.contains("17h");
    if let Some(rust) = may_be_rust.then(|| rustc_demangle::try_demangle(name).ok()).flatten() {
        write!(text, "{rust:#}").ok()?;
        return Some(text.0);
    }
    let name = of_unit(name).unwrap_or(name);
    if !name.starts_with("_Z") {
        return None;
    }
    if let Some((words, rest)) = special(name) {
        write!(text, "{words}{rest}").ok()?;
        return Some(text.0);
    }
    of_cpp(name, text)
}

/// The name of a type, function or variable of C++.
fn of_cpp(name: &str, mut text: Limited) -> Option<String> {
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    let options = cpp_demangle::DemangleOptions::new();
    symbol.structured_demangle(&mut text, &options).ok()?;
    // where it is the first part of a name, it is left as it is
    Some(text.0.replace("_GLOBAL__N_1::", "(anonymous namespace)::"))
}

/// What compilers make for a type or function (Itanium C++ ABI, "Virtual Tables and RTTI", "Virtual Override Thunks"), in the words of
/// linkers and debuggers, and the name of that type or function.
fn special(name: &str) -> Option<(&'static str, String)> {
    let (kind, rest) = name.strip_prefix("_ZT")?.split_at_checked(1)?;
    let of = |name: String| of_cpp(&name, Limited(String::new()));
    let function = |rest: Option<&str>| of(format!("_Z{}", rest?));
    // types stand alone in no name, but in that of what `typeid` gives
    let r#type = || Some(of(format!("_ZTI{rest}"))?.strip_prefix("typeinfo for ")?.into());
    match kind {
        "V" => Some(("vtable for ", r#type()?)),
        "T" => Some(("VTT for ", r#type()?)),
        "C" => {
            let text = of(name.into())?;
            let (whole, part) =
                text.strip_prefix("construction vtable for ")?.split_once("-in-")?;
            Some(("construction vtable for ", format!("{part}-in-{whole}")))
        }
        "h" => Some(("non-virtual thunk to ", function(behind_offset(kind, rest))?)),
        "v" => Some(("virtual thunk to ", function(behind_offset(kind, rest))?)),
        "c" => {
            let (first, rest) = rest.split_at_checked(1)?;
            let (second, rest) = behind_offset(first, rest)?.split_at_checked(1)?;
            Some(("covariant return thunk to ", function(behind_offset(second, rest))?))
        }
        _ => None,
    }
}

/// What follows the offset of a thunk: `h` is a number, `v` two, and behind each is `_`.
fn behind_offset<'n>(kind: &str, rest: &'n str) -> Option<&'n str> {
    let numbers = match kind {
        "h" => 1,
        "v" => 2,
        _ => return None,
    };
    (0..numbers).try_fold(rest, |rest, _| {
        let (number, rest) = rest.split_once('_')?;
        let digits = number.strip_prefix('n').unwrap_or(number);
        digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(rest)
    })
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
            // as c++filt has them
            ("_ZTV1A", Some("vtable for A")),
            ("_ZTVN12_GLOBAL__N_11AIiEE", Some("vtable for (anonymous namespace)::A<int>")),
            ("_ZTT1A", Some("VTT for A")),
            ("_ZTI1A", Some("typeinfo for A")),
            ("_ZTS1A", Some("typeinfo name for A")),
            ("_ZTC1W8_2V2", Some("construction vtable for V2-in-W")),
            ("_ZThn16_N1AD1Ev", Some("non-virtual thunk to A::~A()")),
            ("_ZTv0_n24_NK1A1fEi", Some("virtual thunk to A::f(int) const")),
            ("_ZTch0_v0_n24_N1A1fEv", Some("covariant return thunk to A::f()")),
            ("_ZGVZ1fvE1x", Some("guard variable for f()::x")),
            ("_ZN12_GLOBAL__N_11xE", Some("(anonymous namespace)::x")),
            ("_ZTV", None),
            ("_ZTh1", None),
            ("_ZTvx_0_1fv", None),
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
