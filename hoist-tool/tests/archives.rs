//! Which members of archives are taken, and in which order: by the command line as GNU ld takes them, of archives in every form,
//! and by `exec_host::symbols::ArchiveSource` the same.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use elf_core::names::SHT_SYMTAB;
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

/// Number of objects, and of names that they share.
const NAMES: u64 = 14;
/// Number of section groups that several objects have.
const GROUPS: u64 = 3;

/// An object that defines and asks for some of the names: as assembly. Common symbols and section groups are left out on demand.
fn source(numbers: &mut Numbers, own: u64, commons: bool) -> String {
    let mut text = String::from(".text\n");
    let mut common = Vec::new();
    let _ = writeln!(text, ".weak w{own}\nw{own}: .globl own{own}\nown{own}: ret");
    for _ in 0..3 {
        let name = format!("s{}", numbers.below(NAMES));
        let _ = match numbers.below(8) {
            // nothing is both
            0 if !common.contains(&name) => {
                writeln!(text, ".weak {name}\n.data\n.quad {name}\n.text")
            }
            1 if commons && !text.contains(&format!(".weak {name}\n")) => {
                let _ = writeln!(text, ".comm {name}, 8, 8");
                common.push(name);
                Ok(())
            }
            2 => writeln!(text, ".data\n.quad w{}\n.text", numbers.below(NAMES)),
            3 => {
                let (group, copy) = (numbers.below(GROUPS), numbers.below(2));
                // which may stay undefined: nobody relocates this section
                writeln!(text, ".section .refers,\"\",@progbits\n.quad extra{group}_{copy}\n.text")
            }
            _ => writeln!(text, ".data\n.quad {name}\n.text"),
        };
    }
    let _ = writeln!(text, ".ifndef s{own}");
    let _ = match numbers.below(5) {
        0 => writeln!(text, ".weak s{own}\ns{own}: ret"),
        1 => writeln!(text, ".globl s{own}\n.type s{own}, @function\ns{own}: ret"),
        2 if commons && !text.contains(&format!(".weak s{own}\n")) => {
            writeln!(text, ".comm s{own}, 8, 8")
        }
        3 => Ok(()),
        _ => writeln!(text, ".globl s{own}\n.data\n.type s{own}, @object\ns{own}: .quad 1"),
    };
    let _ = writeln!(text, ".endif");
    if commons && numbers.below(2) == 0 {
        // copies of a group need not define the same
        let (group, copy) = (numbers.below(GROUPS), numbers.below(2));
        let _ = writeln!(
            text,
            ".section .text.g{group},\"axG\",@progbits,g{group},comdat\n.weak g{group}\ng{group}: ret\n\
             .globl extra{group}_{copy}\nextra{group}_{copy}: ret"
        );
    }
    text
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(folder).env("LC_ALL", "C").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether these programs are there; says for which test they are missing.
fn have(test: &str, programs: &[(&str, &str)]) -> bool {
    let missing = programs
        .iter()
        .find(|(program, version)| run(Path::new("."), program, &[version]).is_none());
    if let Some((program, _)) = missing {
        println!("skipped: {test}: needs {program}");
    }
    missing.is_none()
}

/// Makes the objects `o0.o` and so on.
fn assemble(folder: &Path, numbers: &mut Numbers, commons: bool) {
    for own in 0..NAMES {
        fs::write(folder.join("o.s"), source(numbers, own, commons)).unwrap();
        let object = format!("o{own}.o");
        run(folder, "as", &["--64", "o.s", "-o", &object]).expect("an object");
    }
}

/// Makes an archive.
fn archive(folder: &Path, program: &[&str], name: &str, members: impl Iterator<Item = u64>) {
    let _ = fs::remove_file(folder.join(name));
    let members: Vec<String> = members.map(|own| format!("o{own}.o")).collect();
    let (program, options) = program.split_first().unwrap();
    let arguments = options.iter().copied().chain([name]).chain(members.iter().map(String::as_str));
    run(folder, program, &arguments.collect::<Vec<_>>()).expect("an archive");
}

/// How archives are searched.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Once,
    Whole,
    Group,
}

/// The objects that hoist takes, by the names of files and members.
fn ours(folder: &Path, files: &[&str], how: How) -> Vec<String> {
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    let inputs = read_all(&paths, Limits::default()).expect("files");
    let how = |input: Input| input.whole(how == How::Whole).group(how == How::Group);
    let mut inputs: Vec<Input> = inputs.into_iter().map(how).collect();
    let taken = |inputs: &[Input]| -> Vec<String> {
        let objects = Objects::gather(inputs, &[]).expect("objects");
        (0..objects.files().len()).map(|index| member(objects.label(index))).collect()
    };
    let found = taken(&inputs);
    inputs.push(how(large()));
    assert_eq!(taken(&inputs), found, "by several threads");
    found
}

/// An archive of a text, so large that others are read by several threads.
fn large() -> Input {
    const SIZE: usize = 17 << 20;
    let mut bytes = b"!<arch>\n".to_vec();
    bytes.extend_from_slice(format!("text/           {:<32}{SIZE:<10}`\n", 0).as_bytes());
    bytes.resize(bytes.len() + SIZE, b' ');
    Input::of("large.a", bytes)
}

/// The first damaged archive of the command line is named, whoever has read it.
#[test]
fn a_damaged_member_is_named() {
    if !have("a_damaged_member_is_named", &[("as", "--version"), ("ar", "--version")]) {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = &scratch.path().canonicalize().expect("a folder");
    assemble(folder, &mut Numbers(3), true);
    let (mut inputs, mut expected) = (vec![Input::read(folder.join("o0.o")).unwrap()], None);
    for (number, is_damaged) in [false, false, true, false, true, false].into_iter().enumerate() {
        archive(folder, &["ar", "rcs"], "x.a", 1..4);
        let mut bytes = fs::read(folder.join("x.a")).unwrap();
        if is_damaged {
            let object = fs::read(folder.join("o2.o")).unwrap();
            let start = bytes.windows(object.len()).position(|part| part == object).unwrap();
            let file = elf_core::File::parse(&object).unwrap();
            let symbols = file.sections().iter().position(|it| it.r#type == SHT_SYMTAB).unwrap();
            // the size of a symbol
            let at = file.header().section_headers as usize + symbols * 64 + 56;
            bytes[start + at] = 7;
            expected.get_or_insert(format!("x{number}.a(o2.o)"));
        }
        inputs.push(Input::of(format!("x{number}.a"), bytes));
    }
    for is_large in [false, true] {
        inputs.extend(is_large.then(large));
        let refused = Objects::gather(&inputs, &[]).map(|_| ()).unwrap_err();
        assert_eq!(Some(refused.to_string()), expected, "{refused:#}");
    }
}

/// The name of an object without archive and folder.
fn member(label: &str) -> String {
    label.rsplit(['(', ')', '/', ':']).find(|part| part.ends_with(".o")).unwrap_or(label).to_owned()
}

/// The objects that GNU ld takes.
fn gnu(folder: &Path, files: &[&str], how: How) -> Vec<String> {
    let mut arguments = vec!["-m", "elf_x86_64", "-t", "-t", "-e", "0", "-z", "muldefs"];
    arguments.extend(["--unresolved-symbols=ignore-all", "-o", "out"]);
    arguments.extend(match how {
        How::Once => None,
        How::Whole => Some("--whole-archive"),
        How::Group => Some("--start-group"),
    });
    arguments.extend(files);
    arguments.extend((how == How::Group).then_some("--end-group"));
    let said = run(folder, "ld", &arguments).expect("a link");
    said.lines().filter(|line| line.contains(".o")).map(member).collect()
}

#[test]
fn as_gnu_ld() {
    if !have("as_gnu_ld", &[("ld", "-v"), ("as", "--version"), ("ar", "--version")]) {
        return;
    }
    let has_bsd = have("as_gnu_ld of BSD's archives", &[("llvm-ar-19", "--version")]);
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = &scratch.path().canonicalize().expect("a folder");
    let mut numbers = Numbers(7);
    let (mut compared, mut taken) = (0, 0);
    for _ in 0..8 {
        assemble(folder, &mut numbers, true);
        for kind in ["rcs", "rcsT"] {
            for (name, members) in [("one.a", 2..8), ("two.a", 8..NAMES)] {
                archive(folder, &["ar", kind], name, members.clone());
                // which GNU ld cannot read
                if has_bsd {
                    let name = name.replace(".a", "-bsd.a");
                    archive(folder, &["llvm-ar-19", "rcs", "--format=bsd"], &name, members);
                }
            }
            for (files, how) in [
                (&["o0.o", "one.a", "two.a"][..], How::Once),
                (&["o0.o", "one.a", "two.a"], How::Whole),
                (&["o0.o", "one.a", "two.a"], How::Group),
                (&["one.a", "o1.o", "two.a", "o0.o"], How::Group),
                (&["o0.o", "two.a", "one.a", "o1.o", "two.a"], How::Once),
            ] {
                let theirs = gnu(folder, files, how);
                assert_eq!(ours(folder, files, how), theirs, "{kind} {files:?} {how:?}");
                if has_bsd {
                    let files: Vec<String> =
                        files.iter().map(|file| file.replace(".a", "-bsd.a")).collect();
                    let files: Vec<&str> = files.iter().map(String::as_str).collect();
                    assert_eq!(ours(folder, &files, how), theirs, "{files:?} {how:?}");
                }
                compared += 1;
                taken += theirs.len();
            }
        }
    }
    println!("as_gnu_ld: {compared} links, {taken} objects");
}

#[cfg(all(feature = "host", target_arch = "x86_64"))]
mod library {
    use super::*;
    use exec_host::symbols::{ArchiveSource, Symbols as _, from_fn};
    use exec_host::{External, Loader};

    /// The objects that the library loads, in the order in which their code lies.
    fn loaded(folder: &Path, objects: &[&str], archives: &[&str]) -> Vec<String> {
        let objects = objects.iter().map(|name| fs::read(folder.join(name)).unwrap());
        let archives = archives.iter().map(|name| ArchiveSource::open(folder.join(name)).unwrap());
        let archives: Vec<ArchiveSource> = archives.collect();
        // what nobody defines is somewhere
        let symbols = archives.or(from_fn(|_| Some(External::new(0x1000))));
        let image = Loader::new().link(objects, symbols, |_| 0x10_0000).expect("a load");
        let mut found: Vec<(u64, u64)> = (0..NAMES)
            .filter_map(|own| Some((image.address(&format!("own{own}"))?, own)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, own)| format!("o{own}.o")).collect()
    }

    #[test]
    fn as_the_command_line() {
        if !have("as_the_command_line", &[("ld", "-v"), ("as", "--version"), ("ar", "--version")]) {
            return;
        }
        let scratch = tempfile::tempdir().expect("a folder");
        let folder = &scratch.path().canonicalize().expect("a folder");
        let mut numbers = Numbers(23);
        let (mut compared, mut taken) = (0, 0);
        for _ in 0..12 {
            assemble(folder, &mut numbers, true);
            archive(folder, &["ar", "rcs"], "all.a", 2..NAMES);
            let files = ["o0.o", "o1.o", "all.a"];
            let theirs = ours(folder, &files, How::Once);
            assert_eq!(theirs, gnu(folder, &files, How::Once));
            assert_eq!(loaded(folder, &["o0.o", "o1.o"], &["all.a"]), theirs);
            compared += 1;
            taken += theirs.len();
        }
        println!("as_the_command_line: {compared} links, {taken} objects");
    }

    /// Of several sources the first that has a name is taken, wherever the reference is: as lld does with archives.
    #[test]
    fn as_lld() {
        let programs = [("ld.lld-19", "--version"), ("as", "--version"), ("ar", "--version")];
        if !have("as_lld", &programs) {
            return;
        }
        let scratch = tempfile::tempdir().expect("a folder");
        let folder = &scratch.path().canonicalize().expect("a folder");
        let mut numbers = Numbers(5);
        let (mut compared, mut taken) = (0, 0);
        for _ in 0..12 {
            // lld has rules of its own for common symbols, and for what discarded groups define
            assemble(folder, &mut numbers, false);
            for (name, members) in [("one.a", 2..6), ("two.a", 6..10), ("three.a", 10..NAMES)] {
                archive(folder, &["ar", "rcs"], name, members);
            }
            let archives = ["two.a", "one.a", "three.a"];
            let mut arguments =
                vec!["-t", "-e", "0", "--unresolved-symbols=ignore-all", "-o", "out"];
            arguments.extend(["o0.o", "o1.o"].iter().chain(&archives));
            let said = run(folder, "ld.lld-19", &arguments).expect("a link");
            let theirs = said.lines().filter(|line| line.contains(".o"));
            let mut theirs: Vec<String> = theirs.map(member).collect();
            let mut ours = loaded(folder, &["o0.o", "o1.o"], &archives);
            theirs.sort();
            ours.sort();
            assert_eq!(ours, theirs);
            compared += 1;
            taken += theirs.len();
        }
        println!("as_lld: {compared} links, {taken} objects");
    }
}
