//! `raw-mock`: GPUs without CUDA, on the mock of driver and GPU that another project has.

use std::path::Path;

use anyhow::{Result, bail};

use crate::task::Run;
use crate::tool;
use crate::workspace::Workspace;

/// Arguments of `raw-mock`.
#[derive(clap::Args)]
pub(crate) struct RawMock {}

/// Checkouts that environment variables name.
const CHECKOUTS: [(&str, &str); 2] = [
    ("HOIST_TINYGRAD", "tinygrad/tinygrad: its package has no tests"),
    ("HOIST_OPEN_GPU_DOC", "NVIDIA/open-gpu-doc: classes/compute/*qmd.h"),
];

impl Run for RawMock {
    fn run(self, workspace: &Workspace) -> Result<()> {
        for (variable, what) in CHECKOUTS {
            let checkout = std::env::var_os(variable);
            if !checkout.is_some_and(|checkout| Path::new(&checkout).is_dir()) {
                bail!("set {variable} to a checkout of {what}");
            }
        }
        let cargo = |words: &[&str]| {
            let mut cargo = tool::cargo();
            cargo.current_dir(workspace.root()).args(words);
            tool::run(cargo.args(["-p", "exec-nv", "--features", "raw"]))
        };
        cargo(&["build", "--example", "raw_mock"])?;
        let mut tests = tool::cargo();
        tests.current_dir(workspace.root()).args(["test", "-p", "exec-nv", "--features", "raw"]);
        tests.args(["--test", "raw_mock", "--test", "qmd_headers", "--", "--nocapture"]);
        tool::run(&mut tests)
    }
}
