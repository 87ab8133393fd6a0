//! What the fuzz targets do, on the stable compiler: with the fixtures, and with what was found before.
#![cfg(test)]
#![allow(dead_code, unreachable_pub, reason = "the targets are a library of their own")]

#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

use std::fs;
use std::path::Path;

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace")
}

/// Runs one target with all inputs there are for it.
fn replay(name: &str) {
    let (_, run) = fuzz::TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    let seeds = fuzz::seeds::of(name, &root().join("fixtures")).expect("the fixtures");
    assert!(seeds.len() > 2, "there are {} seeds", seeds.len());
    for (seed, bytes) in &seeds {
        println!("{seed}");
        run(bytes);
        // something of every layer: cut in the middle, and with every bit of a byte turned
        run(&bytes[..bytes.len() / 2]);
        let mut bytes = bytes.clone();
        for at in [bytes.len() / 3, bytes.len() * 2 / 3] {
            bytes[at] = !bytes[at];
            run(&bytes);
        }
    }
    let Ok(found) = fs::read_dir(root().join("fuzz/regressions").join(name)) else { return };
    for file in found {
        let path = file.expect("an entry").path();
        println!("{}", path.display());
        run(&fs::read(path).expect("an input"));
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        #[test]
        fn every_target_is_replayed_and_built() {
            let names = [$(stringify!($name)),*];
            assert!(fuzz::TARGETS.iter().map(|(name, _)| *name).eq(names));
            let files = fs::read_dir(root().join("fuzz/fuzz_targets")).expect("the targets");
            assert_eq!(files.count(), names.len());
            let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("a manifest");
            for name in names {
                assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
            }
        }
    };
}
targets! { apply archive cubin device_link fatbin file layout link offload }
