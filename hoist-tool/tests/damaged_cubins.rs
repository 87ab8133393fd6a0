//! Damaged cubins through every `hoist cubin` command, for people and for programs: an error or an answer, no panic.
//!
//! `DAMAGE=10000 cargo test --release -p hoist-tool --test damaged_cubins` makes so many changes of each fixture.

#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a test")]

use std::path::Path;

use clap::Parser;
use hoist_tool::cmd::cubin::Cubin;
use nvinfo::Function;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    cubin: Cubin,
}

/// Runs every command on the cubin at `path`: how many succeeded.
fn everything(path: &str, kernel: &str) -> usize {
    let output = format!("{path}.out");
    let lines: [&[&str]; 9] = [
        &["show", path],
        &["show", "--json", path],
        &["show", "--json", path, kernel],
        &["show", path, kernel],
        &["attributes", path],
        &["attributes", "--json", path],
        &["relocs", "--json", path],
        &["params", path, kernel],
        &[
            "patch",
            path,
            "-f",
            kernel,
            "-o",
            &output,
            "--json",
            "--registers",
            "9",
            "--stack",
            "8",
            "--code",
            "0x10=4d79",
        ],
    ];
    let run = |line: &&[&str]| {
        let line = Line::try_parse_from(["hoist"].iter().chain(*line)).expect("a command line");
        line.cubin.run(&mut std::io::sink()).is_ok()
    };
    lines.iter().filter(|line| run(line)).count()
}

#[test]
fn changed_and_cut_cubins_do_no_harm() {
    let changes = std::env::var("DAMAGE").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("damaged.cubin");
    let file = path.to_str().expect("a name");
    let mut state = 7u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut done, mut cases) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let fixture = entry.expect("an entry").path();
        if fixture.extension().is_none_or(|extension| extension != "cubin") {
            continue;
        }
        let bytes = std::fs::read(&fixture).expect("a file");
        let cubin = nvinfo::Cubin::parse(&bytes).expect("a cubin");
        let kernel = cubin.functions().find(Function::is_kernel).or(cubin.functions().next());
        let kernel = kernel.map_or_else(|| "none".to_owned(), |kernel| kernel.name().to_string());
        for number in 0..changes {
            let mut damaged = bytes.clone();
            if number % 8 == 0 {
                damaged.truncate(random(bytes.len()));
            } else {
                for _ in 0..=random(3) {
                    damaged[random(bytes.len())] = random(256) as u8;
                }
            }
            std::fs::write(&path, &damaged).expect("written");
            done += everything(file, &kernel);
            cases += 1;
        }
    }
    println!("{cases} damaged files, {done} commands succeeded");
    assert!(done > cases, "most changes leave files that can be read");
}
