//! In which order libraries out of bytes go, and what is done with them when the process ends: beside the dynamic loader.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::{LibraryLoader, NeededLibrary};
use std::path::Path;
use system::itself;
use system::libraries::{Libraries, Opened, call_ours};

/// Libraries, what they need, and to whom they refer.
type Graph<'g> = &'g [(&'g str, &'g [&'g str], &'g [&'g str])];

/// Graphs of which the last library is opened.
const GRAPHS: [Graph<'_>; 7] = [
    // a reference decides between two that do not need each other
    &[("a", &[], &[]), ("b", &[], &["a"]), ("top", &["a", "b"], &[])],
    &[("a", &[], &["b"]), ("b", &[], &[]), ("top", &["a", "b"], &[])],
    // not against what is needed
    &[("b", &[], &["a"]), ("a", &["b"], &[]), ("top", &["a"], &[])],
    // to the one that is opened
    &[("a", &[], &[]), ("b", &[], &["top"]), ("top", &["a", "b"], &[])],
    // round in circles
    &[("a", &[], &["b"]), ("b", &[], &["c"]), ("c", &[], &["a"]), ("top", &["a", "b", "c"], &[])],
    &[("a", &[], &["c"]), ("b", &["a"], &[]), ("c", &[], &["b"]), ("top", &["c", "b"], &["a"])],
    &[
        ("d", &[], &["a", "b"]),
        ("a", &[], &[]),
        ("b", &[], &["c"]),
        ("c", &[], &["a"]),
        ("top", &["a", "d", "b", "c"], &[]),
    ],
];

#[test]
fn references_decide_where_needs_do_not() {
    for graph in GRAPHS {
        let libraries = Libraries::new("referred");
        for (name, needed, others) in graph {
            libraries.add_referring(name, needed, others);
        }
        let library = libraries.ours("top").unwrap();
        assert_eq!(call_ours(&library), 1);
        drop(library);
        let ours = libraries.told();
        drop(Opened::new(&libraries.path("top")).unwrap());
        assert_eq!(ours, libraries.told(), "{graph:?}");
        assert_eq!(ours.matches('-').count(), graph.len(), "{ours}");
    }
}

/// What a child process opens: a folder, a test's name, and libraries.
const OPENS: &str = "HOIST_OPENS";

/// The part of a child process: opens libraries, and ends.
#[test]
fn child() {
    let Ok(words) = std::env::var(OPENS) else { return };
    let words: Vec<&str> = words.split(' ').collect();
    let folder = Path::new(words[1]);
    for name in &words[2..] {
        let path = folder.join(name);
        if words[0] == "loader" {
            std::mem::forget(Opened::new(&path).unwrap());
            continue;
        }
        let source = |name: elf_core::Name<'_>| {
            let bytes = std::fs::read(folder.join(name.to_str()?)).ok()?;
            Some(NeededLibrary::bytes(bytes))
        };
        let bytes = std::fs::read(path).unwrap();
        // SAFETY: the tests' libraries do no harm.
        let library = unsafe { LibraryLoader::new().needed(source).open(bytes) }.unwrap();
        std::mem::forget(library);
    }
    std::process::exit(0);
}

/// Destructors of libraries that nobody has closed run when the process ends, in the order of the dynamic loader.
#[test]
fn the_process_ends() {
    let cases: [(Graph<'_>, &[&str]); 4] = [
        (&[("one", &[], &[])], &["one"]),
        // independent of each other
        (&[("one", &[], &[]), ("two", &[], &[]), ("three", &[], &[])], &["one", "two", "three"]),
        (
            &[("base", &[], &[]), ("left", &["base"], &[]), ("top", &["left", "base"], &[])],
            &["top"],
        ),
        (GRAPHS[0], &["top"]),
    ];
    for (graph, opened) in cases {
        let libraries = Libraries::new("exit");
        for (name, needed, others) in graph {
            libraries.add_referring(name, needed, others);
        }
        let end = |how: &str| {
            let folder = libraries.folder.path().display();
            let names: Vec<String> = opened.iter().map(|name| libraries.soname(name)).collect();
            let mut child = itself();
            let child = child.args(["--exact", "child", "--nocapture"]);
            let child = child.env(OPENS, format!("{how} {folder} {}", names.join(" ")));
            let output = child.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            libraries.told()
        };
        let (ours, loader) = (end("ours"), end("loader"));
        assert_eq!(ours, loader, "{graph:?}");
        assert_eq!(ours.matches('-').count(), graph.len(), "{ours}");
    }
}

/// Who ends the process in a constructor is finalized, too.
#[test]
fn a_constructor_ends_the_process() {
    let libraries = Libraries::new("exits");
    libraries.add_telling("lower", &[]);
    let log = libraries.folder.path().join("log");
    let source = format!(
        "#include <fcntl.h>
        #include <stdlib.h>
        #include <unistd.h>
        __attribute__((constructor)) static void first(void) {{ exit(5); }}
        __attribute__((destructor)) static void last(void) {{
            if (write(open(\"{}\", O_WRONLY | O_APPEND), \"-upper \", 7) < 0) _exit(9);
        }}",
        log.display()
    );
    libraries.add("upper", &source, &["lower"], &[]);
    for how in ["ours", "loader"] {
        let mut child = itself();
        let child = child.args(["--exact", "child", "--nocapture"]);
        let folder = libraries.folder.path().display();
        let child = child.env(OPENS, format!("{how} {folder} {}", libraries.soname("upper")));
        let output = child.output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{how}: {output:?}");
        assert_eq!(libraries.told(), "+lower -upper -lower ", "{how}");
    }
}
