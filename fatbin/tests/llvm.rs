//! LLVM's containers, and what its host programs say of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use elf_core::File;
use fatbin::{
    CompressedBundle, Container, Error, ErrorKind, FoundContainer, ImageKind, NewImage,
    OffloadBinary, Pointer, Producer, Search, descriptor, device_image, host_entries, offload,
    offload_size, walk, write_offload,
};

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../fixtures/fatbin/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn found(bytes: &[u8]) -> Vec<FoundContainer<'_>> {
    walk(bytes, Search::Always).collect::<Result<_, _>>().unwrap()
}

type Row = (ImageKind, Option<&'static str>, String, String, Vec<u8>);

fn images(bytes: &[u8]) -> Vec<Row> {
    let text = |name: Option<elf_core::Name<'_>>| name.unwrap_or_default().to_string();
    let binaries = found(bytes).into_iter().map(|found| match found.container {
        Container::Offload(binary) => binary,
        other => panic!("{other:?}"),
    });
    let images = binaries.flat_map(|binary| binary.images()).map(Result::unwrap);
    images
        .map(|image| {
            let payload = image.payload().bytes().to_vec();
            (
                image.kind(),
                image.producer().name(),
                text(image.triple()),
                text(image.arch()),
                payload,
            )
        })
        .collect()
}

#[test]
fn offload_binaries() {
    let (cubin, ptx) = (fixture("k75.cubin"), fixture("k.ptx"));
    let nvidia = |kind, producer, payload: &[u8]| {
        (
            kind,
            Some(producer),
            "nvptx64-nvidia-cuda".to_string(),
            "sm_75".to_string(),
            payload.to_vec(),
        )
    };
    let hip = (
        ImageKind(0),
        Some("hip"),
        "amdgcn-amd-amdhsa".to_string(),
        "gfx90a".to_string(),
        ptx.clone(),
    );
    let expected = [
        nvidia(ImageKind::CUBIN, "cuda", &cubin),
        nvidia(ImageKind(0), "openmp", &ptx),
        hip.clone(),
    ];
    assert_eq!(images(&fixture("packager-19.bin")), expected);
    let object = fixture("offloading.o");
    assert_eq!(images(&object), expected);
    assert!(
        found(&object)
            .iter()
            .all(|found| found.place.section.is_some_and(|(_, name)| name == ".llvm.offloading"))
    );
    // LLVM 22 counts HIP otherwise, with the same version.
    let newer = fixture("packager-22.bin");
    assert_eq!(images(&newer), [expected[0].clone(), hip]);
    let Container::Offload(binary) = found(&newer)[1].container else { panic!() };
    assert_eq!(binary.images().next().unwrap().unwrap().producer(), Producer::HIP);
}

#[test]
fn an_offload_binary_built_reads_back() {
    let (cubin, ptx) = (fixture("k75.cubin"), fixture("k.ptx"));
    let strings = [("triple", "nvptx64-nvidia-cuda"), ("arch", "sm_75")];
    let image = NewImage {
        kind: ImageKind::CUBIN,
        producer: Producer::CUDA,
        flags: 0,
        strings: &strings,
        payload: &cubin,
    };
    let other = NewImage { kind: ImageKind::PTX, payload: &ptx, ..image };
    let bytes = offload(&[image, other]).unwrap();
    let read = images(&bytes);
    assert_eq!(read.len(), 2);
    assert_eq!(
        (read[0].0, &read[0].3, &read[0].4),
        (ImageKind::CUBIN, &"sm_75".to_string(), &cubin)
    );
    assert_eq!(
        (read[1].0, &read[1].2, &read[1].4),
        (ImageKind::PTX, &"nvptx64-nvidia-cuda".to_string(), &ptx)
    );
}

#[test]
fn what_a_nul_would_cut_off_is_not_written() {
    let (whole, cut) = ([("arch", "sm_75")], [("arch", "sm\0-75")]);
    let image = NewImage {
        kind: ImageKind::CUBIN,
        producer: Producer::CUDA,
        flags: 0,
        strings: &whole,
        payload: &[1, 2, 3],
    };
    let first = offload(&[image]).unwrap();
    let images = [image, NewImage { strings: &cut, ..image }];
    let mut into = vec![0xaa; offload_size(&images)];
    let error = write_offload(&images, &mut into).unwrap_err();
    let place = first.windows(7).position(|text| text == b"sm_75\0\0").unwrap() + 2;
    assert_eq!(error.at, (first.len() + place) as u64);
    assert_eq!(error.kind, ErrorKind::Invalid { what: "byte of a string", value: 0 });
    assert!(into.iter().all(|byte| *byte == 0xaa), "nothing was written");
}

/// Versions 2 and 3 as LLVM's sources write them: no tool of LLVM 22 does yet.
fn version(version: u32, images: &[(&str, &[u8])]) -> Vec<u8> {
    let header = if version == 3 { 40 } else { 32 };
    let (strings_at, mut texts) = (header + 40 * images.len(), Vec::new());
    let texts_at = strings_at + 24 * images.len();
    let (mut rows, mut strings, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
    let texts_size: usize = images.iter().map(|(arch, _)| 5 + arch.len() + 1).sum();
    let images_at = (texts_at + texts_size).next_multiple_of(8);
    for (index, (arch, payload)) in images.iter().enumerate() {
        let row = [
            u64::from(3_u16) | 2 << 16,
            (strings_at + 24 * index) as u64,
            1,
            (images_at + payloads.len()) as u64,
            payload.len() as u64,
        ];
        rows.extend(row.map(u64::to_le_bytes).concat());
        let key = texts_at + texts.len();
        strings
            .extend([key as u64, key as u64 + 5, arch.len() as u64].map(u64::to_le_bytes).concat());
        texts.extend(format!("arch\0{arch}\0").bytes());
        payloads.extend_from_slice(payload);
    }
    let mut bytes = b"\x10\xff\x10\xad".to_vec();
    bytes.extend(version.to_le_bytes());
    let size = (images_at + payloads.len()).next_multiple_of(8);
    bytes.extend([size as u64, header as u64, images.len() as u64].map(u64::to_le_bytes).concat());
    bytes.resize(header, 0);
    bytes.extend([rows, strings, texts].concat());
    bytes.resize(images_at, 0);
    bytes.extend(payloads);
    bytes.resize(size, 0);
    bytes
}

#[test]
fn newer_versions() {
    let cubin = fixture("k75.cubin");
    for number in [2, 3] {
        let bytes = version(number, &[("sm_75", &cubin), ("sm_90", b"x")]);
        let binary = OffloadBinary::parse(&*bytes).unwrap();
        assert_eq!(
            (binary.version(), binary.size(), binary.compression()),
            (number, bytes.len() as u64, None)
        );
        let read: Vec<_> =
            binary.images().map(Result::unwrap).map(|i| (i.arch(), i.payload().bytes())).collect();
        assert_eq!(read, [(Some("sm_75".into()), &cubin[..]), (Some("sm_90".into()), b"x")]);
    }
    assert!(OffloadBinary::parse(&*version(4, &[])).is_err());
}

#[test]
fn compressed_version_3() {
    let cubin = fixture("k75.cubin");
    let plain = version(3, &[("sm_75", &cubin)]);
    for method in [fatbin::CompressionMethod::Zlib, fatbin::CompressionMethod::Zstd] {
        let mut bytes = plain[..40].to_vec();
        bytes[32..].copy_from_slice(&(plain.len() as u64).to_le_bytes());
        bytes.extend(method.pack(&plain[40..]).unwrap());
        let size = bytes.len() as u64;
        bytes[8..16].copy_from_slice(&size.to_le_bytes());
        let binary = OffloadBinary::parse(&*bytes).unwrap();
        assert_eq!((binary.compression(), binary.images().count()), (Some(method), 0));
        let mut buffer = vec![0; binary.inflate_size(1 << 20).unwrap().unwrap()];
        let inflated = binary.inflate_into(&mut buffer).unwrap();
        assert_eq!(inflated.images().next().unwrap().unwrap().payload().bytes(), cubin);
        assert!(inflated.bytes() == plain);
        assert!(binary.inflate_into(&mut [0; 9]).is_err());
        // A bomb.
        bytes[32..40].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        let error = OffloadBinary::parse(&*bytes).unwrap().inflate_size(usize::MAX).unwrap_err();
        assert!(
            matches!(
                error,
                Error { at: 32, kind: ErrorKind::Bomb { claimed: 0x100_0000_0000, .. } }
            ),
            "{error}"
        );
    }
}

#[test]
fn bundles() {
    let (ptx, source) = (fixture("k.ptx"), fixture("t.cu"));
    let bytes = fixture("bundle.hipfb");
    let Container::Bundle(bundle) = found(&bytes)[0].container else { panic!() };
    assert_eq!(bundle.size(), bytes.len() as u64);
    let entries: Vec<_> = bundle.entries().map(Result::unwrap).collect();
    let ids: Vec<_> = entries
        .iter()
        .map(|entry| {
            let fatbin::OffloadTarget { triple, arch } = entry.target();
            [entry.kind(), triple, arch].map(|name| name.to_string())
        })
        .collect();
    assert_eq!(ids[0], ["host", "x86_64-unknown-linux-gnu", ""]);
    assert_eq!(ids[1], ["hipv4", "amdgcn-amd-amdhsa", "gfx90a"]);
    let images: Vec<_> = entries.iter().map(|entry| entry.image.bytes()).collect();
    assert_eq!(images, [b"", &ptx[..], &source]);
}

#[test]
fn compressed_bundles() {
    let bytes = fixture("bundle.ccob");
    let Container::CompressedBundle(two) = found(&bytes)[0].container else { panic!() };
    let unpack = |bundle: &CompressedBundle<'_>| {
        let mut buffer = vec![0; bundle.unpack_size(1 << 20).unwrap()];
        let bundle = bundle.unpack_into(&mut buffer).unwrap();
        bundle.entries().nth(1).unwrap().unwrap().image.bytes().to_vec()
    };
    assert_eq!((two.version, two.size()), (2, bytes.len() as u64));
    assert_eq!(unpack(&two), fixture("k75.cubin"));
    // The headers of versions 1 and 3 before the same stream.
    let (stream, unpacked) = (&bytes[24..], two.unpacked_size);
    let one = [
        &b"CCOB\x01\0\x01\0"[..],
        &(unpacked as u32).to_le_bytes(),
        &two.hash.to_le_bytes(),
        stream,
    ]
    .concat();
    let size = (32 + stream.len() as u64).to_le_bytes();
    let three =
        [b"CCOB\x03\0\x01\0", &size[..], &unpacked.to_le_bytes(), &two.hash.to_le_bytes(), stream]
            .concat();
    for (version, bytes) in [(1, one), (3, three)] {
        let bundle = CompressedBundle::parse(&*bytes).unwrap();
        assert_eq!(
            (bundle.version, bundle.unpacked_size, bundle.hash),
            (version, unpacked, two.hash)
        );
        assert_eq!(unpack(&bundle), fixture("k75.cubin"));
    }
}

#[test]
fn host_entries_of_both_layouts() {
    // (kernel?, producer, name, size)
    let read = |name: &str| {
        let bytes = fixture(name);
        let file = File::parse(&bytes).unwrap();
        let entries: Vec<_> = host_entries(&file).map(Result::unwrap).collect();
        let row = |entry: &fatbin::HostEntry<'_>| {
            (entry.producer.name().unwrap(), entry.name.map(|name| name.to_string()), entry.size)
        };
        (
            entries.iter().map(row).collect::<Vec<_>>(),
            entries.iter().map(|entry| entry.address).collect::<Vec<_>>(),
        )
    };
    let (rows, _) = read("entries.o");
    assert_eq!(rows, [("cuda", Some("k".into()), 0), ("openmp", Some("sum".into()), 4)]);
    for name in ["omp.o", "omp.pie", "omp.exe"] {
        let (rows, addresses) = read(name);
        assert_eq!(rows.len(), 2, "{name}");
        let [kernel, variable] =
            [0, 1].map(|index| rows.iter().find(|row| (row.2 == 0) == (index == 0)).unwrap());
        assert_eq!(variable, &("openmp", Some("sum".into()), 4), "{name}");
        assert!(kernel.1.as_ref().unwrap().starts_with("__omp_offloading_"), "{name}");
        let linked = addresses.iter().all(|address| matches!(address, Pointer::Address(_)));
        assert_eq!(linked, name != "omp.o", "{name}");
    }
}

#[test]
fn descriptors_of_linked_programs() {
    for name in ["omp.pie", "omp.exe"] {
        let bytes = fixture(name);
        let file = File::parse(&bytes).unwrap();
        let [FoundContainer { container: Container::Offload(binary), .. }] = found(&bytes)[..]
        else {
            panic!("{name}")
        };
        let [image] = binary.images().collect::<Result<Vec<_>, _>>().unwrap()[..] else {
            panic!("{name}")
        };
        assert!(image.payload().bytes().starts_with(b"\x7fELF"));
        let row = device_image(&file, image.payload()).unwrap().unwrap();
        assert_eq!(row.start.file_offset(&file), Some(image.payload().at()), "{name}");
        let first = host_entries(&file).next().unwrap().unwrap();
        assert_eq!(row.entries_begin.file_offset(&file), Some(first.at), "{name}");
        let whole = descriptor(&file, &row).unwrap().unwrap();
        assert_eq!((whole.count, whole.entries_end), (1, row.entries_end), "{name}");
        // A span that is no image is none's.
        assert_eq!(device_image(&file, fatbin::Span::new(&bytes[..8], 0)).unwrap(), None, "{name}");
    }
}
