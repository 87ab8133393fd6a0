//! Objects put together first and linked afterwards are what the objects are, linked at once: here, and by nvlink.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;

use linked::differences;
use reloc_cuda::link::{LinkErrorKind, LinkedMercury, link, link_relocatable};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Halves of programs among the fixtures.
const PROGRAMS: [(&str, &str); 13] = [
    ("calls", "13.5-sm_80"),
    ("calls", "13.5-sm_90"),
    ("calls", "13.5-sm_100"),
    ("data", "13.5-sm_80"),
    ("data", "13.5-sm_90"),
    ("arrays", "13.5-sm_80"),
    ("arrays", "13.5-sm_90"),
    ("places", "13.5-sm_80"),
    ("places", "13.5-sm_100"),
    ("shapes", "12.9-sm_80"),
    ("shapes", "13.5-sm_90"),
    ("tensor", "13.5-sm_100a"),
    ("gpu", "13.0-sm_90"),
];

/// Where what is put together first is another file: program and how the difference starts.
const OTHERWISE: [(&str, &str); 2] = [
    // shared variables of one size are placed by the order of all symbols, of which local ones stand first in one file
    ("places", ".text.pooled: "),
    // objects of toolkit 12 become one of the newer form, of which nvlink keeps empty sections
    ("shapes 12.9", ".nv.shared.pictured: in one alone"),
];

/// What two linked files differ in.
fn differ(label: &str, expected: &[u8], found: &[u8]) -> Vec<String> {
    let mut all = differences(expected, found);
    all.retain(|line| {
        !OTHERWISE.iter().any(|(of, start)| label.starts_with(of) && line.starts_with(start))
    });
    all
}

fn halves(name: &str, version: &str) -> [Vec<u8>; 2] {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    ["a", "b"].map(|half| {
        let path = folder.join(format!("{name}_{half}-{version}.cubin"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    })
}

#[test]
fn what_is_put_together_is_linked_as_its_parts() {
    for (name, version) in PROGRAMS {
        let label = format!("{name} {version}");
        let [a, b] = halves(name, version);
        let at_once = link(&[&a, &b]).unwrap();
        let joined = link_relocatable(&[&a, &b], None).unwrap();
        let later = link(&[&joined.bytes]).unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(differ(&label, &at_once.bytes, &later.bytes), [""; 0], "{label}");
        assert_eq!(at_once.unbounded, later.unbounded, "{label}");
        let mercury = matches!(joined.mercury, LinkedMercury::LeftOut { .. });
        assert_eq!(mercury, version.contains("sm_1"), "{label}");
        // one object, and one again, are as before; so is the first half, with the second behind it
        let alone = link_relocatable(&[&a], None).unwrap();
        let again = link_relocatable(&[&alone.bytes], None).unwrap();
        let later = link(&[&again.bytes, &b]).unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(differ(&label, &at_once.bytes, &later.bytes), [""; 0], "{label}, one after one");
    }
}

#[test]
fn what_cannot_be_put_together_is_named() {
    let [a, b] = halves("calls", "13.5-sm_80");
    let errors = link_relocatable(&[&a, &b, &a], None).unwrap_err();
    let twice =
        |kind: &LinkErrorKind| matches!(kind, LinkErrorKind::Duplicate { first: 0 | 1, .. });
    assert!(errors.0.iter().any(|error| error.object == 2 && twice(&error.kind)), "{errors}");
    let linked = link(&[&a, &b]).unwrap().bytes;
    let errors = link_relocatable(&[&linked], None).unwrap_err();
    assert_eq!(errors.0[0].kind, LinkErrorKind::NotRelocatable);
    let errors = link_relocatable(&[], None).unwrap_err();
    assert_eq!(errors.0[0].kind, LinkErrorKind::Nothing);
    for end in (0..a.len()).step_by(97) {
        assert!(link_relocatable(&[&a[..end], &b], None).is_err(), "{end}");
    }
}

/// Runs nvlink; what it links.
fn nvlink(folder: &Path, arch: &str, name: &str, objects: &[&[u8]]) -> Vec<u8> {
    let paths: Vec<_> = (0..objects.len()).map(|at| folder.join(format!("{name}{at}"))).collect();
    for (path, bytes) in paths.iter().zip(objects) {
        std::fs::write(path.with_extension("cubin"), bytes).unwrap();
    }
    let output = folder.join(format!("{name}.linked"));
    let mut command = Command::new("nvlink");
    let inputs = paths.iter().map(|path| path.with_extension("cubin"));
    let said = command.args(["-arch", arch]).args(inputs).arg("-o").arg(&output).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{name}: {text}");
    std::fs::read(output).unwrap()
}

#[test]
fn nvlink_takes_what_is_put_together() {
    if !Command::new("nvlink").arg("--version").output().is_ok_and(|said| said.status.success()) {
        println!("skipped: nvlink_takes_what_is_put_together: needs nvlink");
        return;
    }
    let folder = std::env::temp_dir().join(format!("reloc-cuda-joined-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut compared = 0;
    // from sm_100 on nvlink wants a Mercury form
    for (name, version) in PROGRAMS.iter().filter(|(_, version)| !version.contains("sm_1")) {
        let (_, arch) = version.split_once('-').unwrap();
        let label = format!("{name} {version}");
        let [a, b] = halves(name, version);
        let joined = link_relocatable(&[&a, &b], None).unwrap().bytes;
        let at_once = nvlink(&folder, arch, &format!("{name}-{arch}-parts"), &[&a, &b]);
        let later = nvlink(&folder, arch, &format!("{name}-{arch}-joined"), &[&joined]);
        assert_eq!(differ(&label, &at_once, &later), [""; 0], "{label}");
        compared += 1;
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{compared} programs");
}
