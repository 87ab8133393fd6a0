//! Where things are.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The checkout that the tasks work on.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace of the `cargo` that runs this program.
    ///
    /// # Errors
    /// If no `cargo` runs it.
    pub(crate) fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("start this program with `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("the folder of xtask has no parent")?;
        Ok(Self { root: root.to_owned() })
    }

    /// The folder of the root manifest.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the fixtures.
    pub(crate) fn fixtures(&self) -> PathBuf {
        self.root.join("fixtures")
    }

    /// A folder for things that can be made again, emptied: `NAME` under cargo's target directory.
    ///
    /// # Errors
    /// If it cannot be emptied or made.
    pub(crate) fn scratch(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target().join("xtask").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        self.kept(name)
    }

    /// The same folder, with what it holds from before.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn kept(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target().join("xtask").join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Cargo's target directory.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.root.join("target"), |folder| self.root.join(folder))
    }
}
