//! Libraries out of bytes beside the same files opened by the dynamic loader: whatever their code finds must be the same.
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
use std::ffi::{OsStr, c_long};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use system::libraries::{Libraries, Opened, call_ours};

/// A library that is needed twice is there once, is initialized first, and a name is that of the first library breadth first, weak or
/// not.
#[test]
fn diamonds() {
    let libraries = Libraries::new("diamond");
    let base = "static long order, own; long next(void) { return ++order; }
        __attribute__((constructor)) static void first(void) { own = next(); }
        long of_base(void) { return own; } long which(void) { return 9; }";
    libraries.add("base", base, &[], &[]);
    let side = |name: &str, number: u32, weak: &str| {
        let source = format!(
            "long next(void); static long own;
             __attribute__((constructor)) static void first(void) {{ own = next(); }}
             {weak} long which(void) {{ return {number}; }} long of_{name}(void) {{ return own; }}"
        );
        libraries.add(name, &source, &["base"], &[]);
    };
    side("left", 1, "__attribute__((weak))");
    side("right", 2, "");
    let top = "long which(void), of_left(void), of_right(void), of_base(void);
        long probe(void) { return ((which() * 10 + of_base()) * 10 + of_left()) * 10 + of_right(); }";
    libraries.add("top", top, &["left", "right"], &[]);
    assert_eq!(libraries.probe("top") / 100, 11, "base first, of the left one the name");
}

/// Libraries and what they need, in the order in which they are linked.
type Graph<'g> = &'g [(&'g str, &'g [&'g str])];

/// Constructors and destructors run in the order of the dynamic loader, also where libraries need each other.
#[test]
fn orders() {
    let libraries = Libraries::new("orders");
    let graphs: [(&str, Graph<'_>); 4] = [
        (
            "top",
            &[
                ("base", &[]),
                ("left", &["base"]),
                ("right", &["base"]),
                ("top", &["left", "right"]),
            ],
        ),
        // three that need each other, needed by one that none needs
        (
            "outer",
            &[
                ("three", &[]),
                ("two", &["three"]),
                ("one", &["two"]),
                ("three", &["one"]),
                ("outer", &["one"]),
            ],
        ),
        ("two", &[]),
        (
            "wide",
            &[
                ("p", &[]),
                ("q", &["p"]),
                ("p", &["q"]),
                ("s", &["q"]),
                ("t", &[]),
                ("wide", &["p", "s", "t"]),
            ],
        ),
    ];
    for (name, graph) in graphs {
        for (name, needed) in graph {
            libraries.add_telling(name, needed);
        }
        let library = libraries.ours(name).unwrap();
        assert_eq!(call_ours(&library), 1);
        drop(library);
        let ours = libraries.told();
        drop(Opened::new(&libraries.path(name)).unwrap());
        let loader = libraries.told();
        assert_eq!(ours, loader, "{name}");
        let count = |sign| ours.matches(sign).count();
        assert!(count('+') >= 3 && count('+') == count('-'), "{ours}");
    }
}

/// Functions, data and variables of libraries that need each other, and of one that needs itself.
#[test]
fn libraries_that_need_each_other() {
    let libraries = Libraries::new("circle");
    let lower =
        "long of_upper(void); extern long upper_data; long data = 3; long *pointer = &upper_data;
        static long two(void) { return 2; } static void *find(void) { return (void *)two; }
        long chosen(void) __attribute__((ifunc(\"find\")));
        long of_lower(void) { return of_upper() * 10 + *pointer; }";
    let upper = "long of_lower(void), chosen(void); extern long data; long upper_data = 4; long *pointer_2 = &data;
        long (*function)(void) = chosen; long of_upper(void) { return 1; }
        long probe(void) { return (of_lower() * 10 + *pointer_2) * 10 + chosen() * (chosen == function); }";
    libraries.add("lower", lower, &[], &[]);
    libraries.add("upper", upper, &["lower"], &[]);
    libraries.add("lower", lower, &["upper"], &[]);
    assert_eq!(libraries.probe("upper"), 1432);
    let own = "long probe(void) { return 5; }";
    libraries.add("own", own, &[], &[]);
    // the name is the one that it is needed by
    let other = format!("-Wl,-soname,{}", libraries.soname("own"));
    libraries.add("itself", own, &["own"], &[&other]);
    std::fs::rename(libraries.path("itself"), libraries.path("own")).unwrap();
    assert_eq!(libraries.together("own"), 5);
}

/// What a library that is needed refers to is looked for where that of the one that is opened is: there first, then in all that are needed,
/// breadth first, whoever needs them.
#[test]
fn the_scope_of_a_load() {
    let libraries = Libraries::new("scope");
    // asks for what only others have that do not stand below it, and for what others have before it
    let left = "long of_top(void), of_right(void), both(void), three(void); extern long top_data, shared_data;
        extern __thread long top_variable __attribute__((tls_model(\"initial-exec\")));
        __thread long own_variable = 6; long three(void) { return 3; } long *pointer = &top_data;
        long shared_data = 1; long both(void) { return 2; }
        long of_left(void) {
            return ((((of_top() * 10 + of_right()) * 10 + *pointer) * 10 + both()) * 10 + three()) * 10 + shared_data
                + top_variable * 1000000;
        }";
    let right = "extern __thread long own_variable; long three(void) { return 9; }
        long of_right(void) { return own_variable; }";
    let top = "long of_left(void); long of_top(void) { return 1; } long top_data = 5; long both(void) { return 8; }
        __thread long top_variable = 7; long shared_data = 4; long probe(void) { return of_left(); }";
    libraries.add("left", left, &[], &["-Wl,-z,undefs"]);
    libraries.add("right", right, &[], &["-Wl,-z,undefs"]);
    libraries.add("top", top, &["left", "right"], &[]);
    assert_eq!(libraries.together("top"), 7_165_834);
    // a symbolic one asks itself first
    libraries.add("left", left, &[], &["-Wl,-z,undefs", "-Wl,-Bsymbolic"]);
    libraries.add("top", top, &["left", "right"], &[]);
    assert_eq!(libraries.together("top"), 7_165_231);
    // what nobody has, with whom it is needed by
    let missing = "long nowhere(void); long of_left(void) { return nowhere(); }";
    libraries.add("left", missing, &[], &["-Wl,-z,undefs"]);
    let plain = "long of_left(void); long probe(void) { return of_left(); }";
    libraries.add("top", plain, &["left", "right"], &["-Wl,--allow-shlib-undefined"]);
    let words = libraries.refused("top");
    assert_eq!(words, "needs libhoist-scope-left.so: symbol nowhere is undefined");
}

/// What was opened for all is asked before what a library needs, as long as it is open; what was opened for itself is not. Of libraries with many
/// symbols it is found out beforehand which were.
#[test]
fn what_was_opened_for_all() {
    let libraries = Libraries::new("for-all");
    for (name, number) in [("shown", 1), ("hidden", 2), ("needed", 3)] {
        let source = format!(
            "long which(void) {{ return {number}; }} long {name}_which(void) {{ return {number}; }}"
        );
        libraries.add(name, &source, &[], &[]);
    }
    for (name, count) in [("few", 1), ("many", 2000)] {
        let own =
            (0..count).map(|number| format!("long {name}{number}(void) {{ return {number}; }}"));
        let own: String = own.collect();
        let source = format!("long which(void); {own} long probe(void) {{ return which(); }}");
        libraries.add(name, &source, &["needed"], &[]);
    }
    let _hidden = Opened::new(&libraries.path("hidden")).unwrap();
    assert_eq!(["few", "many"].map(|name| libraries.probe(name)), [3, 3]);
    let shown = Opened::with(&libraries.path("shown"), libc::RTLD_NOW | libc::RTLD_GLOBAL).unwrap();
    assert_eq!(["few", "many"].map(|name| libraries.probe(name)), [1, 1]);
    drop(shown);
    assert_eq!(["few", "many"].map(|name| libraries.probe(name)), [3, 3]);
}

/// A variable that all share is that of the library that comes first, in the load and in those after it.
#[test]
fn unique_variables_of_a_load() {
    let libraries = Libraries::new("shared");
    let source = |name: &str, more: &str| {
        format!(
            "inline long &of_a_load() {{ static long value; return value; }}
             extern \"C\" long {name}() {{ return ++of_a_load(); }} {more}"
        )
    };
    let options = ["-xc++", "-nostdlib"];
    libraries.add("lower", &source("of_lower", ""), &[], &options);
    let upper = source(
        "own",
        "extern \"C\" long of_lower(); extern \"C\" long probe() { return of_lower() * 10 + own(); }",
    );
    libraries.add("upper", &upper, &["lower"], &options);
    let one = libraries.ours("upper").unwrap();
    assert_eq!((call_ours(&one), call_ours(&one)), (12, 34));
    let two = libraries.ours("upper").unwrap();
    assert_eq!(call_ours(&two), 56);
    let opened = Opened::new(&libraries.path("upper")).unwrap();
    assert_eq!((opened.call(), opened.call()), (12, 34));
}

/// Weak references that nobody answers are 0, as functions and as data; what somebody answers is there.
#[test]
fn weak_references() {
    let libraries = Libraries::new("weak");
    libraries.add("lower", "long there(void) { return 4; } int data = 5;", &[], &[]);
    let source = "__attribute__((weak)) long there(void); __attribute__((weak)) long missing(void);
        extern int data __attribute__((weak)), nothing __attribute__((weak));
        int *pointers[] = {&data, &nothing};
        long probe(void) {
            return (there ? there() : 0) + (missing ? 100 : 0) + (pointers[1] ? 1000 : 0) + *pointers[0] * 10;
        }";
    libraries.add("upper", source, &["lower"], &[]);
    assert_eq!(libraries.probe("upper"), 54);
}

/// Tables of names of either kind, and both; much relocated code; addresses that are no addresses of the library.
#[test]
fn forms_of_files() {
    let libraries = Libraries::new("forms");
    let names: String =
        (0..50).map(|it| format!("long name_{it}(void) {{ return {it}; }}")).collect();
    let absolute = "__asm__(\".globl absolute\\n.set absolute, 0x1234\");";
    let asks: String = (0..50).map(|it| format!("+ name_{it}()")).collect();
    let declares: String = (0..50).map(|it| format!("long name_{it}(void);")).collect();
    let source = format!(
        "{declares} extern char absolute[]; static int own; int *pointer = &own;
         long probe(void) {{ return (long)absolute * 10000 {asks} + (pointer == &own); }}"
    );
    for style in ["sysv", "gnu", "both"] {
        let style = format!("-Wl,--hash-style={style}");
        libraries.add("lower", &format!("{names} {absolute}"), &[], &[&style]);
        for options in [
            &[style.as_str()][..],
            &[&style, "-Wl,-z,lazy"],
            &[&style, "-Wl,-z,now", "-Wl,-z,relro"],
            &[&style, "-Wl,-z,norelro"],
            &[&style, "-Wl,-Bsymbolic"],
            &[&style, "-Wl,-z,noseparate-code"],
            &[&style, "-s"],
        ] {
            libraries.add("upper", &source, &["lower"], options);
            assert_eq!(libraries.probe("upper"), 0x1234 * 10000 + 49 * 25 + 1, "{options:?}");
        }
    }
}

/// References to versions; the version that the library found has not, both refuse.
#[test]
fn versions() {
    let libraries = Libraries::new("versions");
    let script = |name: &str, text: &str| {
        let path = libraries.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("-Wl,--version-script={}", path.display())
    };
    let both = script("both", "V1 { global: value; local: *; }; V2 { global: value; } V1;");
    let source = "long old(void) { return 1; } long new(void) { return 2; }
        __asm__(\".symver old, value@V1\\n.symver new, value@@V2\");";
    libraries.add("lower", source, &[], &[&both]);
    let upper = "long value(void), first(void); __asm__(\".symver first, value@V1\");
        long probe(void) { return value() * 10 + first(); }";
    libraries.add("upper", upper, &["lower"], &[]);
    assert_eq!(libraries.probe("upper"), 21);
    // the same file name, without the new version
    let one = script("one", "V1 { global: value; local: *; };");
    libraries.add("lower", "long value(void) { return 1; }", &[], &[&one]);
    let words = libraries.refused("upper");
    let lower = libraries.soname("lower");
    assert_eq!(words, format!("needs version V2 of {lower}, which does not define it"));
    // without any versions, it is taken for what is wanted
    libraries.add("lower", "long value(void) { return 7; }", &[], &[]);
    assert_eq!(libraries.probe("upper"), 77);
}

/// Resolvers of indirect functions that use what is relocated: functions of other libraries by the PLT, pointers, variables.
#[test]
fn resolvers_that_call() {
    let libraries = Libraries::new("resolvers");
    libraries.add("lower", "long choice = 1; long choose(void) { return choice; }", &[], &[]);
    let source = "long choose(void); extern long choice;
        static long one(void) { return 1; } static long two(void) { return 2; }
        static long (*const table[])(void) = {one, two};
        static void *find(void) { return (void *)table[choose() == choice]; }
        static long local(void) __attribute__((ifunc(\"find\")));
        long probe(void) { return local(); }
        #ifdef POINTER
        long shown(void) __attribute__((ifunc(\"find\")));
        long (*pointer)(void) = shown;
        long all(void) { return local() * 100 + shown() * 10 + pointer(); }
        #endif
        ";
    for binding in ["-Wl,-z,now", "-Wl,-z,lazy"] {
        libraries.add("upper", source, &["lower"], &[binding]);
        // elsewhere linkers may have resolvers called before the PLT is relocated
        let found = match cfg!(target_arch = "x86_64") {
            true => libraries.probe("upper"),
            false => call_ours(&libraries.ours("upper").unwrap()),
        };
        assert_eq!(found, 2);
        // where a pointer asks, the dynamic loader calls the resolver before it has relocated the PLT, and crashes
        libraries.add("upper", source, &["lower"], &[binding, "-DPOINTER"]);
        let library = libraries.ours("upper").unwrap();
        // SAFETY: the type of the source.
        let all = unsafe { library.get::<unsafe extern "C" fn() -> c_long>("all") }.unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { all() }, 222);
    }
}

/// Thread-local variables of another library, in each model that reaches those.
#[test]
fn variables_of_other_libraries() {
    let libraries = Libraries::new("variables");
    libraries.add("lower", "__thread long shared = 5; long get(void) { return shared; }", &[], &[]);
    let source = "extern __thread long shared; long get(void);
        long probe(void) { shared += 2; return shared * 100 + get(); }";
    for model in ["global-dynamic", "initial-exec"] {
        libraries.add("upper", source, &["lower"], &[&format!("-ftls-model={model}")]);
        let library = libraries.ours("upper").unwrap();
        assert_eq!((call_ours(&library), call_ours(&library)), (707, 909), "{model}");
        let other = std::thread::spawn(move || call_ours(&library));
        assert_eq!(other.join().unwrap(), 707, "{model}");
        let opened = Opened::new(&libraries.path("upper")).unwrap();
        assert_eq!((opened.call(), opened.call()), (707, 909), "{model}");
    }
}

/// Protected functions, and those of a symbolic library, are the library's own wherever it calls them.
#[test]
fn own_definitions() {
    let libraries = Libraries::new("own");
    libraries.add(
        "lower",
        "long value(void) { return 1; } long both(void) { return 10; }",
        &[],
        &[],
    );
    let source = "__attribute__((visibility(\"protected\"))) long value(void) { return 2; }
        long both(void) { return 20; } long (*pointer)(void) = value;
        long probe(void) { return value() + both() + 100 * pointer(); }";
    for options in [&[][..], &["-Wl,-Bsymbolic"], &["-Wl,-Bsymbolic-functions"]] {
        libraries.add("upper", source, &["lower"], options);
        assert_eq!(libraries.probe("upper"), 222, "{options:?}");
    }
}

/// Variables of inline functions are one in all libraries (`STB_GNU_UNIQUE`), also when they are loaded one by one.
#[test]
fn unique_variables() {
    let libraries = Libraries::new("unique");
    let source = "inline long &counter() { static long value; return value; }
        extern \"C\" long probe() { return ++counter(); }";
    for name in ["one", "two"] {
        libraries.add(name, source, &[], &["-xc++", "-nostdlib"]);
    }
    let (one, two) = (libraries.ours("one").unwrap(), libraries.ours("two").unwrap());
    let ours = [call_ours(&one), call_ours(&two), call_ours(&one)];
    let opened = ["one", "two"].map(|name| Opened::new(&libraries.path(name)).unwrap());
    let loader = [opened[0].call(), opened[1].call(), opened[0].call()];
    assert_eq!((ours, loader), ([1, 2, 3], [1, 2, 3]));
}

/// A variable that all share is the library's own where one that it needs has a plain one of that name; that one's where it comes first.
#[test]
fn unique_variables_beside_plain_ones() {
    let libraries = Libraries::new("plain");
    let name = "_ZZ5tallyvE5value";
    let plain = format!("long {name} = 100;");
    let inline = "inline long &tally() { static long value; return value; }
        extern \"C\" long shared() { return ++tally(); }";
    let cpp = ["-xc++", "-nostdlib"];
    libraries.add("lower", &plain, &[], &[]);
    libraries.add(
        "upper",
        &format!("{inline} extern \"C\" long probe() {{ return shared(); }}"),
        &["lower"],
        &cpp,
    );
    let opened = Opened::new(&libraries.path("upper")).unwrap();
    assert_eq!(opened.call(), 1);
    // the lower library is the dynamic loader's, and stays
    // SAFETY: the tests' libraries do no harm.
    let ours = unsafe { LibraryLoader::new().open_file(libraries.path("upper")) }.unwrap();
    assert_eq!(call_ours(&ours), 1);
    libraries.add("inner", inline, &[], &cpp);
    let probe = "long shared(void); long probe(void) { return shared(); }";
    libraries.add("outer", probe, &["lower", "inner"], &["-Wl,--no-as-needed"]);
    assert_eq!(call_ours(&libraries.ours("outer").unwrap()), 101);
    assert_eq!(Opened::new(&libraries.path("outer")).unwrap().call(), 101);
}

/// Where a library says to look for what it needs: folders relative to its own.
#[test]
fn folders_relative_to_its_own() {
    let libraries = Libraries::new("origin");
    libraries.add("lower", "long value(void) { return 6; }", &[], &[]);
    let source = "long value(void); long probe(void) { return value(); }";
    for (tags, rpath) in [
        ("-Wl,--enable-new-dtags", "$ORIGIN/below"),
        ("-Wl,--disable-new-dtags", "/nowhere:${ORIGIN}/below"),
    ] {
        libraries.add("upper", source, &["lower"], &[tags, &format!("-Wl,-rpath,{rpath}")]);
        let below = libraries.folder.path().join("below");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::rename(libraries.path("lower"), below.join(libraries.soname("lower"))).unwrap();
        // SAFETY: the tests' libraries do no harm.
        let library = unsafe { LibraryLoader::new().open_file(libraries.path("upper")) }.unwrap();
        assert_eq!((call_ours(&library), opened(&libraries)), (6, 6));
        // what is in memory under its name would be taken
        drop(library);
        // the same of bytes whose folder is said by a relative path
        let here = std::env::current_dir().unwrap();
        let root: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let relative = root.join(libraries.folder.path().strip_prefix("/").unwrap());
        let loader = LibraryLoader::new().origin(relative);
        // SAFETY: as above.
        let library = unsafe { loader.open(std::fs::read(libraries.path("upper")).unwrap()) };
        assert_eq!(call_ours(&library.unwrap()), 6);
        // and in a folder whose name is no text
        let odd = libraries.folder.path().join(OsStr::from_bytes(b"\xff"));
        let lower = libraries.soname("lower");
        std::fs::create_dir_all(odd.join("below")).unwrap();
        std::fs::copy(below.join(&lower), odd.join("below").join(&lower)).unwrap();
        std::fs::copy(libraries.path("upper"), odd.join("upper.so")).unwrap();
        // SAFETY: as above.
        let library = unsafe { LibraryLoader::new().open_file(odd.join("upper.so")) };
        assert_eq!(call_ours(&library.unwrap()), 6);
        std::fs::rename(below.join(libraries.soname("lower")), libraries.path("lower")).unwrap();
    }
}

/// Where a library says to look counts for what it needs, and what that needs, unless that has a list of its own (`DT_RPATH`); else only for
/// itself (`DT_RUNPATH`).
#[test]
fn folders_of_who_needs_it() {
    for (tags, is_inherited) in
        [("-Wl,--disable-new-dtags", true), ("-Wl,--enable-new-dtags", false)]
    {
        let libraries = Libraries::new(if is_inherited { "rpath" } else { "runpath" });
        let below = libraries.folder.path().join("below");
        std::fs::create_dir_all(&below).unwrap();
        libraries.add_plain("leaf", "long leaf(void) { return 6; }", &[], &[]);
        let middle = "long leaf(void); long middle(void) { return leaf() * 10; }";
        libraries.add_plain("middle", middle, &["leaf"], &[]);
        let upper = "long middle(void); long probe(void) { return middle() + 1; }";
        libraries.add_plain("upper", upper, &["middle"], &[tags, "-Wl,-rpath,$ORIGIN/below"]);
        for name in ["leaf", "middle"] {
            std::fs::rename(libraries.path(name), below.join(libraries.soname(name))).unwrap();
        }
        // SAFETY: the tests' libraries do no harm.
        let open = |bytes: bool| unsafe {
            let middle = std::fs::read(below.join(libraries.soname("middle"))).unwrap();
            let name = libraries.soname("middle");
            let source = move |needed: elf_core::Name<'_>| {
                (bytes && needed == *name).then(|| NeededLibrary::bytes(middle.clone()))
            };
            LibraryLoader::new().needed(source).open_file(libraries.path("upper"))
        };
        let loader = Opened::new(&libraries.path("upper")).map(|opened| opened.call());
        assert_eq!(loader.is_ok(), is_inherited, "{loader:?}");
        for bytes in [false, true] {
            let ours = open(bytes).map(|library| call_ours(&library));
            assert_eq!(ours.ok(), loader.clone().ok(), "{tags} {bytes}");
        }
    }
}

fn opened(libraries: &Libraries) -> i64 {
    Opened::new(&libraries.path("upper")).unwrap().call()
}

/// What has no room near the thread pointer is refused by both, with the reason.
#[test]
fn too_much_static_tls() {
    let libraries = Libraries::new("room");
    let source = "static __thread char room[1 << 20]; long probe(void) { return room[5]++; }";
    libraries.add("upper", source, &[], &["-ftls-model=initial-exec"]);
    let words = libraries.refused("upper");
    assert!(words.contains("initial exec"), "{words}");
}
