//! Crates that are made up, file by file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;

/// What is said of a crate of these files.
fn report(files: &[(&str, &str)]) -> Vec<String> {
    let files: BTreeMap<PathBuf, &str> =
        files.iter().map(|(path, text)| (PathBuf::from(path), *text)).collect();
    let read = |path: &Path| files.get(path).map(|text| (*text).to_owned());
    let mut report = Report::default();
    report.add(&Tree::read(Path::new("src/lib.rs"), &read).unwrap(), Path::new("src"));
    report.faults("it")
}

fn circles(files: &[(&str, &str)]) -> String {
    report(files).join("\n")
}

#[test]
fn a_straight_crate_has_none() {
    let files = [
        ("src/lib.rs", "mod a; mod b; pub use a::A;"),
        ("src/a.rs", "pub struct A; impl A { pub fn f(&self) {} }"),
        ("src/b.rs", "use crate::A; pub fn g(a: &A) { a.f(); g(a) }"),
    ];
    assert_eq!(circles(&files), "");
}

#[test]
fn two_files() {
    let files = [
        ("src/lib.rs", "mod a;\nmod b;\n"),
        ("src/a.rs", "\nuse crate::b::B;\npub struct A(B);"),
        ("src/b.rs", "pub struct B(Option<&'static crate::a::A>);"),
    ];
    let text =
        "it: 2 files in a circle:\n  a.rs:2 crate::b::B -> b.rs\n  b.rs:1 crate::a::A -> a.rs";
    assert_eq!(circles(&files), text);
}

#[test]
fn a_re_export_is_an_import_of_the_file_that_defines() {
    // b.rs names lib.rs only, and means a.rs
    let files = [
        ("src/lib.rs", "mod a; mod b; pub use a::{A as Renamed}; pub use b::*;"),
        ("src/a.rs", "use crate::B; pub struct A(B);"),
        ("src/b.rs", "use super::Renamed; pub struct B(Option<&'static Renamed>);"),
    ];
    let text = circles(&files);
    assert!(text.contains("a.rs:1 crate::B -> b.rs\n  b.rs:1 super::Renamed -> a.rs"), "{text}");
}

#[test]
fn a_module_and_its_submodule() {
    let up = [
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", "mod inner; use inner::F; pub struct A(F);"),
        ("src/a/inner.rs", "use super::A; pub struct F(Option<&'static A>);"),
    ];
    assert!(circles(&up).contains("2 files in a circle"), "{}", circles(&up));
    // a module that only names its parts is in no circle with them
    let facade = [
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", "mod one; mod two; pub use two::Two;"),
        ("src/a/one.rs", "pub struct One;"),
        ("src/a/two.rs", "use super::one; pub struct Two(one::One);"),
    ];
    assert_eq!(circles(&facade), "");
    // nor is one that is asked for what a sibling defines
    let through = [
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", "mod one; mod two; pub use {one::*, two::Two};"),
        ("src/a/one.rs", "pub struct One;"),
        ("src/a/two.rs", "use super::*; pub struct Two(One);"),
    ];
    assert_eq!(circles(&through), "");
}

#[test]
fn paths_in_code_and_in_macros() {
    let with = |code: &str| {
        let a = format!("pub fn f() {{ {code} }}");
        circles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", &a),
            ("src/b.rs", "pub fn g() { crate::a::f() } pub const C: u8 = 0; pub enum E { V }"),
        ])
    };
    for code in [
        "crate::b::g();",
        "use crate::b as x; x::g();",
        "let _: Vec<super::b::E> = Vec::new();",
        "println!(\"{}\", crate::b::C);",
        "match 0 { crate::b::C => {} _ => {} }",
        "use crate::b::E::*; let _ = V;",
        "use crate::b::*; let _ = C;",
        "assert!(matches!(x, Some(super::b::E::V) if true));",
    ] {
        assert!(with(code).contains("2 files in a circle"), "{code}: {}", with(code));
    }
    for code in [
        "let b = 0; b.g();",
        "other::b::g();",
        "::b::g();",
        "println!(\"crate::b::g\"); // crate::b::g\n",
        "macro_rules! m { ($x:ident) => { $x::b::g() } }",
    ] {
        assert_eq!(with(code), "", "{code}");
    }
}

#[test]
fn functions_that_another_file_gives_a_type() {
    let with = |call: &str| {
        let a = format!("pub struct A; impl A {{ pub fn f(&self) {{ {call} }} }}");
        circles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", &a),
            ("src/b.rs", "use crate::a::A; impl A { pub fn g(&self) {} pub const K: u8 = 0; }"),
        ])
    };
    for call in ["self.g()", "Self::g(self)", "A::g(self)", "let _ = Self::K;"] {
        assert!(with(call).contains("A::"), "{call}: {}", with(call));
    }
    for call in ["", "self.f()", "self.h()", "Other::g()"] {
        assert_eq!(with(call), "", "{call}");
    }
}

#[test]
fn macros_that_are_in_scope_by_text() {
    let files = [
        ("src/lib.rs", "#[macro_use] mod a; mod b;"),
        ("src/a.rs", "macro_rules! row { () => { $crate::b::B } }"),
        ("src/b.rs", "pub struct B; pub fn f() { let _ = row!(); }"),
    ];
    assert!(circles(&files).contains("a.rs:1 crate::b::B -> b.rs"), "{}", circles(&files));
}

#[test]
fn what_a_macro_between_items_defines_or_takes() {
    let files = [
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", "words! { One, Two } pub fn f(_: crate::b::B) {}"),
        ("src/b.rs", "pub struct B(super::a::Two);"),
    ];
    assert!(circles(&files).contains("2 files in a circle"));
    // what its definition names, or that of a macro that it is given
    let files = [
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", "macro_rules! list { ($with:ident) => { $with! { 1 } } } macro_rules! table { ($n:literal) => { pub struct Made; } }
             list!(table); pub fn f(_: crate::b::B) {}"),
        ("src/b.rs", "use crate::a::Made; pub struct B(Made);"),
    ];
    assert!(circles(&files).contains("2 files in a circle"), "{}", circles(&files));
    let files = [
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", "mod x; mod y; pub struct Up; all! { x: 1; y: 2; }"),
        ("src/a/x.rs", "use super::Up; pub struct X(Up);"),
        ("src/a/y.rs", "pub struct Y(super::Z);"),
    ];
    let text = circles(&files);
    assert!(text.contains("a.rs:1 x -> a/x.rs\n  a/x.rs:1 super::Up -> a.rs"), "{text}");
    assert!(text.contains("a/y.rs:1: super::Z leads nowhere"), "{text}");
}

#[test]
fn tests_may_look_up() {
    let files = [
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "pub struct A; #[cfg(test)] use crate::b::B; #[cfg(all(test, feature = \"x\"))] mod tests { use crate::b::B; }
             impl A { #[cfg(test)] fn f() -> crate::b::B {} } #[test] fn g() { crate::b::B; }",
        ),
        ("src/b.rs", "pub struct B(crate::a::A);"),
    ];
    assert_eq!(circles(&files), "");
    let not = [
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", "pub struct A; #[cfg(not(test))] use crate::b::B;"),
        ("src/b.rs", "pub struct B(crate::a::A);"),
    ];
    assert!(circles(&not).contains("2 files in a circle"));
}

#[test]
fn a_file_that_cfg_chooses() {
    let files = [
        ("src/lib.rs", "mod a;"),
        (
            "src/a.rs",
            "#[cfg_attr(unix, path = \"a/one.rs\")] #[cfg_attr(not(unix), path = \"a/two.rs\")] mod rows;
             pub struct A(rows::R);",
        ),
        ("src/a/one.rs", "pub struct R;"),
        ("src/a/two.rs", "use super::A; pub struct R;"),
    ];
    let text = circles(&files);
    assert!(text.contains("a/two.rs:1 super::A -> a.rs") && !text.contains("one.rs"), "{text}");
}

#[test]
fn longer_ways_and_separate_knots() {
    let files = [
        ("src/lib.rs", "mod a; mod b; mod c; mod d; mod e; mod f;"),
        ("src/a.rs", "use crate::b::B; pub struct A;"),
        ("src/b.rs", "use crate::c::C; pub struct B;"),
        ("src/c.rs", "use crate::{a::A, d::D}; pub struct C;"),
        ("src/d.rs", "use crate::e::E; pub struct D;"),
        ("src/e.rs", "use crate::d::D; pub struct E;"),
        ("src/f.rs", "use crate::a::A; use crate::e::E;"),
    ];
    let text = circles(&files);
    assert!(text.contains("3 files") && text.contains("c.rs:1 crate::a::A -> a.rs"), "{text}");
    assert!(text.contains("2 files") && text.contains("e.rs:1 crate::d::D -> d.rs"), "{text}");
    assert!(!text.contains("f.rs"), "{text}");
    // a shorter circle in a larger one: that first, and then what else there is
    let files = [
        ("src/lib.rs", "mod a; mod b; mod c;"),
        ("src/a.rs", "use crate::b::B; pub struct A;"),
        ("src/b.rs", "use crate::c::C; pub struct B;"),
        ("src/c.rs", "use crate::b::B; use crate::a::A; pub struct C;"),
    ];
    let text = "it: 3 files in a circle:\n  b.rs:1 crate::c::C -> c.rs\n  c.rs:1 crate::b::B -> b.rs\n  in all: a.rs b.rs c.rs\n  a.rs:1 crate::b::B -> b.rs\n  c.rs:1 crate::a::A -> a.rs";
    assert_eq!(circles(&files), text);
}

#[test]
fn separate_knots_are_told_apart() {
    let files = [
        ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
        ("src/a.rs", "use crate::b::B; pub struct A;"),
        ("src/b.rs", "use crate::a::A; pub struct B;"),
        ("src/c.rs", "use crate::d::D; pub struct C;"),
        ("src/d.rs", "use crate::c::C; pub struct D;"),
    ];
    assert_eq!(report(&files).len(), 2);
}

#[test]
fn what_leads_nowhere_is_told() {
    let files = [("src/lib.rs", "mod a;"), ("src/a.rs", "use crate::b::B;\nuse std::fmt;")];
    assert_eq!(circles(&files), "it: a.rs:1: crate::b::B leads nowhere");
}
