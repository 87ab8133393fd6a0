//! What is left out by features is a named error, never nothing; all else is read.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test")]

mod common;

use common::fixtures;
use elf_core::names::{
    EM_MIPS, SHT_ANDROID_REL, SHT_ANDROID_RELA, SHT_ANDROID_RELR, SHT_CREL, SHT_REL, SHT_RELA,
    SHT_RELR,
};
use elf_core::{Error, ErrorKind, File};

/// What `found` is to be where `feature` decides, `is_on` or not.
fn check<T>(found: Result<T, Error>, feature: &'static str, is_on: bool) -> Option<T> {
    match found {
        Ok(found) if is_on => Some(found),
        Err(Error { kind: ErrorKind::FeatureOff(name), .. }) if !is_on && name == feature => None,
        Ok(_) => panic!("read without the feature {feature}"),
        Err(error) => panic!("{feature}: {error}"),
    }
}

#[test]
fn fixtures_of_every_form() {
    let mut met = std::collections::BTreeMap::new();
    for (path, bytes) in fixtures() {
        let (is_32, is_big) = (bytes[4] == 1, bytes[5] == 2);
        let (feature, is_on) = match (is_32, is_big) {
            (true, _) if !cfg!(feature = "elf32") => ("elf32", false),
            (false, _) if cfg!(feature = "elf32") && !cfg!(feature = "elf64") => ("elf64", false),
            (_, true) => ("big-endian", cfg!(feature = "big-endian")),
            (true, false) => ("elf32", true),
            (false, false) => ("", true),
        };
        *met.entry(feature).or_insert(0) += 1;
        let Some(file) = check(File::parse(&bytes), feature, is_on) else { continue };
        let is_mips64el = file.header().machine == EM_MIPS && !is_32 && !is_big;
        for section in file.sections() {
            let (feature, is_on) = match section.r#type {
                SHT_REL | SHT_RELA if is_mips64el => ("mips64", cfg!(feature = "mips64")),
                SHT_RELR | SHT_CREL | SHT_ANDROID_REL | SHT_ANDROID_RELA | SHT_ANDROID_RELR => {
                    ("packed-relocations", cfg!(feature = "packed-relocations"))
                }
                _ => ("", true),
            };
            let Some(records) = check(file.relocations(&section), feature, is_on) else { continue };
            if let Some(records) = records {
                assert_eq!(records.iter().count(), records.len(), "{}", path.display());
                *met.entry(feature).or_insert(0) += 1;
            }
        }
        file.symbol_table().unwrap();
    }
    assert!(met[""] > 100, "{met:?}");
    assert!(!cfg!(feature = "default") || met.len() == 5, "{met:?}");
}
