//! Names as people wrote them, of C++ and of Rust.

use super::Module;
use super::inspect::ModuleSymbol;

impl ModuleSymbol<'_> {
    /// Its name as it was in the source, if it is mangled.
    #[must_use]
    pub fn demangled(&self) -> Option<String> {
        self.name.to_str().and_then(exec_core::demangled)
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
