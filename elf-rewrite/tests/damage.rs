//! Damaged host files of device code: an error or a plan, never a panic, and no file that would take all room.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "tests may")]

use std::fs;
use std::path::Path;

use elf_rewrite::{Error, RewritePlan, Rewriter};
use fatbin::{Container, Search, walk};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/fatbin").join(name);
    fs::read(path).expect("a fixture")
}

fn plan(bytes: &[u8], at: u64, size: u64, new: Vec<u8>) -> Result<RewritePlan<Vec<u8>>, Error> {
    let mut rewriter = Rewriter::open(bytes)?;
    rewriter.replace(at..at.saturating_add(size), new)?;
    rewriter.plan()
}

/// Tries to make the first region of a file smaller, and larger.
fn change(bytes: &[u8], at: u64, size: u64) {
    let region = |size: u64| {
        let mut new = vec![0; usize::try_from(size).expect("a size")];
        new[..8].copy_from_slice(b"\x50\xed\x55\xba\x01\0\x10\0");
        new[8..16].copy_from_slice(&(size - 16).to_le_bytes());
        new
    };
    for new in [region(16), region(size + 4096)] {
        if let Ok(plan) = plan(bytes, at, size, new) {
            assert!(plan.growth() < 1 << 37, "a file that takes all room");
            let size: u64 = plan.pieces().map(|piece| piece.size()).sum();
            assert_eq!(size, plan.size());
        }
    }
}

#[test]
fn damaged_hosts_are_refused_or_changed() {
    for name in ["libt.so", "whole.o", "separate.o"] {
        let whole = fixture(name);
        let found = walk(&whole, Search::Always).next().expect("a region").expect("a region");
        let Container::Region(region) = found.container else { panic!("{name}") };
        let (at, size) = (region.at(), region.size());
        change(&whole, at, size);
        for end in (0..whole.len()).step_by(97) {
            change(&whole[..end], at, size);
        }
        // headers and tables, byte for byte; of the region nothing is looked at
        let outside =
            (0..whole.len()).filter(|at| !(region.at()..region.end()).contains(&(*at as u64)));
        for place in outside.step_by(3) {
            for value in [0xff, 0x80, 0] {
                let mut bytes = whole.clone();
                bytes[place] = value;
                change(&bytes, at, size);
            }
        }
    }
}

#[test]
fn damaged_archives_are_refused_or_changed() {
    let member = fixture("whole.o");
    let header = |name: &str, size: usize| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).into_bytes()
    };
    let table = [&1_u32.to_be_bytes()[..], &(8 + 60 + 10_u32).to_be_bytes(), b"k\0"].concat();
    let whole = [
        b"!<arch>\n".to_vec(),
        header("/", table.len()),
        table,
        header("w.o/", member.len()),
        member,
    ]
    .concat();
    let found = walk(&whole, Search::Always).next().expect("a region").expect("a region");
    let (at, size) = (found.container.at(), found.container.size());
    let same = whole[at as usize..][..size as usize].to_vec();
    assert_eq!(plan(&whole, at, size, same).expect("a plan").growth(), 0);
    for place in 0..300 {
        for value in [0xff, b'9', b' ', 0] {
            let mut bytes = whole.clone();
            bytes[place] = value;
            change(&bytes, at, size);
        }
    }
}
