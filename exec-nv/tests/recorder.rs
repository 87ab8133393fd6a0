//! The recorder of `cargo xtask gpu-test`: what a program tells a file, which stands for a device.

use std::path::Path;
use std::process::Command;

fn compile(options: &[&str], source: &str, out: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(options).arg("-O2").arg("-o").arg(out).arg(source).arg("-ldl");
    compiler.status().is_ok_and(|status| status.success())
}

#[test]
fn the_recorder_writes_down_calls_to_a_file() {
    let name = "the_recorder_writes_down_calls_to_a_file";
    let folder = tempfile::tempdir().unwrap();
    let (library, program) = (folder.path().join("recorder.so"), folder.path().join("program"));
    if cfg!(target_os = "linux") && Command::new("cc").arg("--version").output().is_ok() {
        assert!(compile(&["-shared", "-fPIC"], "gpu-test/recorder.c", &library));
        assert!(compile(&[], "tests/stub/recorded.c", &program));
    }
    let (file, log) = (folder.path().join("watched"), folder.path().join("log"));
    std::fs::write(&file, vec![0; 8192]).unwrap();
    let mut run = Command::new(&program);
    run.arg(&file).env("LD_PRELOAD", &library).env("RECORDER_PREFIX", &file);
    let done = run.env("RECORDER_LOG", &log).output();
    let Some(done) = done.ok().filter(|done| done.status.code() == Some(0)) else {
        println!("skipped: {name}: needs a C compiler for the machine that runs it");
        return;
    };
    assert_eq!(done.stdout, b"done\n");
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let is = |start: &str| lines.iter().find(|line| line.starts_with(start)).copied();
    assert!(is(&format!("open {} = ", file.display())).is_some(), "{log}");
    // a control and an allocation, with what they point to
    for (call, parameters) in [
        (
            "0xc020462a",
            "parameters of 12 bytes: 111111112222222233333333 -> 111111112222222233333333",
        ),
        ("0xc030462b", "parameters of 8 bytes: 1111111122222222 -> 1111111122222222"),
    ] {
        let at = lines.iter().position(|line| line.contains(&format!(" {call} = -1 "))).unwrap();
        assert!(lines[at].contains(" 01000000020000000300000004000000"), "{log}");
        assert_eq!(lines[at + 1], parameters, "{log}");
    }
    assert_eq!(lines.iter().filter(|line| line.starts_with("mmap ")).count(), 2, "{log}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("munmap ")).count(), 1, "{log}");
    // of what is still mapped, the rows that are not zero
    assert_eq!(lines.iter().filter(|line| line.starts_with("dump at the end: 0x")).count(), 1);
    let row = "0x80: 00000000 00000000 00000000 00004711 00000000 00000000 00000000 00000000";
    assert!(log.ends_with(&format!("\n{row}\ndump at the end: 1 rows\n")), "{log}");
    assert!(is("close ").is_some(), "{log}");
}
