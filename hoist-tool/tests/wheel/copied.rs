//! What became smaller is so for everybody, in copies and archives; and static libraries still link.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{archs, libraries, printed};

fn run(at: &Path, program: &str, words: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(words).current_dir(at).stdin(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn copies_and_archives_of_a_pruned_library_are_as_small() {
    const NAME: &str = "copies_and_archives_of_a_pruned_library_are_as_small";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    let words = ["fatbin", "prune", "lib.so", "-o", "new.so", "--keep", "sm_80,ptx", "--shrink"];
    let said = printed(at, &words);
    let size = |name: &str| fs::metadata(at.join(name)).expect("a file").len();
    assert!(size("new.so") < size("lib.so"), "{said}");
    let listed = |name: &str| archs(at, name);
    let images = listed("new.so");
    assert_eq!(images.len(), 3);
    assert!(run(at, "cp", &["--sparse=never", "new.so", "copy.so"]));
    assert!(
        run(at, "tar", &["-cf", "new.tar", "new.so"])
            && run(at, "tar", &["-cf", "lib.tar", "lib.so"])
    );
    if !run(at, "python3", &["--version"]) {
        println!("skipped: {NAME}: needs python3");
        return;
    }
    assert!(run(at, "python3", &["-m", "zipfile", "-c", "new.zip", "new.so"]));
    assert!(run(at, "python3", &["-m", "zipfile", "-c", "lib.zip", "lib.so"]));
    assert_eq!(size("copy.so"), size("new.so"));
    assert!(size("new.tar") < size("lib.tar") && size("new.zip") < size("lib.zip"));
    for name in ["copy.so", "new.tar", "new.zip"] {
        assert_eq!(listed(name), images, "{name}");
    }
}

#[test]
fn static_libraries_become_smaller_link_and_come_back() {
    const NAME: &str = "static_libraries_become_smaller_link_and_come_back";
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    fs::create_dir(at.join("site")).expect("a folder");
    fs::write(at.join("odd.c"), "int odd(void) { return 3; }\n").expect("a file");
    fs::write(
        at.join("main.c"),
        "extern char one, two; int odd(void); char *all[] = {&one, &two};\nint main(void) { return !(all[0] && all[1]) + odd() - 3; }\n",
    )
    .expect("a file");
    let is_made = run(at, "cc", &["-c", "odd.c"])
        && run(at, "ar", &["rcs", "site/liball.a", "one.o", "odd.o", "two.o"]);
    if !is_made {
        println!("skipped: {NAME}: needs ar");
        return;
    }
    let old = fs::read(at.join("site/liball.a")).expect("a file");
    let words = ["fatbin", "slim", "site", "--backup", "kept", "--keep", "sm_80,ptx"];
    assert!(printed(at, &words).contains("1 files changed"));
    assert!(fs::metadata(at.join("site/liball.a")).expect("a file").len() < old.len() as u64);
    assert_eq!(archs(at, "site/liball.a").len(), 3);
    assert!(run(at, "cc", &["main.c", "site/liball.a", "-o", "main"]));
    assert!(run(at, "./main", &[]));
    assert_eq!(archs(at, "main").len(), 3);
    printed(at, &["fatbin", "slim", "--undo", "kept"]);
    assert!(fs::read(at.join("site/liball.a")).expect("a file") == old);
}
