//! `viewer`: types of the page that `hoist fatbin report` writes, and the page in a browser.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::task::Run;
use crate::test;
use crate::tool::{Tool, cargo, need, output, run};
use crate::workspace::Workspace;

/// Arguments of `viewer`.
#[derive(clap::Args)]
pub(crate) struct Viewer {
    /// Skip it, by name, if this machine lacks the tools
    #[arg(long)]
    skip_missing: bool,
}

/// What is in the folder of the viewer and is no part of the page.
const FILES: &[&str] = &["package.json", "tsconfig.json", "tests/page.test.mjs"];
const SCRIPTS: &[&str] = &["data", "map", "table", "kernels", "charts", "changes", "page"];

impl Run for Viewer {
    fn run(self, workspace: &Workspace) -> Result<()> {
        let tools = [
            Tool::new("node", "nodejs"),
            Tool::new("npm", "npm"),
            Tool::new("chromium", "chromium"),
        ];
        match need(tools) {
            Err(error) if self.skip_missing => {
                test::skip("viewer", &format!("{error:#}"));
                return Ok(());
            }
            found => found?,
        }
        let folder = workspace.kept("viewer")?;
        let viewer = workspace.root().join("hoist-tool/viewer");
        fs::create_dir_all(folder.join("tests"))?;
        let scripts = SCRIPTS.iter().map(|name| format!("{name}.js"));
        for name in FILES.iter().map(ToString::to_string).chain(scripts) {
            fs::copy(viewer.join(&name), folder.join(&name)).with_context(|| name.clone())?;
        }
        let here = |program: &str, words: &[&str]| {
            let mut command = Command::new(program);
            command.current_dir(&folder).args(words);
            command
        };
        let install =
            ["install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
        if let Err(error) = output(&mut here("npm", &install)) {
            if self.skip_missing {
                test::skip("viewer", &format!("npm install: {error:#}"));
                return Ok(());
            }
            return Err(error);
        }
        run(&mut here("node_modules/.bin/tsc", &["--project", "."]))?;

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
        let mut tests = here("node", &["--test", "tests/"]);
        tests.env("PAGE", &page).env("PICTURES", &folder);
        run(&mut tests)
    }
}
