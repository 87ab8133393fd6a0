//! `auditwheel repair` before and after us: a wheel whose library needs another one, which is put into the wheel.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{archs, libraries, printed, python};

/// What loads the library of a wheel that lies unpacked, as Python does; and prints what is there.
const LOAD: &str = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).answer())";

/// A library for a wheel that needs one that no policy allows.
const SOURCES: [(&str, &str); 2] = [
    ("extern.c", "int of_another(void) { return 42; }\n"),
    (
        "answer.c",
        "extern char one, two; char *all[] = {&one, &two};\nint of_another(void);\nint answer(void) { return of_another(); }\n",
    ),
];

/// A program: of the folder that `HOIST_AUDITWHEEL` names, if it is there, as auditwheel and its patchelf are, or else of the system.
fn command(program: &str) -> Command {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::var_os("HOIST_AUDITWHEEL").map(PathBuf::from);
    let there = own.iter().map(|folder| folder.join(program)).find(|path| path.exists());
    let mut command = Command::new(there.unwrap_or_else(|| program.into()));
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&usual)));
    command.env("PATH", path.expect("folders"));
    command
}

fn run(at: &Path, program: &str, words: &[&str]) -> String {
    let mut command = command(program);
    command.args(words).current_dir(at).env("LD_LIBRARY_PATH", at).stdin(Stdio::null());
    let output = command.output().expect(program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// The numbers of a version.
fn numbers(text: &str) -> Vec<u32> {
    let text = text.trim().rsplit(' ').next().unwrap_or_default();
    text.split('.').map_while(|part| part.parse().ok()).collect()
}

/// The repaired wheel, in a folder of its own.
fn repaired(at: &Path, wheel: &str, folder: &str) -> PathBuf {
    run(at, "python3", &["-m", "auditwheel", "repair", "-w", folder, wheel]);
    let mut entries = fs::read_dir(at.join(folder)).expect("a folder");
    entries.next().expect("a wheel").expect("an entry").path()
}

/// What the library in a wheel answers, and its images.
fn answers(at: &Path, wheel: &Path) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path();
    run(to, "python3", &["-m", "zipfile", "-e", &wheel.to_string_lossy(), "."]);
    let said = run(to, "python3", &["-c", LOAD, "thing/lib/lib.so"]);
    fs::copy(to.join("thing/lib/lib.so"), at.join("unpacked.so")).expect("a copy");
    (said, archs(at, "unpacked.so"))
}

#[test]
fn auditwheel_repairs_before_and_after() {
    const NAME: &str = "auditwheel_repairs_before_and_after";
    let version = |program: &str, words: &[&str]| {
        let output = command(program).args(words).output();
        let output = output.ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let patchelf = version("patchelf", &["--version"]);
    let is_new = patchelf.is_some_and(|text| numbers(&text) >= vec![0, 14, 5]);
    if version("python3", &["-m", "auditwheel", "--version"]).is_none() || !is_new {
        println!("skipped: {NAME}: needs auditwheel, and patchelf 0.14.5 for it");
        return;
    }
    let Some(folder) = libraries(NAME) else { return };
    let at = folder.path();
    for (name, text) in SOURCES {
        fs::write(at.join(name), text).expect("a file");
    }
    run(at, "cc", &["-shared", "-fPIC", "extern.c", "-o", "libextern.so"]);
    let words =
        ["-shared", "-fPIC", "answer.c", "one.o", "two.o", "-L.", "-lextern", "-o", "lib.so"];
    run(at, "cc", &words);
    let name = "thing-1.0-py3-none-linux_x86_64.whl";
    assert!(python(at, &["make", name]));
    let slim = |old: &str, new: &str| {
        let words = ["wheel", "slim", old, "-o", new, "--keep", "sm_80,ptx", "--mode", "size"];
        printed(at, &words);
    };
    // ours first, then theirs; theirs first, then ours; and ours again, on what has become of it
    fs::create_dir(at.join("slim")).expect("a folder");
    slim(name, &format!("slim/{name}"));
    let first = repaired(at, &format!("slim/{name}"), "first");
    let second = repaired(at, name, "second");
    slim(&second.to_string_lossy(), &second.to_string_lossy());
    let third = at.join("third.whl");
    printed(at, &["wheel", "slim", &first.to_string_lossy(), "-o", "third.whl", "--mode", "speed"]);
    let found = [&first, &second, &third].map(|wheel| answers(at, wheel));
    for (said, archs) in &found {
        assert_eq!((said.as_str(), archs.len()), ("42\n", 3), "{archs:?}");
    }
    assert_eq!(found[0].1, found[1].1);
}
