//! The raw path against the mock of driver and GPU that tinygrad's repository has: its own process, in Python.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A checkout that an environment variable names.
fn checkout(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_dir())
}

#[test]
fn a_mock_gpu_of_every_generation_is_brought_up_launches_copies_and_is_given_back() {
    let name = "a_mock_gpu_of_every_generation_is_brought_up_launches_copies_and_is_given_back";
    let variables = ["HOIST_TINYGRAD", "HOIST_OPEN_GPU_DOC"];
    if let Some(missing) = variables.iter().find(|name| checkout(name).is_none()) {
        println!("skipped: {name}: needs a checkout in {missing}");
        return;
    }
    // beside this test, as cargo builds examples
    let here = std::env::current_exe().unwrap();
    let library = here.parent().unwrap().parent().unwrap().join("examples/libraw_mock.so");
    if !library.exists() {
        println!("skipped: {name}: needs cargo build -p exec-nv --features raw --example raw_mock");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for generation in ["ampere", "ampere_86", "ada", "hopper", "blackwell", "blackwell_12"] {
        let mut python = Command::new("python3");
        python.arg(root.join("tests/raw_mock/mock.py")).arg(&library).arg(generation);
        let Ok(output) = python.arg(root.join("../fixtures/cuda")).output() else {
            println!("skipped: {name}: needs python3");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{generation}: {said}{complaint}");
        assert!(said.contains("hold what they should; nothing is left"), "{generation}: {said}");
        println!("{said}");
    }
}
