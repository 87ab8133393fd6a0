//! A real debugger looks at loaded code: this test runs itself under it.
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
use exec_host::observer::GdbInterface;
use exec_host::{Loader, Process};
use std::path::Path;
use std::process::{Command, Stdio};
use system::{compile, of_this_machine};

const SOURCE: &str = "\
static int counter = 40;
struct point { int x, y; };
__attribute__((noinline)) static int inner(struct point *p, int (*back)(int)) {
  counter += p->x;
  int sum = back(counter);
  return sum + p->y;
}
int outer(int n, int (*back)(int)) {
  struct point p = { n, 5 };
  return inner(&p, back) * 10;
}
";

/// A function that two objects have, and one of them loses.
const TWICE: &str = "\
inline __attribute__((noinline)) int twice(int n) {
  return n + n;
}
";

extern "C" fn back(value: i32) -> i32 {
    value + 1
}

/// Variables that tell the program under the debugger what to load.
const OBJECTS: &str = "HOIST_DEBUGGED_OBJECTS";

/// The program that is debugged.
#[test]
fn debugged() {
    let Ok(objects) = std::env::var(OBJECTS) else { return };
    let objects: Vec<Vec<u8>> =
        objects.split(':').map(|object| std::fs::read(object).unwrap()).collect();
    let loader = Loader::new().observer(GdbInterface).dual_mapping(objects.len() > 1);
    for _ in 0..2 {
        let module = loader.load(&objects, Process::new()).unwrap();
        type Outer = unsafe extern "C" fn(i32, extern "C" fn(i32) -> i32) -> i32;
        // SAFETY: `int outer(int, int (*)(int))`.
        let outer = unsafe { module.get::<Outer>("outer").unwrap() };
        // SAFETY: as above; it calls `back`.
        println!("outer gave {}", unsafe { outer(2, back) });
    }
    hoist_test_unloaded();
}

/// Tells the program under the debugger which library to load.
const LIBRARY: &str = "HOIST_DEBUGGED_LIBRARY";

/// The same with a library out of bytes.
#[test]
fn debugged_library() {
    let Ok(path) = std::env::var(LIBRARY) else { return };
    let mut loaded = Vec::new();
    for _ in 0..2 {
        let loader = LibraryLoader::new().observer(GdbInterface);
        // SAFETY: the library has no constructors that matter.
        let library = unsafe { loader.open(std::fs::read(&path).unwrap()) }.unwrap();
        type Outer = unsafe extern "C" fn(i32, extern "C" fn(i32) -> i32) -> i32;
        // SAFETY: `int outer(int, int (*)(int))`.
        let outer = unsafe { library.get::<Outer>("outer").unwrap() };
        // SAFETY: as above; it calls `back`.
        println!("outer gave {}", unsafe { outer(2, back) });
        // debuggers think of a breakpoint at the same address as the one that was there
        loaded.push(library);
    }
    drop(loaded);
    hoist_test_unloaded();
}

/// Where the debugger stops when nothing is loaded any more.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn hoist_test_unloaded() {
    println!("unloaded");
}

/// What gdb prints when it runs this program on objects in a folder.
fn gdb(folder: &Path, objects: &[&str], commands: &[&str]) -> Option<String> {
    gdb_of(folder, "debugged", (OBJECTS, &objects.join(":")), commands)
}

/// What it prints when it runs a test of this program, which gets a variable.
fn gdb_of(
    folder: &Path,
    test: &str,
    (variable, value): (&str, &str),
    commands: &[&str],
) -> Option<String> {
    let mut gdb = Command::new("gdb");
    gdb.current_dir(folder).args(["-nx", "-batch", "-ex", "set breakpoint pending on"]);
    // scripts that this program names are of its compiler, which may not have brought them
    gdb.args(["-iex", "set auto-load off"]);
    gdb.args(["-ex", "set width 0", "-ex", "set style enabled off"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    gdb.arg("--args").arg(std::env::current_exe().unwrap());
    gdb.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    gdb.env(variable, value).env_remove("DEBUGINFOD_URLS").stdin(Stdio::null());
    let output = gdb.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let text = text + &String::from_utf8_lossy(&output.stderr);
    // forbidden, or this program is for another machine, in an emulator
    let cannot = ["Operation not permitted", "not in executable format", "Exec format error"];
    (!cannot.iter().any(|cannot| text.contains(cannot))).then_some(text)
}

/// Whether gdb is there.
fn is_there() -> bool {
    let there = Command::new("gdb").arg("--version").output().is_ok();
    if !there {
        println!("skipped: debugger: needs gdb");
    }
    there
}

/// Panics unless every one of `parts` follows the one before.
fn follow(text: &str, parts: &[&str], what: &str) {
    let mut rest = text;
    for part in parts {
        let at =
            rest.find(part).unwrap_or_else(|| panic!("{what}: {part:?} is missing in:\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn breaks_by_name_and_line() {
    if !is_there() {
        return;
    }
    let variants: &[(&str, &[&str])] = &[
        ("gcc", &["-g", "-O0"]),
        ("gcc", &["-g", "-O0", "-ffunction-sections", "-gz", "-fno-pic"]),
        ("gcc", &["-gdwarf-4", "-O0", "-fPIC"]),
        ("clang-19", &["-g", "-O0", "-fPIC"]),
        ("clang-14", &["-g", "-O0"]),
    ];
    for (compiler, options) in variants {
        let options: Vec<&str> = options
            .iter()
            .copied()
            .filter(|option| cfg!(target_arch = "x86_64") || *option != "-fno-pic")
            .collect();
        let Some(compiled) = compile(compiler, &options, SOURCE) else {
            println!("skipped: breaks_by_name_and_line: needs {compiler}");
            continue;
        };
        let commands = [
            "break source.c:4",
            "break outer",
            "break hoist_test_unloaded",
            "run",
            "info breakpoints",
            "continue",
            "backtrace",
            "print p->y",
            "print counter",
            "next",
            "next",
            "finish",
            // the second load
            "continue",
            "continue",
            "delete 1 2",
            "continue",
            "info line inner",
        ];
        let Some(text) = gdb(compiled.folder.path(), &["source.o"], &commands) else {
            println!(
                "skipped: breaks_by_name_and_line: needs a debugger that may run this program"
            );
            return;
        };
        let expected = [
            "Breakpoint 2, outer (n=2, back=",
            "source.c:9",
            "Breakpoint 1, inner (p=",
            "at source.c:4",
            "#0  inner (p=",
            "at source.c:4",
            "#1  0x",
            " in outer (n=2, back=",
            "at source.c:10",
            // frames of this program
            "debugged",
            "$1 = 5",
            "$2 = 40",
            "5\t",
            "int sum = back(counter);",
            "6\t",
            "return sum + p->y;",
            "Value returned is $3 = 48",
            "outer gave 480",
            "Breakpoint 2, outer (n=2",
            "Breakpoint 1, inner (p=",
            "outer gave 480",
            "Breakpoint 3, ",
            "hoist_test_unloaded",
        ];
        follow(&text, &expected, &format!("{compiler} {options:?}"));
        assert!(
            !text.contains("Line 3 of \"source.c\""),
            "nothing is known after the unload:\n{text}"
        );
        // gdb says so of breakpoints in memory that is gone
        let mut warnings = text.lines().filter(|line| line.contains("warning: "));
        let unexpected = warnings.find(|line| !line.contains("Error removing breakpoint"));
        assert_eq!(unexpected, None, "{compiler} {options:?}:\n{text}");
    }
}

/// Of a function that both objects have one copy is loaded, and one breakpoint set; variables of both are known.
#[test]
fn several_objects() {
    if !is_there() {
        return;
    }
    let one = format!("{TWICE}int common; int other(int n) {{\n  return twice(n) + common; }}\n");
    let two = format!(
        "{TWICE}extern \"C\" int outer(int n, int (*back)(int));\nint other(int);\nint outer(int n, int (*back)(int)) {{\n  \
         return other(twice(back(n))); }}\n"
    );
    let Some((one, two)) =
        compile("g++", &["-g", "-O0"], &one).zip(compile("g++", &["-g", "-O0"], &two))
    else {
        println!("skipped: several_objects: needs g++");
        return;
    };
    let objects = [one.object.to_str().unwrap(), two.object.to_str().unwrap()];
    let commands =
        ["break twice", "run", "up", "continue", "up", "print common", "info breakpoints"];
    let Some(text) = gdb(one.folder.path(), &objects, &commands) else {
        println!("skipped: several_objects: needs a debugger that may run this program");
        return;
    };
    let expected = [
        "Breakpoint 1, twice (n=3) at source.cc:2",
        "#1  0x",
        "in outer (n=2",
        "Breakpoint 1, twice (n=6) at source.cc:2",
        "in other (n=6)",
        "$1 = 0",
        "breakpoint already hit 2 times",
    ];
    follow(&text, &expected, "two objects");
    assert!(!text.contains("MULTIPLE") && !text.contains("Cannot"), "{text}");
}

/// Functions of a library out of bytes by name, local ones too, and frames, as long as it is there.
#[test]
fn libraries() {
    if !is_there() {
        return;
    }
    // a name that this program has not
    let source = SOURCE.replace("inner", "lowest_of_all");
    for options in [&["-g", "-O1", "-fPIC", "-fno-inline"][..], &["-O1", "-fPIC", "-fno-inline"]] {
        let Some(compiled) = compile("gcc", options, &source) else {
            println!("skipped: libraries: needs gcc");
            return;
        };
        let folder = compiled.folder.path();
        let mut linker = Command::new(of_this_machine("gcc"));
        linker.args(["-shared", "-Wl,--build-id", "-o"]).arg(folder.join("libsource.so"));
        assert!(linker.arg(&compiled.object).status().unwrap().success());
        let commands = [
            "break lowest_of_all",
            "break hoist_test_unloaded",
            "run",
            "backtrace",
            "finish",
            "continue",
            "backtrace 2",
            "delete 1",
            "continue",
            "info symbol outer",
        ];
        let Some(text) = gdb_of(folder, "debugged_library", (LIBRARY, "libsource.so"), &commands)
        else {
            println!("skipped: libraries: needs a debugger that may run this program");
            return;
        };
        let expected = [
            "hit Breakpoint 1",
            " in lowest_of_all ()",
            "#0  0x",
            " in lowest_of_all ()",
            "#1  0x",
            " in outer ()",
            // frames of this program
            "debugged_library",
            " in outer ()",
            "outer gave 480",
            "hit Breakpoint 1",
            "#1  0x",
            " in outer ()",
            "outer gave 480",
            "hit Breakpoint 2, ",
            "No symbol 'outer' in current context",
        ];
        follow(&text, &expected, &format!("{options:?}"));
    }
}
