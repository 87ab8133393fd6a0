//! What the fuzz targets do, on the stable compiler: with the fixtures, and with what was found before.
#![cfg(test)]
#![allow(dead_code, unreachable_pub, reason = "the targets are a library of their own")]

#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

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
targets! { apply archive cubin device_link eh_frame fatbin file image layout link offload }

/// Half of the tables are taken as they are: else nothing would be shown to the unwinder.
#[test]
fn unwinding_tables_are_taken() {
    let seeds = fuzz::seeds::of("eh_frame", &root().join("fixtures")).expect("the fixtures");
    let taken = seeds.iter().filter(|(_, table)| fuzz::eh_frame::is_taken(table)).count();
    assert!(taken * 2 > seeds.len(), "{taken} of {}", seeds.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    /// Of every architecture: a relocation changes no bit outside its field, and one that fails changes nothing.
    #[test]
    fn any_relocation(
        (architecture, flags, kind, at) in any::<(u8, u8, u16, u8)>(),
        // addends, symbols and addresses: near one another, or anywhere
        numbers in prop::collection::vec(prop_oneof![0..0x1_0000_u64, any::<u64>()], 5),
        section in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let [architecture, kind] = [u16::from(architecture), kind].map(u16::to_le_bytes);
        // what `fuzz/src/apply.rs` takes from its input, in its order; few places are far outside
        let flags = if at < 250 { flags & !1 } else { flags };
        let mut input = vec![architecture[0], flags, kind[0], kind[1]];
        match flags & 1 {
            0 => input.push(at % 72),
            _ => input.extend(numbers[0].to_le_bytes()),
        }
        if flags & 2 != 0 {
            input.extend(numbers[1].to_le_bytes());
        }
        input.extend(u32::from(at).to_le_bytes());
        numbers[2..].iter().for_each(|number| input.extend(number.to_le_bytes()));
        input.extend(section);
        fuzz::apply::run(&input);
    }
}
