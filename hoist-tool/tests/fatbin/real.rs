//! Shipped libraries, and programs of nvcc: what needs downloads. `HOIST_CUDA_LIBRARIES` names a folder with more libraries.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{hoist, json, printed};

/// The libraries: of the fixtures, what `.ci/cuda-tools` fetched, and those in the folder that `HOIST_CUDA_LIBRARIES` names.
fn libraries() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let fixtures = ["fixtures/fatbin", "target/cuda-tools/lib"].map(|name| root.join(name));
    let more = std::env::var_os("HOIST_CUDA_LIBRARIES").map(PathBuf::from);
    let folders = fixtures.into_iter().filter(|folder| folder.is_dir()).chain(more);
    let entries = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // a thin archive is of files that are not there
        name.contains(".so") || (name.ends_with(".a") && name != "thin.a")
    });
    paths.sort();
    paths
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
    if Command::new("cuobjdump").arg("--version").output().is_err() {
        println!("skipped: the_same_files_as_cuobjdump: needs cuobjdump");
        return;
    }
    let mut compared = 0;
    for path in libraries() {
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
        compared += theirs.len();
        println!(
            "{name}: cuobjdump {}, hoist {}, differences {}",
            theirs.len(),
            ours.len(),
            missing.len()
        );
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
    assert!(compared >= 2, "{compared} files");
}

#[test]
fn changed_libraries_are_read_as_before() {
    let mut changed = 0;
    for path in libraries()
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
            // sections have other numbers and places then
            let text = output.map_or(Vec::new(), |output| output.stdout);
            let text = String::from_utf8_lossy(&text).into_owned();
            let text = text.replace(name, "");
            let without_numbers =
                |line: &str| line.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
            text.lines().map(without_numbers).collect::<std::collections::BTreeSet<_>>()
        };
        let (before, after) = (lint(&name), lint("out.so"));
        let new: Vec<_> = after.difference(&before).collect();
        assert!(new.iter().all(|line| *line == "No errors"), "{name}: {new:?}");
        changed += 1;
        println!("{}", printed(at, &["list", "out.so"]).lines().last().unwrap_or_default());
    }
    assert!(changed > 0);
}

/// Sources of a program with two kernels and a variable, and wrappers around cudart's registration that write what is handed over:
/// regions, with the array of a second version's wrapper, to standard output, names to standard error.
pub(super) const SOURCES: [(&str, &str); 3] = [
    (
        "main.cu",
        "__device__ int variable = 5;\n__global__ void one(int *p) { *p = variable; }\nvoid second();\n\
         int main() { one<<<1, 1>>>(nullptr); second(); return 0; }\n",
    ),
    (
        "second.cu",
        "__global__ void two(float *p) { p[1] = 2; }\nvoid second() { two<<<1, 1>>>(nullptr); }\n",
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
         }\n\
         extern void __real___cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);\n\
         void __wrap___cudaRegisterFunction(void **fatbin, const char *host, char *name, const char *device, int limit,\n\
                                            void *a, void *b, void *c, void *d, int *e) {\n\
             fprintf(stderr, \"function %s\\n\", device);\n\
             __real___cudaRegisterFunction(fatbin, host, name, device, limit, a, b, c, d, e);\n\
         }\n\
         extern void __real___cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);\n\
         void __wrap___cudaRegisterVar(void **fatbin, char *host, char *name, const char *device, int a, size_t size, int b, int c) {\n\
             fprintf(stderr, \"variable %s of %zu bytes\\n\", device, size);\n\
             __real___cudaRegisterVar(fatbin, host, name, device, a, size, b, c);\n\
         }\n",
    ),
];

/// Changes after which a program of `SOURCES` hands over what it did before.
pub(super) const CHANGES: [&[&str]; 4] = [
    &["recompress", "--with", "none"],
    &["recompress", "--with", "zstd"],
    &["prune", "--keep", "ptx"],
    &["replace", "--region", "1", "--entry", "0", "--with", "k100f.cubin", "--any"],
];

/// What a program hands to cudart, or cudart to a driver: the regions, which must be among those of the last of `words` byte for byte,
/// and the names.
pub(super) fn handed_over(at: &Path, words: &[&str]) -> (usize, String) {
    let (program, file) = words.first().zip(words.last()).expect("a program");
    let mut command = Command::new(at.join(program));
    command.args(&words[1..]).env("LD_LIBRARY_PATH", at);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{words:?}");
    let bytes = fs::read(at.join(file)).expect("a file");
    let regions = json(at, &["list", "--json", file])["files"][0]["regions"].clone();
    let number = |row: &serde_json::Value, key: &str| {
        usize::try_from(row[key].as_u64().unwrap_or(0)).unwrap_or(0)
    };
    let regions: Vec<_> = (regions.as_array().expect("regions").iter())
        .map(|row| &bytes[number(row, "offset")..][..number(row, "size")])
        .collect();
    let (mut rest, mut count) = (&*output.stdout, 0);
    while !rest.is_empty() {
        let region = regions.iter().find(|region| rest.starts_with(region));
        rest = &rest[region.unwrap_or_else(|| panic!("{words:?}: another region")).len()..];
        count += 1;
    }
    let names = String::from_utf8(output.stderr).expect("names");
    let is_name = |line: &&str| line.starts_with("function ") || line.starts_with("variable ");
    let mut names: Vec<_> = names.lines().filter(is_name).collect();
    names.sort_unstable(); // their order depends on addresses, which are others in every run
    (count, names.join("\n"))
}

/// cudart, linked statically, is handed the changed regions, byte for byte, and the same names as before.
#[test]
fn static_cudart_registers_changed_regions() {
    const NAME: &str = "static_cudart_registers_changed_regions";
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (name, text) in SOURCES {
        fs::write(at.join(name), text).expect("a file");
    }
    fs::copy(super::fixture("k100f.cubin"), at.join("k100f.cubin")).expect("a fixture");
    let pie = ["-Xlinker", "-pie", "-Xcompiler", "-fPIE"];
    let fixed = ["-Xlinker", "-no-pie", "-Xcompiler", "-no-pie"];
    let whole = (["-rdc=false"], 2); // a region for each source
    let separate = (["-rdc=true"], 1); // the device linker's
    for (link, (mode, regions)) in [(pie, whole), (fixed, whole), (pie, separate)] {
        let mut nvcc = Command::new("nvcc");
        nvcc.args(["-cudart", "static", "-gencode", "arch=compute_80,code=[sm_80,compute_80]"]);
        for function in ["FatBinary", "Function", "Var"] {
            nvcc.args(["-Xlinker", &format!("--wrap=__cudaRegister{function}")]);
        }
        nvcc.args(SOURCES.map(|(name, _)| name)).args(["-o", "program"]).args(mode).args(link);
        if !nvcc.current_dir(at).output().is_ok_and(|output| output.status.success()) {
            println!("skipped: {NAME}: needs nvcc");
            return;
        }
        let before = handed_over(at, &["program"]);
        assert_eq!(before.0, regions, "{mode:?}: {}", before.1);
        assert_eq!(
            (before.1.matches("function").count(), before.1.matches(" bytes").count()),
            (2, 1)
        );
        for change in CHANGES {
            printed(at, &[change, &["program", "-o", "changed"]].concat());
            assert_eq!(handed_over(at, &["changed"]), before, "{mode:?}: {change:?}");
        }
    }
}

/// `nvprune` and `prune` keep the same entries of static libraries: `HOIST_CUDA_ARCHIVES` names a folder with some.
#[test]
fn the_same_entries_as_nvprune() {
    const NAME: &str = "the_same_entries_as_nvprune";
    let Some(archives) = std::env::var_os("HOIST_CUDA_ARCHIVES") else {
        println!("skipped: {NAME}: needs static libraries in HOIST_CUDA_ARCHIVES");
        return;
    };
    if Command::new("nvprune").arg("--version").output().is_err() {
        println!("skipped: {NAME}: needs nvprune");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let entries = |name: &str| {
        let bytes = fs::read(at.join(name)).expect("a file");
        let listed = json(at, &["list", "--no-search", "--json", name]);
        let mut all = Vec::new();
        for region in listed["files"][0]["regions"].as_array().expect("regions") {
            for entry in region["entries"].as_array().expect("entries") {
                let number = |key: &str| usize::try_from(entry[key].as_u64().unwrap_or(0)).unwrap();
                let header = &bytes[number("offset")..][..8];
                let header = u32::from_le_bytes(*header.last_chunk().unwrap()) as usize;
                let content = bytes[number("offset")..][..header + number("stored_size")].to_vec();
                all.push((region["member"].to_string(), content));
            }
        }
        all
    };
    for archive in
        fs::read_dir(archives).expect("a folder").map(|entry| entry.expect("an entry").path())
    {
        let name = archive.to_string_lossy();
        if !name.ends_with(".a") || !hoist(at, &["list", "--no-search", &name]).status.success() {
            continue;
        }
        for arch in ["sm_60", "sm_80", "sm_90"] {
            let theirs = Command::new("nvprune")
                .args(["-arch", arch, &name, "-o", "theirs.a"])
                .current_dir(at)
                .status();
            assert!(theirs.is_ok_and(|status| status.success()), "{name}");
            printed(at, &["prune", "--no-search", "--keep", arch, &name, "-o", "ours.a"]);
            let (theirs, ours) = (entries("theirs.a"), entries("ours.a"));
            println!("{name}: {arch}: nvprune {}, hoist {}", theirs.len(), ours.len());
            assert!(theirs == ours, "{name}: {arch}");
        }
    }
}
