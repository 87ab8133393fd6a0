//! Device code without a container: files for AMD's GPUs, and sections that are named for a target.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use fatbin::{CodeObjectHeader, Container, FoundContainer, Search, walk};

fn found(bytes: &[u8]) -> Vec<FoundContainer<'_>> {
    walk(bytes, Search::Always).collect::<Result<_, _>>().unwrap()
}

/// A 64-bit ELF file for a machine, with these sections and the table of their names.
fn elf(machine: u16, flags: u32, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\x40\x02".to_vec(); // of HSA, ABI version 2
    file.resize(64, 0);
    let (mut names, mut headers) = (vec![0], vec![0; 64]);
    let mut section = |name: &str, bytes: &[u8], r#type: u32| {
        let at = file.len() as u64;
        file.extend(bytes);
        let word = u32::try_from(names.len()).unwrap();
        headers.extend([word, r#type].iter().flat_map(|word| word.to_le_bytes()));
        let words = [2, 0, at, bytes.len() as u64, 0, 1, 0]; // SHF_ALLOC
        headers.extend(words.iter().flat_map(|word: &u64| word.to_le_bytes()));
        names.extend(name.bytes().chain([0]));
        names.clone()
    };
    sections.iter().for_each(|(name, bytes)| drop(section(name, bytes, 1)));
    let all = section(".shstrtab", b"", 0);
    let at = file.len() as u64;
    file.extend(&all);
    let last = headers.len() - 64;
    headers[last + 4] = 3;
    headers[last + 24..last + 32].copy_from_slice(&at.to_le_bytes());
    headers[last + 32..last + 40].copy_from_slice(&(all.len() as u64).to_le_bytes());
    let table = file.len() as u64;
    let count = u16::try_from(headers.len() / 64).unwrap();
    file.extend(&headers);
    file[16..18].copy_from_slice(&1_u16.to_le_bytes());
    file[18..20].copy_from_slice(&machine.to_le_bytes());
    file[20] = 1;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[48..52].copy_from_slice(&flags.to_le_bytes());
    for (at, number) in [(52, 64), (58, 64), (60, count), (62, count - 1)] {
        file[at..at + 2].copy_from_slice(&u16::to_le_bytes(number));
    }
    file
}

#[test]
fn a_file_for_an_amd_gpu() {
    let bytes = elf(224, 0x93f, &[(".text", &[1; 16])]);
    let [only] = found(&bytes)[..] else { panic!() };
    let Container::CodeObject(span) = only.container else { panic!("{:?}", only.container) };
    assert_eq!((span.bytes(), only.container.at()), (&bytes[..], 0));
    assert_eq!(CodeObjectHeader::parse(&bytes).unwrap().to_string(), "gfx90a:sramecc-");
    // in an archive, too, and without a search
    let mut archive = format!("!<arch>\n{:<48}{:<10}`\n", "k.o/", bytes.len()).into_bytes();
    archive.extend(&bytes);
    let all: Vec<_> = walk(&archive, Search::Never).collect::<Result<_, _>>().unwrap();
    assert!(matches!(all[..], [FoundContainer { container: Container::CodeObject(_), .. }]));
    assert_eq!(all[0].container.size(), bytes.len() as u64);
    assert!(CodeObjectHeader::parse(b"\x7fELF").is_err());
}

#[test]
fn sections_named_for_a_target() {
    let image = b"\x03\x02\x23\x07 and another";
    let host = "__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu";
    let spir = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64-unknown-unknown";
    let hip = "__CLANG_OFFLOAD_BUNDLE__hipv4-amdgcn-amd-amdhsa--gfx90a";
    let all = "OFFLOAD_DEVICE_CODE";
    let sections: [(&str, &[u8]); _] =
        [(".text", b"\xc3"), (host, b"\0"), (spir, image), (hip, b"code"), (all, b"!<arch>")];
    let bytes = elf(62, 0, &sections);
    let all = found(&bytes);
    let rows: Vec<_> = all
        .iter()
        .map(|found| {
            let Container::TargetSection(section) = found.container else { panic!("{found:?}") };
            assert_eq!(found.container.at(), section.image.at());
            let target = section.target();
            let words = [section.kind(), target.triple, target.arch].map(|name| name.to_string());
            (words, section.image.bytes())
        })
        .collect();
    let words = |words: [&str; 3]| words.map(str::to_owned);
    assert_eq!(
        rows,
        [
            (words(["sycl", "spir64-unknown-unknown", ""]), &image[..]),
            (words(["hipv4", "amdgcn-amd-amdhsa", "gfx90a"]), b"code"),
            (words(["sycl", "", ""]), b"!<arch>"),
        ]
    );
    assert!(!all[0].place.searched);
    // every beginning of it
    for end in 0..bytes.len() {
        walk(&bytes[..end], Search::Always).for_each(|found| match found {
            Ok(found) => assert!(found.container.at() + found.container.size() <= end as u64),
            Err(error) => assert!(!error.to_string().is_empty()),
        });
    }
}
