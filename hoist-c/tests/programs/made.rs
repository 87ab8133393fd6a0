//! The installed library, programs for it, and what they load.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The programs, and what they are given: names of [`Made::object`], paths in `fixtures`, and others.
pub(crate) const PROGRAMS: &[(&str, &[&str])] = &[
    ("load.c", &["plugin.o", "constructor.o"]),
    ("sources.c", &["user.o", "base.o", "libbase.a", "libbase.so"]),
    (
        "libraries.c",
        &[
            "libuser.so",
            "libbase.so",
            "both.a",
            "liblazy.so",
            "libversions.so",
            "near.o",
            "base.o",
            "liborigin.so",
        ],
    ),
    ("many.c", &["version1.o", "version2.o"]),
    ("errors.c", &["plugin.o", "plugin.c"]),
    ("places.c", &[]),
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
            "fixtures/cuda/kernels-13.5-sm_90a.cubin",
            "libuser.so",
            "libversions.so",
        ],
    ),
    (
        "change.c",
        &[
            "fixtures/fatbin/zstd.fatbin",
            "fixtures/fatbin/libt.so",
            "fixtures/fatbin/k75.cubin",
            "fixtures/fatbin/k80.cubin",
            "fixtures/fatbin/k.ptx",
        ],
    ),
    (
        "device.c",
        &["fixtures/cuda/kernels-13.5-sm_90a.cubin", "fixtures/cuda/kernels-13.5-sm_80.cubin"],
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
    ("near.o", "near.c", &["-fno-pic"]),
    ("lazy.o", "lazy.c", &[]),
    ("versions.o", "versions.c", &["-fno-toplevel-reorder"]),
];

/// Shared libraries that programs load: name, object, what it needs.
const LIBRARIES: &[(&str, &str, &[&str])] = &[
    ("libbase.so", "base.o", &[]),
    ("libuser.so", "user.o", &["libbase.so"]),
    ("liblazy.so", "lazy.o", &[]),
    ("libversions.so", "versions.o", &[]),
    ("liborigin.so", "user.o", &["libbase.so"]),
];

pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
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

pub(crate) fn is_there(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The installed library, and objects to load.
pub(crate) struct Made {
    #[expect(dead_code, reason = "removed in the end")]
    room: tempfile::TempDir,
    pub(crate) path: PathBuf,
    /// What cargo has built.
    pub(crate) built: PathBuf,
}

impl Made {
    /// Made once for all tests.
    pub(crate) fn get() -> &'static Self {
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
        let versions = "V_1 { global: value; local: *; }; V_2 { global: value; } V_1;\n";
        std::fs::write(path.join("libversions.map"), versions).unwrap();
        for (name, object, needed) in LIBRARIES {
            let mut shared = Command::new("cc");
            shared.args(["-shared", "-Wl,-z,lazy"]).arg(format!("-Wl,-soname,{name}"));
            shared.arg(path.join(object)).args(needed.iter().map(|needed| path.join(needed)));
            if *name == "libversions.so" {
                let map = path.join("libversions.map");
                shared.arg(format!("-Wl,--version-script={}", map.display()));
            }
            if *name == "liborigin.so" {
                shared.arg("-Wl,-rpath,$ORIGIN");
            }
            run(shared.arg("-o").arg(path.join(name)));
        }
        let mut ar = Command::new("ar");
        ar.arg("rcs").arg(path.join("both.a"));
        run(ar.args(["libuser.so", "libbase.so"].map(|name| path.join(name))));
        std::fs::copy(sources.join("plugin.c"), path.join("plugin.c")).unwrap();
        // the driver of GPUs is the stub of exec-nv's tests, or one that cannot be opened
        let stub = folder().join("../exec-nv/tests/stub/libcuda.c");
        std::fs::create_dir(path.join("driver")).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-D_GNU_SOURCE", "-shared", "-fPIC", "-w"]).arg(stub);
        run(cc.arg("-o").arg(path.join("driver/libcuda.so.1")));
        // at a reset it forgets what a driver frees; device.c asks it what else was not given back
        std::fs::write(path.join("leaks"), "leak:libcuda.so.1\n").unwrap();
        let forgotten = "{\nthe stub\nMemcheck:Leak\n...\nobj:*/driver/libcuda.so.1\n...\n}\n";
        std::fs::write(path.join("forgotten"), forgotten).unwrap();
        std::fs::create_dir(path.join("no-driver")).unwrap();
        for name in ["libcuda.so.1", "libcuda.so"] {
            std::fs::write(path.join("no-driver").join(name), "no library\n".repeat(10)).unwrap();
        }
        Self { room, path, built: target.join("debug") }
    }

    /// An argument of a program as a path.
    pub(crate) fn argument(&self, name: &str) -> PathBuf {
        if name.starts_with("fixtures/") {
            folder().join("..").join(name)
        } else {
            self.path.join(name)
        }
    }

    /// Compiles a program. Each way has programs of its own.
    pub(crate) fn compile(
        &self,
        compilers: [&str; 2],
        way: &str,
        source: &Path,
        flags: &[&str],
    ) -> PathBuf {
        self.compile_as(compilers, way, "c++17", source, flags)
    }

    /// The same; what is C++ by this standard.
    fn compile_as(
        &self,
        compilers: [&str; 2],
        way: &str,
        standard: &str,
        source: &Path,
        flags: &[&str],
    ) -> PathBuf {
        let is_cpp = source.extension() == Some(OsStr::new("cpp"));
        let [c, cpp] = compilers;
        let mut compiler = Command::new(if is_cpp { cpp } else { c });
        let standard = format!("-std={}", if is_cpp { standard } else { "gnu11" });
        compiler.arg(standard).args(WARNINGS).arg("-g");
        compiler.arg("-I").arg(self.path.join("include")).arg("-I").arg(folder().join("tests/c"));
        let program = self.path.join(format!("{way}-{}", source.file_stem().unwrap().display()));
        compiler.arg(source).arg("-o").arg(&program).args(flags).args(["-lpthread", "-lm"]);
        run(&mut compiler);
        program
    }

    /// Flags for the shared library, which programs find where it is installed.
    pub(crate) fn shared(&self) -> [String; 3] {
        let lib = self.path.join("lib").display().to_string();
        [format!("-L{lib}"), format!("-Wl,-rpath,{lib}"), "-lhoist".to_owned()]
    }

    /// Compiles and runs all programs.
    pub(crate) fn run_all(&self, compilers: [&str; 2], way: &str, flags: &[&str]) {
        for (source, arguments) in PROGRAMS {
            let source = folder().join("tests/c").join(source);
            let program = self.compile(compilers, way, &source, flags);
            self.run(&mut Command::new(program), arguments);
        }
    }

    /// The same of programs in C++, by later standards than the header needs.
    pub(crate) fn run_later_standards(&self, compilers: [&str; 2], way: &str, flags: &[&str]) {
        for (source, arguments) in PROGRAMS.iter().filter(|(source, _)| source.ends_with(".cpp")) {
            let source = folder().join("tests/c").join(source);
            for standard in ["c++20", "c++23"] {
                let way = format!("{way}-{standard}");
                let program = self.compile_as(compilers, &way, standard, &source, flags);
                self.run(&mut Command::new(program), arguments);
            }
        }
    }

    pub(crate) fn run(&self, program: &mut Command, arguments: &[&str]) {
        program.args(arguments.iter().map(|name| self.argument(name)));
        program.env("LD_LIBRARY_PATH", self.path.join("driver"));
        let leaks = self.path.join("leaks").display().to_string();
        program.env("LSAN_OPTIONS", format!("suppressions={leaks}:print_suppressions=0"));
        // that of GCC 12 takes a library's thread-local variables 16 bytes beyond a page for a block of glibc 2.19, whose first words say where it
        // is: where its own allocator puts them there, it looks for leaks at any address
        program.env("ASAN_OPTIONS", "intercept_tls_get_addr=0");
        let output = run(program);
        assert!(output.stdout.ends_with(b"ok\n"), "{program:?}");
    }
}
