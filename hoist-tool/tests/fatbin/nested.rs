//! Files inside archives, and archives inside those: every command looks into them.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{folder, hoist, json, printed, read, refused};

/// Runs a tool, or says that the test is skipped.
fn tool(at: &Path, name: &str, words: &[&str]) -> bool {
    let run = Command::new(name).args(words).current_dir(at).stdout(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

/// Archives around `suffixes.fatbin`, as the tools of others make them.
fn archives(at: &Path) -> Vec<&'static str> {
    let python = "import zipfile\n\
        with zipfile.ZipFile('a.whl', 'w', zipfile.ZIP_DEFLATED) as z:\n  z.write('suffixes.fatbin', 'pkg/lib.so'); z.writestr('pkg/__init__.py', 'x')\n\
        with zipfile.ZipFile('stored.zip', 'w') as z:\n  z.write('a.whl'); z.writestr('empty', '')\n";
    let made = tool(at, "python3", &["-c", python])
        && tool(at, "tar", &["cf", "plain.tar", "suffixes.fatbin"])
        && tool(at, "tar", &["czf", "packed.tar.gz", "a.whl", "plain.tar"])
        && tool(at, "gzip", &["-k", "suffixes.fatbin"]);
    if !made {
        return Vec::new();
    }
    let mut names = vec!["a.whl", "stored.zip", "plain.tar", "packed.tar.gz", "suffixes.fatbin.gz"];
    if tool(at, "bzip2", &["-k", "plain.tar"]) {
        names.push("plain.tar.bz2");
    }
    if tool(at, "zstd", &["-q", "-k", "plain.tar"]) {
        // as conda has them, and layers of container images
        assert!(tool(
            at,
            "python3",
            &[
                "-c",
                "import zipfile\nwith zipfile.ZipFile('p.conda', 'w') as z: z.write('plain.tar.zst', 'pkg-p.tar.zst')"
            ]
        ));
        names.extend(["plain.tar.zst", "p.conda"]);
    }
    names
}

#[test]
fn archives_are_looked_into() {
    let folder = folder(&["suffixes.fatbin", "packager-19.bin"]);
    let at = folder.path();
    let names = archives(at);
    if names.is_empty() {
        println!("skipped: archives_are_looked_into: needs python3, tar and gzip");
        return;
    }
    let regions = json(at, &["list", "--json", "suffixes.fatbin"])["files"][0]["regions"].clone();
    for name in &names {
        let count = if *name == "packed.tar.gz" { 2 } else { 1 };
        let listed = json(at, &["list", "--json", name]);
        let files = listed["files"].as_array().expect("a list");
        assert_eq!(files.len(), count, "{name}");
        for file in files {
            assert_eq!(file["regions"], regions, "{name}");
            let label = file["file"].as_str().expect("a name");
            assert!(label.starts_with(name), "{name}: {label}");
        }
        assert_eq!(
            json(at, &["scan", "--json", name])["files"].as_array().map(Vec::len),
            Some(count)
        );
        let chosen = json(at, &["select", "--json", "--sm", "90", name]);
        assert_eq!(chosen["choices"][0]["arch"], "sm_90a", "{name}");
        let out = format!("out-{name}");
        let written = printed(at, &["extract", name, "-o", &out]);
        assert_eq!(written.lines().count(), 3 * count, "{name}: {written}");
        let text = printed(at, &["list", name]);
        assert!(text.contains("sm_100f"), "{name}: {text}");
    }
    // one that is inside is called by its whole way
    let listed = json(at, &["list", "--json", "packed.tar.gz"]);
    assert_eq!(listed["files"][0]["file"], "packed.tar.gz:a.whl:pkg/lib.so");
    // the same names twice are two files
    let written = printed(at, &["extract", "--kind", "ptx", "packed.tar.gz", "-o", "twice"]);
    assert_eq!(written, "lib.1.sm_90a.ptx\nsuffixes.1.sm_90a.ptx\n");
    let written = printed(at, &["extract", "--kind", "ptx", "a.whl", "stored.zip", "-o", "again"]);
    assert_eq!(written, "lib.1.sm_90a.ptx\nlib.1-2.sm_90a.ptx\n");
    // a folder of all that, and standard input
    let all = json(at, &["list", "--json", "."]);
    assert!(all["files"].as_array().map(Vec::len) > Some(names.len()));
    for name in &names {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        command.args(["fatbin", "list", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("hoist runs");
        child.stdin.take().expect("piped").write_all(&read(at, name)).expect("written");
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("sm_100f"), "{name}: {text}");
    }
    // containers of LLVM's inside
    let python = "import zipfile\nwith zipfile.ZipFile('llvm.whl', 'w') as z:\n  z.write('packager-19.bin', 'a/lib.bin'); z.write('packager-19.bin', 'b/lib.bin')\n";
    assert!(tool(at, "python3", &["-c", python]));
    let alone = json(at, &["offload", "list", "--json", "packager-19.bin"])["files"][0].clone();
    let inside = json(at, &["offload", "list", "--json", "llvm.whl"]);
    assert_eq!(inside["files"].as_array().map(Vec::len), Some(2));
    assert_eq!(inside["files"][1]["images"], alone["images"]);
    assert_eq!(inside["files"][1]["file"], "llvm.whl:b/lib.bin");
    let written = printed(at, &["offload", "extract", "llvm.whl", "-o", "llvm"]);
    let names: std::collections::BTreeSet<_> = written.lines().collect();
    let count = alone["images"].as_array().map(Vec::len).expect("a list");
    assert_eq!((written.lines().count(), names.len()), (2 * count, 2 * count), "{written}");
    assert!(refused(at, &["offload", "list", "a.whl"]).ends_with("holds no container of LLVM's"));
    // kernels of all cubins inside
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    command.args(["cubin", "show", "a.whl"]).current_dir(at);
    let output = command.output().expect("hoist runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("a.whl:pkg/lib.so region 0 entry 0 sm_90a:"), "{text}");
}

#[test]
fn archives_that_hold_nothing_or_too_much() {
    let folder = folder(&["suffixes.fatbin"]);
    let at = folder.path();
    if archives(at).is_empty() {
        println!("skipped: archives_that_hold_nothing_or_too_much: needs python3, tar and gzip");
        return;
    }
    fs::write(at.join("text"), "nothing").expect("a file");
    assert!(tool(at, "tar", &["czf", "empty.tar.gz", "text"]));
    for command in [&["list"][..], &["extract"], &["select", "--sm", "90"]] {
        let words = [command, &["empty.tar.gz"]].concat();
        assert!(refused(at, &words).starts_with("empty.tar.gz: "), "{words:?}");
    }
    let said = refused(at, &["list", "packed.tar.gz", "--unpack-at-most", "100"]);
    assert!(said.contains("archives unpack to more than 100 bytes"), "{said}");
    // cut short: an error, and what came before it is shown
    let whole = read(at, "packed.tar.gz");
    for end in [20, whole.len() / 2, whole.len() - 9] {
        fs::write(at.join("cut.tar.gz"), &whole[..end]).expect("a file");
        let output = hoist(at, &["list", "cut.tar.gz"]);
        assert_eq!(output.status.code(), Some(1), "{end}");
    }
    // a wheel in a wheel in a wheel ...
    let mut name = String::from("a.whl");
    for depth in 0..14 {
        let next = format!("deep{depth}.zip");
        let python =
            format!("import zipfile\nwith zipfile.ZipFile('{next}', 'w') as z: z.write('{name}')");
        assert!(tool(at, "python3", &["-c", &python]));
        name = next;
    }
    let said = refused(at, &["list", &name]);
    assert!(said.contains("more than 12 archives in one another"), "{said}");
}
