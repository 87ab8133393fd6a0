//! Libraries that a program was started with (`LD_PRELOAD`) come before those that it was linked to, for what is loaded out of bytes as for
//! what the dynamic loader opens.
#![cfg(all(test, target_env = "gnu"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::library::LibraryLoader;
use std::path::Path;
use system::itself;
use system::libraries::{Libraries, Opened, call_ours};

/// Tells a process which library to open.
const OPENS: &str = "HOIST_TEST_PRELOADED";

#[test]
fn names_of_the_first_library_count() {
    if let Some(path) = std::env::var_os(OPENS) {
        let path = Path::new(&path);
        let expected = Opened::new(path).unwrap().call();
        assert_eq!(expected, -7, "the dynamic loader's");
        // what the first one finds is kept for later ones
        for _ in 0..4 {
            // SAFETY: the test's library does no harm.
            let library = unsafe { LibraryLoader::new().open_file(path) }.unwrap();
            assert_eq!(call_ours(&library), expected);
        }
        return;
    }
    let libraries = Libraries::new("preloaded");
    libraries.add("first", "int getppid(void) { return -7; }", &[], &[]);
    let asks = "int getppid(void); long probe(void) { return getppid(); }";
    libraries.add("asks", asks, &[], &[]);
    assert_ne!(libraries.probe("asks"), -7, "without it the C library's");
    let mut child = itself();
    child.args(["--exact", "names_of_the_first_library_count", "--nocapture"]);
    child.env("LD_PRELOAD", libraries.path("first")).env(OPENS, libraries.path("asks"));
    let output = child.output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && words.contains("1 passed"),
        "{words}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
