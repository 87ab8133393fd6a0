//! Names as people wrote them, of C++ and of Rust.

use super::Module;
use super::inspect::ModuleSymbol;
use core::fmt::{self, Write as _};

/// The longest name that is demangled, and the longest that it becomes: templates can grow without an end.
const LONGEST: usize = 1 << 16;

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

impl ModuleSymbol<'_> {
    /// Its name as it was in the source, if it is mangled.
    #[must_use]
    pub fn demangled(&self) -> Option<String> {
        let name = self.name.to_str().filter(|name| name.len() <= LONGEST)?;
        let mut text = Limited(String::new());
        if let Ok(rust) = rustc_demangle::try_demangle(name) {
            write!(text, "{rust:#}").ok()?;
            return Some(text.0);
        }
        if !name.starts_with("_Z") {
            return None;
        }
        let symbol = cpp_demangle::Symbol::new(name).ok()?;
        symbol.structured_demangle(&mut text, &cpp_demangle::DemangleOptions::new()).ok()?;
        Some(text.0)
    }
}

impl<B: AsRef<[u8]>> Module<B> {
    /// The symbols that are called so in the source: `space::name(int)`, or, whatever it takes, `space::name`. A name that is not
    /// mangled is itself.
    pub fn find_demangled(&self, name: &str) -> impl Iterator<Item = ModuleSymbol<'_>> {
        self.symbols().filter(move |symbol| match symbol.demangled() {
            Some(text) => {
                let rest = text.strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
            }
            None => symbol.name == *name,
        })
    }
}
