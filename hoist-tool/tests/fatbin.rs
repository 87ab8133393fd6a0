//! `hoist fatbin`, run as a user does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

#[path = "fatbin/hosts.rs"]
mod hosts;
#[path = "fatbin/kept.rs"]
mod kept;
#[path = "fatbin/memory.rs"]
mod memory;
#[path = "fatbin/nested.rs"]
mod nested;
#[path = "fatbin/nvvm.rs"]
mod nvvm;
#[path = "fatbin/real.rs"]
mod real;
#[path = "fatbin/runtime.rs"]
mod runtime;
#[path = "fatbin/sycl.rs"]
mod sycl;
#[path = "fatbin/tools.rs"]
mod tools;

/// A file among the fixtures.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/fatbin").join(name)
}

/// `hoist fatbin` with these words, in a folder.
fn hoist(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.arg("fatbin").args(words).current_dir(folder).stdin(Stdio::null());
    command.output().expect("hoist runs")
}

/// What is printed on success.
fn printed(folder: &Path, words: &[&str]) -> String {
    let output = hoist(folder, words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{words:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one line on standard error.
fn refused(folder: &Path, words: &[&str]) -> String {
    let output = hoist(folder, words);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{words:?}: {error}");
    assert_eq!(error.matches('\n').count(), 1, "{words:?}: {error}");
    error.trim_end().strip_prefix("hoist: ").expect("who says it").to_owned()
}

/// What `--json` prints.
fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&printed(folder, words)).expect("JSON")
}

/// A folder with copies of fixtures.
fn folder(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in names {
        fs::copy(fixture(name), folder.path().join(name)).expect("a fixture");
    }
    folder
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn list_says_what_headers_say() {
    let folder =
        folder(&["suffixes.fatbin", "concat.fatbin", "libt.so", "offloading.o", "bundle.ccob"]);
    let at = folder.path();
    let listed = json(at, &["list", "--json", "suffixes.fatbin", "libt.so"]);
    let file = &listed["files"][0];
    assert_eq!((&file["file"], &file["size"]), (&"suffixes.fatbin".into(), &2592.into()));
    let entry = &file["regions"][0]["entries"][1];
    for (key, value) in [
        ("kind", "elf".into()),
        ("arch", "sm_100f".into()),
        ("suffix", "f".into()),
        ("stored_size", 1240.into()),
        ("unpacked_size", 4954.into()),
        ("compression", "zstd".into()),
        ("identifier", "".into()),
        ("options", Value::Null),
        (
            "flag_names",
            serde_json::json!(["ADDRESS_64", "DEBUG", "LINUX", "ZSTD", "FAMILY", "COMPAT"]),
        ),
    ] {
        assert_eq!(entry[key], value, "{key}");
    }
    let regions = &listed["files"][1]["regions"];
    assert_eq!(
        (&regions[1]["section"], &regions[1]["index"]),
        (&"__nv_relfatbin".into(), &1.into())
    );
    let text = printed(at, &["list", "concat.fatbin"]);
    assert!(text.contains("concatenated") && text.contains("sm_90a"), "{text}");
    let text = printed(at, &["list", "offloading.o"]);
    assert!(text.contains("hip amdgcn-amd-amdhsa") && text.contains("gfx90a"), "{text}");
    // what says for what it is only when it is unpacked
    for (command, row) in [
        ("list", "        hipv4       gfx90a                  "),
        ("scan", "gfx90a  1                0"),
    ] {
        let text = printed(at, &[command, "bundle.ccob"]);
        assert!(text.contains(row) && !text.contains("host"), "{text}");
    }
    let damaged = read(at, "bundle.ccob");
    fs::write(at.join("cut.ccob"), &damaged[..damaged.len() / 2]).expect("a file");
    let said = refused(at, &["scan", "cut.ccob"]);
    assert!(said.starts_with("cut.ccob: "), "{said}");
    // a file for AMD's GPUs, of a cubin
    let mut object = fs::read(fixture("k75.cubin")).expect("a fixture");
    (object[7], object[8], object[18]) = (64, 2, 224);
    object[48..52].copy_from_slice(&0x93f_u32.to_le_bytes());
    fs::write(at.join("k.hsaco"), object).expect("a file");
    for (command, row) in [
        ("list", "o     gfx90a:sramecc-"),
        ("list", "amdgcn-amd-amdhsa  code object"),
        ("scan", "gfx90a:sramecc-  1                0"),
    ] {
        let text = printed(at, &[command, "k.hsaco"]);
        assert!(text.contains(row), "{text}");
    }
    fs::write(at.join("text"), "nothing").expect("a file");
    assert_eq!(refused(at, &["list", "text"]), "text: holds no device code");
    // device code in no container
    fs::write(at.join("k.ptx"), "//\n.version 8.0\n.target sm_80\n").expect("a file");
    fs::write(at.join("k.ltoir"), 0x7f4e_43ed_u32.to_le_bytes()).expect("a file");
    fs::write(at.join("k.spv"), 0x0723_0203_u32.to_le_bytes()).expect("a file");
    for command in ["list", "scan", "extract"] {
        let said = refused(at, &[command, "k.ptx"]);
        assert_eq!(said, "k.ptx: is PTX in no container: hoist fatbin ptx shows it", "{command}");
        let said = refused(at, &[command, "k.ltoir"]);
        let expected = "k.ltoir: is LTO-IR in no container, which hoist fatbin pack makes";
        assert_eq!(said, expected, "{command}");
        let said = refused(at, &[command, "k.spv"]);
        let expected = "k.spv: is SPIR-V in no container, which hoist fatbin offload pack makes";
        assert_eq!(said, expected, "{command}");
    }
    fs::write(at.join("text.xz"), b"\xfd7zXZ\0\0\x04").unwrap();
    assert_eq!(
        refused(at, &["list", "text.xz"]),
        "text.xz: is a file compressed by xz, which is not looked into"
    );
}

#[test]
fn extract_names_as_cuobjdump_and_never_twice() {
    let folder = folder(&["suffixes.fatbin", "concat.fatbin", "none.fatbin", "whole.o", "libt.so"]);
    let at = folder.path();
    assert_eq!(
        printed(at, &["extract", "suffixes.fatbin", "concat.fatbin", "-o", "out"]),
        "suffixes.1.sm_90a.cubin\nsuffixes.2.sm_100.cubin\nsuffixes.1.sm_90a.ptx\n\
         concat.1.sm_75.cubin\nconcat.2.sm_80.cubin\nconcat.3.sm_90a.cubin\n"
    );
    for (name, original) in [
        ("suffixes.1.sm_90a.cubin", "k90a.cubin"),
        ("suffixes.2.sm_100.cubin", "k100f.cubin"),
        ("concat.2.sm_80.cubin", "k80.cubin"),
    ] {
        assert_eq!(read(&at.join("out"), name), fs::read(fixture(original)).expect("a fixture"));
    }
    // one that is not compressed has zeros behind it up to a multiple of eight, which are no part of it
    let original = fs::read(fixture("k100f.cubin")).expect("a fixture");
    assert!(!original.len().is_multiple_of(8));
    fs::write(at.join("k100f.cubin"), &original).expect("a file");
    printed(at, &["pack", "k100f.cubin", "-o", "plain.fatbin"]);
    printed(at, &["extract", "plain.fatbin", "-o", "out"]);
    assert_eq!(read(&at.join("out"), "plain.1.sm_100.cubin"), original);
    // named for the identifier, once
    let twice = [read(at, "none.fatbin"), read(at, "none.fatbin")].concat();
    fs::write(at.join("twice.fatbin"), twice).expect("a file");
    assert_eq!(
        printed(at, &["extract", "twice.fatbin", "--kind", "elf"]),
        "k.sm_75.cubin\nk.2.sm_75.cubin\n"
    );
    // as cuobjdump counts: `.nv_fatbin` first
    let listed = json(at, &["extract", "--json", "libt.so"]);
    assert_eq!(listed["files"][0]["name"], "libt.1.sm_75.cubin");
    let output = hoist(at, &["extract", "suffixes.fatbin", "--kind", "ptx", "-o", "-"]);
    assert_eq!(output.stdout, read(&at.join("out"), "suffixes.1.sm_90a.ptx"));
    let said = refused(at, &["extract", "suffixes.fatbin", "-o", "-"]);
    assert!(
        said.starts_with("suffixes.fatbin: 3 entries, but standard output takes one"),
        "{said}"
    );
    assert_eq!(
        refused(at, &["extract", "suffixes.fatbin", "--arch", "sm_70"]),
        "suffixes.fatbin: nothing to extract; images of LLVM's containers: hoist fatbin offload extract"
    );
}

#[test]
fn what_was_extracted_before_a_bad_entry_stays() {
    let folder = folder(&["suffixes.fatbin"]);
    let at = folder.path();
    let whole = read(at, "suffixes.fatbin");
    // the third entry claims a terabyte; is cut; is damaged
    let mut bomb = whole.clone();
    bomb[2352 + 0x38..2352 + 0x40].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let mut damaged = whole.clone();
    damaged[2352 + 0x50..].fill(0xff);
    let mut lying = whole.clone();
    lying[2352 + 8..2352 + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    for (bytes, message) in [
        (bomb, "1099511627776 bytes claimed at offset 0x968, where zstd can hold"),
        (damaged, "at offset 0x9"),
        (lying, "payload of 0xffffffffffffffff bytes at offset 0x980"),
    ] {
        fs::write(at.join("bad.fatbin"), bytes).expect("a file");
        let out = at.join("out");
        let said = refused(at, &["extract", "-q", "bad.fatbin", "-o", "out"]);
        assert!(said.starts_with("bad.fatbin: ") && said.contains(message), "{said}");
        assert_eq!(
            read(&out, "bad.2.sm_100.cubin"),
            fs::read(fixture("k100f.cubin")).expect("a fixture")
        );
        assert!(!out.join("bad.1.sm_90a.ptx").exists());
        fs::remove_dir_all(out).expect("a folder");
    }
    assert!(!hoist(at, &["list", "--json", "bad.fatbin"]).status.success());
}

#[test]
fn select_says_what_a_driver_takes() {
    let folder = folder(&["concat.fatbin", "libt.so"]);
    let at = folder.path();
    let choices =
        json(at, &["select", "--json", "--sm", "86", "--cuda", "13.0", "concat.fatbin", "libt.so"]);
    let choice = &choices["choices"][0];
    assert_eq!(
        (&choice["part"], &choice["arch"], &choice["fit"]),
        (&1.into(), &"sm_80".into(), &"lower minor".into())
    );
    assert_eq!(choices["choices"][1]["entry"], Value::Null);
    // zstd is for drivers from 12.4 on
    let choices = json(at, &["select", "--json", "--sm", "86", "--cuda", "12.3", "concat.fatbin"]);
    assert_eq!(choices["choices"][0]["entry"], Value::Null);
    // without a version the newest is meant
    let newest = json(at, &["select", "--json", "--sm", "86", "concat.fatbin"]);
    assert_eq!(
        (&newest["choices"][0]["part"], &newest["choices"][0]["arch"]),
        (&1.into(), &"sm_80".into())
    );
}

/// NVVM that nvcc encrypted is said, and no error unless that is asked for; all else is written.
#[test]
fn encrypted_code_is_said() {
    let folder = folder(&["lto.fatbin", "concat.fatbin"]);
    let at = folder.path();
    let output = hoist(at, &["extract", "lto.fatbin", "concat.fatbin", "-o", "out"]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        output.status.success() && said.contains("region 0 entry 0: encrypted NVVM, left out"),
        "{said}"
    );
    assert_eq!(fs::read_dir(at.join("out")).expect("a folder").count(), 3);
    let words = ["extract", "--encrypted-is-error", "lto.fatbin", "concat.fatbin", "-o", "again"];
    assert!(refused(at, &words).contains("encrypted NVVM"));
    assert_eq!(fs::read_dir(at.join("again")).expect("a folder").count(), 3);
}

/// An architecture with its suffix is that of the file, without being named.
#[test]
fn packed_code_has_its_architecture() {
    let folder = folder(&["k100f.cubin", "k90a.cubin", "k80.cubin"]);
    let at = folder.path();
    printed(at, &["pack", "-o", "p.fatbin", "k100f.cubin", "k90a.cubin", "k80.cubin"]);
    let listed = json(at, &["list", "--json", "p.fatbin"]);
    let entries = listed["files"][0]["regions"][0]["entries"].as_array().expect("a list");
    let archs: Vec<_> = entries.iter().map(|entry| entry["arch"].as_str().expect("text")).collect();
    assert_eq!(archs, ["sm_100f", "sm_90a", "sm_80"]);
}

#[test]
fn packed_is_extracted_again() {
    let names = ["k75.cubin", "k80.cubin", "k90a.cubin", "k100f.cubin", "k.ptx"];
    let folder = folder(&names);
    let at = folder.path();
    for method in ["none", "zlib", "lz4", "lz4-frame", "zstd"] {
        for concat in [false, true] {
            let mut words = vec!["pack", "-o", "p.fatbin", "--compress", method];
            words.extend(concat.then_some("--concat"));
            words.extend(["k75.cubin", "k80.cubin", "k90a.cubin", "100f=k100f.cubin", "k.ptx"]);
            assert_eq!(printed(at, &words), "");
            printed(at, &["extract", "p.fatbin", "-o", "out"]);
            for (name, original) in [
                ("p.1.sm_75.cubin", "k75.cubin"),
                ("p.2.sm_80.cubin", "k80.cubin"),
                ("p.3.sm_90a.cubin", "k90a.cubin"),
                ("p.4.sm_100.cubin", "k100f.cubin"),
                ("p.1.sm_75.ptx", "k.ptx"),
            ] {
                let (packed, original) = (read(&at.join("out"), name), read(at, original));
                assert!(packed.starts_with(&original), "{method} {concat} {name}");
                assert!(packed.len() - original.len() < 8, "{method} {concat} {name}");
            }
        }
    }
    assert_eq!(
        refused(at, &["pack", "-o", "p.fatbin", "sm_80=k75.cubin"]),
        "k75.cubin: is for 75, not for 80"
    );
}

#[test]
fn digests_are_those_of_code_however_it_is_stored() {
    let folder = folder(&["k75.cubin", "k80.cubin", "k.ptx", "concat.fatbin", "libt.so"]);
    let at = folder.path();
    let mut found = Vec::new();
    for method in ["none", "zlib", "lz4", "lz4-frame", "zstd"] {
        let words = ["pack", "-o", "p.fatbin", "--compress", method];
        printed(at, &[&words[..], &["k75.cubin", "k80.cubin", "k.ptx"]].concat());
        let listed = json(at, &["list", "--json", "--digest", "p.fatbin"]);
        let entries = listed["files"][0]["regions"][0]["entries"].as_array().expect("entries");
        found.push(entries.iter().map(|entry| entry["sha256"].clone()).collect::<Vec<_>>());
    }
    assert!(found.iter().all(|digests| digests.len() == 3 && *digests == found[0]), "{found:?}");
    let output = Command::new("sha256sum").arg(at.join("k75.cubin")).output();
    if let Ok(output) = output {
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.starts_with(found[0][0].as_str().expect("a digest")), "{text}");
    }
    let listed = json(at, &["list", "--json", "--digest", "concat.fatbin"]);
    let entry = &listed["files"][0]["regions"][0]["entries"][0];
    assert_eq!(entry["sha256"], Value::Null);
    let parts = entry["parts"].as_array().expect("parts");
    assert!(parts.iter().all(|part| part["sha256"].is_string()) && parts.len() == 3, "{parts:?}");
    assert_eq!(parts[1]["sha256"], found[0][1]);
    assert_eq!(refused(at, &["list", "--digest", "libt.so"]), "--digest is for --json");
}

#[test]
fn offload() {
    let folder = folder(&[
        "packager-19.bin",
        "bundle.ccob",
        "bundle.hipfb",
        "omp.exe",
        "k75.cubin",
        "k.ptx",
    ]);
    let at = folder.path();
    let listed = json(at, &["offload", "list", "--json", "omp.exe"]);
    let file = &listed["files"][0];
    assert_eq!(
        (&file["images"][0]["producer"], &file["host_entries"][0]["name"]),
        (&"openmp".into(), &"sum".into())
    );
    let names = printed(at, &["offload", "extract", "packager-19.bin", "bundle.ccob", "-o", "out"]);
    let first = "packager-19-nvptx64-nvidia-cuda-sm_75.0.cubin";
    assert!(names.starts_with(first), "{names}");
    assert_eq!(read(&at.join("out"), first), read(at, "k75.cubin"));
    assert_eq!(read(&at.join("out"), "bundle-amdgcn-amd-amdhsa-gfx90a.1.o"), read(at, "k75.cubin"));
    printed(
        at,
        &[
            "offload",
            "pack",
            "-o",
            "own.bin",
            "--image=file=k75.cubin,triple=nvptx64-nvidia-cuda,arch=sm_75,kind=cuda",
            "--image=file=k.ptx,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip",
        ],
    );
    let own = printed(at, &["offload", "extract", "own.bin", "--arch", "gfx90a"]);
    assert_eq!(own, "own-amdgcn-amd-amdhsa-gfx90a.1.0\n");
    assert_eq!(read(at, own.trim_end()), read(at, "k.ptx"));
    let output = hoist(at, &["offload", "extract", "own.bin", "--arch", "sm_75", "-o", "-"]);
    assert_eq!(output.stdout, read(at, "k75.cubin"));
}

#[test]
fn scan_looks_into_archives_and_wheels() {
    let folder = folder(&["libt.so", "whole.o", "k.ptx", "concat.fatbin"]);
    let at = folder.path();
    let mut zip = Vec::new();
    let mut wheel = rawzip::ZipArchiveWriter::new(&mut zip);
    for (name, deflated) in [("stored/libt.so", false), ("packed/libt.so", true), ("k.ptx", true)] {
        use std::io::Write as _;
        let content = read(at, name.rsplit('/').next().expect("a name"));
        let method = if deflated {
            rawzip::CompressionMethod::Deflate
        } else {
            rawzip::CompressionMethod::Store
        };
        let (mut entry, config) =
            wheel.new_file(name).compression_method(method).start().expect("an entry");
        let descriptor = if deflated {
            let encoder =
                flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
            let mut writer = config.wrap(encoder);
            writer.write_all(&content).expect("written");
            let (encoder, descriptor) = writer.finish().expect("written");
            encoder.finish().expect("written");
            descriptor
        } else {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(&content).expect("written");
            writer.finish().expect("written").1
        };
        entry.finish(descriptor).expect("written");
    }
    wheel.finish().expect("written");
    fs::write(at.join("a.whl"), zip).expect("a file");
    let scanned = json(at, &["scan", "--json", "."]);
    let files: Vec<_> = scanned["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| file["file"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        files,
        [
            "./a.whl:stored/libt.so",
            "./a.whl:packed/libt.so",
            "./concat.fatbin",
            "./libt.so",
            "./whole.o"
        ]
    );
    assert_eq!(scanned["files"][2]["code"], serde_json::json!(["sm_75", "sm_80", "sm_90a"]));
    assert_eq!(
        scanned["archs"][0],
        serde_json::json!({ "arch": "sm_75", "files_with_code": 5, "files_with_ptx": 0 })
    );
    assert!(printed(at, &["scan", "."]).contains("./a.whl:packed/libt.so"));
}
