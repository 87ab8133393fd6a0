//! `hoist cuobjdump` and `hoist nvprune` beside NVIDIA's tools, line by line, and `hoist fatbin disasm` beside nvdisasm: over all
//! fixtures that have device code.
//!
//! The tools are those on PATH, where `.ci/run` puts them, with a library in `target/cuda-tools/lib`; `HOIST_CUDA_LIBRARIES` names a folder with more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

#[path = "nvidia/elf.rs"]
mod elf;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A tool of NVIDIA's, or says that the test is skipped.
fn tool(name: &str, test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|at| at.join(name)).find(|at| at.is_file());
    if found.is_none() {
        println!("skipped: {test}: needs {name}");
    }
    found
}

/// Files with device code.
fn files() -> Vec<PathBuf> {
    let mut all = Vec::new();
    let more = std::env::var_os("HOIST_CUDA_LIBRARIES").map(PathBuf::from);
    let folders = ["fixtures/fatbin", "fixtures/cuda"].map(|name| root().join(name));
    let library = Some(root().join("target/cuda-tools/lib")).filter(|folder| folder.is_dir());
    for folder in folders.into_iter().chain(library).chain(more) {
        let entries = fs::read_dir(folder).expect("a folder");
        all.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    let ends = [".fatbin", ".cubin", ".so", ".o", ".a"];
    all.retain(|path| {
        let name = path.to_string_lossy();
        ends.iter().any(|end| name.ends_with(end)) || name.contains(".so.")
    });
    all.sort();
    all
}

fn run(tool: &Path, words: &[&str], file: &Path) -> Output {
    let mut command = Command::new(tool);
    command.args(words).arg(file).output().expect("it runs")
}

fn hoist(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(words);
    command
}

/// The lines that scripts look at: not flags of headers.
fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let is_kept = |line: &&str| !line.trim().is_empty() && !line.starts_with("\t.headerflags");
    text.lines().filter(is_kept).map(str::to_owned).collect()
}

const OPTIONS: [&[&str]; 9] = [
    &["-lelf"],
    &["-lptx"],
    &["-lelf", "-all"],
    &["-lptx", "-all", "-arch", "sm_80"],
    &["-symbols"],
    &["-ptx"],
    &["-res-usage"],
    &["-lelf", "-arch", "sm_90"],
    &["-lelf", "-all", "-arch", "sm_100f"],
];

#[test]
fn cuobjdump_prints_the_same_lines() {
    let Some(cuobjdump) = tool("cuobjdump", "cuobjdump_prints_the_same_lines") else { return };
    let (mut compared, mut different, mut files_compared) = (0usize, Vec::new(), 0);
    for file in files() {
        files_compared += 1;
        for options in OPTIONS {
            let theirs = run(&cuobjdump, options, &file);
            if !theirs.status.success() {
                continue; // of architectures that it gave up, or damaged
            }
            let ours =
                hoist(&[&["cuobjdump"], options].concat()).arg(&file).output().expect("hoist runs");
            let (mut theirs, mut ours) = (lines(&theirs), lines(&ours));
            // from sm_100 on cuobjdump counts no textures
            let counts_less = options == ["-res-usage"]
                && file.to_string_lossy().ends_with("places-13.5-sm_100.cubin");
            if counts_less {
                continue;
            }
            if options == ["-res-usage"] && file.extension().is_some_and(|end| end == "a") {
                // of what is not linked, cuobjdump has an order of its own
                (theirs, ours) = (sorted(theirs), sorted(ours));
            }
            compared += theirs.len().max(ours.len());
            let pairs = theirs.len().max(ours.len());
            let differs = (0..pairs).find(|at| theirs.get(*at) != ours.get(*at));
            if let Some(at) = differs {
                different.push(format!(
                    "{} {options:?}: {:?}, cuobjdump says {:?}",
                    file.display(),
                    ours.get(at),
                    theirs.get(at)
                ));
            }
        }
    }
    println!("{files_compared} files, {compared} lines, {} different", different.len());
    assert!(different.is_empty(), "{different:#?}");
    assert!(compared >= 3800, "{compared} lines, expected 3800");
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Of a member that has nothing linked, what is to be linked is shown, whatever the others have.
#[test]
fn each_member_is_shown_for_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("lib.a");
    let mut bytes = b"!<arch>\n".to_vec();
    for name in ["whole.o", "separate.o"] {
        let mut member = fs::read(root().join("fixtures/fatbin").join(name)).expect("a fixture");
        member.resize(member.len().next_multiple_of(2), b'\n');
        bytes.extend(format!("{:<48}{:<10}`\n", format!("{name}/"), member.len()).as_bytes());
        bytes.extend(&member);
    }
    fs::write(&library, bytes).expect("a library");
    let ours = hoist(&["cuobjdump", "-lelf"]).arg(&library).output().expect("hoist runs");
    let ours = lines(&ours);
    assert_eq!(ours.iter().filter(|line| line.starts_with("member ")).count(), 2, "{ours:#?}");
    assert!(ours.iter().filter(|line| line.starts_with("ELF file ")).count() >= 2, "{ours:#?}");
    let Some(cuobjdump) = tool("cuobjdump", "each_member_is_shown_for_itself") else { return };
    assert_eq!(lines(&run(&cuobjdump, &["-lelf"], &library)), ours);
}

#[test]
fn cuobjdump_extracts_and_shows_code() {
    let test = "cuobjdump_extracts_and_shows_code";
    let (Some(cuobjdump), Some(nvdisasm)) = (tool("cuobjdump", test), tool("nvdisasm", test))
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let [theirs, ours] = ["theirs", "ours"].map(|name| folder.path().join(name));
    let file = root().join("fixtures/fatbin/suffixes.fatbin").canonicalize().expect("a file");
    for at in [&theirs, &ours] {
        fs::create_dir(at).expect("a folder");
    }
    let options = ["-xelf", "all", "-xptx", "all"];
    let said = Command::new(&cuobjdump)
        .args(options)
        .arg(&file)
        .current_dir(&theirs)
        .output()
        .expect("it runs");
    let say = hoist(&["cuobjdump"])
        .args(options)
        .arg(&file)
        .current_dir(&ours)
        .output()
        .expect("hoist runs");
    assert_eq!(lines(&said), lines(&say));
    for entry in fs::read_dir(&theirs).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        assert_eq!(
            fs::read(theirs.join(&name)).unwrap(),
            fs::read(ours.join(&name)).unwrap(),
            "{name:?}"
        );
    }
    // instructions, of all functions and of one that is named
    let (mut instructions, mut named) = (0, 0);
    // each is a process of each tool for every cubin in it
    let step = if env::var_os("HOIST_NVIDIA_TOOLS").is_some() { 1 } else { 8 };
    for file in files().into_iter().step_by(step) {
        let both = |options: &[&str]| {
            let ours = hoist(&["cuobjdump", "-sass"])
                .args(options)
                .arg(&file)
                .env("NVDISASM", &nvdisasm)
                .output()
                .expect("hoist runs");
            let theirs = run(&cuobjdump, &[&["-sass"], options].concat(), &file);
            (String::from_utf8(theirs.stdout).unwrap(), String::from_utf8(ours.stdout).unwrap())
        };
        let (theirs, ours) = both(&[]);
        if !theirs.contains("/*0000*/") {
            continue; // of architectures that it gave up
        }
        let theirs: Vec<_> = theirs.lines().collect();
        let ours: Vec<_> = ours.lines().collect();
        assert_eq!(theirs, ours, "{}", file.display());
        instructions += theirs.len();
        let name = theirs.iter().find_map(|line| line.trim_start().strip_prefix("Function : "));
        let (theirs, ours) = both(&["-fun", name.expect("a function")]);
        assert_eq!(theirs, ours, "{}", file.display());
        named += 1;
    }
    println!("{instructions} lines of code, {named} files of which one function was shown");
    assert!(instructions >= 1000 && named >= 5, "{instructions} lines of code, {named} files");
}

#[test]
fn instructions_are_those_of_nvdisasm() {
    let Some(nvdisasm) = tool("nvdisasm", "instructions_are_those_of_nvdisasm") else { return };
    let file = root().join("fixtures/cuda/kernels-13.5-sm_80.cubin");
    let theirs = run(&nvdisasm, &["-c", "-json"], &file).stdout;
    let theirs: Value = serde_json::from_slice(&theirs).expect("JSON");
    let mut command = hoist(&["fatbin", "disasm", "--json", "--live", "--lines"]);
    let ours = command.arg(&file).env("NVDISASM", &nvdisasm).output().expect("hoist runs");
    let ours: Value = serde_json::from_slice(&ours.stdout).expect("JSON");
    let (theirs, ours) = (theirs[1].as_array().unwrap(), ours["functions"].as_array().unwrap());
    assert_eq!(theirs.len(), ours.len());
    for our in ours {
        let their =
            theirs.iter().find(|one| one["function-name"] == our["name"]).expect("the function");
        let their = their["sass-instructions"].as_array().unwrap();
        let our = our["instructions"].as_array().unwrap();
        assert!(our.len() > 2 && our.len() <= their.len());
        for (our, their) in our.iter().zip(their) {
            let text = our["text"].as_str().unwrap();
            assert!(text.contains(their["opcode"].as_str().unwrap()), "{text}");
        }
        assert!(our.iter().any(|one| one["live"]["GPR"].as_u64() > Some(1)));
    }
    // one function is that function alone
    let mut command = hoist(&["cubin", "disasm"]);
    let text = command
        .arg(&file)
        .arg("shared_memory")
        .env("NVDISASM", &nvdisasm)
        .output()
        .expect("hoist runs");
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.lines().count() < 25 && text.starts_with("shared_memory\n"), "{text}");
    for (form, start) in [("dot", "digraph {"), ("svg", "<svg "), ("text", "shared_memory\n")] {
        let mut command = hoist(&["cubin", "disasm"]);
        command
            .arg(&file)
            .arg("shared_memory")
            .arg(format!("--cfg={form}"))
            .env("NVDISASM", &nvdisasm);
        let text = command.output().expect("hoist runs").stdout;
        assert!(text.starts_with(start.as_bytes()), "{form}");
    }
}

#[test]
fn nvprune_keeps_what_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let file = root().join("fixtures/fatbin/concat.fatbin").canonicalize().expect("a file");
    let list = |name: &str| {
        let output =
            hoist(&["cuobjdump", "-lelf"]).arg(at.join(name)).output().expect("hoist runs");
        String::from_utf8(output.stdout).expect("text")
    };
    for (name, options) in [
        ("a", &["-arch=sm_80"][..]),
        ("b", &["-gencode", "arch=compute_80,code=sm_80"]),
        ("c", &["--generate-code", "arch=compute_80,code=[sm_80,compute_80]"]),
    ] {
        let output = hoist(&["nvprune"])
            .args(options)
            .arg("-o")
            .arg(at.join(name))
            .arg(&file)
            .output()
            .expect("hoist runs");
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert_eq!(list(name), format!("ELF file    1: {name}.1.sm_80.cubin\n"));
    }
    let said = |words: &[&str]| {
        let output = hoist(words).output().expect("hoist runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("text")
    };
    assert_eq!(said(&["nvprune", "-noise", "x"]), "hoist: nvprune: option -noise is not taken\n");
    assert_eq!(
        said(&["cuobjdump", "-ltext", "x"]),
        "hoist: cuobjdump: option -ltext is not taken\n"
    );
}

/// A link of another name is that tool.
#[test]
#[cfg(unix)]
fn the_name_of_the_program_is_the_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let [cuobjdump, nvprune] = ["cuobjdump", "nvprune"].map(|name| {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hoist"), &link).expect("a link");
        link
    });
    let file = root().join("fixtures/fatbin/concat.fatbin");
    let listed = |file: &Path| {
        let output = run(&cuobjdump, &["-lelf"], file);
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(listed(&file).starts_with("ELF file    1: concat.1.sm_75.cubin\n"));
    let less = folder.path().join("less.fatbin");
    let words = ["-arch", "sm_80", "-o", less.to_str().expect("text")];
    let output = run(&nvprune, &words, &file);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert_eq!(listed(&less), "ELF file    1: less.1.sm_80.cubin\n");
}

#[test]
fn tools_tell_their_release_and_options() {
    for (tool, option) in [("cuobjdump", "--dump-sass"), ("nvprune", "--generate-code")] {
        let said = |word: &str| {
            let output = hoist(&[tool, word]).output().expect("hoist runs");
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            String::from_utf8(output.stdout).expect("text")
        };
        let version = said("--version");
        assert!(version.contains("release 13.5, V13.5.37\n"), "{version}");
        assert_eq!(version, said("-V"));
        assert!(said("--help").contains(option) && said("-h") == said("--help"));
    }
    // the release that is compared with
    let Some(cuobjdump) = tool("cuobjdump", "tools_tell_their_release_and_options") else { return };
    let output = Command::new(cuobjdump).arg("--version").output().expect("it runs");
    let theirs = String::from_utf8(output.stdout).expect("text");
    assert!(theirs.contains("release 13.5, V13.5.37\n"), "{theirs}");
}

/// Archives of files, and standard input, in place of a file.
#[test]
fn cuobjdump_looks_into_archives_and_standard_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = root().join("fixtures/fatbin/concat.fatbin");
    let alone = hoist(&["cuobjdump", "-lelf"]).arg(&file).output().expect("hoist runs").stdout;
    let archive = folder.path().join("all.tar");
    let mut tar = tar::Builder::new(fs::File::create(&archive).expect("a file"));
    tar.append_path_with_name(&file, "lib/concat.fatbin").expect("a member");
    tar.append_path_with_name(root().join("README.md"), "README.md").expect("a member");
    tar.finish().expect("an archive");
    let output = hoist(&["cuobjdump", "-lelf"]).arg(&archive).output().expect("hoist runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let head = format!("\nmember {}:lib/concat.fatbin:\n", archive.display());
    assert_eq!(text, head + &String::from_utf8(alone.clone()).expect("text"));
    let stdin = fs::File::open(&file).expect("a file");
    let output = hoist(&["cuobjdump", "-lelf", "-"]).stdin(stdin).output().expect("hoist runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.replace("standard-input.", "concat."), String::from_utf8(alone).expect("text"));
    // what changes a file says who looks into an archive
    let out = folder.path().join("out");
    let out = out.to_str().expect("text");
    for words in [
        &["nvprune", "-arch", "sm_80", "-o", out][..],
        &["fatbin", "prune", "--keep", "sm_80", "-o", out],
        &["fatbin", "recompress", "--with", "none", "-o", out],
        &["fatbin", "pack", "-o", out],
        &["cubin", "patch", "-o", out],
    ] {
        let output = hoist(words).arg(&archive).output().expect("hoist runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.contains("an archive of files: `hoist fatbin list` looks into it"), "{said}");
        assert_eq!(output.status.code(), Some(1));
    }
    // objects to link are inside archives, too
    let [a, b] =
        ["a", "b"].map(|half| root().join(format!("fixtures/cuda/calls_{half}-13.5-sm_90.cubin")));
    let mut tar = tar::Builder::new(fs::File::create(&archive).expect("a file"));
    for (half, name) in [(&a, "a.cubin"), (&b, "b.cubin")] {
        tar.append_path_with_name(half, name).expect("a member");
    }
    tar.finish().expect("an archive");
    let linked = |files: &[&Path]| {
        let output = hoist(&["cubin", "link", "-o", out]).args(files).output().expect("hoist runs");
        assert!(output.status.success(), "{output:?}");
        fs::read(out).expect("a cubin")
    };
    assert_eq!(linked(&[&archive]), linked(&[&a, &b]));
}
