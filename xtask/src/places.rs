//! Where a new architecture has to be entered: counted, so that it stays as few places as CONTRIBUTING.md says.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::tool::output;
use crate::workspace::Workspace;

/// The files in which every crate of an architecture stands: the workspace, the registry and the facade.
const PLACES: &[&str] =
    &["Cargo.toml", "archs/Cargo.toml", "archs/src/lib.rs", "hoist/Cargo.toml", "hoist/src/lib.rs"];

/// Where code may name one architecture, because it is about that one: crates above it that use what only it has, tests, examples.
const ABOUT_ONE: &[&str] = &[
    "benches/",
    "elf-image/Cargo.toml",
    "elf-layout/Cargo.toml",
    // examples in documentation
    "elf-image/src/",
    "elf-image/tests/",
    "elf-layout/src/",
    "elf-layout/tests/",
    "examples/",
    "xtask/no-panic/by-hand.toml",
    // tests share the objects of elf-layout's
    "exec-host/Cargo.toml",
    // numbers of dynamic relocations, and code for one machine
    "exec-host/src/machine/",
    "exec-host/src/threads/initial_exec.rs",
    // the device linker and the loader of cubins
    "exec-nv/",
    "fuzz/Cargo.toml",
    "fuzz/src/device_link.rs",
    "hoist-c/Cargo.toml",
    "hoist-c/src/cubin.rs",
    "hoist-c/src/faults.rs",
    "hoist-tool/Cargo.toml",
    "nvinfo/src/lib.rs",
    "python/Cargo.toml",
    "python/src/cubin_link.rs",
    "hoist-tool/src/cmd/cubin/",
    "xtask/Cargo.toml",
    // what firmware's own images refer with
    "xtask/src/image.rs",
    "xtask/src/places.rs",
    // names of tests
    "xtask/skips.toml",
    "xtask/src/size.rs",
];

/// Faults: crates of architectures that are missing in one of the places, or stand in another.
pub(crate) fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(workspace.root()).args(["ls-files", "*.rs", "*.toml"]);
    let listed = String::from_utf8(output(&mut git)?.stdout)?;
    let crates: Vec<String> = listed
        .lines()
        .filter_map(|path| path.strip_suffix("/Cargo.toml"))
        .filter(|name| name.starts_with("reloc-") && !name.contains('/'))
        .map(str::to_owned)
        .collect();
    let mut faults = Vec::new();
    for name in &crates {
        let module = name.replace('-', "_");
        for path in listed.lines().filter(|path| !path.starts_with("reloc-")) {
            let text = fs::read_to_string(workspace.root().join(path)).context(path.to_owned())?;
            let is_named = text.contains(name.as_str()) || text.contains(&module);
            let is_place = PLACES.contains(&path);
            if is_place && !is_named {
                faults.push(format!("{name} is not entered in {path}"));
            }
            let is_about_one = ABOUT_ONE.iter().any(|about| path.starts_with(about));
            if is_named && !is_place && !is_about_one {
                faults.push(format!("{path} names {name}: go over the registry in `archs`"));
            }
        }
    }
    Ok(faults)
}
