//! What `hoist cubin show` says of kernels beside what ptxas said when it made them: registers, barriers, shared and stack memory,
//! parameters. Of the fixtures' sources, for every kind of GPU that ptxas of PATH makes code for.

#![allow(clippy::expect_used, clippy::panic, missing_docs, reason = "a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hoist_tool::cmd::cubin;
use nvinfo::Cubin;

/// Sources are made for those that are not below what they ask for.
const ARCHITECTURES: [&str; 8] =
    ["sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120"];

/// Kernels that are compared, at the least.
const EXPECTED: usize = 150;

/// A kernel: registers, barriers, bytes of shared memory, of its frame and of constant bank 0, of which ptxas says nothing from sm_90 on.
type Usage = [u64; 5];

/// The usage of each kernel as ptxas writes it:
///
/// ```text
/// ptxas info    : Compiling entry function 'alone' for 'sm_80'
/// ptxas info    : Function properties for alone
///     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
/// ptxas info    : Used 24 registers, used 3 barriers, 160 bytes smem, 360 bytes cmem[0]
/// ```
fn said(text: &str) -> BTreeMap<String, Usage> {
    let (mut kernels, mut kernel, mut function, mut frame) = (BTreeMap::new(), "", "", 0);
    for line in text.lines() {
        let line = line.trim_start_matches("ptxas info").trim_start_matches([' ', ':']);
        let number = |what: &str| -> u64 {
            let before = line.find(what).and_then(|at| line.get(..at));
            before
                .and_then(|text| text.trim_end().rsplit([' ', ',']).next())
                .map_or(0, |word| word.parse().expect("a number"))
        };
        if let Some(rest) = line.strip_prefix("Compiling entry function '") {
            kernel = rest.split('\'').next().unwrap_or_default();
        } else if let Some(rest) = line.strip_prefix("Function properties for ") {
            function = rest;
        } else if line.contains("bytes stack frame") && function == kernel {
            frame = number("bytes stack frame");
        } else if line.starts_with("Used ") && !kernel.is_empty() {
            let usage = [
                number("registers"),
                number("barriers"),
                number("bytes smem"),
                frame,
                number("bytes cmem[0]"),
            ];
            kernels.insert(kernel.to_owned(), usage);
            kernel = "";
        }
    }
    kernels
}

/// Whether ptxas says how large constant bank 0 is.
fn is_told(arch: &str) -> bool {
    ["sm_75", "sm_80", "sm_86"].contains(&arch)
}

#[test]
fn kernels_need_what_ptxas_said() {
    if Command::new("ptxas").arg("--version").output().is_err() {
        println!("skipped: kernels_need_what_ptxas_said: needs ptxas");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut sources: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|end| end == "ptx"));
    sources.sort();
    let scratch = tempfile::tempdir().expect("a folder");
    let cubin = scratch.path().join("cubin");
    let (mut compared, mut different) = (0, Vec::new());
    for source in &sources {
        for arch in ARCHITECTURES {
            let mut ptxas = Command::new("ptxas");
            ptxas.args(["-v", "-c", "-arch", arch]).arg(source).arg("-o").arg(&cubin);
            let output = ptxas.output().expect("ptxas runs");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() {
                // of a higher architecture, of 32 bits
                assert!(text.contains(".target") || text.contains("32-Bit"), "{text}");
                continue;
            }
            let bytes = std::fs::read(&cubin).expect("a file");
            let parsed = Cubin::parse(&bytes).expect("a cubin");
            let shown = cubin::report(&parsed, &[], None).expect("kernels").expect("all of it");
            let theirs = said(&text);
            let label = format!("{} {arch}", source.display());
            assert_eq!(shown.kernels.len(), theirs.len(), "{label}: {text}");
            for kernel in &shown.kernels {
                compared += 1;
                let bank = kernel.constant_banks.iter().find(|bank| bank.bank == 0);
                let ours: Usage = [
                    kernel.registers.unwrap_or_default().into(),
                    kernel.barriers.into(),
                    kernel.shared,
                    kernel.frame_size.unwrap_or_default().into(),
                    bank.filter(|_| is_told(arch)).map_or(0, |bank| bank.size),
                ];
                match theirs.get(&*kernel.name) {
                    Some(theirs) if *theirs == ours => {}
                    theirs => {
                        different.push(format!(
                            "{label}: {}: {ours:?}, ptxas said {theirs:?}",
                            kernel.name
                        ));
                    }
                }
            }
        }
    }
    println!("{compared} kernels, {} different", different.len());
    assert!(different.is_empty(), "{different:#?}");
    assert!(compared >= EXPECTED, "{compared} kernels, expected {EXPECTED}");
}
