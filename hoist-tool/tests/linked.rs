//! `hoist run` with shared libraries, and `hoist exec`: linked files.
#![cfg(test)]
#![cfg(all(feature = "host", target_arch = "x86_64"))]

use std::path::Path;
use std::process::{Command, Output};

fn hoist(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hoist")).args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_function_of_zlib() {
    if !Path::new("/lib/x86_64-linux-gnu/libz.so.1").exists() {
        println!("skipped: a_function_of_zlib: needs libz.so.1");
        return;
    }
    let version = text(&hoist(&["run", "libz.so.1", "zlibVersion", "--ret", "str"]));
    assert!(version.starts_with("1."), "{version}");
    let words = ["run", "libz.so.1", "crc32", "u64:0", "str:123456789", "u32:9", "--ret", "u64"];
    assert_eq!(text(&hoist(&words)), "3421780262\n");
    let refused = hoist(&["run", "libc.so.6", "getpid", "--ret", "i32"]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("is a part of the dynamic loader"), "{words}");
    let refused = hoist(&["run", "--limit", "4096", "libz.so.1", "zlibVersion", "--ret", "str"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).ends_with("is larger than the limit of 0x1000\n"),
        "{refused:?}"
    );
    let refused = hoist(&["run", "libz.so.1", "no_such"]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(
        words.contains("libz.so.1: neither the library nor what it needs defines no_such"),
        "{words}"
    );
}

/// What nobody has matters when it is called.
#[test]
fn functions_on_first_call() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        "long nobody(void); long answer(void) { return 42; } long calls(void) { return nobody(); }";
    std::fs::write(folder.path().join("lazy.c"), source).unwrap();
    let library = folder.path().join("lazy.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-fPIC", "-shared", "-Wl,-z,lazy", "-o"]).arg(&library);
    assert!(compiler.arg(folder.path().join("lazy.c")).status().unwrap().success());
    let library = library.to_str().unwrap();
    let refused = hoist(&["run", library, "answer"]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("symbol nobody is undefined"), "{words}");
    assert_eq!(text(&hoist(&["run", "--lazy", library, "answer", "--ret", "i64"])), "42\n");
    let ended = hoist(&["run", "--lazy", library, "calls", "--ret", "i64"]);
    assert_eq!(ended.status.code(), Some(127), "{ended:?}");
}

/// What it has registered for the end of the process finds it there.
#[test]
fn a_library_that_stays() {
    if !Path::new("/usr/lib/x86_64-linux-gnu/libssl.so.3").exists() {
        println!("skipped: a_library_that_stays: needs libssl.so.3");
        return;
    }
    let words = ["run", "libssl.so.3", "OPENSSL_init_ssl", "u64:0", "u64:0", "--ret", "i32"];
    assert_eq!(text(&hoist(&words)), "1\n");
}

const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
static __thread int variable = 5;
__attribute__((constructor)) static void first(void) { variable++; }
int main(int argc, char **argv, char **envp) {
    const char *given = getenv("HOIST_GIVEN");
    struct sigaction action;
    for (int signal = 1; signal < 32; signal++)
        // what is ignored stays so, but what this process itself ignores
        if (!sigaction(signal, 0, &action) && action.sa_handler != SIG_DFL
            && (action.sa_handler != SIG_IGN || signal == SIGPIPE)) return signal;
    if (getauxval(AT_PAGESZ) != sysconf(_SC_PAGESIZE) || getauxval(AT_UID) != getuid()) return 100;
    char *text = malloc(100);
    strcpy(text, argv[argc - 1]);
    printf("%d %s %s %d\n", argc, text, given ? given : "-", variable);
    return 7;
}
"#;

/// Runs the program as a compiler links it in each way that it can: how many there are.
fn programs_of(compiler: &str, source: &Path) -> usize {
    let program = source.with_file_name("program");
    let mut ways = 0;
    for flags in [&["-static"][..], &["-static-pie"], &["-pie"], &["-no-pie"]] {
        let mut command = Command::new(compiler);
        let built = command.args(flags).arg("-o").arg(&program).arg(source).output().unwrap();
        if !built.status.success() {
            println!("{compiler} cannot link {flags:?}");
            continue;
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.arg("exec").arg(&program).args(["one", "-x"]).env("HOIST_GIVEN", "given");
        let output = command.output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(stdout, "3 -x given 6\n", "{compiler} {flags:?}: {output:?}");
        assert_eq!(output.status.code(), Some(7), "{compiler} {flags:?}");
        ways += 1;
    }
    ways
}

/// The same programs with another C library, which has a dynamic loader of its own.
#[test]
fn programs_of_musl() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        println!("skipped: programs_of_musl: needs musl-gcc");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    assert!(programs_of("musl-gcc", &source) > 1);
}

/// Static, static PIE and dynamic programs: arguments, environment, variables of threads, the exit status.
#[test]
fn programs() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    assert!(programs_of("gcc", &source) > 0);
    for (flag, words) in [
        ("-Wl,-z,execstack", "a program that wants to execute its stack"),
        ("-Wl,--omagic", "writable and executable"),
    ] {
        let program = folder.path().join("refused");
        let mut gcc = Command::new("gcc");
        let built = gcc.args(["-static", flag, "-o"]).arg(&program).arg(&source).output().unwrap();
        if built.status.success() {
            let refused = hoist(&["exec", program.to_str().unwrap()]);
            let refused = String::from_utf8_lossy(&refused.stderr);
            assert!(refused.contains(words), "{flag}: {refused}");
        }
    }
    for program in ["/bin/echo", "/bin/ls"] {
        let ours = text(&hoist(&["exec", program, "/lib"]));
        let theirs = Command::new(program).arg("/lib").output().unwrap();
        assert_eq!(ours.as_bytes(), theirs.stdout, "{program}");
    }
    let ours = text(&hoist(&["exec", "/bin/echo", "--", "-n", "--"]));
    assert_eq!(ours, "-- -n --\n", "what is behind the program is its own");
    for device in ["/dev/zero", "/dev/null"] {
        let program = folder.path().join("interpreted");
        let mut gcc = Command::new("gcc");
        gcc.arg(format!("-Wl,--dynamic-linker={device}")).arg("-o").arg(&program).arg(&source);
        assert!(gcc.status().unwrap().success());
        let refused = hoist(&["exec", program.to_str().unwrap()]);
        let refused = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.contains(&format!("{device}: no regular file")), "{refused}");
    }
    let refused = hoist(&["exec", "--limit", "4096", "/bin/echo"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).ends_with("is larger than the limit of 0x1000\n"),
        "{refused:?}"
    );
    let refused = hoist(&["exec", source.to_str().unwrap()]);
    let told = format!("hoist: {}: not an ELF file\n", source.display());
    assert_eq!(String::from_utf8_lossy(&refused.stderr), told, "and that once");
}
