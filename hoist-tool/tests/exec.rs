//! Programs of the system by `hoist exec` and by themselves: the same output, the same status.
#![cfg(test)]
#![cfg(all(feature = "host", target_arch = "x86_64"))]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Programs with arguments, in which `@` stands for a folder of the test. Each finds a line of JSON on its standard input.
const WORK: &[&[&str]] = &[
    &["sed", "-n", "s/\\(o\\)n/\\1-/gp", "@/text"],
    &["gawk", "{ n[length($1)]++ } END { for (k in n) s += k * n[k]; print s, NR }", "@/text"],
    &["mawk", "/t/ { print NR, toupper($0), sqrt(NR) }", "@/text"],
    &[
        "perl",
        "-MList::Util=sum",
        "-MPOSIX",
        "-e",
        "print sum(map { floor($_ / 2) } 1..100), \"\\n\"; warn 'told'; exit 3",
    ],
    &["perl", "-ne", "print if /(?<first>\\w)\\w*\\k<first>/", "@/text"],
    &[
        "python3",
        "-c",
        "import json, math, ctypes, threading; t = threading.Thread(target=lambda: print(json.dumps({'pi': math.pi}))); t.start(); t.join(); print(ctypes.CDLL(None).getpid() > 0)",
    ],
    &[
        "python3",
        "-c",
        "import sqlite3, zlib, hashlib; print(sqlite3.connect(':memory:').execute('select sum(value) from json_each(\"[1,2,3]\")').fetchall(), zlib.crc32(b'x'), hashlib.sha256(b'x').hexdigest())",
    ],
    &[
        "python3",
        "-c",
        "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout); sys.exit(5)",
    ],
    &[
        "bash",
        "-c",
        "a=(3 1 2); printf '%s\\n' \"${a[@]}\" | sort -n | tr '\\n' ,; trap 'echo end' EXIT; [[ abc =~ b ]] && echo $((2**40)); exit 4",
    ],
    &["bash", "-c", "diff <(seq 3) <(seq 4); kill -TERM $$"],
    &["dash", "-c", "echo $(seq 1 5 | wc -l) `uname -s`; exit 2"],
    &["gcc", "-O2", "-S", "-o", "-", "@/source.c"],
    &["g++", "-x", "c++", "-fsyntax-only", "@/source.c"],
    &["cpp", "-P", "@/source.c"],
    &["as", "--version"],
    &["readelf", "-hl", "/bin/true"],
    &["objdump", "-d", "--stop-address=0x2100", "/bin/true"],
    &["nm", "-D", "/lib/x86_64-linux-gnu/libc.so.6"],
    &["git", "hash-object", "@/text"],
    &["git", "diff", "--no-index", "--stat", "@/text", "@/source.c"],
    &["find", "@", "-type", "f", "-name", "*.c", "-printf", "%f %s\\n"],
    &["grep", "-nE", "^(a|the) ?[a-z]+", "@/text"],
    &["sort", "-r", "--parallel=2", "@/text"],
    &["xargs", "-n2", "echo"],
    &["tar", "-cf", "-", "--mtime=@0", "--owner=0", "--group=0", "-C", "@", "text"],
    &["gzip", "-9nc", "@/text"],
    &["xz", "-T2", "-c", "@/text"],
    &["zstd", "-qc", "@/text"],
    &["bzip2", "-c", "@/text"],
    &["sha256sum", "@/text"],
    &["openssl", "dgst", "-sha3-256", "@/text"],
    &[
        "sqlite3",
        ":memory:",
        "with recursive c(x) as (select 1 union all select x + 1 from c where x < 9) select group_concat(x) from c",
    ],
    &["bc", "-q"],
    &["od", "-An", "-tx1", "@/text"],
    &["date", "-u", "-d", "@86400", "+%F %T %A"],
    &["env", "-i", "A=1", "/usr/bin/env"],
    &["stat", "-c", "%s %F", "@/text"],
    &["make", "-sf", "@/Makefile"],
    &["m4", "-DX=41", "@/text"],
    &["cmp", "@/text", "@/source.c"],
    &["diff", "-u", "@/text", "/dev/null", "--label", "x"],
    &["timeout", "5", "seq", "3"],
    &["nproc", "--all"],
    &["expr", "2", "*", "21"],
    &["getconf", "PAGE_SIZE"],
    &["jq", "-c", ".a|map(.*2)"],
    &["curl", "-s", "file://@/text"],
];
const TEXT: &str = "one two three\nthe other eleven\na line of text\nX and not y\n";
const SOURCE: &str = "#define N 7\nint square(int n) { return n * n + N; }\n";
const MAKEFILE: &str = "all: ; @echo $(words one two three)\n";
/// How many must be there.
const LEAST: usize = 20;

/// The program of this name; a script is another one's.
fn find(name: &str) -> Option<PathBuf> {
    let is_elf = |path: &Path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
    ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(name)).find(|it| is_elf(it))
}

fn run(command: &mut Command) -> Output {
    command.env("LC_ALL", "C").env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // who does not read it closes it
    let _ = child.stdin.take().unwrap().write_all(b"{\"a\":[1,2]}\n");
    child.wait_with_output().unwrap()
}

#[test]
fn programs_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    for (name, text) in [("text", TEXT), ("source.c", SOURCE), ("Makefile", MAKEFILE)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let (mut same, mut missing) = (0, Vec::new());
    for words in WORK {
        let Some(program) = find(words[0]) else {
            missing.push(words[0]);
            continue;
        };
        let arguments: Vec<String> = words[1..]
            .iter()
            .map(|word| match word.starts_with("@8") || word.contains("=@") {
                true => (*word).to_owned(),
                false => word.replace('@', root),
            })
            .collect();
        let theirs = run(Command::new(&program).args(&arguments));
        let mut ours = Command::new(env!("CARGO_BIN_EXE_hoist"));
        let ours = run(ours.arg("exec").arg(&program).args(&arguments));
        assert_eq!(ours.status, theirs.status, "{words:?}: {ours:?}");
        assert_eq!(ours.stdout, theirs.stdout, "{words:?}: {ours:?}");
        assert_eq!(ours.stderr, theirs.stderr, "{words:?}");
        same += 1;
    }
    println!("{same} programs do the same; not there: {}", missing.join(", "));
    if same < LEAST {
        println!("skipped: programs_of_the_system: needs programs of Debian");
    }
}

/// A program that says where its libraries are by its own folder, by way of a link: not that of hoist.
#[test]
fn libraries_beside_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    ["bin", "lib"].iter().for_each(|name| std::fs::create_dir(at.join(name)).unwrap());
    std::fs::write(at.join("library.c"), "int answer(void) { return 42; }").unwrap();
    let source = "#include <stdio.h>\nint answer(void); int main(void) { printf(\"%d\\n\", answer()); return 3; }";
    std::fs::write(at.join("program.c"), source).unwrap();
    let cc = |words: &[&str]| {
        assert!(Command::new("cc").current_dir(at).args(words).status().unwrap().success());
    };
    cc(&["-shared", "-fPIC", "-o", "lib/libhoist-beside.so", "library.c"]);
    let link = ["program.c", "-Llib", "-lhoist-beside"];
    for (number, flags) in [
        ["-Wl,--enable-new-dtags", "-Wl,-rpath,/none:$ORIGIN/../lib"],
        ["-Wl,--disable-new-dtags", "-Wl,-rpath,${ORIGIN}/../lib"],
        ["-no-pie", "-Wl,-rpath,$ORIGIN/../lib"],
    ]
    .iter()
    .enumerate()
    {
        let program = format!("bin/program{number}");
        cc(&[&["-o", &program], &flags[..], &link].concat());
        let name = format!("linked{number}");
        std::os::unix::fs::symlink(&program, at.join(&name)).unwrap();
        let mut hoist = Command::new(env!("CARGO_BIN_EXE_hoist"));
        let output = hoist.current_dir(at).args(["exec", &name]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"42\n"[..]), "{words}");
    }
}

/// Writes the last bytes of the file that the system says the process is of.
const APPENDED: &str = r#"
#include <stdio.h>
int main(void) {
    char text[6] = "";
    FILE *file = fopen("/proc/self/exe", "rb");
    return !file || fseek(file, -5, SEEK_END) || fread(text, 1, 5, file) != 5 || puts(text) < 0;
}
"#;

/// A program finds what was appended to its file, or it is said that it does not.
#[test]
fn what_is_appended_to_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("source.c"), folder.path().join("program"));
    std::fs::write(&source, APPENDED).unwrap();
    if !Command::new("cc")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status()
        .is_ok_and(|it| it.success())
    {
        println!("skipped: what_is_appended_to_a_program: needs cc");
        return;
    }
    let hoist = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        run(command.arg("exec").arg(&program))
    };
    let plain = hoist();
    assert!(plain.status.success() && plain.stderr.is_empty(), "{plain:?}");
    let mut file = std::fs::OpenOptions::new().append(true).open(&program).unwrap();
    file.write_all(&[[b' '; 95].as_slice(), b"given"].concat()).unwrap();
    drop(file);
    let output = hoist();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.stdout == b"given\n" {
        assert_eq!(said, "");
    } else {
        println!("the kernel does not let the process be of another file");
        assert!(said.contains("100 bytes behind the end of the program are not loaded"), "{said}");
    }
    // a member of an archive has no file
    let archive = folder.path().join("archive.tar");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder.path()).arg("-cf").arg(&archive).arg("program");
    if cfg!(feature = "device-code") && tar.status().is_ok_and(|it| it.success()) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
        let output = run(command.arg("exec").arg(format!("{}:program", archive.display())));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("100 bytes behind the end of the program are not loaded"), "{said}");
    }
}
