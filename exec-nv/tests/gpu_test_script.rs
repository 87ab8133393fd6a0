//! The script of `cargo xtask gpu-test` with programs that tell what they were run with.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Steps, and what a program of the bundle finds in its environment.
const PROGRAM: &str = r#"#!/bin/sh
case $1 in
  list) echo 'vector_add 5'; echo 'raw_reduce 5'; echo 'speed_launch 5'; echo 'fault 5'; echo 'patched_driver_code 5' ;;
  file) echo gpu.fatbin ;;
  devices)
    echo "driver: 13.0"
    [ "$2" = --raw ] && exit 1
    echo "0 | A GPU | sm_90" ;;
  launch) echo buf:f32:11,22,33.5 ;;
  *) echo "| $1 | | ok | $CUDA_ENABLE_COREDUMP_ON_EXCEPTION $CUDA_COREDUMP_GENERATION_FLAGS |" ;;
esac
"#;

/// Runs the script on these programs: what it prints.
fn report(environment: &[(&str, &str)]) -> String {
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("gpu-test/run.sh");
    std::fs::copy(script, folder.path().join("run.sh")).unwrap();
    for name in ["gpu_test", "hoist"] {
        let program = folder.path().join(name);
        std::fs::write(&program, PROGRAM).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let compare = "import os\nprint('compared', os.environ['CUDA_ENABLE_COREDUMP_ON_EXCEPTION'])";
    std::fs::write(folder.path().join("compare.py"), compare).unwrap();
    let mut run = Command::new("sh");
    run.arg(folder.path().join("run.sh")).arg(output.path());
    let done = run.envs(environment.iter().copied()).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn dumps_end_no_step_and_are_off_where_they_would_disturb() {
    let report = report(&[]);
    let skips = "skip_abort,skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,\
                 skip_local_memory,skip_constbank_memory";
    for (step, dumps) in [
        ("vector_add", 1),
        ("speed_launch", 0),
        ("fault", 0),
        ("patched_driver_code", 1),
        ("speed_ready", 0),
    ] {
        let row = format!("| {step} | | ok | {dumps} {skips} |");
        assert!(report.lines().any(|line| line == row), "{row} is not in {report}");
    }
    for row in [
        "| hoist devices | | ok | 0 / A GPU / sm_90 |",
        "| hoist devices --raw | | FAILED | driver: 13.0 |",
        "| hoist launch | raw | ok | buf:f32:11,22,33.5 |",
    ] {
        assert!(report.lines().any(|line| line == row), "{row} is not in {report}");
    }
    assert!(report.ends_with("10 ok, 1 not\n"), "{report}");
    let python = Command::new("python3").arg("-c").arg("").status();
    if python.is_ok_and(|status| status.success()) {
        assert!(report.contains("\ncompared 0\n"), "{report}");
    }
}

#[test]
fn one_loader_alone() {
    let report = report(&[("GPU_TEST_LOADER", "raw")]);
    let steps: Vec<&str> = report.lines().filter(|line| line.contains(" ok ")).collect();
    assert_eq!(steps.len(), 2, "{report}");
    assert!(steps[0].starts_with("| raw_reduce | | ok | 1 "), "{report}");
    assert_eq!(steps[1], "| hoist launch | raw | ok | buf:f32:11,22,33.5 |");
    assert!(!report.contains("compared"), "{report}");
    assert!(report.contains("| hoist devices --raw | | FAILED | driver: 13.0 |"), "{report}");
}
