//! What the dynamic loader finds and opens for libraries out of bytes: as for its own.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use elf_core::Name;
use exec_host::library::{LibraryLoader, NeededLibrary};
use std::path::Path;
use system::libraries::{Libraries, call_ours, of_file};

fn move_to(libraries: &Libraries, name: &str, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::rename(libraries.path(name), folder.join(libraries.soname(name))).unwrap();
}

/// Files for other machines are passed over, and folders of better processors are looked into first.
#[test]
fn folders_are_searched_by_the_dynamic_loader() {
    let libraries = Libraries::new("searched");
    let source = "long value(void); long probe(void) { return value(); }";
    let of = |number: u32| format!("long value(void) {{ return {number}; }}");
    let [first, second] = ["first", "second"].map(|name| libraries.folder.path().join(name));
    libraries.add_plain("value", &of(1), &[], &[]);
    let rpath = "-Wl,-rpath,$ORIGIN/first:$ORIGIN/second";
    libraries.add_plain("top", source, &["value"], &[rpath]);
    let mut foreign = std::fs::read(libraries.path("value")).unwrap();
    // e_machine
    foreign[18] ^= 0xff;
    std::fs::create_dir_all(&first).unwrap();
    std::fs::write(first.join(libraries.soname("value")), foreign).unwrap();
    move_to(&libraries, "value", &second);
    assert_eq!(of_file(&libraries, "top"), (1, 1));
    for folder in ["x86-64-v2", "power9", "z13"] {
        libraries.add_plain("value", &of(2), &[], &[]);
        move_to(&libraries, "value", &second.join("glibc-hwcaps").join(folder));
    }
    let (ours, theirs) = of_file(&libraries, "top");
    assert_eq!(ours, theirs);
}

/// What is needed of folders that are another one's to say (`DT_RPATH`) is found without a name of its own; and a path may begin with `$ORIGIN`.
#[test]
fn names_and_paths() {
    let libraries = Libraries::new("paths");
    let below = libraries.folder.path().join("below");
    let no_name = "-Wl,-soname,";
    libraries.add_plain("leaf", "long leaf(void) { return 6; }", &[], &[]);
    libraries.add_plain(
        "middle",
        "long leaf(void); long middle(void) { return leaf() * 10; }",
        &["leaf"],
        &[],
    );
    let upper = "long middle(void); long probe(void) { return middle() + 1; }";
    let options = ["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/below"];
    libraries.add_plain("upper", upper, &["middle"], &options);
    // the same library, which says no name
    libraries.add_plain("leaf", "long leaf(void) { return 6; }", &[], &[no_name]);
    move_to(&libraries, "leaf", &below);
    move_to(&libraries, "middle", &below);
    assert_eq!(of_file(&libraries, "upper"), (61, 61));
    let origin = format!("-Wl,-soname,$ORIGIN/{}", libraries.soname("here"));
    libraries.add_plain("here", "long here(void) { return 8; }", &[], &[&origin]);
    libraries.add_plain(
        "asks",
        "long here(void); long probe(void) { return here(); }",
        &["here"],
        &[],
    );
    assert_eq!(of_file(&libraries, "asks"), (8, 8));
}

/// Several that are left to the dynamic loader look into each other, and are in its order.
#[test]
fn several_at_once() {
    let libraries = Libraries::new("several");
    libraries.add("asks", "long f(void) { return 1; } long asks(void) { return f(); }", &[], &[]);
    libraries.add("has", "long f(void) { return 2; }", &[], &[]);
    let top = "long f(void); long asks(void); long probe(void) { return 10 * asks() + f(); }";
    libraries.add("top", top, &["has", "asks"], &[]);
    assert_eq!(of_file(&libraries, "top"), (22, 22));
    for name in ["lower", "upper", "lower"] {
        let needed: &[&str] = match name {
            "upper" => &["lower"],
            _ if libraries.path("upper").exists() => &["upper"],
            _ => &[],
        };
        libraries.add_telling(name, needed);
    }
    libraries.add_telling("circle", &["lower", "upper"]);
    let _ = of_file(&libraries, "circle");
    let told = libraries.told();
    let (ours, theirs) = told.split_at(told.len() / 2);
    assert_eq!(ours, theirs);
}

/// What code opens by name is looked for in the folders that its library says.
#[test]
fn libraries_that_open_others() {
    let libraries = Libraries::new("opens");
    let below = libraries.folder.path().join("below");
    libraries.add_plain("plug", "long plug(void) { return 33; }", &[], &[]);
    let name = libraries.soname("plug");
    for (name, rest) in [(name.clone(), ""), (format!("$ORIGIN/below/{name}"), "in the name")] {
        let source = format!(
            "#include <dlfcn.h>
            long probe(void) {{
                void *handle = dlopen(\"{name}\", RTLD_NOW);
                if (!handle) return dlerror() ? -1 : -2;
                long (*plug)(void) = (long (*)(void))dlsym(handle, \"plug\");
                long found = plug();
                void *again = dlopen(\"{}\", RTLD_LAZY | RTLD_NOLOAD);
                found += 100 * (again == handle);
                if (again) dlclose(again);
                dlclose(handle);
                return found + 1000 * (dlopen(\"libhoist-nowhere.so\", RTLD_NOW) == 0 && dlerror() != 0);
            }}",
            libraries.soname("plug")
        );
        let options: &[&str] = if rest.is_empty() { &["-Wl,-rpath,$ORIGIN/below"] } else { &[] };
        libraries.add_plain("top", &source, &[], options);
        if !below.exists() {
            move_to(&libraries, "plug", &below);
        }
        assert_eq!(of_file(&libraries, "top"), (1133, 1133), "{rest}");
    }
}

/// What code of one thread opens by name stays, though code of other threads closes it.
#[test]
fn threads_that_open_others() {
    let libraries = Libraries::new("opened-in-threads");
    libraries.add_plain("plug", "long plug(void) { return 33; }", &[], &[]);
    let source = format!(
        "#include <dlfcn.h>
        long probe(void) {{
            void *handle = dlopen(\"{}\", RTLD_NOW);
            if (!handle) return -1;
            long found = ((long (*)(void))dlsym(handle, \"plug\"))();
            dlclose(handle);
            return found;
        }}",
        libraries.soname("plug")
    );
    libraries.add_plain("top", &source, &[], &["-Wl,-rpath,$ORIGIN"]);
    // SAFETY: the tests' libraries do no harm.
    let top = unsafe { LibraryLoader::new().open_file(libraries.path("top")) }.unwrap();
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| (0..200).for_each(|round| assert_eq!(call_ours(&top), 33, "{round}")));
        }
    });
}

/// The last one that wants it is initialized before all others.
#[test]
fn who_wants_to_be_first() {
    let libraries = Libraries::new("first");
    libraries.add("count", "static long count; long next(void) { return ++count; }", &[], &[]);
    let source = |name: &str| {
        format!(
            "long next(void); long {name}_at; __attribute__((constructor)) static void begin(void) {{ {name}_at = next(); }}"
        )
    };
    libraries.add("a", &source("a"), &["count"], &[]);
    libraries.add("b", &source("b"), &["a", "count"], &["-Wl,-z,initfirst"]);
    libraries.add("c", &source("c"), &["count"], &["-Wl,-z,initfirst"]);
    let top =
        "extern long a_at, b_at, c_at; long probe(void) { return a_at * 100 + b_at * 10 + c_at; }";
    libraries.add("top", top, &["a", "c", "b"], &[]);
    assert_eq!(libraries.probe("top"), 213);
}

/// A file with debugging information only says where there was a dynamic section.
#[cfg(target_arch = "x86_64")]
#[test]
fn what_is_left_of_a_library() {
    let libraries = Libraries::new("left");
    libraries.add("only", "long probe(void) { return 1; }", &[], &[]);
    let path = libraries.path("only");
    let mut strip = std::process::Command::new("objcopy");
    let stripped = strip.arg("--only-keep-debug").arg(&path).output().unwrap();
    assert!(stripped.status.success(), "{stripped:?}");
    assert_eq!(libraries.refused("only"), "a file without a dynamic section");
}

/// Whose folders are asked where libraries out of bytes need each other: each its own.
#[test]
fn of_bytes() {
    let libraries = Libraries::new("own-folder");
    let below = libraries.folder.path().join("below");
    libraries.add_plain("leaf", "long leaf(void) { return 5; }", &[], &[]);
    libraries.add_plain(
        "top",
        "long leaf(void); long probe(void) { return leaf(); }",
        &["leaf"],
        &["-Wl,-rpath,$ORIGIN/below"],
    );
    move_to(&libraries, "leaf", &below);
    let bytes = std::fs::read(libraries.path("top")).unwrap();
    let nobody = |_: Name<'_>| None::<NeededLibrary>;
    // SAFETY: the tests' libraries do no harm.
    let unknown = unsafe { LibraryLoader::new().needed(nobody).open(bytes.clone()) };
    let words = unknown.unwrap_err().to_string();
    assert!(words.starts_with(&format!("needs {}: ", libraries.soname("leaf"))), "{words}");
    // SAFETY: as above.
    let known = unsafe { LibraryLoader::new().origin(libraries.folder.path()).open(bytes) };
    assert_eq!(call_ours(&known.unwrap()), 5);
}
