//! Shipped libraries, and programs of nvcc: what needs downloads. `HOIST_CUDA_LIBRARIES` names a folder with shared libraries in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{hoist, json, printed};

/// The libraries, and whether cuobjdump runs; else says that the test is skipped.
fn libraries(test: &str) -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("HOIST_CUDA_LIBRARIES") else {
        println!("skipped: {test}: needs libraries in HOIST_CUDA_LIBRARIES");
        return None;
    };
    if Command::new("cuobjdump").arg("--version").output().is_err() {
        println!("skipped: {test}: needs cuobjdump");
        return None;
    }
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.filter(|path| path.to_string_lossy().contains(".so")).collect();
    paths.sort();
    Some(paths)
}

/// Names and contents of the files in a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read(entry.path()).expect("a file"),
            )
        })
        .collect()
}

#[test]
fn the_same_files_as_cuobjdump() {
    let Some(paths) = libraries("the_same_files_as_cuobjdump") else { return };
    for path in paths {
        let folder = tempfile::tempdir().expect("a folder");
        let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
        fs::create_dir(&theirs).expect("a folder");
        let mut command = Command::new("cuobjdump");
        command.args(["-all", "-xelf", "all", "-xptx", "all"]).arg(&path).current_dir(&theirs);
        command.output().expect("cuobjdump runs");
        let name = path.to_string_lossy();
        hoist(folder.path(), &["extract", "-q", "--kind", "elf,ptx", "-o", "ours", &name]);
        let (theirs, ours) =
            (files(&theirs), if ours.exists() { files(&ours) } else { BTreeMap::new() });
        let missing: Vec<_> = theirs
            .iter()
            .filter(|(name, bytes)| ours.get(*name) != Some(*bytes))
            .map(|(name, _)| name)
            .collect();
        println!(
            "{name}: cuobjdump {}, hoist {}, differences {}",
            theirs.len(),
            ours.len(),
            missing.len()
        );
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

#[test]
fn changed_libraries_are_read_as_before() {
    let Some(paths) = libraries("changed_libraries_are_read_as_before") else { return };
    for path in paths
        .iter()
        .filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.len() < 100 << 20))
    {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let name = path.to_string_lossy();
        if !hoist(at, &["list", &name]).status.success() {
            continue;
        }
        let output = hoist(at, &["recompress", "--with", "none", &name, "-o", "out.so"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            assert!(
                said.contains("the instruction at") || said.contains("nothing points to it"),
                "{said}"
            );
            println!("{name}: {}", said.trim_end());
            continue;
        }
        let count = |name: &str| {
            let listed = json(at, &["list", "--json", name]);
            let regions = listed["files"][0]["regions"].as_array().expect("regions").clone();
            regions
                .iter()
                .map(|region| region["entries"].as_array().map_or(0, Vec::len))
                .sum::<usize>()
        };
        assert_eq!(count(&name), count("out.so"), "{name}");
        let lint = |name: &str| {
            let output =
                Command::new("eu-elflint").args(["--gnu-ld", name]).current_dir(at).output();
            output.map_or(String::new(), |output| {
                String::from_utf8_lossy(&output.stdout).into_owned()
            })
        };
        assert_eq!(lint(&name), lint("out.so"), "{name}");
        println!("{}", printed(at, &["list", "out.so"]).lines().last().unwrap_or_default());
    }
}

/// Sources of a program with two kernels, and a wrapper around cudart's registration that writes what is handed over.
const SOURCES: [(&str, &str); 2] = [
    (
        "main.cu",
        "__global__ void one(int *p) { *p = 1; }\n__global__ void two(float *p) { p[1] = 2; }\n\
         int main() { one<<<1, 1>>>(nullptr); two<<<1, 1>>>(nullptr); return 0; }\n",
    ),
    (
        "record.c",
        "#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n\
         extern void **__real___cudaRegisterFatBinary(void *wrapper);\n\
         void **__wrap___cudaRegisterFatBinary(void *wrapper) {\n\
             const char *region; uint64_t size;\n\
             memcpy(&region, (const char *)wrapper + 8, 8);\n\
             memcpy(&size, region + 8, 8);\n\
             fwrite(region, 1, size + 16, stdout); fflush(stdout);\n\
             return __real___cudaRegisterFatBinary(wrapper);\n\
         }\n",
    ),
];

/// cudart, linked statically, is handed the changed regions, byte for byte.
#[test]
fn static_cudart_registers_changed_regions() {
    const NAME: &str = "static_cudart_registers_changed_regions";
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (name, text) in SOURCES {
        fs::write(at.join(name), text).expect("a file");
    }
    fs::copy(super::fixture("k100f.cubin"), at.join("k100f.cubin")).expect("a fixture");
    for link in [
        &["-Xlinker", "-pie", "-Xcompiler", "-fPIE"][..],
        &["-Xlinker", "-no-pie", "-Xcompiler", "-no-pie"],
    ] {
        let mut nvcc = Command::new("nvcc");
        nvcc.args(["-cudart", "static", "-gencode", "arch=compute_80,code=[sm_80,compute_80]"]);
        nvcc.args([
            "-Xlinker",
            "--wrap=__cudaRegisterFatBinary",
            "main.cu",
            "record.c",
            "-o",
            "program",
        ])
        .args(link);
        if !nvcc.current_dir(at).output().is_ok_and(|output| output.status.success()) {
            println!("skipped: {NAME}: needs nvcc");
            return;
        }
        for change in [
            &["recompress", "--with", "none"][..],
            &["recompress", "--with", "zstd"],
            &["prune", "--keep", "ptx"],
            &["replace", "--region", "1", "--entry", "0", "--with", "k100f.cubin", "--any"],
        ] {
            printed(at, &[change, &["program", "-o", "changed"]].concat());
            let output = Command::new(at.join("changed")).output().expect("it runs");
            assert!(output.status.success(), "{change:?}");
            let bytes = fs::read(at.join("changed")).expect("a file");
            let regions = json(at, &["list", "--json", "changed"])["files"][0]["regions"].clone();
            let handed = regions.as_array().expect("regions").iter().any(|row| {
                let number =
                    |key: &str| usize::try_from(row[key].as_u64().unwrap_or(0)).unwrap_or(0);
                bytes[number("offset")..][..number("size")] == output.stdout
            });
            assert!(handed && !output.stdout.is_empty(), "{change:?}");
        }
    }
}
