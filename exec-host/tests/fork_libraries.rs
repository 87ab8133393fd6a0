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

use std::time::{Duration, Instant};
use system::libraries::Libraries;
use system::{compile, is_emulated, itself, load};

/// Tells the process that forks what it is.
const PARENT: &str = "HOIST_FORK_LIBRARIES";
/// How long a child may take.
const PATIENCE: Duration = Duration::from_secs(20);

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

/// How a child ends: its status, or nothing if it hangs.
fn end(child: i32) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let mut status = 0;
        // SAFETY: the child is ours.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: as above.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, core::ptr::null_mut(), 0);
    }
    None
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
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let (mut hang, mut fail) = (0, 0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert!(work.once(false));
                }
            });
        }
        for _ in 0..count {
            // SAFETY: the child calls hoist, which knows of forks, and ends without what the parent's threads would need.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let is_right =
                    std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| work.once(true)));
                // SAFETY: ends the process.
                unsafe { libc::_exit(i32::from(!is_right.unwrap_or(false))) };
            }
            match end(child) {
                None => hang += 1,
                Some(0) => {}
                Some(_) => fail += 1,
            }
            if hang > 3 {
                break;
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
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
