//! `hoist completions` and `hoist man`: shells and formatters take them, and no command is left out.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use clap::CommandFactory as _;
use hoist_tool::cmd::CommandLine;

fn hoist(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hoist")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Names of pages: `hoist`, `hoist-run`, `hoist-fatbin-list`.
fn names(command: &clap::Command, prefix: &str, names: &mut BTreeSet<String>) {
    let name = format!("{prefix}{}", command.get_name());
    for subcommand in command.get_subcommands() {
        self::names(subcommand, &format!("{name}-"), names);
    }
    names.insert(name);
}

fn all() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    self::names(&CommandLine::command(), "", &mut names);
    names
}

#[test]
fn a_page_for_every_command() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("man1");
    assert_eq!(hoist(&["man", folder.to_str().unwrap()]), "");
    let found = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
    let found: BTreeSet<String> = found.map(|name| name.into_string().unwrap()).collect();
    let expected: BTreeSet<String> = all().iter().map(|name| format!("{name}.1")).collect();
    assert_eq!(found, expected);
    let page = fs::read_to_string(folder.join("hoist.1")).unwrap();
    assert_eq!(hoist(&["man"]), page);
    assert!(fs::read_to_string(folder.join("hoist-run.1")).unwrap().contains("whole\\-archive"));

    for name in &found {
        let path = folder.join(name);
        let Ok(output) = Command::new("groff")
            .args(["-man", "-Tascii", "-ww", "-Wbreak", "-z"])
            .arg(&path)
            .output()
        else {
            println!("skipped: a_page_for_every_command: needs groff");
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{name}: {said}");
    }
}

#[test]
fn bash_completes() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("hoist.bash");
    fs::write(&path, hoist(&["completions", "bash"])).unwrap();
    // what bash does when the tabulator key is pressed behind these words
    let complete = |words: &str, last: usize| {
        let script = format!(
            "source {} && COMP_WORDS=({words} \"\") COMP_CWORD={last} && _hoist hoist \"\" && echo \"${{COMPREPLY[@]}}\"",
            path.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &script]).output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).expect("text"))
    };
    let Some(commands) = complete("hoist", 1) else {
        println!("skipped: bash_completes: needs bash");
        return;
    };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    let commands = words(&commands);
    for command in CommandLine::command().get_subcommands() {
        assert!(commands.contains(command.get_name()), "{}", command.get_name());
    }
    let fatbin = words(&complete("hoist fatbin", 2).unwrap());
    assert!(["list", "extract", "prune"].iter().all(|name| fatbin.contains(*name)), "{fatbin:?}");
}

#[test]
fn every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = hoist(&["completions", shell]);
        let missing = all().into_iter().find(|name| {
            let last = name.rsplit('-').next().unwrap();
            !script.contains(last)
        });
        assert_eq!(missing, None, "{shell}");
    }
}
