//! What `rustdoc` makes of the crates, for programs: `lint` has its warnings, `api` what it says of public items. Both ask for the same, which
//! is made once.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::tool::{cargo, run};
use crate::workspace::Workspace;

/// A stable rustdoc writes this form for who says that it may change. What is compiled before must not hear of that: it would be
/// compiled again.
const RUSTDOC: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// Documents these packages, or all, with all features: the folder with `NAME.json` for each library. Warnings are errors.
///
/// # Errors
/// If rustdoc has something to say.
pub(crate) fn documented(workspace: &Workspace, packages: &[&str]) -> Result<PathBuf> {
    let rustdoc = workspace.kept("documentation")?.join("rustdoc");
    if !fs::read(&rustdoc).is_ok_and(|text| text == RUSTDOC.as_bytes()) {
        fs::write(&rustdoc, RUSTDOC)?;
        #[cfg(unix)]
        fs::set_permissions(&rustdoc, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let mut doc = cargo();
    doc.current_dir(workspace.root())
        .env("RUSTDOC", rustdoc)
        .env("RUSTDOCFLAGS", "-D warnings -Z unstable-options --output-format json")
        .args(["doc", "--quiet", "--no-deps", "--all-features"]);
    if packages.is_empty() {
        doc.arg("--workspace");
    }
    run(doc.args(packages.iter().flat_map(|name| ["--package", name])))?;
    Ok(workspace.target().join("doc"))
}
