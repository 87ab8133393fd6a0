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

use exec_host::program::{LoadedProgram, StartBlock, set_executable};
use std::ffi::CString;
use std::process::Command;
use system::{is_emulated, itself, of_this_machine};

/// The program that a child process is to become.
const FILE: &str = "HOIST_PROGRAM";
/// What the child says first: the test harness speaks before.
const BEGIN: &str = "THE PROGRAM:";

/// Set if the process is to be of that file.
const OF_FILE: &str = "HOIST_OF_FILE";
/// What the child says if it is not.
const NOT_TOLD: &str = "the kernel refuses it: ";

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

/// Goes down its stack until there is no more, and says whether that was as much as it may have.
const DEEP: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
static uintptr_t top;
static struct rlimit limit;
static void at_end(int signal, siginfo_t *info, void *context) {
    long used = (long)(top - (uintptr_t)info->si_addr), room = (long)limit.rlim_cur;
    char words[99];
    free(malloc(100));
    int size = snprintf(words, sizeof words, "all %d\n", used > room - 300000 && used < room + 1100000);
    _exit(write(1, words, size) == size ? 9 : 1);
}
static long down(long by) {
    volatile char frame[2000];
    frame[by % 2000] = 1;
    return down(by + 1) + frame[by % 2000];
}
int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = at_end, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(100000), .ss_size = 100000};
    pthread_attr_t attributes;
    void *start;
    size_t size;
    top = (uintptr_t)&stack;
    if (sigaction(SIGSEGV, &action, 0) || sigaltstack(&stack, 0) || getrlimit(RLIMIT_STACK, &limit)) return 1;
    if (pthread_getattr_np(pthread_self(), &attributes)) return 2;
    if (pthread_attr_getstack(&attributes, &start, &size) || size > limit.rlim_cur) return 3;
    printf("%d\n", top - (uintptr_t)start > limit.rlim_cur - 300000 && top - (uintptr_t)start <= size);
    fflush(stdout);
    return (int)down(argc);
}
"#;

/// Says what the system says of the process.
const DESCRIBED: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
static int read_all(const char *path, char *text, int room) {
    int file = open(path, O_RDONLY), size = 0;
    for (int more; (more = read(file, text + size, room - size)) > 0;) size += more;
    return size;
}
int main(int argc, char **argv, char **envp) {
    static char text[1 << 20];
    int size = read_all("/proc/self/cmdline", text, sizeof text);
    printf("%d ", size == argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0] && !memcmp(text, argv[0], size));
    size = read_all("/proc/self/environ", text, sizeof text);
    printf("%d ", size > 0 && !memcmp(text, envp[0], size));
    size = read_all("/proc/self/auxv", text, sizeof text);
    unsigned long *words = (unsigned long *)text, entry = 0;
    for (int at = 0; at * (int)sizeof *words < size && words[at]; at += 2)
        if (words[at] == AT_ENTRY) entry = words[at + 1];
    printf("%d ", entry && entry == getauxval(AT_ENTRY));
    size = readlink("/proc/self/exe", text, sizeof text);
    printf("%d\n", size == (int)strlen(argv[0]) && !memcmp(text, argv[0], size));
    return 0;
}
"#;

/// The part of the child process.
#[test]
fn child() {
    let Ok(path) = std::env::var(FILE) else { return };
    let program = LoadedProgram::load(&std::fs::read(&path).unwrap()).unwrap();
    let arguments = [path.as_str(), "one", "-x"].map(|word| CString::new(word).unwrap());
    let environment = StartBlock::environment_of_process();
    if std::env::var_os(OF_FILE).is_some() {
        // SAFETY: the harness waits.
        let told = unsafe { set_executable(&path) };
        println!("{}", told.map_or_else(|error| format!("{NOT_TOLD}{error}"), |()| String::new()));
    }
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

/// Where the program's words are, and, where it may be told, which file the process is of: as for one that was started by `execve`.
#[test]
fn what_the_system_says_of_the_process() {
    if is_emulated() {
        println!("an emulator says it itself");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("described.c"), folder.path().join("described"));
    std::fs::write(&source, DESCRIBED).unwrap();
    let mut command = Command::new(of_this_machine("gcc"));
    command.args(["-O1", "-o"]).arg(&program).arg(&source);
    assert!(command.status().unwrap().success());
    let program = program.canonicalize().unwrap();
    let mut child = itself();
    child.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
    child.env(FILE, &program).env(OF_FILE, "yes");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (before, told) = text.split_once(BEGIN).unwrap_or_default();
    let refusal = before.lines().find(|line| line.starts_with(NOT_TOLD));
    if let Some(refusal) = refusal {
        println!("{refusal}");
    }
    let wanted = if refusal.is_some() { "\n1 1 1 0\n" } else { "\n1 1 1 1\n" };
    assert_eq!(told, wanted, "{output:?}");
}

/// As large as the system has it for programs, and not larger: beyond it is a signal, not somebody's memory.
#[test]
fn the_stack_has_an_end() {
    if is_emulated() {
        println!("an emulator has limits and mappings of its own");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("deep.c"), folder.path().join("deep"));
    std::fs::write(&source, DEEP).unwrap();
    let mut command = Command::new(of_this_machine("gcc"));
    command.args(["-O0", "-pthread", "-o"]).arg(&program).arg(&source);
    assert!(command.status().unwrap().success());
    for limit in [1 << 10, 8 << 10, 40 << 10] {
        let mut child = Command::new("sh");
        child.args(["-c", &format!("ulimit -s {limit} && exec \"$@\""), "sh"]);
        child.arg(itself().get_program());
        child.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
        let output = child.env(FILE, &program).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let told = text.split_once(BEGIN).map(|(_, told)| told);
        assert_eq!(told, Some("\n1\nall 1\n"), "{limit}: {output:?}");
        assert_eq!(output.status.code(), Some(9), "{limit}");
    }
}
