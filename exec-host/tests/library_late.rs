//! Functions that nobody has when a library is loaded, and libraries that were opened for all: beside the dynamic loader.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::{Library, LibraryLoader};
use std::ffi::c_long;
use std::sync::Barrier;
use system::itself;
use system::libraries::{Libraries, Opened, call_ours, wide};

/// Refers to functions that nobody has, some of them with arguments in all kinds of registers and on the stack.
const USER: &str = "#include <stdarg.h>\n
    long nowhere(void);
    long taken(long, double, long, float, long, long, long, long, double, long, long double, const char *);
    double sum(int, ...);
    long never(void) { return nowhere(); }
    long later(void) {
        double sums = sum(3, 1.5, 2.5, 3.0);
        return taken(1, 2.0, 3, 4.0f, 5, 6, 7, 8, 9.0, 10, 11.0L, \"12\") * 100 + (long)sums;
    }
    long probe(void) { return 7; }";

/// Has them.
const PROVIDER: &str = "#include <stdarg.h>\n
    long taken(long a, double b, long c, float d, long e, long f, long g, long h, double i, long j,
               long double k, const char *l) {
        return a * 1 + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 + (l[0] == '1');
    }
    double sum(int count, ...) {
        va_list list; double sum = 0;
        va_start(list, count);
        while (count-- > 0) sum += va_arg(list, double);
        va_end(list);
        return sum;
    }";

/// What `taken` and `sum` make of their arguments.
const TAKEN: i64 = 50707;

fn lazy(libraries: &Libraries, name: &str) -> Result<Library, exec_host::Error> {
    let bytes = std::fs::read(libraries.path(name)).unwrap();
    // SAFETY: the tests' libraries do no harm.
    unsafe { LibraryLoader::new().lazy().open(bytes) }
}

fn call(library: &Library, name: &str) -> i64 {
    // SAFETY: the tests' functions have this type.
    wide(unsafe { library.get::<unsafe extern "C" fn() -> c_long>(name).unwrap()() })
}

#[test]
fn functions_are_found_when_they_are_called() {
    let libraries = Libraries::new("late");
    libraries.add("user", USER, &[], &["-Wl,-z,lazy"]);
    libraries.add("provider", PROVIDER, &[], &[]);
    let refused = libraries.refused("user");
    assert!(refused.contains("nowhere") || refused.contains("taken"), "{refused}");
    let ours = lazy(&libraries, "user").unwrap();
    // SAFETY: as above.
    let file = unsafe { LibraryLoader::new().lazy().open_file(libraries.path("user")) }.unwrap();
    let loader = Opened::with(&libraries.path("user"), libc::RTLD_LAZY).unwrap();
    assert_eq!((call_ours(&ours), call_ours(&file), loader.call()), (7, 7, 7));
    // for all, and closed while it is used
    let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
    let provider = Opened::with(&libraries.path("provider"), flags).unwrap();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                assert_eq!(call(&ours, "later"), TAKEN);
            });
        }
    });
    assert_eq!(call(&file, "later"), TAKEN);
    drop((provider, loader));
    assert_eq!((call(&ours, "later"), call(&file, "later")), (TAKEN, TAKEN));
    drop((ours, file));
    assert!(Opened::with(&libraries.path("provider"), libc::RTLD_NOLOAD).is_err(), "kept");
}

/// What is not to be late: libraries that say so, variables, functions whose address is taken.
#[test]
fn what_is_bound_at_once() {
    let libraries = Libraries::new("at-once");
    for (options, source) in [
        ("-Wl,-z,now", USER),
        ("-Wl,-z,lazy", "extern long nowhere; long probe(void) { return nowhere; }"),
        ("-Wl,-z,lazy", "long nowhere(void); long (*probe(void))(void) { return nowhere; }"),
    ] {
        libraries.add("now", source, &[], &[options]);
        assert!(Opened::with(&libraries.path("now"), libc::RTLD_LAZY).is_err());
        let refused = lazy(&libraries, "now").unwrap_err().to_string();
        assert!(refused.contains("nowhere") || refused.contains("taken"), "{refused}");
    }
}

/// Which library a child process calls a function of that nobody has, and how it is opened.
const CALLS: &str = "HOIST_CALLS";

/// The part of a child process.
#[test]
fn child() {
    let Ok(words) = std::env::var(CALLS) else { return };
    let (how, path) = words.split_once(' ').unwrap();
    if how == "loader" {
        Opened::with(path.as_ref(), libc::RTLD_LAZY).unwrap().call();
    } else {
        // SAFETY: the tests' libraries do no harm.
        call_ours(&unsafe { LibraryLoader::new().lazy().open_file(path) }.unwrap());
    }
}

#[test]
fn the_process_ends_if_there_is_none() {
    let libraries = Libraries::new("none");
    let source = "long nowhere(void); long probe(void) { return nowhere(); }";
    libraries.add("calls", source, &[], &["-Wl,-z,lazy"]);
    for how in ["ours", "loader"] {
        let mut child = itself();
        let child = child.args(["--exact", "child", "--nocapture"]);
        let child = child.env(CALLS, format!("{how} {}", libraries.path("calls").display()));
        let output = child.output().unwrap();
        assert_eq!(output.status.code(), Some(127), "{how}: {output:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains(&*libraries.path("calls").to_string_lossy()), "{how}: {words}");
        assert!(words.contains("symbol lookup error") && words.contains("nowhere"), "{words}");
    }
}

/// A library that was opened for all stays as long as one that refers to it, whoever closes it.
#[test]
fn what_was_opened_for_all_is_kept() {
    let libraries = Libraries::new("for-all");
    libraries.add("provider", PROVIDER, &[], &[]);
    libraries.add(
        "user",
        &USER.replace("nowhere()", "0").replace("long nowhere(void);", ""),
        &[],
        &[],
    );
    let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
    let provider = Opened::with(&libraries.path("provider"), flags).unwrap();
    let user = libraries.ours("user").unwrap();
    drop(provider);
    assert_eq!(call(&user, "later"), TAKEN);
    drop(user);
    assert!(Opened::with(&libraries.path("provider"), libc::RTLD_NOLOAD).is_err(), "kept");
}
