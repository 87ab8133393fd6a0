//! Programs and their arguments, options anywhere among words, names that are defined, languages: as they are typed.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn hoist(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(words).current_dir(folder).env("HOIST_CACHE", "off").env("COLOUR", "blue");
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with objects of these sources; nothing if there is no compiler.
fn folder(test: &str, sources: &[(&str, &str)]) -> Option<TempDir> {
    let folder = TempDir::new().unwrap();
    for (name, source) in sources {
        let path = folder.path().join(name);
        fs::write(&path, source).unwrap();
        let mut command = Command::new("cc");
        command.args(["-O1", "-fPIC", "-c", name]).current_dir(folder.path());
        if !command.output().is_ok_and(|output| output.status.success()) {
            println!("skipped: {test}: needs cc");
            return None;
        }
    }
    Some(folder)
}

const PROGRAM: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    static int started;
    __attribute__((constructor)) static void start(int argc, char **argv) { started = argc; }
    __attribute__((destructor)) static void end(void) { puts("destructor"); }
    static void late(void) { puts("atexit"); }
    int main(int argc, char **argv, char **envp) {
        atexit(late);
        printf("%d %d %s", started == argc, argc, argv[0]);
        for (int at = 1; at < argc; at++) printf(" %s", argv[at]);
        printf(" %s %d\n", getenv("COLOUR"), envp == argv + argc + 1);
        if (argc > 3) exit(9);
        return 40 + argc;
    }
"#;

#[test]
fn a_program_has_arguments_and_a_status() {
    let Some(folder) = folder("a_program_has_arguments_and_a_status", &[("program.c", PROGRAM)])
    else {
        return;
    };
    let folder = folder.path();
    for (words, status, line) in [
        (&["run", "program.o", "main", "--", "one", "-x"][..], 43, "1 3 program.o one -x blue 1"),
        (&["run", "program.o", "main"], 41, "1 1 program.o blue 1"),
        (&["run", "program.o"], 41, "1 1 program.o blue 1"),
        (&["run", "./program.o", "--", "one"], 42, "1 2 ./program.o one blue 1"),
        (&["run", "program.o", "main", "--", "1", "2", "3"], 9, "1 4 program.o 1 2 3 blue 1"),
    ] {
        let output = hoist(folder, words);
        assert_eq!(output.status.code(), Some(status));
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, format!("{line}\natexit\ndestructor\n"));
    }
    let linked =
        Command::new("cc").args(["program.o", "-o", "linked"]).current_dir(folder).output();
    if linked.is_ok_and(|output| output.status.success()) {
        let mut native = Command::new("./linked");
        native.args(["one", "-x"]).current_dir(folder).env("COLOUR", "blue");
        let native = native.output().unwrap();
        let said = String::from_utf8_lossy(&native.stdout).replace("./linked", "program.o");
        let ours = hoist(folder, &["run", "program.o", "main", "--", "one", "-x"]);
        assert_eq!((native.status.code(), said.into_bytes()), (Some(43), ours.stdout));
    }
    let refused = hoist(folder, &["run", "program.o", "other", "--", "one"]);
    assert_eq!(refused.status.code(), Some(1));
}

/// Its objects are mapped while it runs, and nobody looks at them: a program that builds itself anew may make them empty.
#[test]
fn a_program_may_change_its_files() {
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        static __thread int own = 5;
        int shown(void) { return own; }
        static void late(void) { puts("atexit"); }
        int main(int argc, char **argv) {
            Dl_info info = { 0 };
            atexit(late);
            if (argc != 2 || truncate(argv[1], 0)) return 1;
            int (*found)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "shown");
            if (!found || found() != 5 || !dladdr((void *)found, &info)) return 2;
            if (!dlopen("libm.so.6", RTLD_NOW)) return 3;
            return system("exit 7") >> 8;
        }
    "#;
    let Some(folder) = folder("a_program_may_change_its_files", &[("program.c", source)]) else {
        return;
    };
    let folder = folder.path();
    let object = fs::read(folder.join("program.o")).unwrap();
    let mut command = Command::new("ar");
    command.args(["rcs", "program.a", "program.o"]).current_dir(folder);
    text(&command.output().unwrap());
    for file in ["program.o", "program.a"] {
        fs::write(folder.join("program.o"), &object).unwrap();
        let output = hoist(folder, &["run", file, "main", "--", file]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{file}: {:?} {errors}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "atexit\n");
        assert_eq!(fs::metadata(folder.join(file)).unwrap().len(), 0);
    }
}

#[test]
fn options_stand_anywhere_among_words() {
    let source = "int twice(int x) { return 2 * x; } extern char far_away[]; char *where(void) { return far_away; }";
    let Some(folder) = folder("options_stand_anywhere_among_words", &[("twice.c", source)]) else {
        return;
    };
    let folder = folder.path();
    let words = ["--define", "far_away=0x1234", "--lib", "libm.so.6", "--ret", "i32"];
    for at in 0..3 {
        let mut all = vec!["run"];
        let positional = ["twice.o", "twice", "i32:21"];
        all.extend(&positional[..at]);
        all.extend(words);
        all.extend(&positional[at..]);
        assert_eq!(text(&hoist(folder, &all)), "42\n", "{all:?}");
    }
    let mixed = ["run", "twice.o", "--ret", "ptr", "where", "--define", "far_away=0x1234"];
    assert_eq!(text(&hoist(folder, &mixed)), "0x1234\n");
    assert_eq!(hoist(folder, &["run", "twice.o"]).status.code(), Some(1));
}

#[test]
fn archives_in_groups_and_undefined_names() {
    let sources = [
        ("a.c", "int b(void); int a(void) { return b() + 1; } int a2(void) { return 3; }"),
        ("b.c", "int a2(void), c(void); int b(void) { return a2() + c(); }"),
        ("c.c", "int c(void) { return 10; }"),
        ("top.c", "int a(void); int top(void) { return a(); }"),
        ("alone.c", "int nobody(void); int alone(void) { return nobody(); }"),
    ];
    let Some(folder) = folder("archives_in_groups_and_undefined_names", &sources) else { return };
    let folder = folder.path();
    for name in ["a", "b", "c"] {
        let (archive, member) = (format!("lib{name}.a"), format!("{name}.o"));
        let made = Command::new("ar").args(["rc", &archive, &member]).current_dir(folder).status();
        if !made.is_ok_and(|status| status.success()) {
            println!("skipped: archives_in_groups_and_undefined_names: needs ar");
            return;
        }
    }
    let words = "run --ret i32 libc.a --start-group libb.a top.o liba.a --end-group top";
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(text(&hoist(folder, &words)), "14\n");
    let link = |words: &[&str]| {
        hoist(folder, &[&["link", "--base", "0x400000", "-o", "image"], words].concat())
    };
    assert!(!link(&["alone.o"]).status.success());
    text(&link(&["alone.o", "--allow-undefined"]));
    assert!(!fs::read(folder.join("image")).unwrap().is_empty());
    text(&link(&["alone.o", "--allow-undefined", "-u", "c", "libc.a"]));
}

/// GCC writes instructions for the inner function on the stack; what the linker makes of this has a stack for that.
#[test]
fn functions_inside_of_functions_are_refused_by_name() {
    let nested = "static int twice(int (*of)(int)) { return of(1) + of(2); }
        int nested(int k) { int by(int x) { return x * k; } return twice(by); }";
    let test = "functions_inside_of_functions_are_refused_by_name";
    let Some(folder) = folder(test, &[("nested.c", nested)]) else { return };
    let output = hoist(folder.path(), &["run", "nested.o", "nested", "i32:3", "--ret", "i32"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "hoist: nested.o: section .note.GNU-stack: code that wants to execute the stack\n"
    );
}

/// Makes a library of the object of this name.
fn link(folder: &Path, name: &str) {
    let (object, library) = (format!("{name}.o"), format!("lib{name}.so"));
    let mut link = Command::new("cc");
    link.args(["-shared", "-o", &library, &object]).current_dir(folder);
    assert!(link.status().unwrap().success());
}

#[test]
fn libraries_of_which_nothing_is_used_stay_open() {
    let sources = [
        (
            "apart.c",
            "#include <unistd.h>\n__attribute__((destructor)) static void end(void) { write(1, \"closed\\n\", 7); }",
        ),
        ("ask.c", "#include <unistd.h>\nvoid ask(void) { write(1, \"called\\n\", 7); }"),
    ];
    let Some(folder) = folder("libraries_of_which_nothing_is_used_stay_open", &sources) else {
        return;
    };
    link(folder.path(), "apart");
    let output = hoist(folder.path(), &["run", "ask.o", "--lib", "./libapart.so", "ask"]);
    assert_eq!(text(&output), "called\nclosed\n");
}

/// The library's destructor waits for the thread, which runs on behind the destructors of its own object.
#[test]
fn threads_of_a_function_run_to_the_end() {
    let sources = [
        (
            "late.c",
            "#include <stdatomic.h>\n#include <unistd.h>\natomic_int turns, ended;
             __attribute__((destructor)) static void end(void) {
                 for (int from = turns; turns < from + 1000;) usleep(1000);
                 if (ended) write(1, \"late\\n\", 5);
             }",
        ),
        (
            "thread.c",
            "#include <pthread.h>\n#include <stdatomic.h>\nextern atomic_int turns, ended;
             static void *turn(void *nothing) { for (;;) turns++; }
             __attribute__((destructor)) static void end(void) { ended = 1; }
             int start(void) { pthread_t thread; return pthread_create(&thread, 0, turn, 0) + 7; }",
        ),
    ];
    let Some(folder) = folder("threads_of_a_function_run_to_the_end", &sources) else { return };
    let folder = folder.path();
    link(folder, "late");
    let words = ["run", "thread.o", "--lib", "./liblate.so", "start", "--ret", "i32"];
    assert_eq!(text(&hoist(folder, &words)), "7\nlate\n");
    let words = ["jit", "thread.c", "--lib", "./liblate.so", "start", "--ret", "i32"];
    assert_eq!(text(&hoist(folder, &words)), "7\nlate\n");
}

#[test]
fn libraries_are_opened_in_any_order() {
    let sources = [
        ("user.c", "extern int provided; int *where(void) { return &provided; }"),
        ("provider.c", "int provided = 42;"),
        ("ask.c", "int *where(void); int ask(void) { return *where(); }"),
    ];
    let Some(folder) = folder("libraries_are_opened_in_any_order", &sources) else { return };
    let folder = folder.path();
    for name in ["user", "provider"] {
        link(folder, name);
    }
    let words = [
        "run",
        "ask.o",
        "--lib",
        "./libuser.so",
        "--lib",
        "./libprovider.so",
        "ask",
        "--ret",
        "i32",
    ];
    assert_eq!(text(&hoist(folder, &words)), "42\n");
    let missed = hoist(folder, &["run", "ask.o", "--lib", "./libuser.so", "ask", "--ret", "i32"]);
    let said = String::from_utf8_lossy(&missed.stderr);
    assert!(missed.status.code() == Some(1) && said.starts_with("hoist: ./libuser.so: "), "{said}");
}

#[test]
fn languages_of_jit() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let sources = [
        (
            "code.cpp",
            "#include <vector>\n#include <string>\nextern \"C\" int sum(int n) { std::vector<std::string> v; while (n--) v.push_back(\"ab\"); int s = 0; for (auto &x : v) s += x.size(); return s; }",
            "g++",
            &["sum", "i32:21"],
        ),
        (
            "code.f90",
            "integer(4) function f(n) bind(c)\n use iso_c_binding\n integer(c_int), value :: n\n character(len=8) :: s\n write(s, '(I4)') n\n read(s, *) f\n f = f * 2\nend function\n",
            "gfortran",
            &["f", "i32:21"],
        ),
        (
            "code.S",
            "#define ANSWER 42\n.globl f\nf:\n#ifdef __x86_64__\n movl $ANSWER, %eax\n ret\n#else\n mov w0, ANSWER\n ret\n#endif\n.section .note.GNU-stack,\"\",%progbits\n",
            "gcc",
            &["f", "i32:1"],
        ),
    ];
    for (name, source, compiler, words) in sources {
        fs::write(folder.join(name), source).unwrap();
        if Command::new(compiler).arg("--version").output().is_err() {
            println!("skipped: languages_of_jit: needs {compiler}");
            continue;
        }
        let all = [&["jit", "--compiler", "gcc", "--ret", "i32", name], &words[..]].concat();
        assert_eq!(text(&hoist(folder, &all)), "42\n", "{name}");
    }
    let zig = "threadlocal var t: u32 = 2;\nconst other = @import(\"other.zig\");\nexport fn f(x: u32) u32 { t += 1; return x * other.factor + t; }\n";
    fs::write(folder.join("code.zig"), zig).unwrap();
    fs::write(folder.join("other.zig"), "pub const factor = 3;\n").unwrap();
    let ways = [("zig", &["version"][..]), ("python3", &["-m", "ziglang", "version"])];
    let answers = |(program, words): &(&str, &[&str])| {
        Command::new(program).args(*words).output().is_ok_and(|output| output.status.success())
    };
    if ways.iter().any(answers) {
        let words = ["jit", "code.zig", "f", "u32:13", "--ret", "u32"];
        assert_eq!(text(&hoist(folder, &words)), "42\n");
        fs::write(folder.join("other.zig"), "pub const factor = 4;\n").unwrap();
        assert_eq!(text(&hoist(folder, &words)), "55\n");
    } else {
        println!("skipped: languages_of_jit: needs zig");
    }
    fs::write(folder.join("one.c"), "int two(int); int one(int x) { return two(x) + 1; }").unwrap();
    fs::write(folder.join("two.c"), "int two(int x) { return 2 * x; }").unwrap();
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("skipped: languages_of_jit: needs gcc");
        return;
    }
    let words = ["jit", "one.c", "--compiler", "gcc", "two.c", "one", "i32:20", "--ret", "i32"];
    assert_eq!(text(&hoist(folder, &words)), "41\n");
    let words = ["jit", "two.c", "--compiler", "rustc", "two", "i32:20"];
    let refused = hoist(folder, &words);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(
        (refused.status.code(), &*said),
        (Some(1), "hoist: two.c: this compiler has not its language\n")
    );
}

/// Free Pascal's `main` is for its start file to call: without what that tells the runtime it crashes.
#[test]
fn a_program_of_free_pascal() {
    let source =
        "int PASCALMAIN(void) { return 7; } int main(void) __attribute__((alias(\"PASCALMAIN\")));";
    let own = "int PASCALMAIN(void) { return 7; } int main(void) { return PASCALMAIN(); }";
    let Some(folder) = folder("a_program_of_free_pascal", &[("pascal.c", source), ("own.c", own)])
    else {
        return;
    };
    let output = hoist(folder.path(), &["run", "pascal.o", "main"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`main` of Free Pascal is called by its start file (prt0.o)"), "{said}");
    assert_eq!(hoist(folder.path(), &["run", "own.o", "main"]).status.code(), Some(7));
}
