//! What is other on a terminal: colours, and tables that fit. The terminal is a real one, of the system's (`pty`).
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test"
)]

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use unicode_width::UnicodeWidthStr as _;

/// Columns of the terminal.
const COLUMNS: u16 = 100;

fn fixture(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name);
    path.to_str().unwrap().to_owned()
}

/// The command with an environment that says nothing of colours, but for what is given.
fn command(words: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoist"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "CI"] {
        command.env_remove(name);
    }
    command.args(words).env("TERM", "xterm").envs(environment.iter().copied());
    command.stdin(Stdio::null());
    command
}

/// What a pipe gets: standard output and standard error.
fn piped(words: &[&str], environment: &[(&str, &str)]) -> [String; 2] {
    let output = command(words, environment).output().unwrap();
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"))
}

/// What a terminal gets, from both.
fn on_terminal(words: &[&str], environment: &[(&str, &str)]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    let mut command = command(words, environment);
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    drop(command); // which holds the other side
    let (mut ours, mut all, mut part) = (File::from(ours), Vec::new(), [0; 4096]);
    // when nobody has the other side any more, that is an error here
    while let Ok(count @ 1..) = ours.read(&mut part) {
        all.extend_from_slice(&part[..count]);
    }
    child.wait().unwrap();
    String::from_utf8(all).expect("text").replace("\r\n", "\n")
}

/// Text without the escape sequences of colours: there is no other sequence.
fn plain(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut plain = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let (numbers, rest) = piece.split_once('m').expect("a colour");
        assert!(numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{numbers}");
        plain.push_str(rest);
    }
    plain
}

#[test]
fn a_terminal_has_colours_unless_it_is_told_otherwise() {
    let file = fixture("x86_64/elftest.o");
    let show = ["show", &file];
    let bare = piped(&show, &[]);
    assert!(!bare[0].contains('\x1b') && bare[0].lines().count() > 20, "{}", bare[0]);

    let wide = [("COLUMNS", "1000")];
    let painted = on_terminal(&show, &wide);
    assert_eq!(plain(&painted), bare[0]);
    assert!(painted.contains("\x1b[1msections\x1b[0m\n"), "{painted}");
    assert!(painted.contains("\x1b[4mname\x1b[0m "), "{painted}");
    assert!(painted.contains("\x1b[34m.text\x1b[0m "), "{painted}");
    for (words, environment) in [
        (&["--color", "never"][..], &[][..]),
        (&[], &[("NO_COLOR", "1")]),
        (&[], &[("CLICOLOR", "0")]),
        (&[], &[("TERM", "dumb")]),
        (&["--color=never"], &[("CLICOLOR_FORCE", "1")]),
    ] {
        let words = [&show[..], words].concat();
        let environment = [&wide[..], environment].concat();
        assert_eq!(on_terminal(&words, &environment), bare[0], "{words:?} {environment:?}");
    }
    for (words, environment) in [
        (&["--color", "always"][..], &[][..]),
        (&[], &[("CLICOLOR_FORCE", "1")]),
        (&["--color", "always"], &[("NO_COLOR", "1")]),
        (&["--color=always"], &[("TERM", "dumb")]),
    ] {
        // before the command and behind it
        for words in [[words, &show].concat(), [&show, words].concat()] {
            assert_eq!(piped(&words, environment)[0], painted, "{words:?} {environment:?}");
        }
    }
    for (words, environment) in [(&["--color", "auto"][..], &[][..]), (&[], &[("NO_COLOR", "1")])] {
        assert_eq!(piped(&[&show[..], words].concat(), environment)[0], bare[0], "{words:?}");
    }
}

#[test]
fn what_is_for_programs_has_no_colours() {
    let (object, cubin) = (fixture("x86_64/elftest.o"), fixture("cuda/kernels-13.5-sm_80.cubin"));
    for words in [
        &["show", "--json", &object][..],
        &["show", "--svg", &object],
        &["layout", "--json", &object],
        &["layout", "--svg", &object],
        &["cubin", "show", "--json", &cubin],
        &["cubin", "show", "--svg", &cubin],
        &["fatbin", "list", "--json", &cubin],
        &["fatbin", "find", "*", "--json", &cubin],
        &["fatbin", "size", "--json", &cubin],
        &["fatbin", "report", "-o", "-", &cubin],
        &["fatbin", "report", "-o", "-", "--json", &cubin],
        &["man"],
        &["completions", "bash"],
    ] {
        let bare = piped(words, &[]);
        assert!(!bare[0].is_empty(), "{words:?}");
        assert_eq!(piped(&[words, &["--color", "always"]].concat(), &[]), bare, "{words:?}");
    }
    // nor have files
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.svg");
    let words = ["cubin", "show", &cubin, "--svg", "--color", "always", "-o"];
    let written = [&words[..], &[path.to_str().unwrap()]].concat();
    assert_eq!(piped(&written, &[]), [String::new(), String::new()]);
    let printed = piped(&["cubin", "show", &cubin, "--svg"], &[]);
    assert_eq!(fs::read_to_string(&path).unwrap(), printed[0]);
}

#[test]
fn names_bring_no_colours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("\x1b[31mred\u{202e}.o");
    fs::copy(fixture("x86_64/elftest.o"), &path).unwrap();
    let path = path.to_str().unwrap();
    let text = on_terminal(&["show", "--header", path], &[("COLUMNS", "1000")]);
    let title =
        format!("\x1b[1m{}/\\u{{1b}}[31mred\\u{{202e}}.o:\x1b[0m\n", folder.path().display());
    assert!(text.starts_with(&title), "{text}");
    let missing = format!("{path}x");
    let error = on_terminal(&["show", &missing], &[]);
    assert!(error.starts_with("\x1b[1m\x1b[31mhoist:\x1b[0m "), "{error}");
    assert!(!plain(&error).contains('\x1b') && error.contains("\\u{1b}[31mred"), "{error}");
    let error = piped(&["show", &missing], &[]);
    assert!(error[1].starts_with("hoist: ") && error[0].is_empty(), "{error:?}");
}

#[test]
fn errors_of_the_command_line_have_colours_as_it_says() {
    let words = ["show", "--nothing"];
    assert!(on_terminal(&words, &[]).contains("\x1b["));
    assert!(!piped(&words, &[])[1].contains("\x1b["));
    for never in [&["--color", "never"][..], &["--color=never"]] {
        assert!(!on_terminal(&[&words[..], never].concat(), &[]).contains("\x1b["), "{never:?}");
    }
    assert!(piped(&[&words[..], &["--color", "always"]].concat(), &[])[1].contains("\x1b["));
    let refused = piped(&["show", "--color", "red", "x"], &[]);
    assert!(refused[1].contains("auto, always, never"), "{refused:?}");
}

#[test]
fn tables_fit_a_terminal_and_pipes_have_all() {
    let (cuda, object) = (fixture("cuda"), fixture("x86_64/elftest.o"));
    let cubin = fixture("cuda/kernels-13.5-sm_80.cubin");
    // names of sections that are too long for a line: what ends them is in between
    let mut bytes = fs::read(fixture("cuda/calls-13.5-sm_90.cubin")).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let header = word(40) + 64 * usize::from(bytes[62]);
    let (start, end) = (word(header + 24) + 1, word(header + 24) + word(header + 32) - 1);
    bytes[start..end].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'_');
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("long.cubin").to_str().unwrap().to_owned();
    fs::write(&long, bytes).unwrap();
    let mut cut = 0;
    for words in [
        &["cubin", "relocs", &long][..],
        &["fatbin", "find", "*", &cuda],
        &["fatbin", "list", &cuda],
        &["fatbin", "size", &cuda],
        &["fatbin", "scan", &cuda],
        &["cubin", "show", &cubin],
        &["cubin", "attributes", &cubin],
        &["show", "--symbols", &object],
    ] {
        let shown = plain(&on_terminal(words, &[]));
        let long = shown.lines().find(|line| line.width() > COLUMNS.into());
        assert_eq!(long, None, "{words:?}");
        let [piped, _] = piped(words, &[]);
        assert_eq!(piped.lines().count(), shown.lines().count(), "{words:?}");
        cut += usize::from(shown.contains('\u{2026}'));
        assert!(!piped.contains('\u{2026}'), "{words:?}");
    }
    assert!(cut >= 4, "{cut}");
}

/// Ten wheels, as large ones are named and laid out, and older ones of the same names in which something differs.
const WHEELS: &str = r#"
import sys, zipfile, os
fixtures = sys.argv[1]
def library(name):
    return open(os.path.join(fixtures, name), "rb").read()
contents = ["fatbin/libt.so", "fatbin/whole.o", "fatbin/suffixes.fatbin", "fatbin/concat.fatbin", "cuda/kernels-13.5-sm_80.cubin",
    "cuda/linked-13.5-sm_90.cubin", "cuda/shapes-13.5-sm_80.cubin", "cuda/gpu-13.0-sm_90.fatbin", "fatbin/lto.fatbin", "cuda/kernels-13.5-sm_90a.cubin"]
for tree, change in [("new", 0), ("old", 1)]:
    os.mkdir(tree)
    for number, name in enumerate(contents):
        part = "abcdefghij"[number] * 4
        wheel = f"nvidia_{part}_cu12-12.9.{number}.4-py3-none-manylinux2014_x86_64.manylinux_2_27_x86_64.whl"
        with zipfile.ZipFile(os.path.join(tree, wheel), "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr(f"nvidia/{part}/__init__.py", "x")
            out.writestr(f"nvidia/{part}/lib/lib{part}.so.12", library(contents[(number + change * (number % 3 == 0)) % 10]))
"#;

#[test]
fn ten_wheels_are_read_at_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut python = Command::new("python3");
    python.args(["-c", WHEELS, &fixture("")]).current_dir(folder.path());
    if !python.status().is_ok_and(|status| status.success()) {
        println!("skipped: ten_wheels_are_read_at_a_terminal: needs python3");
        return;
    }
    let (new, old) = (at("new"), at("old"));
    let shown = |words: &[&str]| {
        let shown = plain(&on_terminal(words, &[]));
        for line in shown.lines() {
            assert!(line.width() <= COLUMNS.into() && !line.ends_with(' '), "{words:?}: {line}");
        }
        shown
    };
    let size = shown(&["fatbin", "size", &new]);
    // each library by a name that tells it from the others, and all of them together
    for part in ["aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg", "hhhh", "iiii", "jjjj"] {
        let own = format!(".whl:nvidia/{part}/lib/lib{part}.so.12");
        assert_eq!(size.lines().filter(|line| line.ends_with(&own)).count(), 1, "{part}: {size}");
    }
    assert!(size.lines().any(|line| line.ends_with("all 10 files")), "{size}");
    let found = shown(&["fatbin", "find", "*", &new]);
    assert!(found.contains("registers  shared  stack") && found.contains("aaaa/lib/libaaaa.so.12"));
    let titles: Vec<_> = found.split("\n\n").filter_map(|group| group.lines().next()).collect();
    let all = titles.len();
    let mut apart = titles;
    apart.sort_unstable();
    apart.dedup();
    assert_eq!(apart.len(), all, "two kernels look alike: {found}");
    let differs = shown(&["fatbin", "diff", &old, &new]);
    for title in ["added\n", "gone\n", "kernels: ", "architectures"] {
        assert!(differs.contains(title), "{title}: {differs}");
    }
}
