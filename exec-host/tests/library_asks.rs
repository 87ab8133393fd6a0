//! What code of a library finds by `dlsym`, beside the same library opened by the dynamic loader.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::{LibraryLoader, NeededLibrary};
use exec_host::{Loader, Process};
use std::process::Command;
use system::libraries::{Libraries, call_ours};
use system::of_this_machine;

/// Asks by both handles for a name, and gives what the functions give: hundreds by `RTLD_DEFAULT`, ones by `RTLD_NEXT`, 9 for nothing.
const ASKER: &str = "#define _GNU_SOURCE
#include <dlfcn.h>
static long call(void *found) { return found ? ((long (*)(void))found)() : 9; }
static long ask(const char *name) {
    long all = call(dlsym(RTLD_DEFAULT, name));
    long next = call(dlsym(RTLD_NEXT, name));
    return all * 10 + next;
}
";

#[test]
fn in_the_scope_that_they_were_opened_in() {
    let libraries = Libraries::new("asks");
    let number = |name: &str, number: u32| format!("long {name}(void) {{ return {number}; }}\n");
    libraries.add("last", &(number("first", 3) + &number("only_last", 4)), &[], &[]);
    let middle = format!(
        "{ASKER}{}{}long of_middle(void) {{ return ((ask(\"first\") * 100 + ask(\"only_top\")) * 100 + ask(\"only_last\")) * 100 + ask(\"nobody\"); }}",
        number("first", 2),
        number("only_middle", 6)
    );
    libraries.add("middle", &middle, &["last"], &[]);
    let top = format!(
        "{ASKER}{}{}__thread long variable = 5; long of_middle(void);
        long probe(void) {{
            long *found = dlsym(RTLD_DEFAULT, \"variable\");
            variable = 8;
            long own = ((ask(\"first\") * 100 + ask(\"only_middle\")) * 100 + ask(\"only_last\")) * 10 + (found ? *found : 9);
            long is_said = dlsym(RTLD_NEXT, \"only_top\") == 0 && dlerror() != 0
                && dlsym(RTLD_DEFAULT, \"only_middle\") != 0 && dlerror() == 0
                && dlsym(RTLD_DEFAULT, \"nobody\") == 0 && dlerror() != 0 && dlerror() == 0;
            return (own * 2 + is_said) * 100000000 + of_middle();
        }}",
        number("first", 1), number("only_top", 7)
    );
    libraries.add("top", &top, &["middle", "last"], &[]);
    let found = libraries.together("top");
    // by default the one that is opened, next what is behind who asks
    let in_one = |all: &[i64]| all.iter().fold(0, |number, one| number * 100 + one);
    let [top, middle] = [in_one(&[12, 66, 44]) * 10 + 8, in_one(&[13, 79, 44, 99])];
    // as a `long` has it, which is of 32 bits where addresses are
    let expected = (top * 2 + 1) * 100_000_000 + middle;
    assert_eq!(found, expected as isize as i64);
}

/// A wrapper of a function of the C library finds the one behind it; versions too.
#[cfg(target_env = "gnu")]
#[test]
fn the_next_of_the_c_library() {
    let libraries = Libraries::new("asks-next");
    let source = "#define _GNU_SOURCE
        #include <dlfcn.h>
        #include <string.h>
        long getpid(void) { long (*next)(void) = dlsym(RTLD_NEXT, \"getpid\"); return next && next != getpid ? -1 : 3; }
        long probe(void) {
            size_t (*length)(const char *) = dlsym(RTLD_NEXT, \"strlen\");
            void *(*all)(const char *) = dlsym(RTLD_DEFAULT, \"strdup\");
            int none = dlvsym(RTLD_NEXT, \"strlen\", \"HOIST_1\") == 0 && dlvsym(RTLD_DEFAULT, \"strlen\", \"HOIST_1\") == 0;
            return getpid() * 1000 + length(\"abc\") * 100 + (all != 0) * 10 + none;
        }";
    libraries.add("wraps", source, &[], &["-Wl,-Bsymbolic"]);
    assert_eq!(libraries.probe("wraps"), -1000 + 300 + 10 + 1);
}

/// A library that is there already is in the scope of each that is opened with it, as long as that is there.
#[test]
fn scopes_come_and_go() {
    let libraries = Libraries::new("asks-scopes");
    let source = format!("{ASKER}long probe(void) {{ return ask(\"of_user\"); }}");
    libraries.add("base", &source, &[], &[]);
    libraries.add("user", "long of_user(void) { return 5; }", &["base"], &[]);
    let base = libraries.ours("base").unwrap();
    assert_eq!(call_ours(&base), 99);
    let bytes = std::fs::read(libraries.path("user")).unwrap();
    // SAFETY: the tests' libraries do no harm.
    let user = unsafe { LibraryLoader::new().library(&base).open(bytes) }.unwrap();
    assert_eq!(call_ours(&base), 59, "by default; it was loaded for itself");
    drop(user);
    assert_eq!(call_ours(&base), 99);
}

/// D's runtime looks for who registers among the dynamic loader's libraries, and ends the process if it is none of them.
#[test]
fn who_wants_a_handle_of_the_dynamic_loader() {
    let libraries = Libraries::new("asks-d");
    let registry = "void _d_dso_registry(void *data) { (void)data; }\n";
    let module = "void _d_dso_registry(void *);
        __attribute__((constructor)) static void begin(void) { _d_dso_registry(0); }
        long probe(void) { return 7; }\n";
    libraries.add("runtime", registry, &[], &[]);
    libraries.add("module", module, &["runtime"], &[]);
    let error = libraries.ours("module").unwrap_err().to_string();
    assert!(error.contains("_d_dso_registry"), "{error}");
    let bytes = std::fs::read(libraries.path("module")).unwrap();
    let source = |name: elf_core::Name<'_>| {
        let bytes = std::fs::read(libraries.folder.path().join(name.to_str()?)).ok()?;
        Some(NeededLibrary::bytes(bytes))
    };
    // SAFETY: the tests' libraries do no harm.
    let lazily = unsafe { LibraryLoader::new().lazy().needed(source).open(bytes) };
    let lazily = lazily.unwrap_err().to_string();
    assert!(lazily.contains("_d_dso_registry"), "it cannot be put off: {lazily}");
    let object = libraries.folder.path().join("module.o");
    let mut compiler = Command::new(of_this_machine("gcc"));
    let compiler = compiler.args(["-c", "-o"]).arg(&object);
    assert!(compiler.arg(object.with_extension("c")).status().unwrap().success());
    let object = std::fs::read(object).unwrap();
    let mut runtime = Process::new();
    // SAFETY: as above.
    unsafe { runtime.open(libraries.path("runtime")) }.unwrap();
    let refused = Loader::new().load([&object[..]], runtime).unwrap_err().to_string();
    assert!(refused.contains("_d_dso_registry") && refused.contains("runtime"), "{refused}");
    libraries.add("both", &format!("{registry}{module}"), &[], &[]);
    assert_eq!(libraries.probe("both"), 7);
}
