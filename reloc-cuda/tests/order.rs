//! The order of sections, symbols, attributes and records in linked files is that of nvlink 13.5.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;
mod objects;

use objects::{halves, read};
use reloc_cuda::link::link;

/// Programs, versions of their halves and of the linked file, and the lists that nvlink has in another order.
const PROGRAMS: [(&str, &str, &str, &[&str]); 22] = [
    ("calls", "13.5-sm_80", "linked-13.5-sm_80", &[]),
    ("calls", "13.5-sm_90", "linked-13.5-sm_90", &[]),
    ("calls", "13.5-sm_100", "linked-13.5-sm_100", &[]),
    ("data", "13.5-sm_80", "data-13.5-sm_80", &[]),
    ("data", "13.5-sm_90", "data-13.5-sm_90", &[]),
    ("arrays", "13.5-sm_80", "arrays-13.5-sm_80", &[]),
    ("arrays", "13.5-sm_90", "arrays-13.5-sm_90", &[]),
    ("alone", "13.5-sm_90", "alone-13.5-sm_90", &[]),
    ("names", "13.5-sm_90", "names-13.5-sm_90", &[]),
    // it puts undefined functions behind the attributes of the object
    ("only", "13.5-sm_90", "only-13.5-sm_90", &[".nv.info.kernel"]),
    ("places", "13.5-sm_80", "places-13.5-sm_80", &[]),
    ("tensor", "13.5-sm_100a", "tensor-13.5-sm_100a", &[]),
    ("mixed", "13.5-sm_100", "mixed-13.5-sm_100", &[]),
    ("templates", "13.5-sm_90", "templates-13.5-sm_90", &[]),
    ("pool", "13.5-sm_100", "pool-13.5-sm_100", &[]),
    ("chain", "13.5-sm_100", "chain-13.5-sm_100", &[]),
    ("zeros", "13.5-sm_90", "zeros-13.5-sm_90", &[]),
    ("weak", "13.5-sm_90", "weak-13.5-sm_90", &[]),
    // by nvlink 13.0, which says otherwise what the code goes with
    ("gpu", "13.0-sm_90", "gpu_linked-13.0-sm_90", &[".nv.compat"]),
    // a section of variables; its own version, where objects say none
    ("shapes", "12.9-sm_80", "shapes-13.5-sm_80", &["symbols", ".note.nv.cuinfo"]),
    ("shapes", "13.5-sm_90", "shapes-13.5-sm_90", &["symbols"]),
    // parameter banks with the words of textures
    ("places", "13.5-sm_100", "places-13.5-sm_100", &["sections", "segments", "symbols"]),
];

#[test]
fn lists_stand_as_nvlink_has_them() {
    for (program, version, expected, otherwise) in PROGRAMS {
        let [a, b] = halves(program, version);
        let linked = link(&[&a, &b]).unwrap();
        let found = linked::disordered(&read(expected), &linked.bytes);
        assert_eq!(found, otherwise, "{expected}");
    }
}
