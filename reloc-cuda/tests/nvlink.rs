//! Objects that ptxas makes of the fixtures' sources for one GPU after the other, linked here and by nvlink.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;

use linked::differences;
use reloc_cuda::link::{LinkOptions, LinkedMercury, link, link_with};
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHITECTURES: [&str; 9] =
    ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_103", "sm_120"];

/// Sources in two halves, options of ptxas, and the architectures of ours that PTX for can be compiled to.
const SOURCES: [(&str, &[&str], &[&str]); 22] = [
    ("calls", &[], &ARCHITECTURES),
    ("calls", &["-lineinfo"], &["sm_90", "sm_100", "sm_120"]),
    ("arrays", &["-lineinfo"], &["sm_90", "sm_100", "sm_120"]),
    ("shapes", &["-lineinfo"], &ARCHITECTURES),
    ("data", &[], &ARCHITECTURES),
    ("arrays", &[], &ARCHITECTURES),
    ("places", &["-lineinfo"], &ARCHITECTURES),
    ("tensor", &[], &["sm_100a"]),
    ("mixed", &["-lineinfo"], &ARCHITECTURES),
    ("pointers", &[], &["sm_80", "sm_90", "sm_100", "sm_120"]),
    ("names", &[], &["sm_80", "sm_90", "sm_100", "sm_120"]),
    ("alone", &[], &["sm_80", "sm_90", "sm_100", "sm_120"]),
    ("templates", &["-g"], &["sm_80", "sm_90"]),
    ("before", &[], &["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]),
    ("weak", &[], &ARCHITECTURES),
    ("pool", &[], &ARCHITECTURES),
    ("pool", &[], &["sm_75"]),
    ("chain", &["-lineinfo"], &["sm_90", "sm_100", "sm_120"]),
    ("only", &[], &["sm_80", "sm_90", "sm_100"]),
    ("zeros", &[], &ARCHITECTURES),
    ("fewer", &[], &ARCHITECTURES),
    // all programs for it have shared memory that the system reserves
    ("data", &[], &["sm_110"]),
];

/// Where nvlink 13.5 does otherwise, mostly from sm_100 on: source, and how the difference starts.
const OTHERWISE: [(&str, &str); 4] = [
    // of a function that gave way to another object's, it keeps the frame of the Mercury copy
    ("shapes sm_1", ".debug_frame: "),
    ("weak sm_1", ".debug_frame: "),
    ("weak sm_1", ".rela.debug_frame: "),
    // it takes names of inlined functions of the second object from the first
    ("mixed sm_90", ".debug_line: "),
];

const TEXTURES: &str = "its code names textures, whose numbers nvlink puts into Mercury anew";

/// Sources whose Mercury form is left out from sm_100 on, and why; of all others it is merged.
const MERCURY_LEFT_OUT: [(&str, &str); 2] = [("shapes", TEXTURES), ("places", TEXTURES)];

/// Programs that are compared, at the least.
const EXPECTED: usize = 100;

/// Programs of which `nvlink -r` joins so many objects first.
const JOINED: [(&str, &str, usize); 5] = [
    ("names", "sm_90", 1),
    ("calls", "sm_80", 2),
    ("calls", "sm_90", 2),
    ("arrays", "sm_80", 2),
    ("arrays", "sm_90", 2),
];

/// Programs that are linked once more for the kernels with this in their name alone.
const KERNELS: [(&str, &str); 2] = [("fewer", "by_"), ("arrays", "has_an")];

fn is_there(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&text));
}

/// An object of one half.
fn compiled(folder: &Path, name: &str, half: &str, arch: &str, options: &[&str]) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fixtures/cuda/{name}_{half}.ptx"));
    let object = folder.join(format!("{name}_{half}-{arch}.cubin"));
    run(Command::new("ptxas")
        .args(["-c", "-arch", arch])
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(&object));
    object
}

#[test]
fn every_architecture_is_linked_as_nvlink_does() {
    if !["ptxas", "nvlink"].into_iter().all(is_there) {
        println!("skipped: every_architecture_is_linked_as_nvlink_does: needs ptxas and nvlink");
        return;
    }
    let folder = std::env::temp_dir().join(format!("reloc-cuda-nvlink-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (mut programs, mut different) = (0, Vec::new());
    for (name, options, architectures) in SOURCES {
        for arch in architectures {
            let objects = ["a", "b"].map(|half| compiled(&folder, name, half, arch, options));
            let theirs = folder.join("linked.cubin");
            run(Command::new("nvlink").args(["-arch", arch]).args(&objects).arg("-o").arg(&theirs));
            if let Some((.., count)) = JOINED.iter().find(|(of, on, _)| (*of, on) == (name, arch)) {
                // what nvlink joined is linked, too, and as if it had not been
                let joined = folder.join("joined.cubin");
                let (first, rest) = objects.split_at(*count);
                let mut nvlink = Command::new("nvlink");
                run(nvlink.args(["-r", "-arch", arch]).args(first).arg("-o").arg(&joined));
                let all = [joined.clone()].into_iter().chain(rest.iter().cloned());
                let all: Vec<_> = all.map(|one| std::fs::read(one).unwrap()).collect();
                let all: Vec<_> = all.iter().map(Vec::as_slice).collect();
                let ours =
                    link(&all).unwrap_or_else(|error| panic!("{name} {arch}, joined: {error}"));
                let found = differences(&std::fs::read(&theirs).unwrap(), &ours.bytes);
                assert!(found.is_empty(), "{name} {arch}, joined: {found:#?}");
            }
            let used = KERNELS.iter().filter(|(of, _)| *of == name).map(|(_, kernels)| *kernels);
            let used: Vec<_> = used.map(|kernels| (kernels, folder.join("used.cubin"))).collect();
            for (kernels, theirs) in &used {
                let mut nvlink = Command::new("nvlink");
                nvlink.args(["-arch", arch]).arg(format!("--kernels-used={kernels}"));
                run(nvlink.args(&objects).arg("-o").arg(theirs));
            }
            let [a, b] = objects.map(|object| std::fs::read(object).unwrap());
            let label = format!("{name} {arch}");
            for (kernels, theirs) in used {
                let options = LinkOptions { kernels: &[kernels], ..LinkOptions::default() };
                let ours = link_with(&[&a, &b], options).unwrap();
                let found = differences(&std::fs::read(theirs).unwrap(), &ours.bytes);
                assert!(found.is_empty(), "{label}, {kernels}: {found:#?}");
            }
            programs += 1;
            let ours = link(&[&a, &b]).unwrap_or_else(|error| panic!("{label}: {error}"));
            let number: u32 = arch.trim_matches(|one: char| !one.is_ascii_digit()).parse().unwrap();
            let left_out = MERCURY_LEFT_OUT.iter().find(|(of, _)| *of == name).map(|(_, why)| why);
            match (ours.mercury, left_out) {
                (LinkedMercury::None, _) => assert!(number < 100, "{label}"),
                (LinkedMercury::Merged, None) => assert!(number >= 100, "{label}"),
                (LinkedMercury::LeftOut { why, .. }, Some(known)) => {
                    assert_eq!(why, *known, "{label}")
                }
                (other, known) => panic!("{label}: {other:?}, expected {known:?}"),
            }
            if name == "mixed" {
                // the header ends with the last file and with where the names of the first object, `helper_of_a`, end
                let end = [&b"mixed_b.cu"[..], &[0; 5], &12u32.to_le_bytes()].concat();
                assert!(ours.bytes.windows(end.len()).any(|bytes| bytes == end), "{label}");
            }
            let mut found = differences(&std::fs::read(&theirs).unwrap(), &ours.bytes);
            found.retain(|line| {
                !OTHERWISE
                    .iter()
                    .any(|(of, start)| label.starts_with(of) && line.starts_with(start))
            });
            different.extend(found.into_iter().map(|line| format!("{label}: {line}")));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{programs} programs, {} differences", different.len());
    assert!(different.is_empty(), "{different:#?}");
    assert!(programs >= EXPECTED, "{programs} programs, expected {EXPECTED}");
}
