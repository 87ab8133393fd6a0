//! Libraries that stand before others (`DT_FILTER`, `DT_AUXILIARY`), beside the dynamic loader.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use system::libraries::Libraries;

/// Functions that give a number each.
fn functions(all: &[(&str, u32)]) -> String {
    let function =
        |(name, number): &(&str, u32)| format!("long {name}(void) {{ return {number}; }}\n");
    all.iter().map(function).collect()
}

/// musl has neither.
#[cfg(not(target_env = "musl"))]
#[test]
fn names_are_those_of_what_stands_before() {
    let libraries = Libraries::new("stand-in");
    let soname = |name: &str| libraries.soname(name);
    libraries.add("deep", &functions(&[("three", 300), ("four", 400), ("five", 500)]), &[], &[]);
    libraries.add("real", &functions(&[("one", 100), ("three", 30)]), &["deep"], &[]);
    let [filter, auxiliary] = ["-F", "-f"].map(|option| format!("-Wl,{option},{}", soname("real")));
    let own = functions(&[("one", 1), ("two", 2), ("three", 3), ("four", 4)]);
    let probe = "long one(void), two(void), three(void), four(void), five(void);
        long probe(void) { return one() + two() + three() + four() + five(); }";
    let with_probe = format!("{own}{probe}");
    for (name, option) in [("filter", &filter), ("auxiliary", &auxiliary)] {
        // the one that is opened has it, or one that it needs
        libraries.add(name, &with_probe, &["deep"], &[option]);
        assert_eq!(libraries.probe(name), 100 + 2 + 30 + 4 + 500, "{name}");
        assert_eq!(libraries.together(name), 100 + 2 + 30 + 4 + 500, "{name}");
        let (top, stub) = (format!("top-{name}"), format!("stub-{name}"));
        libraries.add(&stub, &own, &[], &[option]);
        libraries.add(&top, probe, &[&stub, "deep"], &[]);
        assert_eq!(libraries.probe(&top), 100 + 2 + 30 + 4 + 500, "{top}");
        assert_eq!(libraries.together(&top), 100 + 2 + 30 + 4 + 500, "{top}");
    }
    // it is needed in front already: it stays there; behind: it is moved
    libraries.add("front", probe, &["real", "stub-filter", "deep"], &[]);
    libraries.add("back", probe, &["stub-filter", "deep", "real"], &[]);
    libraries.add("behind", probe, &["deep", "stub-filter"], &[]);
    for (name, sum) in
        [("front", 100 + 2 + 30 + 4), ("back", 100 + 2 + 30 + 4), ("behind", 100 + 2 + 300 + 400)]
    {
        assert_eq!(
            (libraries.probe(name), libraries.together(name)),
            (sum + 500, sum + 500),
            "{name}"
        );
    }
    // two, one of which stands before the other
    let second = format!("-Wl,-f,{}", soname("stub-filter"));
    libraries.add("second", &functions(&[("two", 20)]), &[], &[&second]);
    libraries.add("both", probe, &["second", "deep"], &[]);
    assert_eq!(libraries.together("both"), 100 + 2 + 30 + 4 + 500);
}

/// One that is not there: only a filter wants it.
#[cfg(not(target_env = "musl"))]
#[test]
fn what_is_not_there() {
    let libraries = Libraries::new("stand-in-missing");
    let source = "long probe(void) { return 7; }";
    libraries.add("auxiliary", source, &[], &["-Wl,-f,libhoist-nowhere.so"]);
    assert_eq!((libraries.probe("auxiliary"), libraries.together("auxiliary")), (7, 7));
    libraries.add("filter", source, &[], &["-Wl,-F,libhoist-nowhere.so"]);
    let words = libraries.refused("filter");
    assert!(words.contains("libhoist-nowhere.so"), "{words}");
}

/// What stands before is initialized first, and ends last.
#[cfg(not(target_env = "musl"))]
#[test]
fn orders() {
    let libraries = Libraries::new("stand-in-order");
    libraries.add_telling("real", &[]);
    libraries.add_telling("needed", &[]);
    libraries.add_telling("filter", &["needed"]);
    let log = |name: &str| {
        drop(libraries.ours(name).unwrap());
        let ours = libraries.told();
        drop(system::libraries::Opened::new(&libraries.path(name)).unwrap());
        assert_eq!(ours, libraries.told(), "{name}");
        ours
    };
    let before = log("filter");
    let source = std::fs::read_to_string(libraries.folder.path().join("filter.c")).unwrap();
    let option = format!("-Wl,-F,{}", libraries.soname("real"));
    libraries.add("filter", &source, &["needed"], &[&option]);
    assert!(log("filter").len() > before.len());
}
