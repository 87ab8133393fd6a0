//! A wheel, installed by pip into an empty environment.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::places::{Places, Wheel, list};
use crate::tool::output;

/// Installs what became of a wheel in a run, checks it, imports it and tries it; says what was done.
pub(super) fn try_out(places: &Places, wheel: &Wheel, run: &str) -> Result<String> {
    let folder = places.scratch.join("environment");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    output(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&folder))?;
    let python = folder.join("bin/python");
    let pip = |words: &[&str]| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--disable-pip-version-check", "--python"]).arg(&python);
        pip.args(words);
        pip
    };
    let wheels = list()?;
    let mut files = vec![places.made(&places.file(wheel)?, run)?];
    for name in &wheel.with {
        let other =
            wheels.iter().find(|other| other.name == *name).context("is not in the list")?;
        let other = places.file(other)?;
        let made = places.made(&other, run)?;
        // not all are made in mode `size`
        files.push(if made.exists() { made } else { places.made(&other, "balance")? });
    }
    for file in &files {
        ensure!(file.exists(), "{} was not made", file.display());
    }
    let mut install = pip(&["install", "--quiet", "--only-binary=:all:"]);
    if wheel.alone.is_some() {
        install.arg("--no-deps");
    }
    output(install.args(&files))?;
    if !wheel.requires.is_empty() {
        output(pip(&["install", "--quiet", "--only-binary=:all:"]).args(&wheel.requires))?;
    }
    let checked = pip(&["check"]).output().context("pip")?;
    let text = String::from_utf8_lossy(&checked.stdout);
    // nothing else may be wrong with what was installed without what it depends on
    let is_missing = |line: &&str| line.contains("which is not installed");
    let others = text.lines().filter(|line| !is_missing(line));
    let others: Vec<_> = others.filter(|line| *line != "No broken requirements found.").collect();
    ensure!(others.is_empty(), "pip check: {}", others.join("; "));
    let check = match &wheel.alone {
        Some(why) => format!("installed with --no-deps ({why}), pip check misses these alone"),
        None => {
            ensure!(checked.status.success(), "pip check: {text}");
            String::from("installed, pip check")
        }
    };
    let script = places.scratch.join("test.py");
    // source of functions that the script defines is asked for
    fs::write(&script, [include_str!("try.py"), &wheel.test].concat())?;
    output(Command::new(&python).arg(&script).current_dir(&places.scratch))?;
    Ok(format!("{check}; imported, tried"))
}
