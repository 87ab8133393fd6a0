//! A disk that is full: told once, nothing half written stays, and what was there is as it was.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, missing_docs, reason = "a test")]

use std::path::Path;
use std::process::{Command, Stdio};

const NAMESPACE: [&str; 4] = ["-rm", "/bin/sh", "-e", "-c"];

/// What a script prints, run where a disk of 48 KiB is at `$disk`. Nothing if this system does not let us.
fn on_a_small_disk(test: &str, script: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mount = "mount -t tmpfs -o size=48k none \"$disk\"";
    let shell = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(NAMESPACE).arg(script).env("disk", folder.path());
        shell.env("hoist", env!("CARGO_BIN_EXE_hoist")).stdin(Stdio::null());
        shell.env("fixtures", Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures"));
        shell
    };
    if !shell(mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("skipped: {test}: needs unshare and mount");
        return None;
    }
    let output = shell(&format!("{mount}; {script}")).output().expect("a shell");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("text");
    assert!(output.status.success(), "{text}");
    Some(text)
}

#[test]
fn extraction_tells_a_full_disk_once() {
    let script = "! \"$hoist\" fatbin extract -q \"$fixtures\"/cuda/*.cubin \"$fixtures\"/fatbin/*.fatbin -o \"$disk/out\" 2>&1; \
                  for file in \"$disk\"/out/*; do \"$hoist\" show \"$file\" >/dev/null || echo \"$file is not whole\"; done; ls -A \"$disk/out\"";
    let Some(text) = on_a_small_disk("extraction_tells_a_full_disk_once", script) else { return };
    assert_eq!(text.matches("No space left").count(), 1, "{text}");
    assert!(!text.contains("not whole") && !text.contains(".hoist-"), "{text}");
}

#[test]
fn a_full_disk_leaves_no_half_of_what_cuobjdump_extracts() {
    let script = "cd \"$disk\"; head -c 24000 /dev/zero >other; status=0; \
                  \"$hoist\" cuobjdump -xelf all \"$fixtures\"/cuda/*.cubin 2>&1 || status=$?; test $status = 1; rm other; \
                  for file in *.cubin; do cmp \"$file\" \"$fixtures/cuda/$(echo $file | sed 's/[.]sm_[0-9a]*[.]cubin/.cubin/')\"; done; ls -A";
    let test = "a_full_disk_leaves_no_half_of_what_cuobjdump_extracts";
    let Some(text) = on_a_small_disk(test, script) else { return };
    assert!(text.contains("No space left") && !text.contains(".hoist-"), "{text}");
    assert!(text.ends_with(".cubin\n"), "{text}");
}

#[test]
fn a_rewrite_on_a_full_disk_leaves_what_was() {
    let script = "cp \"$fixtures/fatbin/libt.so\" \"$disk/lib.so\"; head -c 20000 /dev/zero >\"$disk/other\"; \
                  ! \"$hoist\" fatbin recompress --with none \"$disk/lib.so\" -o \"$disk/lib.so\" 2>&1; \
                  cmp \"$fixtures/fatbin/libt.so\" \"$disk/lib.so\"; ls -A \"$disk\"";
    let Some(text) = on_a_small_disk("a_rewrite_on_a_full_disk_leaves_what_was", script) else {
        return;
    };
    assert_eq!(text.matches("No space left").count(), 1, "{text}");
    assert!(text.ends_with("lib.so\nother\n"), "{text}");
}
