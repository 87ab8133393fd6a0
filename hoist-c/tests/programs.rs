//! Programs in C and C++ that use the library as it is installed: every warning is an error, everything that they find wrong ends
//! them. `make install` is what makes the library.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The programs, and what they are given: names of [`Made::object`], paths in `fixtures`, and others.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("load.c", &["plugin.o", "constructor.o"]),
    ("sources.c", &["user.o", "base.o", "libbase.a", "libbase.so"]),
    ("many.c", &["version1.o", "version2.o"]),
    ("errors.c", &["plugin.o", "plugin.c"]),
    ("link.c", &["plugin.o", "far.o", "fixtures/aarch64/elftest.o"]),
    (
        "gpu.c",
        &[
            "fixtures/cuda/kernels-13.5-sm_80.cubin",
            "fixtures/cuda/calls_a-13.5-sm_80.cubin",
            "fixtures/cuda/calls_b-13.5-sm_80.cubin",
            "fixtures/cuda/gpu-13.0-sm_90.fatbin",
            "base.o",
        ],
    ),
    (
        "all.cpp",
        &[
            "plugin.o",
            "version1.o",
            "version2.o",
            "fixtures/cuda/kernels-13.5-sm_80.cubin",
            "fixtures/cuda/gpu-13.0-sm_90.fatbin",
            "libbase.a",
            "libbase.so",
        ],
    ),
];

/// What programs load: name, source, flags.
const OBJECTS: &[(&str, &str, &[&str])] = &[
    ("plugin.o", "plugin.c", &[]),
    ("constructor.o", "plugin.c", &["-DWITH_CONSTRUCTOR"]),
    ("version1.o", "version.c", &["-DVERSION=1"]),
    ("version2.o", "version.c", &["-DVERSION=2"]),
    ("user.o", "user.c", &[]),
    ("base.o", "base.c", &[]),
    ("far.o", "far.c", &[]),
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that must succeed.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn is_there(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The installed library, and objects to load.
struct Made {
    #[expect(dead_code, reason = "removed in the end")]
    room: tempfile::TempDir,
    path: PathBuf,
    /// What cargo has built.
    built: PathBuf,
}

impl Made {
    /// Made once for all tests.
    fn get() -> &'static Self {
        static MADE: OnceLock<Made> = OnceLock::new();
        MADE.get_or_init(Self::make)
    }

    fn make() -> Self {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().to_owned();
        let program = std::env::current_exe().unwrap();
        // target/PROFILE/deps/PROGRAM
        let target = program.ancestors().nth(3).unwrap().to_owned();
        let mut make = Command::new("make");
        make.current_dir(folder()).args(["install", "PROFILE=dev"]);
        make.arg(format!("PREFIX={}", path.display())).arg(format!("CARGO={}", env!("CARGO")));
        make.env("CARGO_TARGET_DIR", &target);
        run(&mut make);
        let sources = folder().join("tests/c/objects");
        for (name, source, flags) in OBJECTS {
            let mut cc = Command::new("cc");
            cc.args(["-c", "-O1", "-fPIC"]).args(*flags).arg(sources.join(source));
            run(cc.arg("-o").arg(path.join(name)));
        }
        run(Command::new("ar").arg("rcs").arg(path.join("libbase.a")).arg(path.join("base.o")));
        let mut shared = Command::new("cc");
        shared.args(["-shared", "-Wl,-soname,libbase.so"]).arg(path.join("base.o"));
        run(shared.arg("-o").arg(path.join("libbase.so")));
        std::fs::copy(sources.join("plugin.c"), path.join("plugin.c")).unwrap();
        Self { room, path, built: target.join("debug") }
    }

    /// An argument of a program as a path.
    fn argument(&self, name: &str) -> PathBuf {
        if name.starts_with("fixtures/") {
            folder().join("..").join(name)
        } else {
            self.path.join(name)
        }
    }

    /// Compiles a program. Each way has programs of its own.
    fn compile(&self, compilers: [&str; 2], way: &str, source: &Path, flags: &[&str]) -> PathBuf {
        let is_cpp = source.extension() == Some(OsStr::new("cpp"));
        let [c, cpp] = compilers;
        let mut compiler = Command::new(if is_cpp { cpp } else { c });
        compiler.arg(if is_cpp { "-std=c++17" } else { "-std=gnu11" }).args(WARNINGS).arg("-g");
        compiler.arg("-I").arg(self.path.join("include")).arg("-I").arg(folder().join("tests/c"));
        let program = self.path.join(format!("{way}-{}", source.file_stem().unwrap().display()));
        compiler.arg(source).arg("-o").arg(&program).args(flags).args(["-lpthread", "-lm"]);
        run(&mut compiler);
        program
    }

    /// Flags for the shared library, which programs find where it is installed.
    fn shared(&self) -> [String; 3] {
        let lib = self.path.join("lib").display().to_string();
        [format!("-L{lib}"), format!("-Wl,-rpath,{lib}"), "-lhoist".to_owned()]
    }

    /// Compiles and runs all programs.
    fn run_all(&self, compilers: [&str; 2], way: &str, flags: &[&str]) {
        for (source, arguments) in PROGRAMS {
            let source = folder().join("tests/c").join(source);
            let program = self.compile(compilers, way, &source, flags);
            self.run(&mut Command::new(program), arguments);
        }
    }

    fn run(&self, program: &mut Command, arguments: &[&str]) {
        program.args(arguments.iter().map(|name| self.argument(name)));
        let output = run(program);
        assert!(output.stdout.ends_with(b"ok\n"), "{program:?}");
    }
}

#[test]
fn programs_of_gcc() {
    let made = Made::get();
    let shared = made.shared();
    made.run_all(["gcc", "g++"], "gcc", &shared.each_ref().map(String::as_str));
}

#[test]
fn programs_of_clang() {
    if !is_there("clang-19") || !is_there("clang++-19") {
        println!("skipped: programs_of_clang: needs clang-19");
        return;
    }
    let made = Made::get();
    let shared = made.shared();
    made.run_all(["clang-19", "clang++-19"], "clang", &shared.each_ref().map(String::as_str));
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
    let mut flags = vec!["-fsanitize=address", "-fno-omit-frame-pointer"];
    flags.extend(shared.iter().map(String::as_str));
    made.run_all(["gcc", "g++"], "asan", &flags);
}

#[test]
fn programs_under_valgrind() {
    if !is_there("valgrind") {
        println!("skipped: programs_under_valgrind: needs valgrind");
        return;
    }
    let made = Made::get();
    let shared = made.shared();
    let shared = shared.each_ref().map(String::as_str);
    for (source, arguments) in
        PROGRAMS.iter().filter(|(source, _)| ["load.c", "gpu.c"].contains(source))
    {
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
            .arg(program);
        made.run(&mut valgrind, arguments);
    }
}

/// Each example, and what it prints.
#[test]
fn examples() {
    let made = Made::get();
    let shared = made.shared();
    let shared = shared.each_ref().map(String::as_str);
    let cubin = made.argument("fixtures/cuda/kernels-13.5-sm_80.cubin");
    let examples = folder().join("examples");
    let compile =
        |name: &str| made.compile(["gcc", "g++"], "example", &examples.join(name), &shared);
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
    let refused = Command::new(&lister).arg("/absent").output().unwrap();
    assert!(!refused.status.success() && refused.stderr.starts_with(b"list_cubin: /absent: "));
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
