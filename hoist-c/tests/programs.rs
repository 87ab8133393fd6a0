//! Programs in C and C++ that use the library as it is installed: every warning is an error, everything that they find wrong ends
//! them. `make install` is what makes the library.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::path::Path;
use std::process::Command;

#[path = "programs/linked_statically.rs"]
mod linked_statically;
#[path = "programs/made.rs"]
mod made;

use made::{Made, PROGRAMS, folder, is_there, run};

const CLANG: [&str; 2] = ["clang-19", "clang++-19"];
const SANITIZED: [&str; 2] = ["-fsanitize=address", "-fno-omit-frame-pointer"];

#[test]
fn programs_of_gcc() {
    let made = Made::get();
    let shared = made.shared();
    made.run_all(["gcc", "g++"], "gcc", &shared.each_ref().map(String::as_str));
    made.run_later_standards(["gcc", "g++"], "gcc", &shared.each_ref().map(String::as_str));
}

#[test]
fn programs_of_clang() {
    if !is_there("clang-19") || !is_there("clang++-19") {
        println!("skipped: programs_of_clang: needs clang-19");
        return;
    }
    let made = Made::get();
    let shared = made.shared();
    made.run_all(CLANG, "clang", &shared.each_ref().map(String::as_str));
    made.run_later_standards(CLANG, "clang", &shared.each_ref().map(String::as_str));
}

#[test]
fn programs_with_the_static_library() {
    let made = Made::get();
    let library = made.path.join("lib/libhoist.a").display().to_string();
    let system = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];
    let flags: Vec<&str> = std::iter::once(library.as_str()).chain(system).collect();
    made.run_all(["gcc", "g++"], "static", &flags);
}

/// Accesses and leaks of the programs, of what the library allocates for them, and of a thousand loads.
#[test]
fn programs_under_address_sanitizer() {
    let made = Made::get();
    let shared = made.shared();
    let mut flags = SANITIZED.to_vec();
    flags.extend(shared.iter().map(String::as_str));
    made.run_all(["gcc", "g++"], "asan", &flags);
}

#[test]
fn programs_under_address_sanitizer_of_clang() {
    let made = Made::get();
    let empty = made.path.join("empty.c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    let mut clang = Command::new("clang-19");
    clang.args(SANITIZED).arg(&empty).arg("-o").arg(made.path.join("empty"));
    if !clang.output().is_ok_and(|output| output.status.success()) {
        println!("skipped: programs_under_address_sanitizer_of_clang: needs libclang-rt-19-dev");
        return;
    }
    let shared = made.shared();
    let mut flags = SANITIZED.to_vec();
    flags.extend(shared.iter().map(String::as_str));
    made.run_all(CLANG, "clang-asan", &flags);
}

/// Two of them, or all: `HOIST_C_VALGRIND=all cargo test -p hoist-c --test programs valgrind`, minutes.
#[test]
fn programs_under_valgrind() {
    if !is_there("valgrind") {
        println!("skipped: programs_under_valgrind: needs valgrind");
        return;
    }
    let made = Made::get();
    let shared = made.shared();
    let shared = shared.each_ref().map(String::as_str);
    let all = std::env::var_os("HOIST_C_VALGRIND").is_some();
    let is_taken = |source: &str| all || ["load.c", "gpu.c"].contains(&source);
    for (source, arguments) in PROGRAMS.iter().filter(|(source, _)| is_taken(source)) {
        let program = made.compile(
            ["gcc", "g++"],
            "valgrind",
            &folder().join("tests/c").join(source),
            &shared,
        );
        let mut valgrind = Command::new("valgrind");
        valgrind.args([
            "-q",
            "--error-exitcode=99",
            "--smc-check=all-non-file",
            "--leak-check=full",
        ]);
        valgrind
            .args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"])
            .arg(format!("--suppressions={}", made.path.join("forgotten").display()))
            .arg(program);
        made.run(&mut valgrind, arguments);
    }
}

/// Each example, and what it prints.
#[test]
fn examples() {
    let shared = Made::get().shared();
    run_examples("example", &shared.each_ref().map(String::as_str));
}

/// The same, and nothing is left or used that is not there.
#[test]
fn examples_under_address_sanitizer() {
    let shared = Made::get().shared();
    let mut flags = SANITIZED.to_vec();
    flags.extend(shared.iter().map(String::as_str));
    run_examples("example-asan", &flags);
}

fn run_examples(way: &str, flags: &[&str]) {
    let made = Made::get();
    let cubin = made.argument("fixtures/cuda/kernels-13.5-sm_80.cubin");
    let examples = folder().join("examples");
    let compile = |name: &str| made.compile(["gcc", "g++"], way, &examples.join(name), flags);
    let printed = |command: &mut Command| String::from_utf8(run(command).stdout).unwrap();

    let room = tempfile::tempdir().unwrap();
    let host = printed(Command::new(compile("plugin_host.c")).arg(room.path()));
    assert_eq!(
        host,
        "count 1: 10 + 1\ncount 2: 10 + 2\nchanged\ncount 3: 10 * 3\ncount 4: 10 * 4\n"
    );
    let jit = printed(Command::new(compile("jit.c")).args(["x * x + sqrt(x)", "1", "4", "9"]));
    assert_eq!(jit, "2\n18\n84\n");
    let lister = compile("list_cubin.c");
    let list = printed(Command::new(&lister).arg(&cubin));
    assert!(list.lines().count() > 3 && list.contains("sm_80 shared_memory: "), "{list}");
    let list =
        printed(Command::new(&lister).arg(made.argument("fixtures/cuda/gpu-13.0-sm_90.fatbin")));
    assert!(list.lines().count() > 3 && list.contains("sm_90 "), "{list}");
    let hide = compile("hide_symbols.c");
    let base = room.path().join("libbase.a");
    std::fs::copy(made.path.join("libbase.a"), &base).unwrap();
    assert_eq!(printed(Command::new(&hide).arg(&base).arg("base_")), "1 symbols hidden\n");
    assert_eq!(printed(Command::new(&hide).arg(&base).arg("base_")), "0 symbols hidden\n");
    let refused = Command::new(&hide).arg(&cubin).arg("x").output().unwrap();
    assert!(!refused.status.success() && refused.stderr.starts_with(b"hide_symbols: "));
    let refused = Command::new(&lister).arg("/absent").output().unwrap();
    assert!(!refused.status.success() && refused.stderr.starts_with(b"list_cubin: /absent: "));
}

#[test]
fn a_kernel_is_launched_from_c() {
    let made = Made::get();
    let shared = made.shared();
    let shared = shared.each_ref().map(String::as_str);
    let source = folder().join("examples/launch.c");
    let program = made.compile(["gcc", "g++"], "example", &source, &shared);
    let launch = |driver: &str, kernel: &str| {
        let mut launch = Command::new(&program);
        launch.env("LD_LIBRARY_PATH", made.path.join(driver));
        launch.arg(made.argument("fixtures/cuda/gpu-13.0-sm_90.fatbin"));
        launch.arg(kernel).output().unwrap()
    };
    let launched = launch("driver", "vector_add");
    assert!(launched.status.success(), "{launched:?}");
    // the stub runs nothing
    assert_eq!(launched.stdout, b"0 + 10 = 0\n1 + 20 = 0\n2 + 30 = 0\n3 + 40 = 0\n");
    let refused = launch("driver", "absent");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.starts_with("launch: ") && words.contains("no kernel absent"), "{words}");
    let refused = launch("no-driver", "vector_add");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.starts_with("launch: no CUDA driver library; libcuda.so.1: "), "{words}");
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn objects_of_libtcc() {
    if !Path::new("/usr/include/libtcc.h").exists() {
        println!("skipped: objects_of_libtcc: needs libtcc-dev");
        return;
    }
    let made = Made::get();
    let shared = made.shared();
    let flags: Vec<&str> = shared.iter().map(String::as_str).chain(["-ltcc"]).collect();
    let source = folder().join("examples/jit_tcc.c");
    let program = made.compile(["gcc", "g++"], "example", &source, &flags);
    let code = "static int n = 1; int *p = &n; int f(int x) { return twice(x) + *p; }";
    let output = run(Command::new(&program).args([code, "1", "20"]));
    assert_eq!(output.stdout, b"3\n41\n");
    let code = "int absent(int); int f(int x) { return absent(x); }";
    let refused = Command::new(&program).args([code, "1"]).output().unwrap();
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && words.contains("absent is undefined"), "{words}");
}

#[test]
fn objects_of_llvm() {
    let asked = |what: &[&str]| {
        let output = Command::new("llvm-config-19").args(what).output().ok()?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // the program comes with llvm-19, the headers do not
    let include = asked(&["--includedir"]).unwrap_or_default();
    if !Path::new(&include).join("llvm-c/TargetMachine.h").exists() {
        println!("skipped: objects_of_llvm: needs llvm-19-dev");
        return;
    }
    let made = Made::get();
    let shared = made.shared();
    let flags = asked(&["--ldflags", "--libs"]).unwrap();
    let include = format!("-isystem{include}");
    let llvm = flags.split_whitespace().chain([include.as_str()]);
    let flags: Vec<&str> = shared.iter().map(String::as_str).chain(llvm).collect();
    let source = folder().join("examples/jit_llvm.c");
    let program = made.compile(["gcc", "g++"], "example", &source, &flags);
    let output = run(Command::new(&program).args(["3", "4", "5"]));
    assert_eq!(output.stdout, b"5\n5\n");
}

/// The programs that README.md begins with.
#[test]
fn the_first_programs() {
    let made = Made::get();
    let shared = made.shared();
    let shared = shared.each_ref().map(String::as_str);
    let room = tempfile::tempdir().unwrap();
    let object = room.path().join("twice.o");
    std::fs::write(room.path().join("twice.c"), "int twice(int x) { return 2 * x; }\n").unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-fPIC", "-c"]).arg(room.path().join("twice.c"));
    run(cc.arg("-o").arg(&object));
    let text = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for language in ["c", "cpp"] {
        let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
        let (program, _) = rest.split_once("```").unwrap();
        let source = room.path().join(format!("first.{language}"));
        std::fs::write(&source, program).unwrap();
        let program = made.compile(["gcc", "g++"], language, &source, &shared);
        assert_eq!(run(Command::new(&program).arg(&object)).stdout, b"42\n");
        let refused = Command::new(&program).arg("/absent").output().unwrap();
        assert!(!refused.status.success() && refused.stderr.starts_with(b"/absent: "));
    }
}

/// Lines of `nm` as words.
fn symbols(arguments: &[&str], library: &Path) -> Vec<Vec<String>> {
    let listed = run(Command::new("nm").args(arguments).arg(library)).stdout;
    let listed = String::from_utf8(listed).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    listed.lines().map(words).collect()
}

/// Names of the functions that the header declares.
fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(folder().join("include/hoist.h")).unwrap();
    let lines = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '#']) && !line.starts_with("typedef"));
    let names = lines.filter_map(|line| {
        let (before, _) = line.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        name.starts_with("hoist_").then(|| name.to_owned())
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn nothing_else_is_exported() {
    let made = Made::get();
    let declared = declared();
    assert!(declared.len() > 80, "{}", declared.len());

    let installed = symbols(&["-D", "--defined-only"], &made.path.join("lib/libhoist.so"));
    let mut names = Vec::new();
    for line in &installed {
        let [.., kind, name] = &line[..] else { panic!("{line:?}") };
        if name == "HOIST_0.1" && kind == "A" {
            continue;
        }
        let (name, version) =
            name.split_once("@@").unwrap_or_else(|| panic!("{name} has no version"));
        assert_eq!((kind.as_str(), version), ("T", "HOIST_0.1"), "{name}");
        names.push(name.to_owned());
    }
    names.sort();
    assert_eq!(names, declared);

    // as cargo links it, there are no versions
    let built = symbols(&["-D", "--defined-only"], &made.built.join("libhoist.so"));
    let mut names: Vec<_> = built.iter().filter_map(|line| line.last().cloned()).collect();
    names.sort();
    assert_eq!(names, declared);
}

/// A shared library that takes the static one in shows its own functions and those of hoist, and nothing of what is inside.
#[test]
fn the_static_library_exports_nothing_else() {
    let made = Made::get();
    let room = tempfile::tempdir().unwrap();
    let source = room.path().join("taken_in.c");
    let code = "#include <hoist.h>\nint own(void) { return hoist_load_file(\"/absent\", 0, 0); }\n";
    std::fs::write(&source, code).unwrap();
    let library = room.path().join("libtaken_in.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-I"]).arg(made.path.join("include")).arg(&source);
    cc.arg(made.path.join("lib/libhoist.a")).arg("-o").arg(&library);
    run(cc.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]));
    let shown = symbols(&["-D", "--defined-only"], &library);
    let names: Vec<&str> = shown.iter().filter_map(|line| Some(line.last()?.as_str())).collect();
    assert!(names.contains(&"own") && names.contains(&"hoist_load_file"), "{names:?}");
    let others: Vec<_> =
        names.iter().filter(|name| **name != "own" && !name.starts_with("hoist_")).collect();
    assert!(others.is_empty(), "{} others: {others:?}", others.len());
}

/// A program that opens the library, as one opens plug-ins, and has C++ of LLVM loaded: the unwinder of that is one that the dynamic loader shows to
/// nobody else.
#[test]
fn exceptions_where_the_library_is_a_plug_in() {
    let made = Made::get();
    let object = made.path.join("throws.o");
    let mut clang = Command::new("clang++-19");
    clang.args(["-stdlib=libc++", "-O1", "-fPIC", "-c"]).arg("-o").arg(&object);
    clang.arg(folder().join("tests/c/objects/throws.cpp"));
    if !clang.output().is_ok_and(|output| output.status.success()) {
        println!("skipped: exceptions_where_the_library_is_a_plug_in: needs libc++-19-dev");
        return;
    }
    let library = made.path.join("libthrows.so");
    let mut clang = Command::new("clang++-19");
    run(clang.args(["-stdlib=libc++", "-shared"]).arg(&object).arg("-o").arg(&library));
    let source = folder().join("tests/c/opened.c");
    let program = made.compile(["gcc", "g++"], "opened", &source, &["-ldl"]);
    let mut opened = Command::new(program);
    opened.arg(made.path.join("lib/libhoist.so")).args([object, library]);
    let printed = run(opened.args(["libc++.so.1", "libc++abi.so.1"])).stdout;
    assert_eq!(printed, b"ok\n");
}

#[test]
fn children_of_a_process_whose_threads_throw() {
    let made = Made::get();
    let shared = made.shared();
    let shared = shared.each_ref().map(String::as_str);
    let object = made.path.join("thrown.o");
    let mut cpp = Command::new("g++");
    cpp.args(["-O1", "-fPIC", "-c"]).arg("-o").arg(&object);
    run(cpp.arg(folder().join("tests/c/objects/throws.cpp")));
    let source = folder().join("tests/c/forked.c");
    let program = made.compile(["gcc", "g++"], "forked", &source, &shared);
    assert_eq!(run(Command::new(program).arg(object)).stdout, b"ok\n");
}

#[test]
fn pkg_config_knows_the_flags() {
    if !is_there("pkg-config") {
        println!("skipped: pkg_config_knows_the_flags: needs pkg-config");
        return;
    }
    let made = Made::get();
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "hoist"]);
    let flags = run(pkg_config.env("PKG_CONFIG_PATH", made.path.join("lib/pkgconfig"))).stdout;
    let flags = String::from_utf8(flags).unwrap();
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let prefix = made.path.display();
    assert_eq!(
        flags,
        [format!("-I{prefix}/include"), format!("-L{prefix}/lib"), "-lhoist".to_owned()]
    );
}
