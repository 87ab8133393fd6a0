//! Programs of this machine in the place of a process of the tests: static, static PIE and dynamic ones.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::program::{LoadedProgram, StartBlock};
use std::ffi::CString;
use std::process::Command;
use system::{is_emulated, itself, of_this_machine};

/// The program that a child process is to become.
const FILE: &str = "HOIST_PROGRAM";
/// What the child says first: the test harness speaks before.
const BEGIN: &str = "THE PROGRAM:";

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>
static __thread int variable = 5;
static int one(void) { return 3; }
static int (*find(void))(void) { return one; }
extern int chosen(void) __attribute__((ifunc("find")));
static void last(void) { printf("last\n"); }
__attribute__((constructor)) static void first(void) { variable++; }
int main(int argc, char **argv, char **envp) {
    if (getauxval(AT_PAGESZ) != sysconf(_SC_PAGESIZE) || getauxval(AT_UID) != getuid()) return 100;
    if (getauxval(AT_ENTRY) == 0 || !getauxval(AT_RANDOM)) return 101;
    char *end = argv[0], title[17] = "";
    for (char **next = argv; next < argv + argc; end = *next + strlen(*next) + 1, next++)
        if (*next != end) return 102;
    if (envp[0] != end || prctl(PR_GET_NAME, title) || strcmp(title, "program")) return 103;
    char *text = malloc(100000);
    strcpy(text, argv[argc - 1]);
    atexit(last);
    printf("%d %s %s %d %d\n", argc, text, getenv("HOIST_GIVEN"), variable, chosen());
    return 7;
}
"#;

/// The part of the child process.
#[test]
fn child() {
    let Ok(path) = std::env::var(FILE) else { return };
    let program = LoadedProgram::load(&std::fs::read(&path).unwrap()).unwrap();
    let arguments = [path.as_str(), "one", "-x"].map(|word| CString::new(word).unwrap());
    let environment = StartBlock::environment_of_process();
    println!("\n{BEGIN}");
    // SAFETY: this process is for the program; the harness waits.
    unsafe { program.start(&arguments, &environment) }.unwrap();
}

#[test]
fn programs_of_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let (program, mut kinds) = (folder.path().join("program"), Vec::new());
    for flags in ["-static", "-static-pie", "-pie", "-no-pie"] {
        // the dynamic loader is the emulator's, not where the program says
        if is_emulated() && !flags.starts_with("-static") {
            println!("an emulator has the dynamic loader of another machine: no {flags}");
            continue;
        }
        let mut command = Command::new(of_this_machine("gcc"));
        command.args(["-O1", flags, "-o"]).arg(&program).arg(&source);
        if !command.output().unwrap().status.success() {
            println!("the compiler cannot link {flags}");
            continue;
        }
        let mut child = itself();
        child.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
        let output = child.env(FILE, &program).env("HOIST_GIVEN", "given").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let told = text.split_once(BEGIN).map(|(_, told)| told);
        assert_eq!(told, Some("\n3 -x given 6 3\nlast\n"), "{flags}: {output:?}");
        assert_eq!(output.status.code(), Some(7), "{flags}");
        kinds.push(flags);
    }
    println!("programs: {}", kinds.join(", "));
    assert!(kinds.contains(&"-static"));
}
