//! `hoist.h` is what cbindgen makes of the sources, and keeps what earlier versions of it had.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Types of arguments that stand for pointers of C, and have names on this side only.
const POINTERS: &[(&str, &str)] = &[
    ("Text", "const char *"),
    ("Bytes", "const void *"),
    ("Numbers", "const size_t *"),
    ("OutBuffer", "void *"),
    ("Texts", "const char *const *"),
    ("Arguments", "const struct hoist_kernel_argument *"),
];

/// The areas of the header, in its order.
const SOURCES: &[&str] = &[
    "version",
    "border",
    "address",
    "error",
    "error_info",
    "buffer",
    "objects",
    "source",
    "symbols",
    "observer",
    "loader",
    "module",
    "module_rows",
    "inspect",
    "replace",
    "library",
    "library_loader",
    "image",
    "link",
    "file",
    "file_tables",
    "archive",
    "cubin_rows",
    "cubin",
    "fatbin",
    "fatbin_change",
    "device",
    "device_memory",
    "kernel",
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generate() -> String {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(folder().join(format!("src/{source}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let mut text = String::from_utf8(text).unwrap();
    for (name, pointer) in POINTERS {
        let definition = format!("typedef {pointer}{name};\n\n");
        let end = text.find(&definition).unwrap();
        let start = text[..end].rfind("/**").unwrap();
        text.replace_range(start..end + definition.len(), "");
        // in comments they are words
        let is_comment = |line: &str| line.trim_start().starts_with(['*', '/']);
        let lines = text.split_inclusive('\n').map(|line| match is_comment(line) {
            true => line.to_owned(),
            false => ["(", " "].iter().fold(line.to_owned(), |line, before| {
                line.replace(&format!("{before}{name} "), &format!("{before}{pointer}"))
            }),
        });
        text = lines.collect();
    }
    text
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((code, comment)) = rest.split_once("/*") {
        out += code;
        rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
    }
    out + rest
}

/// What a header declares, each in one line: macros with their values, enumerators with theirs, types, functions.
fn declarations(text: &str) -> BTreeSet<String> {
    let text = without_comments(text);
    let mut found = BTreeSet::new();
    let (mut code, mut is_for_cpp) = (String::new(), false);
    for line in text.lines() {
        match line.trim() {
            "#ifdef __cplusplus" => is_for_cpp = true,
            line if line.starts_with("#endif") => is_for_cpp = false,
            line if line.starts_with("#define") => {
                found.insert(line.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            line if line.starts_with('#') || is_for_cpp => {}
            line => code += &format!("{line} "),
        }
    }
    let (mut depth, mut one) = (0u32, String::new());
    for letter in code.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => {
                enter(&mut found, &one);
                one.clear();
                continue;
            }
            _ => {}
        }
        one.push(letter);
    }
    found
}

fn enter(found: &mut BTreeSet<String>, one: &str) {
    let one = one.split_whitespace().collect::<Vec<_>>().join(" ");
    match one.strip_prefix("enum ").and_then(|rest| rest.split_once('{')) {
        // enumerators may be added
        Some((name, rest)) => {
            let rest = rest.trim_end_matches('}');
            let each = rest.split(',').map(str::trim).filter(|each| !each.is_empty());
            found.extend(each.map(|each| format!("enum {} {each}", name.trim())));
        }
        None if !one.is_empty() => {
            found.insert(one);
        }
        None => {}
    }
}

#[test]
fn the_header_is_what_cbindgen_makes() {
    let path = folder().join("include/hoist.h");
    let made = generate();
    if std::env::var_os("HOIST_C_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == made,
        "include/hoist.h is old: HOIST_C_WRITE=1 cargo test -p hoist-c --test header"
    );
}

#[test]
fn every_area_is_in_the_header() {
    let modules = std::fs::read_to_string(folder().join("src/lib.rs")).unwrap();
    let modules =
        modules.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let modules: BTreeSet<_> = modules.collect();
    assert_eq!(modules, SOURCES.iter().copied().collect());
}

#[test]
fn nothing_of_an_earlier_header_is_gone() {
    let now = declarations(&std::fs::read_to_string(folder().join("include/hoist.h")).unwrap());
    let series =
        format!("{}.{}.h", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let then = std::fs::read_to_string(folder().join("abi").join(series)).unwrap();
    let then = declarations(&then);
    assert!(then.len() > 150, "{} declarations", then.len());
    let gone: Vec<_> = then.difference(&now).collect();
    assert!(gone.is_empty(), "no longer as programs were built with: {gone:#?}");
}

#[test]
fn what_is_gone_or_changed_is_seen() {
    let old = "#define A 1\nenum e { X = 0, Y = 1 };\ntypedef struct s { int a; } s;\n/* f */ int f(int);";
    let same = declarations(old);
    assert_eq!(same.len(), 5);
    let gone = |new: &str| same.difference(&declarations(new)).cloned().collect::<Vec<_>>();
    assert_eq!(gone(&format!("{old}\nvoid g(void);").replace("Y = 1", "Y = 1, Z = 2")), [""; 0]);
    assert_eq!(gone(&old.replace("A 1", "A 2")), ["#define A 1"]);
    assert_eq!(gone(&old.replace("X = 0", "X = 3")), ["enum e X = 0"]);
    assert_eq!(gone(&old.replace("int a", "long a")), ["typedef struct s { int a; } s"]);
    assert_eq!(gone(&old.replace("f(int)", "f(void)")), ["int f(int)"]);
}

#[test]
fn every_function_says_what_it_takes() {
    let text = std::fs::read_to_string(folder().join("include/hoist.h")).unwrap();
    let (mut without, mut seen) = (Vec::new(), 0);
    let mut comment = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("/**") {
            comment.clear();
        }
        comment += line;
        let is_declaration = line.starts_with(|letter: char| letter.is_ascii_lowercase());
        if !is_declaration || line.starts_with("typedef") {
            continue;
        }
        let Some((before, _)) = line.split_once('(') else { continue };
        let name = before.rsplit([' ', '*']).next().unwrap_or_default();
        let can_fail = before.starts_with("hoist_status ") && name != "hoist_error_kind";
        if !comment.contains("Threads: ") || can_fail && !comment.contains("Errors: ") {
            without.push(name.to_owned());
        }
        seen += 1;
    }
    assert!(seen > 80, "{seen} functions");
    assert!(without.is_empty(), "errors or threads are not said for {without:?}");
}

/// What a compiler makes of a source of one line with all warnings: nothing, or what it says.
fn compiled(compiler: &str, flags: &[&str], header: &str) -> Result<(), String> {
    let room = tempfile::tempdir().unwrap();
    let is_cpp = compiler.contains("++");
    let source = room.path().join(if is_cpp { "one.cpp" } else { "one.c" });
    std::fs::write(&source, format!("#include <{header}>\n")).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut command = Command::new(compiler);
    command.args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"]);
    command.arg("-Werror").args(flags).arg("-I").arg(include).arg(source);
    let output = command.output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// By standard, and what C++ can be without: `hoist.hpp` needs exceptions, and says so in one line.
#[test]
fn headers_by_standard() {
    for (c, cpp) in [("gcc", "g++"), ("clang-19", "clang++-19")] {
        if Command::new(c).arg("--version").output().is_err() {
            println!("skipped: headers_by_standard: needs clang-19");
            continue;
        }
        for standard in ["c99", "gnu99", "c11", "c17", "c2x"] {
            compiled(c, &[&format!("-std={standard}")], "hoist.h").unwrap();
        }
        for flags in [&["-std=c++11"][..], &["-std=c++17", "-fno-exceptions", "-fno-rtti"]] {
            compiled(cpp, flags, "hoist.h").unwrap();
        }
        compiled(cpp, &["-std=c++17", "-fno-rtti"], "hoist.hpp").unwrap();
        let without = compiled(cpp, &["-std=c++17", "-fno-exceptions"], "hoist.hpp").unwrap_err();
        assert!(without.contains("hoist.hpp throws exceptions"), "{without}");
        let old = compiled(cpp, &["-std=c++14"], "hoist.hpp").unwrap_err();
        assert!(old.contains("hoist.hpp is for C++17 and later"), "{old}");
    }
}
