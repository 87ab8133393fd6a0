//! `viewer`: types of the page that `hoist fatbin report` writes, and the page in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::task::Run;
use crate::test;
use crate::tool::{Missing, Tool, cargo, need, output, run};
use crate::workspace::Workspace;

/// Arguments of `viewer`.
#[derive(clap::Args)]
pub(crate) struct Viewer {
    /// Skip it, by name, if this machine lacks the tools
    #[arg(long)]
    skip_missing: bool,
}

/// What runs checks and tests.
const TOOLS: [Tool<'_>; 3] =
    [Tool::new("node", "nodejs"), Tool::new("npm", "npm"), Tool::new("chromium", "chromium")];
/// The scripts that all pages have, in their order: later ones use what earlier ones have.
pub(crate) const SCRIPTS: &[&str] =
    &["data", "map", "table", "kernels", "charts", "changes", "page"];

impl Run for Viewer {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let folder = match installed(workspace) {
            Err(error) if self.skip_missing => {
                test::skip("viewer", &format!("{error:#}"));
                return Ok(());
            }
            found => found?,
        };
        run(Command::new(tsc(&folder)).arg("--project").arg(source(workspace)))?;
        lint(&folder, workspace, &[&source(workspace)])?;

        let page = folder.join("report.html");
        let cuda = workspace.fixtures().join("cuda");
        let mut report = cargo();
        report.current_dir(workspace.root()).args([
            "run",
            "--quiet",
            "--package",
            "hoist-tool",
            "--",
        ]);
        run(report
            .args(["fatbin", "report", "--title", "fixtures", "--output"])
            .args([&page, &cuda]))?;
        let name = "page.test.mjs";
        fs::copy(source(workspace).join("tests").join(name), folder.join(name)).context(name)?;
        let mut tests = Command::new("node");
        tests.current_dir(&folder).args(["--test", name]);
        run(tests.env("PAGE", &page).env("PICTURES", &folder))
    }
}

/// The folder of the viewer.
pub(crate) fn source(workspace: &Workspace) -> PathBuf {
    workspace.root().join("hoist-tool/viewer")
}

/// What checks scripts, and drives browsers: a folder with the packages of `package.json`.
///
/// # Errors
/// If they cannot be had.
pub(crate) fn installed(workspace: &Workspace) -> Result<PathBuf> {
    need(TOOLS)?;
    let folder = workspace.kept("viewer")?;
    let name = "package.json";
    fs::copy(source(workspace).join(name), folder.join(name)).context(name)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&folder).args([
        "install",
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    output(&mut npm).map_err(|error| Missing(format!("npm install: {error:#}")))?;
    Ok(folder)
}

/// Looks for what is wrong or misleading in scripts and styles of these folders.
///
/// # Errors
/// If something is.
pub(crate) fn lint(installed: &Path, workspace: &Workspace, folders: &[&Path]) -> Result<()> {
    let mut biome = Command::new(installed.join("node_modules/.bin/biome"));
    biome.current_dir(installed);
    biome
        .arg("lint")
        .arg("--error-on-warnings")
        .arg("--config-path")
        .arg(source(workspace).join("biome.jsonc"));
    run(biome.args(folders))
}

/// The compiler that checks scripts.
pub(crate) fn tsc(folder: &Path) -> PathBuf {
    folder.join("node_modules/.bin/tsc")
}
