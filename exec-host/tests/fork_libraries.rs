//! Children of a process whose threads load while it forks: they load, too.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use std::sync::atomic::{AtomicBool, Ordering};
use system::libraries::Libraries;
use system::{compile, is_emulated, itself, load};

/// Tells the process that forks what it is.
const PARENT: &str = "HOIST_FORK_LIBRARIES";
/// How many seconds a child may take.
const PATIENCE: u32 = 20;

const OBJECT: &str = "static __thread long own = 5; long probe(void) { return own++; }";
const LIBRARY: &str = r#"
static __thread long own = 5;
static long made;
__attribute__((constructor)) static void first(void) { made = 3; }
extern "C" long plain(void) { return made + own++; }
extern "C" long probe(void) {
    try { throw made; } catch (long thrown) { return thrown + own++; }
    return 0;
}
"#;

/// What threads and children do.
struct Work {
    object: Vec<u8>,
    libraries: Libraries,
}

impl Work {
    /// Loads, calls and unloads. `throws`: what it calls throws something. libgcc before GCC 13 has a lock for that where anybody has registered tables
    /// with it, and no care for forks.
    fn once(&self, throws: bool) -> bool {
        let module = load(&[&self.object]).unwrap();
        // SAFETY: the function has this type.
        let probe = unsafe { module.get::<unsafe extern "C" fn() -> std::ffi::c_long>("probe") };
        // SAFETY: it does no harm.
        let is_object = unsafe { probe.unwrap()() } == 5;
        let library = self.libraries.ours("throws").unwrap();
        let name = if throws { "probe" } else { "plain" };
        // SAFETY: as above.
        let probe = unsafe { library.get::<unsafe extern "C" fn() -> std::ffi::c_long>(name) };
        // SAFETY: as above.
        is_object && unsafe { probe.unwrap()() } == 8
    }
}

/// The part of the process that forks.
#[test]
fn parent() {
    let Some(count) = std::env::var(PARENT).ok().and_then(|count| count.parse::<usize>().ok())
    else {
        return;
    };
    let libraries = Libraries::new("forks");
    libraries.add("throws", LIBRARY, &[], &["-xc++"]);
    let Some(object) = compile("gcc", &["-O1", "-fPIC"], OBJECT) else { panic!("no compiler") };
    let work = Work { object: object.bytes.clone(), libraries };
    let is_over = AtomicBool::new(false);
    let (mut hang, mut fail) = (0, 0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(work.once(false));
                }
            });
        }
        for _ in 0..count {
            // SAFETY: the child calls hoist, which knows of forks, and ends without what the parent's threads would need.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: a child that hangs ends.
                unsafe { libc::alarm(PATIENCE) };
                let is_right =
                    std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| work.once(true)));
                // SAFETY: ends the process.
                unsafe { libc::_exit(i32::from(!is_right.unwrap_or(false))) };
            }
            let mut status = 0;
            // SAFETY: the child is ours.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGALRM {
                hang += 1;
            } else if status != 0 {
                fail += 1;
            }
            if hang > 3 {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("\nFORKS {hang} {fail}");
}

#[test]
fn children_open_libraries_whatever_threads_were_doing() {
    let count = if is_emulated() { "20" } else { "300" };
    let count = std::env::var("HOIST_FORK_COUNT").unwrap_or(count.into());
    let output = itself().args(["--exact", "parent", "--nocapture"]).env(PARENT, &count).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("FORKS "));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(line, Some("0 0"), "of {count} children, so many hang and fail: {text}{error}");
}
