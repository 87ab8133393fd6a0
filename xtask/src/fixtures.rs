//! `fixtures`: makes every fixture again and compares.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::manifest::{self, Recipe, Recipes};
use crate::task::Run;
use crate::tool::{self, Tool};
use crate::workspace::Workspace;

/// Arguments of `fixtures`.
#[derive(clap::Args)]
pub(crate) struct Fixtures {
    /// Change nothing; fail if a fixture would change
    #[arg(long)]
    check: bool,
    /// Only the fixtures whose path contains one of these
    only: Vec<String>,
}

impl Run for Fixtures {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let home = workspace.fixtures();
        let recipes: Recipes = manifest::read(&home.join("fixtures.toml"))?;
        let chosen: Vec<&Recipe> =
            recipes.fixture.iter().filter(|recipe| self.wants(recipe)).collect();
        if chosen.is_empty() {
            bail!("no fixture of that name");
        }
        let other_versions = versions(&recipes, &chosen)?;

        let (kitchen, made) = (workspace.scratch("fixtures")?, workspace.scratch("fixtures-made")?);
        let mut changed = 0;
        for recipe in &chosen {
            let new = make(recipe, &home, &kitchen, &made)?;
            let recorded = home.join(&recipe.output);
            let what = match fs::read(&recorded) {
                Ok(old) if old == new => continue,
                Ok(_) => "changed",
                Err(_) => "new",
            };
            changed += 1;
            println!("{what}: {}", recipe.output);
            if !self.check {
                fs::copy(made.join(&recipe.output), recorded)?;
            }
        }
        let strangers = strangers(&home, &recipes)?;
        for stranger in &strangers {
            println!("not in fixtures.toml: {stranger}");
        }
        println!("{} fixtures made, {changed} changed", chosen.len());
        for line in other_versions {
            println!("{line}");
        }
        if !strangers.is_empty() || (self.check && changed > 0) {
            bail!("{changed} fixtures changed, {} are not recorded", strangers.len());
        }
        Ok(())
    }
}

impl Fixtures {
    fn wants(&self, recipe: &Recipe) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| recipe.output.contains(word.as_str()))
    }
}

/// A line for each tool of `chosen` that is here in another version than the recorded one.
///
/// # Errors
/// If a tool is missing: which packages bring it.
fn versions(recipes: &Recipes, chosen: &[&Recipe]) -> Result<Vec<String>> {
    let used: BTreeSet<&str> = chosen.iter().map(|recipe| recipe.program()).collect();
    let makers: Vec<_> =
        recipes.tools.iter().filter(|(program, _)| used.contains(program.as_str())).collect();
    let tool = |(program, maker): &(&'_ String, &'_ manifest::Maker)| {
        (program.to_string(), maker.package.clone())
    };
    let owned: Vec<(String, String)> = makers.iter().map(tool).collect();
    tool::need(owned.iter().map(|(program, package)| Tool::new(program, package)))?;
    let mut lines = Vec::new();
    for (program, maker) in makers {
        let here = Tool::new(program, &maker.package).version()?.unwrap_or_default();
        if here != maker.version {
            lines.push(format!(
                "note: {program} here is \"{here}\", recorded is \"{}\"",
                maker.version
            ));
        }
    }
    Ok(lines)
}

/// Makes `recipe` in the folder `kitchen`, where nothing lies but its sources, keeps the result in `made` for those made
/// from it, and returns its bytes. The folder `home` has the sources that have not just been made.
fn make(recipe: &Recipe, home: &Path, kitchen: &Path, made: &Path) -> Result<Vec<u8>> {
    let attempt = || {
        fs::remove_dir_all(kitchen)?;
        for source in &recipe.sources {
            let fresh = made.join(source);
            let from = if fresh.exists() { fresh } else { home.join(source) };
            copy(&from, &kitchen.join(source)).with_context(|| format!("its source {source}"))?;
        }
        let output = kitchen.join(&recipe.output);
        let folder = output.parent().context("it is in no folder")?;
        fs::create_dir_all(folder)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", &recipe.command])
            .current_dir(folder)
            .env("LC_ALL", "C")
            .env("SOURCE_DATE_EPOCH", "0");
        for heeded in [
            "CPATH",
            "C_INCLUDE_PATH",
            "CPLUS_INCLUDE_PATH",
            "LIBRARY_PATH",
            "CCC_OVERRIDE_OPTIONS",
        ] {
            command.env_remove(heeded);
        }
        tool::output(&mut command)?;
        copy(&output, &made.join(&recipe.output)).context("the command has not made it")?;
        Ok::<_, anyhow::Error>(fs::read(&output)?)
    };
    attempt().with_context(|| format!("cannot make {}", recipe.output))
}

/// Copies the file `from` to `to`, whose folder may have to be made.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    Ok(())
}

/// Binaries that nobody recorded, in the folders where recorded ones lie.
fn strangers(home: &Path, recipes: &Recipes) -> Result<Vec<String>> {
    let outputs: BTreeSet<PathBuf> =
        recipes.fixture.iter().map(|recipe| home.join(&recipe.output)).collect();
    let folders: BTreeSet<&Path> = outputs.iter().filter_map(|output| output.parent()).collect();
    let mut strangers = Vec::new();
    for folder in folders {
        for entry in
            fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let path = entry?.path();
            let source = path
                .extension()
                .and_then(OsStr::to_str)
                .is_some_and(|kind| SOURCES.contains(&kind));
            if !source && path.is_file() && !outputs.contains(&path) {
                strangers.push(path.strip_prefix(home).unwrap_or(&path).display().to_string());
            }
        }
    }
    strangers.sort();
    Ok(strangers)
}

/// Endings of files that a person wrote.
const SOURCES: &[&str] = &["c", "cpp", "h", "s", "map", "toml", "md"];
