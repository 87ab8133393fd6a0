//! `hoist cubin`: what it shows of fixtures, what it changes, what it says of bad input, and that every key is documented.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda")
}

fn hoist(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.arg("cubin").args(line.split(' ')).current_dir(folder());
    command
        .env_remove("NVDISASM")
        .env_remove("PTXAS")
        .env_remove("CUDA_HOME")
        .env_remove("CUDA_PATH")
        .env("PATH", "");
    command.output().expect("hoist runs")
}

fn printed(line: &str) -> String {
    let output = hoist(line);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(line: &str) -> String {
    let output = hoist(line);
    assert!(!output.status.success(), "{line}");
    String::from_utf8(output.stderr).expect("text").trim_end().to_owned()
}

#[test]
fn kernels_and_their_needs() {
    let shown = printed("show kernels-13.5-sm_80.cubin");
    let line = |name: &str| {
        let is = |line: &&str| line.starts_with(name) || line.ends_with(&format!("  {name}"));
        let line = shown.lines().find(is).expect("a line");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        line("shared_memory"),
        "10 1040 0 0 384 1 (8 bytes) 4 <= 64x2x1 100%: 16 blocks of 128 threads (warps) shared_memory"
    );
    assert_eq!(
        line("local_memory"),
        "8 0 0 80 384 2 (12 bytes) 0 = 32x1x1 50%: 32 blocks of 32 threads (blocks) local_memory"
    );
    assert_eq!(line("architecture"), "architecture sm_80, linked");
    let one = printed("show kernels-13.5-sm_80.cubin shared_memory --threads 1024");
    assert!(
        one.contains("2 blocks of 1024 threads (warps)") && !one.contains("architecture"),
        "{one}"
    );
    let recursive = printed("show calls_b-13.5-sm_90.cubin");
    assert!(recursive.contains("function         recursive"), "{recursive}");
}

#[test]
fn any_attribute_is_patched() {
    let output = tempfile::NamedTempFile::new().expect("a file");
    let path = output.path().display().to_string();
    let file = "kernels-13.5-sm_90a.cubin";
    let line = |line: &str| printed(&format!("patch {file} {line} -o {path}"));
    let shown = |function: &str| printed(&format!("attributes {path} {function}"));

    // a kernel's own, by name and number; several numbers; the second of several; what the module says of it
    line("-f shared_memory --attribute MAX_THREADS=32,2,1 --attribute 0x4c=5");
    let found = shown("shared_memory");
    assert!(found.contains("EIATTR_MAX_THREADS") && found.contains("0x20 0x2 0x1"), "{found}");
    assert!(found.contains("EIATTR_NUM_BARRIERS") && found.contains(" 0x5\n"), "{found}");
    line("-f parameters --attribute KPARAM_INFO@1=0,0x180001,0x21f000");
    assert!(shown("parameters").contains("parameter 1 at 0x18, 8 bytes"));
    line("-f parameters --attribute MIN_STACK_SIZE=48 --attribute REGCOUNT=99");
    let found = printed(&format!("show {path} parameters"));
    assert!(found.contains("registers          99"), "{found}");

    // the module's
    line("--attribute REGCOUNT@1=1,77");
    let rows = printed(&format!("attributes --json {path}"));
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    let sections = rows["files"][0]["attribute_sections"].as_array().expect("a list");
    let module = sections.iter().find(|one| one["section_name"] == ".nv.info").expect("attributes");
    let counts = module["attributes"].as_array().expect("a list").iter();
    let counts: Vec<_> = counts.filter(|row| row["name"] == "EIATTR_REGCOUNT").collect();
    assert_eq!(
        (&counts[1]["value"]["symbol"], &counts[1]["value"]["value"]),
        (&1.into(), &77.into())
    );

    for (line, message) in [
        (
            "-f parameters --attribute MAX_THREADS=1",
            "the cubin has no place for EIATTR_MAX_THREADS",
        ),
        (
            "-f shared_memory --attribute MAX_THREADS=1",
            "EIATTR_MAX_THREADS: the value has 3 numbers, not 1",
        ),
        (
            "-f shared_memory --attribute NUM_BARRIERS=256",
            "EIATTR_NUM_BARRIERS: the attribute's value 256 does not fit",
        ),
        ("--attribute NUM_BARRIERS=1", "the module has no such EIATTR_NUM_BARRIERS"),
    ] {
        let said = refused(&format!("patch {file} {line}"));
        assert!(said.starts_with(&format!("hoist: {file}: {message}")), "{said}");
    }
}

#[test]
fn attributes_relocations_and_parameters() {
    let attributes = printed("attributes calls-13.5-sm_90.cubin calls");
    assert!(attributes.contains("EIATTR_EXIT_INSTR_OFFSETS   +0x1d0"), "{attributes}");
    let relocations = printed("relocs calls-13.5-sm_90.cubin .text.calls");
    assert!(
        relocations.contains("R_CUDA_ABS55_16_34  other           0x0   driver"),
        "{relocations}"
    );
    let all = printed("params calls-13.5-sm_90.cubin");
    assert!(all.contains("\nindirect\nordinal") && all.contains("\ncalls\nordinal"), "{all}");
    let few = printed("params calls-13.5-sm_90.cubin --kernel *c* --sort name --limit 2");
    let names: Vec<_> = few.lines().filter(|line| !line.contains("  ")).collect();
    assert_eq!(names, ["calls", "indirect"], "{few}");
    let sections = printed("attributes calls-13.5-sm_90.cubin --kernel calls --kernel indirect");
    let names: Vec<_> = sections.lines().filter(|line| line.starts_with('.')).collect();
    assert_eq!(names.len(), 2, "{sections}");
    let one = printed("relocs calls-13.5-sm_90.cubin --kernel calls");
    let names: Vec<_> = one.lines().filter(|line| line.starts_with('.')).collect();
    assert_eq!(names, [".rela.text.calls"], "{one}");
    let parameters = printed("params calls-13.5-sm_90.cubin indirect");
    assert!(parameters.ends_with("1        0x8     4     0x218      -\n"), "{parameters}");
}

#[test]
fn patches_and_what_they_break() {
    let output = tempfile::NamedTempFile::new().expect("a file");
    let path = output.path().display().to_string();
    let file = "calls-13.5-sm_90.cubin";
    let said = printed(&format!(
        "patch {file} -f calls --registers 40 --attribute NUM_BARRIERS=3 -o {path}"
    ));
    assert_eq!(said.lines().count(), 2, "{said}");
    let shown = printed(&format!("show {path} calls"));
    assert!(
        shown.contains("registers          40") && shown.contains("barriers           3"),
        "{shown}"
    );
    // an exit where none was, and none where one was
    let broken = printed(&format!("patch {file} -f calls --code 0x10=4d79 --code 0x1d0=1879"));
    assert!(
        broken.contains("+0x1d0  EIATTR_EXIT_INSTR_OFFSETS  opcode 0x918, was 0x94d"),
        "{broken}"
    );
    assert!(broken.contains("+0x10   EIATTR_EXIT_INSTR_OFFSETS  opcode 0x94d, which"), "{broken}");
    let whole = printed(&format!("patch {file} -f calls --code 0x20=1879"));
    assert_eq!(whole.lines().count(), 1, "{whole}");
    // what else there is of a function is not changed silently
    let said = printed("patch kernels-12.9-sm_100a.cubin -f globals --registers 40");
    assert!(said.ends_with("\nnote: the Mercury form of code and attributes (.nv.capmerc.*, .nv.merc.*) is as it was\n"), "{said}");
}

#[test]
fn objects_are_linked() {
    let output = tempfile::NamedTempFile::new().expect("a file");
    let path = output.path().display().to_string();
    let said =
        printed(&format!("link calls_a-13.5-sm_80.cubin calls_b-13.5-sm_80.cubin -o {path}"));
    assert_eq!(said, "the stack of kernel recurses has no bound that can be told\n");
    let said = printed("link calls_a-13.5-sm_100.cubin calls_b-13.5-sm_100.cubin -o /dev/null");
    assert_eq!(said, "the stack of kernel recurses has no bound that can be told\n");
    let shown = printed(&format!("show {path}"));
    assert!(shown.contains("sm_80, linked") && shown.contains("made by          hoist"), "{shown}");
}

/// Libraries, kernels that are used, the graph of calls, the script for the host's linker.
#[test]
fn options_of_nvlink() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let half = |half: &str| {
        std::fs::read(self::folder().join(format!("calls_{half}-13.5-sm_80.cubin"))).expect("half")
    };
    let member = half("b");
    let mut library = b"!<arch>\n".to_vec();
    library.extend(format!("{:<48}{:<10}`\n", "b.o/", member.len()).as_bytes());
    library.extend(&member);
    std::fs::write(path("libhalf.a"), library).expect("a library");
    let (output, here) = (path("linked"), path(""));
    let said = printed(&format!(
        "link calls_a-13.5-sm_80.cubin -L /nowhere -L {here} -l half --dump-callgraph --kernels-used calls -o {output}"
    ));
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("callgraph for sm_80:"), "{said}");
    assert!(said.contains(": ^calls [") && !said.contains("^recurses"), "{said}");
    let shown = printed(&format!("show {output}"));
    assert!(shown.contains("calls") && !shown.contains("recurses"), "{shown}");
    let joined = path("joined");
    printed(&format!("link -r calls_a-13.5-sm_80.cubin -L {here} -l half -o {joined}"));
    let shown = printed(&format!("show {joined}"));
    assert!(shown.contains("sm_80, relocatable") && shown.contains("recurses"), "{shown}");
    printed(&format!("link {joined} -o {output}"));
    let shown = printed(&format!("show {output}"));
    assert!(shown.contains("sm_80, linked") && shown.contains("recurses"), "{shown}");
    let said = refused(&format!("link calls_a-13.5-sm_80.cubin -L {here} -l none -o {output}"));
    assert!(said.starts_with("hoist: no libnone.a in "), "{said}");
    let script = printed("link --gen-host-linker-script lcs-aug");
    assert!(script.contains("__nv_relfatbin : { *(__nv_relfatbin) }"), "{script}");
}

/// The table of nvlink's options has them all.
#[test]
fn every_option_of_nvlink_is_in_the_table() {
    let Some(nvlink) = nvidia_tool("nvlink") else {
        println!("skipped: every_option_of_nvlink_is_in_the_table: needs nvlink");
        return;
    };
    let help = std::process::Command::new(nvlink).arg("--help").output().expect("nvlink runs");
    let help = String::from_utf8(help.stdout).expect("text");
    let options = help.lines().filter_map(|line| line.split(' ').next());
    let options: Vec<_> = options.filter(|word| word.starts_with("--")).collect();
    let table = include_str!("../NVLINK.md");
    let rows: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("| `--")).collect();
    let rows: Vec<_> =
        rows.iter().filter_map(|row| Some(format!("--{}", row.split('`').next()?))).collect();
    assert!(options.len() > 40, "{help}");
    assert_eq!(rows, options);
    // the script is nvlink's
    let script = std::process::Command::new(nvidia_tool("nvlink").expect("nvlink"))
        .arg("--gen-host-linker-script=lcs-aug")
        .output()
        .expect("nvlink runs");
    assert_eq!(
        String::from_utf8_lossy(&script.stdout).replace('\t', "    "),
        printed("link --gen-host-linker-script lcs-aug")
    );
}

/// A tool of NVIDIA's on PATH, or where the tools are unpacked.
fn nvidia_tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/cuda-tools/bin");
    std::env::split_paths(&path).chain([here]).map(|at| at.join(name)).find(|at| at.is_file())
}

#[test]
fn code_in_containers_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str| std::fs::read(self::folder().join(name)).expect("a fixture");
    let container = |half: &str, archs: &[&str]| {
        let cubins: Vec<_> =
            archs.iter().map(|arch| read(&format!("{half}-13.5-{arch}.cubin"))).collect();
        let entries = cubins.iter().map(|cubin| fatbin::NewEntry::cubin(cubin).expect("a cubin"));
        let items: Vec<fatbin::Item<'_>> = entries.map(Into::into).collect();
        let path = folder.path().join(format!("{half}-{}.fatbin", archs.len()));
        std::fs::write(&path, fatbin::region(&items).expect("a region")).expect("written");
        path.display().to_string()
    };
    let (a, b) = (container("calls_a", &["sm_80", "sm_90"]), container("calls_b", &["sm_90"]));
    let output = folder.path().join("linked").display().to_string();
    printed(&format!("link --arch sm_90 {a} {b} -o {output}"));
    let inside = std::fs::read(&output).expect("linked");
    printed(&format!("link calls_a-13.5-sm_90.cubin calls_b-13.5-sm_90.cubin -o {output}"));
    assert_eq!(inside, std::fs::read(&output).expect("linked"));

    let message = "hoist: there is code for sm_80, sm_90: --arch says for which to link";
    assert_eq!(refused(&format!("link {a} {b} -o {output}")), message);
    let left =
        printed(&format!("link --json --arch 80 {a} calls_b-13.5-sm_80.cubin {b} -o {output}"));
    assert!(left.contains(&format!("\"left_out\":[\"{b}\"]")), "{left}");
    let shown = printed(&format!("show --json --arch 90 {a}"));
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["files"][0]["image"]["entry"], 1);
    assert_eq!(refused(&format!("show --arch 75 {a}")), format!("hoist: {a}: no cubin for sm_75"));
    let source = "hoist: calls_a.ptx: is PTX: ptxas makes a cubin of it, comes with the CUDA toolkit and is not installed \
        (PTXAS may name it)";
    assert_eq!(refused("link calls_a.ptx -o /dev/null"), source);
}

/// A stand-in for ptxas gives the cubin that it made of the same source.
#[test]
#[cfg(unix)]
fn ptx_is_linked_through_ptxas() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let tool = folder.path().join("ptxas");
    let object = self::folder().join("calls_a-13.5-sm_90.cubin");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2\" = '-c -arch=sm_90' ] && exec /bin/cp '{}' \"$5\"\necho \"$3: wrong\" >&2\nexit 1\n",
        object.display()
    );
    std::fs::write(&tool, script).expect("written");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("allowed");
    let output = folder.path().join("linked");
    let run = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.arg("cubin").args(line.split(' ')).current_dir(self::folder());
        command.arg("-o").arg(&output).env("PTXAS", &tool).output().expect("hoist runs")
    };
    let said = run("link calls_a.ptx calls_b-13.5-sm_90.cubin");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let linked = std::fs::read(&output).expect("linked");
    assert!(run("link calls_a-13.5-sm_90.cubin calls_b-13.5-sm_90.cubin").status.success());
    assert!(linked == std::fs::read(&output).expect("linked"));
    let error = |line: &str| String::from_utf8_lossy(&run(line).stderr).trim_end().to_owned();
    let wrong = "hoist: calls_a.ptx: ptxas: calls_a.ptx: wrong";
    assert_eq!(error("link --arch 80 calls_a.ptx"), wrong);
    let unknown = "hoist: calls_a.ptx: is PTX: --arch says for which architecture ptxas is to make a cubin of it";
    assert_eq!(error("link calls_a.ptx"), unknown);
}

#[test]
fn bad_input_is_explained_in_a_line() {
    for (line, message) in [
        ("show ../README.md", "hoist: ../README.md: not an ELF file"),
        ("show ../x86_64/elftest.o", "hoist: ../x86_64/elftest.o: machine 62 is not CUDA (190)"),
        ("show calls-13.5-sm_90.cubin none", "hoist: calls-13.5-sm_90.cubin: no kernel none"),
        (
            "patch calls-13.5-sm_90.cubin -f calls --registers 256",
            "hoist: calls-13.5-sm_90.cubin: the register count 256 does not fit",
        ),
        (
            "patch calls-13.5-sm_90.cubin -f calls --code 0x1000=00",
            "hoist: calls-13.5-sm_90.cubin: 1 bytes at 0x1000 are not inside the code of 0x280 bytes",
        ),
        (
            "link calls_b-13.5-sm_90.cubin calls_b-13.5-sm_90.cubin -o /dev/null",
            "hoist: calls_b-13.5-sm_90.cubin: symbol other is defined in calls_b-13.5-sm_90.cubin already",
        ),
        (
            "disasm calls-13.5-sm_90.cubin",
            "hoist: calls-13.5-sm_90.cubin: region 0 entry 0 sm_90: nvdisasm is not installed",
        ),
    ] {
        let found = refused(line);
        let explained = found.lines().all(|line| line.starts_with("hoist: "));
        assert!(found.starts_with(message) && explained, "{line}: {found}");
    }
}

/// Keys, and texts that are values.
#[derive(Default)]
struct Words {
    keys: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl Words {
    fn take(&mut self, line: &str) {
        self.collect(&serde_json::from_str(&printed(line)).expect("JSON"));
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.collect(value)),
            Value::Object(entries) => entries.iter().for_each(|(key, value)| {
                self.keys.insert(key.clone());
                self.collect(value);
            }),
            Value::String(text) => {
                self.values.insert(text.clone());
            }
            _ => {}
        }
    }
}

/// The words in back quotes in JSON.md's section of a command that could be keys.
fn documented(command: &str) -> BTreeSet<String> {
    let text = include_str!("../JSON.md");
    let start = text.find(&format!("## `hoist cubin {command}")).expect("the section");
    let section = &text[start..];
    let (heading, section) = section.split_once('\n').expect("more than the heading");
    assert!(heading.contains("--json"), "{heading}");
    let section = section.split("\n## ").next().expect("the section");
    let words = section.split('`').skip(1).step_by(2);
    let is_key = |word: &&str| word.chars().all(|one| one.is_ascii_lowercase() || one == '_');
    words.filter(is_key).map(str::to_owned).collect()
}

/// What stands around every report.
const AROUND: [&str; 10] =
    ["files", "file", "member", "image", "region", "entry", "part", "arch", "kind", "null"];

/// Each command prints the keys that its section of JSON.md has, and no others.
#[test]
fn keys_are_those_documented() {
    let folder = folder();
    let entries =
        std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".cubin"))
        .collect();
    let one = [
        ("show", vec!["show --json kernels-13.5-sm_80.cubin shared_memory"]),
        ("attributes", vec![]),
        ("relocs", vec![]),
        ("params", vec!["params --json calls-13.5-sm_90.cubin calls"]),
        (
            "patch",
            vec![
                "patch --json calls-13.5-sm_90.cubin -f calls --registers 9 --code 0x1d0=00",
                "patch --json kernels-13.5-sm_80.cubin --attribute REGCOUNT=1,9",
            ],
        ),
        (
            "link",
            vec!["link --json calls_a-13.5-sm_80.cubin calls_b-13.5-sm_80.cubin -o /dev/null"],
        ),
    ];
    for (command, lines) in one {
        let mut words = Words::default();
        lines.iter().for_each(|line| words.take(line));
        if ["show", "attributes", "relocs"].contains(&command) {
            names.iter().for_each(|name| words.take(&format!("{command} --json {name}")));
        }
        let documented = documented(command);
        let is_new = |key: &&String| !documented.contains(*key) && !AROUND.contains(&key.as_str());
        let missing: Vec<_> = words.keys.iter().filter(is_new).collect();
        assert!(missing.is_empty(), "{command}: not in JSON.md: {missing:?}");
        // what no fixture has
        let rare = [
            "outside",
            "misaligned",
            "operands",
            "unlisted",
            "unused_loads",
            "loads",
            "unused_bytes",
            "spill_refills",
            "register_map",
            "registers",
            "resumes",
            "id",
        ];
        let known = |word: &&String| {
            words.keys.contains(*word)
                || words.values.contains(*word)
                || AROUND.contains(&word.as_str())
                || rare.contains(&word.as_str())
        };
        let unseen: Vec<_> = documented.iter().filter(|word| !known(word)).collect();
        assert!(unseen.is_empty(), "{command}: in JSON.md, but never printed: {unseen:?}");
    }
}
