//! Loads and unloads of one library, in a process of their own: what they leave.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use system::libraries::{Libraries, call_ours};
use system::{is_emulated, itself, maps};

/// Tells the child process what it is.
const CHILD: &str = "HOIST_LIBRARY_MEMORY";
/// Most pages that all loads together may leave: what allocators keep.
const MOST: i64 = 64;
/// Of each thing that a load takes, some: constructors and destructors, threads' variables, exceptions, what is needed, an indirect function.
const SOURCE: &str = r#"
extern "C" long lower(void);
static __thread long own = 5;
static thread_local struct Counted { long count; Counted() : count(1) {} ~Counted() { count = 0; } } counted;
static long made;
__attribute__((constructor)) static void first(void) { made = 3; }
__attribute__((destructor)) static void last(void) { made = 0; }
extern "C" { static long one(void) { return 7; } static void *find(void) { return (void *)one; } }
extern "C" long chosen(void) __attribute__((ifunc("find")));
extern "C" long probe(void) {
    try { throw made; } catch (long thrown) { return thrown + own++ + counted.count + lower() + chosen(); }
    return 0;
}
"#;

/// Pages of the process that are in memory.
fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The part of the child process.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let libraries = Libraries::new("memory");
    libraries.add("lower", "long lower(void) { static long n; return ++n; }", &[], &[]);
    libraries.add("upper", SOURCE, &["lower"], &["-xc++"]);
    // a destructor of a thread's variable keeps its library until the thread ends
    let round = || {
        let library = libraries.ours("upper").unwrap();
        let called = std::thread::spawn(move || call_ours(&library)).join();
        assert_eq!(called.unwrap(), 17);
    };
    (0..100).for_each(|_| round());
    let before = (resident(), maps().len());
    let rounds = if is_emulated() { 100 } else { 10_000 };
    (0..rounds).for_each(|_| round());
    let after = (resident(), maps().len());
    println!("\nROUNDS {rounds} {} {} {} {}", before.0, after.0, before.1, after.1);
}

#[test]
fn ten_thousand_loads_leave_nothing() {
    let output = itself().args(["--exact", "child", "--nocapture"]).env(CHILD, "1").output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("ROUNDS "));
    let line = line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    let [rounds, before, after, lines, lines_after] = numbers[..] else { panic!("{line}") };
    println!("{rounds} loads: {before} pages, then {after}; {lines} mappings, then {lines_after}");
    // an emulator keeps what it has translated
    assert!(is_emulated() || after - before < MOST, "{before} pages before, {after} after");
    assert_eq!(lines, lines_after, "mappings");
}
