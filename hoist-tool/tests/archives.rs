//! Which members of archives are taken, and in which order: as GNU ld takes them, of archives in every form.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hoist_tool::budget::Limits;
use hoist_tool::input::{Input, read_all};
use hoist_tool::objects::Objects;

/// Numbers that look random, the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

const NAMES: u64 = 14;

/// An object that defines and asks for some of the names: as assembly.
fn source(numbers: &mut Numbers, own: u64) -> String {
    let mut text = String::from(".text\n");
    let _ = writeln!(text, ".weak w{own}\nw{own}: .globl own{own}\nown{own}: ret");
    for _ in 0..3 {
        let name = format!("s{}", numbers.below(NAMES));
        let _ = match numbers.below(8) {
            0 => writeln!(text, ".weak {name}\n.data\n.quad {name}\n.text"),
            1 => writeln!(text, ".comm {name}, 8, 8"),
            2 => writeln!(text, ".data\n.quad w{}\n.text", numbers.below(NAMES)),
            _ => writeln!(text, ".data\n.quad {name}\n.text"),
        };
    }
    let _ = writeln!(text, ".ifndef s{own}\n.weak s{own}\ns{own}: ret\n.endif");
    text
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(folder).env("LC_ALL", "C").output().ok()?;
    output.status.success().then(|| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&output.stdout) + &text(&output.stderr)
    })
}

/// The objects that hoist takes, as GNU ld writes them.
fn ours(folder: &Path, files: &[&str], whole: bool) -> Vec<String> {
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    let inputs = read_all(&paths, Limits::default()).expect("files");
    let inputs: Vec<Input> = inputs.into_iter().map(|input| input.whole(whole)).collect();
    let objects = Objects::gather(&inputs, &[]).expect("objects");
    let label = |index| objects.label(index).replace(&format!("{}/", folder.display()), "");
    (0..objects.files().len()).map(label).collect()
}

#[test]
fn as_gnu_ld() {
    if [("ld", "-v"), ("as", "--version"), ("ar", "--version")]
        .iter()
        .any(|(program, version)| run(Path::new("."), program, &[version]).is_none())
    {
        println!("skipped: as_gnu_ld: needs ld, as and ar");
        return;
    }
    let has_bsd = run(Path::new("."), "llvm-ar-19", &["--version"]).is_some();
    if !has_bsd {
        println!("skipped: as_gnu_ld: archives of BSD need llvm-ar-19");
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = &scratch.path().canonicalize().expect("a folder");
    let mut numbers = Numbers(7);
    let (mut compared, mut taken) = (0, 0);
    for _ in 0..6 {
        for own in 0..NAMES {
            fs::write(folder.join("o.s"), source(&mut numbers, own)).unwrap();
            let object = format!("o{own}.o");
            run(folder, "as", &["--64", "o.s", "-o", &object]).expect("an object");
        }
        let members: Vec<String> = (2..NAMES).map(|own| format!("o{own}.o")).collect();
        let (one, two) = members.split_at(6);
        for kind in ["rcs", "rcsT"] {
            for (archive, members) in [("one.a", one), ("two.a", two)] {
                let _ = fs::remove_file(folder.join(archive));
                let mut arguments = vec![kind, archive];
                arguments.extend(members.iter().map(String::as_str));
                run(folder, "ar", &arguments).expect("an archive");
                // which GNU ld cannot read
                if has_bsd {
                    let name = archive.replace(".a", "-bsd.a");
                    let _ = fs::remove_file(folder.join(&name));
                    arguments.splice(..2, ["rcs", "--format=bsd", &name]);
                    run(folder, "llvm-ar-19", &arguments).expect("an archive");
                }
            }
            for files in
                [&["o0.o", "one.a", "two.a"][..], &["o0.o", "two.a", "one.a", "o1.o", "two.a"]]
            {
                for whole in [false, true] {
                    if whole && files.len() > 3 {
                        continue;
                    }
                    let mut arguments = vec![
                        "-m",
                        "elf_x86_64",
                        "-t",
                        "-t",
                        "-e",
                        "0",
                        "--unresolved-symbols=ignore-all",
                        "-o",
                        "out",
                    ];
                    arguments.extend(whole.then_some("--whole-archive"));
                    arguments.extend(["-z", "muldefs"]);
                    arguments.extend(files);
                    let said = run(folder, "ld", &arguments).expect("a link");
                    let theirs = said.lines().map(|line| match line.strip_prefix('(') {
                        // thin members are written as files, others by their archive
                        Some(rest) => rest.replacen(')', "(", 1) + ")",
                        None => line.to_owned(),
                    });
                    let theirs: Vec<String> = theirs.filter(|line| line.contains(".o")).collect();
                    let ours = ours(folder, files, whole);
                    let member = |label: &String| {
                        let end = label.rsplit(['(', '/']).next().unwrap_or_default();
                        end.trim_end_matches(')').to_owned()
                    };
                    let plain = |labels: &[String]| labels.iter().map(member).collect::<Vec<_>>();
                    let (mut ours, mut theirs) = (plain(&ours), plain(&theirs));
                    // hoist keeps the order of an archive, ld that of asking
                    ours.sort();
                    theirs.sort();
                    assert_eq!(ours, theirs, "{kind} {files:?} {whole}");
                    if has_bsd {
                        let files: Vec<String> =
                            files.iter().map(|file| file.replace(".a", "-bsd.a")).collect();
                        let files: Vec<&str> = files.iter().map(String::as_str).collect();
                        let mut bsd = plain(&self::ours(folder, &files, whole));
                        bsd.sort();
                        assert_eq!(bsd, theirs, "{files:?} {whole}");
                    }
                    compared += 1;
                    taken += ours.len();
                }
            }
        }
    }
    println!("as_gnu_ld: {compared} links, {taken} objects");
}
