//! Links that a linker must not only take part in when it is asked for something: big-endian Arm with little-endian code, and what only
//! newer linkers make shorter.

use std::path::PathBuf;

use crate::compare::{Outcome, compare};
use crate::fixtures;
use crate::linker::Linker;

/// Big-endian objects: of processors that have both orders of code, and of those that have only the little one.
const BE8: &[&[&str]] = &[
    &["arm/call-big-endian.o"],
    &["arm/models-big-endian.o"],
    &["arm-be8/models-gcc12-O2-arm.o"],
    &["arm-be8/models-gcc12-O2-thumb.o"],
    &["arm-be8/models-gcc12-O2-arm.o", "arm/call-big-endian.o"],
    &["arm-be8/pair-a.o", "arm-be8/pair-b.o"],
    &["arm-be8/threads-a.o", "arm-be8/threads-b.o"],
    &["arm-be8/threads-a-general.o", "arm-be8/threads-b-general.o"],
    // of descriptors and general dynamic code for one variable GNU ld 2.40 makes code that takes the module's number for an offset
    &["arm-be8/threads-a-general.o", "arm-be8/threads-b-initial.o"],
];

/// Big-endian Arm with little-endian code.
pub(crate) fn compare_be8(test: &str, programs: &[&str]) {
    let Some(mut linker) = find(test, programs) else { return };
    linker.be8 = true;
    // lld does not know the descriptors of Arm
    let is_known = |name: &&str| !linker.is_lld() || *name != "arm-be8/threads-a.o";
    let links: Vec<&[&str]> =
        BE8.iter().copied().filter(|names| names.iter().all(is_known)).collect();
    compare_links(test, &linker, &links, false);
}

/// Code that becomes shorter.
pub(crate) fn compare_relaxed(test: &str, programs: &[&str], links: &[&[&str]]) {
    let Some(linker) = find(test, programs) else { return };
    compare_links(test, &linker, links, true);
}

/// Code that older linkers leave as it is.
pub(crate) fn compare_newer(test: &str, programs: &[&str], links: &[&[&str]]) {
    let Some(linker) = find(test, programs) else { return };
    compare_links(test, &linker, links, false);
}

fn find(test: &str, programs: &[&str]) -> Option<Linker> {
    let linker = Linker::find(programs);
    if linker.is_none() {
        println!("skipped: {test}: none of {programs:?} is installed");
    }
    linker
}

/// Compares every one of the links.
fn compare_links(test: &str, linker: &Linker, links: &[&[&str]], relax: bool) {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut all, mut wrong) = (0, Vec::new());
    for objects in links {
        let paths: Vec<PathBuf> = objects.iter().map(|it| fixtures::folder().join(it)).collect();
        match compare(linker, &paths, 0x40_0000, relax, scratch.path()) {
            Outcome::Equal { bytes, .. } => all += bytes,
            Outcome::Different(found) => wrong.extend(found),
            Outcome::Refused(why) | Outcome::BothRefused(why) => {
                wrong.push(format!("here: {why}"));
            }
            Outcome::LinkerRefused(why) => wrong.push(format!("there: {objects:?}: {why}")),
        }
    }
    println!("{test}: {}: {} links, {all} bytes", linker.version, links.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all > 0, "nothing was compared");
}
