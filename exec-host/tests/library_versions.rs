//! Versions that libraries need of others, used or not, beside the dynamic loader.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::LibraryLoader;
use system::libraries::{Libraries, Opened, call_ours};

const BASE: &str = "long old(void) { return 40; } long later(void) { return 2; }";
const BOTH: &str = "V1 { global: old; local: *; }; V2 { global: later; } V1;";
const FIRST: &str = "V1 { global: old; local: *; };";

/// A library of these versions; of none without a script.
fn add_base(libraries: &Libraries, script: Option<&str>) {
    let path = libraries.folder.path().join("versions");
    let option = format!("-Wl,--version-script={}", path.display());
    std::fs::write(&path, script.unwrap_or_default()).unwrap();
    let options: &[&str] = if script.is_some() { &[&option] } else { &[] };
    libraries.add("base", BASE, &[], options);
}

/// What we say to the library as a file, whose needed one the dynamic loader has.
fn refused_beside_the_loader(libraries: &Libraries, name: &str) -> String {
    // SAFETY: the tests' libraries do no harm.
    let ours = unsafe { LibraryLoader::new().open_file(libraries.path(name)) };
    ours.unwrap_err().to_string()
}

#[test]
fn versions_that_are_missing() {
    let libraries = Libraries::new("missing-versions");
    add_base(&libraries, Some(BOTH));
    let strong = "long old(void), later(void); long probe(void) { return old() + later(); }";
    let weak = "long old(void); __attribute__((weak)) long later(void);
        long probe(void) { return old() + (later ? later() : 0); }";
    libraries.add("strong", strong, &["base"], &[]);
    libraries.add("weak", weak, &["base"], &[]);
    libraries.add("above", "long probe(void) { return 1; }", &["strong"], &[]);
    for name in ["strong", "weak"] {
        assert_eq!(libraries.together(name), 42, "{name}");
    }
    add_base(&libraries, Some(FIRST));
    let base = libraries.soname("base");
    let words = format!("needs version V2 of {base}, which does not define it");
    assert_eq!(libraries.refused("strong"), words);
    assert_eq!(refused_beside_the_loader(&libraries, "strong"), words);
    assert_eq!(
        libraries.refused("above"),
        format!("needs {}: {words}", libraries.soname("strong"))
    );
    // what is weak may be missing, which not all linkers say of versions that only weak references want
    assert_eq!(libraries.refused("weak"), words);
    let mut bytes = std::fs::read(libraries.path("weak")).unwrap();
    let version = [&elf_core::sysv_hash("V2".into()).to_le_bytes()[..], &[0, 0]].concat();
    let places = bytes.windows(6).enumerate().filter(|(_, window)| *window == version);
    let places: Vec<usize> = places.map(|(at, _)| at + 4).collect();
    assert_eq!(places.len(), 1, "one version that is needed has this hash");
    bytes[places[0]] = elf_core::names::VER_FLG_WEAK as u8;
    std::fs::write(libraries.path("weak"), bytes).unwrap();
    assert_eq!(libraries.together("weak"), 40);
    assert_eq!(libraries.probe("weak"), 40);
    // symbols without versions stand for all
    add_base(&libraries, None);
    for name in ["strong", "weak", "above"] {
        assert_eq!(libraries.together(name), if name == "above" { 1 } else { 42 }, "{name}");
    }
}

/// One that was opened earlier answers for those that need its name.
#[test]
fn versions_of_what_is_loaded() {
    let libraries = Libraries::new("loaded-versions");
    add_base(&libraries, Some(BOTH));
    let source = "long later(void); long probe(void) { return later(); }";
    libraries.add("user", source, &["base"], &[]);
    let both = libraries.ours("base").unwrap();
    add_base(&libraries, Some(FIRST));
    let first = libraries.ours("base").unwrap();
    let bytes = || std::fs::read(libraries.path("user")).unwrap();
    // SAFETY: the tests' libraries do no harm.
    let open = |base| unsafe { LibraryLoader::new().library(base).open(bytes()) };
    assert_eq!(call_ours(&open(&both).unwrap()), 2);
    let words = open(&first).unwrap_err().to_string();
    assert!(words.contains("needs version V2"), "{words}");
    assert!(Opened::new(&libraries.path("user")).is_err());
}
