//! Programs without a dynamic loader: of glibc, of musl, and of another machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::made::{Made, folder, is_there, run};

/// What the program prints to standard output, and to standard error.
struct Printed(String, String);

/// What it loads: name, source, flags.
const FILES: &[(&str, &str, &[&str])] = &[
    ("plugin.o", "plugin.c", &["-c"]),
    ("unwound.o", "unwound.c", &["-c", "-fexceptions"]),
    ("threads.o", "threads.c", &["-c"]),
    ("near.o", "threads.c", &["-c", "-DMODEL=\"initial-exec\""]),
    ("plain.so", "base.c", &["-shared", "-nostdlib"]),
    ("needs.so", "base.c", &["-shared", "-Wl,--no-as-needed", "-lc"]),
];

/// A compiler, and what runs its programs.
struct Machine<'m> {
    compiler: &'m str,
    runner: &'m [&'m str],
}

impl Machine<'_> {
    /// Compiles `static.c` with the library and what that loads, and runs it.
    fn run(&self, room: &Path, library: &Path, how: &[&str]) -> Printed {
        let folder = folder();
        let objects = folder.join("tests/c/objects");
        let files = FILES.iter().map(|(name, source, flags)| -> PathBuf {
            let file = room.join(name);
            let mut cc = Command::new(self.compiler);
            cc.args(["-O1", "-fPIC"]).arg(objects.join(source)).args(*flags);
            run(cc.arg("-o").arg(&file));
            file
        });
        let files: Vec<_> = files.collect();
        let program = room.join(how.join(""));
        let mut cc = Command::new(self.compiler);
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]).args(how);
        cc.arg("-I").arg(folder.join("include")).arg("-I").arg(folder.join("tests/c"));
        cc.arg(folder.join("tests/c/static.c")).arg(library).arg("-o").arg(&program);
        // what the linker warns of is what glibc opens libraries for (names of hosts and users, `dlopen`)
        run(cc.args(["-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]));
        let command: Vec<_> =
            self.runner.iter().map(Path::new).chain([program.as_path()]).collect();
        let [first, rest @ ..] = &command[..] else { unreachable!("the program is there") };
        let printed = run(Command::new(first).args(rest).args(files));
        let [out, error] =
            [printed.stdout, printed.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(out.ends_with("ok\n"), "{out}{error}");
        Printed(out, error)
    }
}

/// The library of a target, as cargo builds it.
fn library_of(target: &str, linker: &str) -> PathBuf {
    let name = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    let built = &Made::get().built;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder()).args(["build", "--package", "hoist-c", "--target", target]);
    run(cargo.env(name, linker).env("CARGO_TARGET_DIR", built.parent().unwrap()));
    built.with_file_name(target).join("debug/libhoist.a")
}

fn has_target(target: &str) -> bool {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
    let root = asked.map(|asked| String::from_utf8_lossy(&asked.stdout).trim().to_owned());
    root.is_ok_and(|root| Path::new(&root).join("lib/rustlib").join(target).join("lib").exists())
}

#[test]
fn programs_of_glibc() {
    let made = Made::get();
    let room = tempfile::tempdir().unwrap();
    let machine = Machine { compiler: "gcc", runner: &[] };
    for how in ["-static", "-static-pie"] {
        let Printed(out, _) = machine.run(room.path(), &made.path.join("lib/libhoist.a"), &[how]);
        assert!(out.starts_with("2 kinds of thread-local variables\n"), "{out}");
    }
    // as pkg-config has it
    let program = room.path().join("installed");
    let mut cc = Command::new("sh");
    cc.args([
        "-c",
        "gcc -static \"$1\" $(pkg-config --static --cflags --libs hoist) -o \"$2\"",
        "-",
    ]);
    let first = room.path().join("first.c");
    fs::write(&first, "#include <hoist.h>\nint main(void) { return !*hoist_version(); }\n")
        .unwrap();
    if !is_there("pkg-config") {
        return;
    }
    run(cc.arg(first).arg(&program).env("PKG_CONFIG_PATH", made.path.join("lib/pkgconfig")));
    run(&mut Command::new(program));
}

/// musl has no room for variables of others in a program that is linked statically, and says so.
#[test]
fn programs_of_musl() {
    const TARGET: &str = "x86_64-unknown-linux-musl";
    if !is_there("musl-gcc") || !has_target(TARGET) || !cfg!(target_arch = "x86_64") {
        println!(
            "skipped: linked_statically::programs_of_musl: needs musl-gcc and Rust's libraries for it"
        );
        return;
    }
    let library = library_of(TARGET, "musl-gcc");
    let room = tempfile::tempdir().unwrap();
    let machine = Machine { compiler: "musl-gcc", runner: &[] };
    // Debian's musl-gcc leaves that out, and has no -static-pie
    let how = ["-static", "-Wl,--eh-frame-hdr"];
    let Printed(out, error) = machine.run(room.path(), &library, &how);
    assert!(out.starts_with("0 kinds of thread-local variables\n"), "{out}");
    assert_eq!(error.matches(" bytes of thread-local variables: ").count(), 2, "{error}");
    assert_eq!(error.matches("object 0: shown of 160 bytes: ").count(), 2, "{error}");
}

#[test]
fn programs_of_aarch64() {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    const COMPILER: &str = "aarch64-linux-gnu-gcc";
    if !is_there(COMPILER) || !is_there("qemu-aarch64") || !has_target(TARGET) {
        println!(
            "skipped: linked_statically::programs_of_aarch64: needs a compiler of AArch64, Rust's libraries for it and qemu-aarch64"
        );
        return;
    }
    let library = library_of(TARGET, COMPILER);
    let room = tempfile::tempdir().unwrap();
    let machine = Machine { compiler: COMPILER, runner: &["qemu-aarch64"] };
    for how in ["-static", "-static-pie"] {
        machine.run(room.path(), &library, &[how]);
    }
}
